cdef enum:
    # What the moves of rows count, in the order of ``rows.Rows.COUNTS``.
    EDGES = 0
    SWAPS = 1
    BIRTHS = 2
    DEATHS = 3
    BLOCKS = 4


cdef struct Counts:
    Py_ssize_t* accepted
    Py_ssize_t* proposed
