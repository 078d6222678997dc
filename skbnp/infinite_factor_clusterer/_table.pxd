cdef class Table:
    cdef:
        readonly bint has_open_cells
        unsigned char[:, ::1] cell          # KNOWN, MISSING, CENSORED; (0, 0) if all are known
        double[::1] limit                   # (n_features,) below which censored cells lie
        # Patterns of missing cells; rows by pattern.
        Py_ssize_t n_patterns
        Py_ssize_t[::1] pattern             # (n_samples,)
        Py_ssize_t[::1] feature_start       # (n_patterns + 2,) into feature
        Py_ssize_t[::1] feature             # observed features of each pattern; at last, all
        Py_ssize_t[::1] pattern_start       # (n_patterns + 1,) into by_pattern
        Py_ssize_t[::1] by_pattern          # (n_samples,)


cdef enum:
    # Cells of the table.
    KNOWN = 0
    MISSING = 1
    CENSORED = 2
