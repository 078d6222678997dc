cdef class DrawNetwork:
    cdef:
        readonly Py_ssize_t n_features, n_hidden, n_layers, widest, n_components
        readonly object weights             # (n_hidden, n_features), into visible units
        readonly object bias, precision     # of the visible units
        Py_ssize_t[::1] offset, width       # (n_layers + 1,), (n_layers,)
        double[::1] hidden_bias, hidden_precision
        # Edges into visible units by child, for sums over few of them.
        Py_ssize_t[::1] child_start, parent
        double[::1] weight
        # W (width[p], width[c]) of parent layer p and child layer c; -1 where there are no edges.
        double[::1] between
        Py_ssize_t[:, ::1] block
        double[::1] quadratic               # S of each layer over its hidden children
        Py_ssize_t[::1] quadratic_start
        double[::1] log_weight              # of the top layer's components, if any
        double[:, ::1] mean, top_precision
        double[::1] half_log_det


cdef class Moments:
    cdef:
        DrawNetwork net
        bint sigmoid
        double[::1] node, share, bias, precision

    cdef void add(
        self, double before, double weight, const double* u, const Py_ssize_t[::1] missing,
        double* first, double* square,
    ) noexcept nogil
