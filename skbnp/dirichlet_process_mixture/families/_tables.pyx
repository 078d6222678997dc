"""Sums of entries of a table, as densities of values that many rows share."""


def add_from_table(
    const Py_ssize_t[:, ::1] place, const double[:, ::1] table, double[:, ::1] out
):
    """out[i] += sum over the observed columns j of table[place[i, j]]"""
    cdef Py_ssize_t i, j, k, t
    with nogil:
        for i in range(place.shape[0]):
            for j in range(place.shape[1]):
                t = place[i, j]
                if t >= 0:
                    for k in range(table.shape[1]):
                        out[i, k] += table[t, k]
