from skbnp.processes.icp cimport GraphLaw


cdef class Graph:
    cdef:
        readonly GraphLaw law
        readonly Py_ssize_t n_observed, n_hidden, n_nodes, n_edges
        readonly Py_ssize_t n_slots, max_units
        # Nodes live in slots, the observed ones in the first.
        readonly double[::1] order              # (n_slots,)
        readonly unsigned char[:, ::1] edge     # (n_slots, n_slots) child x parent
        readonly Py_ssize_t[::1] n_children, n_parents  # (n_slots,)
        readonly Py_ssize_t[::1] ascending      # (n_slots,) slots of the n_nodes by order
        unsigned char[::1] is_fixed             # (n_observed,) whether the order is given
        Py_ssize_t[::1] free_slot               # (n_slots,) a stack of those that are free
        Py_ssize_t n_free

    cdef int reserve(self, Py_ssize_t n_new) except -1
    cdef Py_ssize_t insert(self, double order) noexcept nogil
    cdef void remove(self, Py_ssize_t slot) noexcept nogil
    cdef void take_out(self, Py_ssize_t slot) noexcept nogil
    cdef void put_back(self, Py_ssize_t slot) noexcept nogil
    cdef void place(self, Py_ssize_t slot, Py_ssize_t n) noexcept nogil
    cdef void link(self, Py_ssize_t child, Py_ssize_t parent) noexcept nogil
    cdef void unlink(self, Py_ssize_t child, Py_ssize_t parent) noexcept nogil
    cdef bint is_hidden(self, Py_ssize_t slot) noexcept nogil
    cdef bint is_free_order(self, Py_ssize_t slot) noexcept nogil
    cdef Py_ssize_t rank(self, Py_ssize_t slot) noexcept nogil
    cdef Py_ssize_t count_below(self, double order) noexcept nogil
    cdef Py_ssize_t count_up_to(self, double order) noexcept nogil
    cdef void count_all_below(self, Py_ssize_t* out) noexcept nogil
    cdef Py_ssize_t list_hidden(self, Py_ssize_t* out) noexcept nogil
    cdef Py_ssize_t list_free_orders(self, Py_ssize_t* out) noexcept nogil
    cdef double highest_child(self, Py_ssize_t slot) noexcept nogil
    cdef double lowest_parent(self, Py_ssize_t slot) noexcept nogil
    cdef double log_node(self, Py_ssize_t slot, Py_ssize_t n_below) noexcept nogil
    cdef double log_density(self) noexcept nogil
    cdef double exposure(self, double alpha) noexcept nogil
    cdef Py_ssize_t depth(self, Py_ssize_t* scratch) noexcept nogil
