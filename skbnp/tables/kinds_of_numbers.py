"""Numbers that are levels, numbers that are counts, and all others."""

import numpy as np

# Numbers of at most so many values are levels, where a value has so many rows in the mean.
_MOST_LEVELS, _LEAST_ROWS = 10, 10
# Unless they are counts: the variance of these in units of their mean, which is 1 or more, and the
# share of the largest of them, while answers end where many are.
_LEAST_DISPERSION, _MOST_OF_LARGEST = 0.7, 0.05


def kind_of_numbers(values, are_integers):
    """What the numbers of a column are: levels, counts, or numbers like any other.

    Few different ones are categories, unless they are plainly counts: normal laws would make
    components of single values, whose densities have no bound, and no mixture of Poisson laws has
    less variance than mean, as answers have, which would all be one cluster. Counts are integers
    that begin at 0 or 1, half of them below 10, none above 100. Where counts are larger, a normal
    law fits them as well; a Poisson law for a measurement would need a cluster for every few units,
    its variance being its mean.

    Parameters
    ----------
    values : ndarray of float64
        Without missing ones.
    are_integers : bool
        By what the column is made of.

    Returns
    -------
    kind : {"bool", "category", "integer", "float"}
        "bool" for integers that are 0 and 1, "integer" for counts, "float" for all that is none of
        these.
    """
    if not len(values) or not np.isfinite(values).all():
        return "float"
    if are_integers and np.isin(values, (0.0, 1.0)).all():
        return "bool"
    is_count = are_integers and 0 <= values.min() <= 1
    is_count = is_count and np.median(values) < 10 and values.max() <= 100
    if _are_few(values) and not (is_count and _are_plainly_counts(values)):
        return "category"
    return "integer" if is_count else "float"


def _are_few(values):
    n = len(np.unique(values[:1_000]))
    if n <= _MOST_LEVELS:
        n = len(np.unique(values))
    return 1 < n <= min(_MOST_LEVELS, len(values) // _LEAST_ROWS)


def _are_plainly_counts(values):
    # Of a Poisson law's values the ratio of variance and mean has about this error.
    least = _LEAST_DISPERSION * (1.0 - np.sqrt(2.0 / len(values)))
    return (
        values.min() == 0
        and values.var() >= least * values.mean()
        and np.mean(values == values.max()) <= _MOST_OF_LARGEST
    )
