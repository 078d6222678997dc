from skbnp.icp_network._edges cimport Edges


cdef enum:
    # Kinds of births and the deaths that undo them.
    ORPHAN = 0          # without parents, any children
    SINGLETON = 1       # without parents, one child
    WHOLE = 2           # parents and children
    INTERVAL = 3        # a singleton by the paper's proposal of its order


cdef class Births(Edges):
    cdef:
        # The children of the newborn, or of the one that dies, at work.
        Py_ssize_t n_kin
        public Py_ssize_t[::1] kin                      # (n_slots,) slots
        public double[::1] kin_weight                   # (n_slots,)
        # Their parameters without the unit and with it.
        public double[::1] bias_without, precision_without, bias_with, precision_with
        bint _dying                                     # what faults look at
        Py_ssize_t n_elders
        public Py_ssize_t[::1] elder                    # (n_slots,) its parents
        public double[::1] linear, mean                 # (stride,) of the unit: T, and its law
        public double[::1] newborn                      # (stride,) its activations
        public long n_births, n_births_tried, n_deaths, n_deaths_tried
        public long n_splits, n_splits_tried, n_merges, n_merges_tried

    cdef int _birth_or_death(self, int kind) except -1 nogil
    cdef int _birth(self, int kind) except -1 nogil
    cdef int _death(self, int kind) except -1 nogil
    cdef double _draw_weight_from(self, Py_ssize_t parent) noexcept nogil
    cdef void _welcome(self, Py_ssize_t slot) noexcept nogil
    cdef void _forget(self, Py_ssize_t slot) noexcept nogil
    cdef void _list_kin(self, Py_ssize_t slot) noexcept nogil
    cdef Py_ssize_t _count_up_to(self, double order) noexcept nogil
    cdef double _log_choice(self, int kind, double order) noexcept nogil
    cdef double _choose_child(self, int kind, double* order) noexcept nogil
    cdef double _choose_children(self, double order) noexcept nogil
    cdef double _choose_parents(self, double order, bint draw) noexcept nogil
    cdef double _log_reverse(self, int kind, Py_ssize_t slot) noexcept nogil
    cdef double _log_death_choice(
        self, int kind, Py_ssize_t slot, Py_ssize_t n_eligible
    ) noexcept nogil
    cdef Py_ssize_t _list_eligible(self, int kind, Py_ssize_t child) noexcept nogil
    cdef bint _is_eligible(self, int kind, Py_ssize_t slot) noexcept nogil
    cdef double _log_children(self, Py_ssize_t m, Py_ssize_t n) noexcept nogil
    cdef void _fill_mean(self, Py_ssize_t slot) noexcept nogil
    cdef bint _match_moments(self, Py_ssize_t slot, bint birth) noexcept nogil
    cdef double _log_kin(self, Py_ssize_t slot, bint draw) noexcept nogil
    cdef double _fault_of_descent(self, Py_ssize_t slot) noexcept nogil
    cdef int _split(self) except -1 nogil
    cdef int _merge(self) except -1 nogil
    cdef int _split_or_merge(self) except -1 nogil
    cdef Py_ssize_t _list_mergeable(self) noexcept nogil
    cdef bint _is_mergeable(
        self, Py_ssize_t slot, Py_ssize_t* parent, Py_ssize_t* child
    ) noexcept nogil
    cdef double _log_insertion(
        self, Py_ssize_t slot, Py_ssize_t parent, Py_ssize_t child, double* weight, bint split
    ) noexcept nogil
