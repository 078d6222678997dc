"""Mean and variance of a mixture, merged part by part: no difference of squares is ever taken.

A part is a tuple (weight, mean, square): its weight, its mean, and weight times variance. Of
mixtures merged so the mean is the weighted mean, and square / weight the variance by the law of
total variance. Chan, Golub and LeVeque (1983).
"""

import numpy as np


def merged(parts):
    """All parts in their order as one.

    Parameters
    ----------
    parts : iterable of (weight, mean, square)
        Arrays that broadcast to the shape of the means, or numbers. A part without weight has
        no say; a square may be inf.

    Returns
    -------
    part : tuple of (weight, mean, square)
    """
    parts = iter(parts)
    total, mean, square = next(parts)
    for weight, other, more in parts:
        before, total = total, total + weight
        rest, share, off = _share(before, total), _share(weight, total), other - mean
        # From the weightier of the two: a part far off that hardly counts would leave its rounding.
        is_lighter = weight <= before
        if isinstance(is_lighter, bool):
            mean = mean + share * off if is_lighter else other - rest * off
        else:
            mean = np.where(is_lighter, mean + share * off, other - rest * off)
        square = square + more + weight * rest * off**2
    return total, mean, square


def _share(weight, total):
    if isinstance(weight, float) and isinstance(total, float):
        return weight / total if total > 0 else 0.0
    weight, total = np.broadcast_arrays(weight, total)
    return np.divide(weight, total, where=total > 0, out=np.zeros(total.shape))
