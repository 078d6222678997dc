# Mean and variance of a mixture, merged part by part: no difference of squares is ever taken.

cdef inline void merge_part(
    double before, double weight, double mean, double variance, double* first, double* square
) noexcept nogil:
    """A part joins those of total weight ``before``.

    ``first`` is the mean so far, ``square`` the weighted sum of variances and of squares about
    the mean, total weight times the mixture's variance: both start at 0 and lose nothing where
    the mean is large beside the spread. A part without weight is to be left out by the caller.
    """
    cdef double off = mean - first[0], total = before + weight
    # From the weightier of the two: a part far off that hardly counts would leave its rounding.
    if weight <= before:
        first[0] += weight / total * off
    else:
        first[0] = mean - before / total * off
    square[0] += weight * (variance + before / total * off * off)
