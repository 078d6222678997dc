"""Integers that are levels, integers that are counts, and all others."""

import numpy as np

# Integers of at most so many values are levels, where a value has so many rows in the mean.
_MOST_LEVELS, _LEAST_ROWS = 10, 10
# Unless they are counts: the variance of these in units of their mean, which is 1 or more, and the
# share of the largest of them, while answers end where many are.
_LEAST_DISPERSION, _MOST_OF_LARGEST = 0.7, 0.05


def kind_of_integers(values):
    """What the integers of a column are: levels, counts, or numbers like any other.

    Few different ones are categories, unless they are plainly counts: normal laws would make
    components of single values, whose densities have no bound, and no mixture of Poisson laws has
    less variance than mean, as answers have, which would all be one cluster. Counts begin at 0 or
    1, half of them are below 10, none is above 100. Where counts are larger, a normal law fits them
    as well; a Poisson law for a measurement would need a cluster for every few units, its variance
    being its mean.

    Parameters
    ----------
    values : ndarray of float64
        Without missing ones.

    Returns
    -------
    kind : {"bool", "category", "integer", "float"}
        "bool" where all are 0 or 1, "integer" for counts, "float" for all that is none of these.
    """
    n = len(values)
    if not n or not np.isfinite(values).all():
        return "float"
    if np.isin(values, (0.0, 1.0)).all():
        return "bool"
    is_count = 0 <= values.min() <= 1 and np.median(values) < 10 and values.max() <= 100
    # Of a Poisson law's values the ratio has about this error.
    least = _LEAST_DISPERSION * (1.0 - np.sqrt(2.0 / n))
    is_plainly_count = (
        is_count
        and values.min() == 0
        and values.var() >= least * values.mean()
        and np.mean(values == values.max()) <= _MOST_OF_LARGEST
    )
    if not is_plainly_count and 1 < _n_different(values) <= min(_MOST_LEVELS, n // _LEAST_ROWS):
        return "category"
    return "integer" if is_count else "float"


def _n_different(values):
    """How many different values there are; of many it may be too few, but is no small number."""
    n = len(np.unique(values[:1_000]))
    return n if n > _MOST_LEVELS else len(np.unique(values))
