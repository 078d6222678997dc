"""A child of squashed Gaussian units with one parent more, its mean and variance kept.

The parent gives w u, u of mean mu and variance v: with it the child's bias is less by w mu and its
variance by w^2 v. What depends on the rows is the same for every network that has such moves.
"""

LEAST_PRECISION = 1e-12


cdef bint match_precision(
    bint birth, double given, double* without, double* with_it
) noexcept nogil:
    """Fill in the child's precision with the parent, or without for a death; whether there is one.

    ``given`` is the variance that the parent gives. Either is the exact inverse of the other.
    """
    cdef double variance
    if birth:
        variance = 1.0 / without[0]
        if not variance > given:
            return False
        with_it[0] = 1.0 / (variance - given)
    else:
        variance = 1.0 / with_it[0]
        without[0] = 1.0 / (variance + given)
    return without[0] > LEAST_PRECISION


cdef double compare_rows(
    Py_ssize_t n, const double* r, double shift, double w, double without, double with_it,
    double* linear,
) noexcept nogil:
    """Log density of the child's rows with a parent of activation 0, over that without the parent.

    But for the precisions' share in the normalisers. r are the residuals without the parent at
    the bias with it, r - ``shift`` those at the bias without. ``linear`` += the factor of u in the
    log density of each row.
    """
    cdef Py_ssize_t i
    cdef double squares = 0.0, before = 0.0
    for i in range(n):
        squares += r[i] * r[i]
        before += (r[i] - shift) * (r[i] - shift)
        linear[i] += with_it * w * r[i]
    return 0.5 * (without * before - with_it * squares)
