"""Numbers that are levels, numbers that are counts, and all others."""

import numpy as np

# Numbers of at most so many values are levels, where a value has so many rows in the mean; of at
# most the second number, as years of schooling are, where one has that share of the rows.
_MOST_LEVELS, _LEAST_ROWS = 12, 10
_MOST_TIED_LEVELS, _LEAST_TIED = 30, 0.25
# Unless they are counts: the variance of these in units of their mean, which is 1 or more, and the
# share of the largest of them, while answers end where many are.
_LEAST_DISPERSION, _MOST_OF_LARGEST = 0.7, 0.05
# Beyond it floats do not hold all integers, and levels of them would be mixed up.
LARGEST_WHOLE = 2**53


def kind_of_numbers(values, are_integers):
    """What the numbers of a column are: levels, counts, or numbers like any other.

    Few different ones are categories, and so are some more where many rows have one of them, unless
    they are plainly counts: normal laws would make components of single values, whose densities
    have no bound, and no mixture of Poisson laws has less variance than mean, as answers have,
    which would all be one cluster. Counts are integers that begin at 0 or 1, half of them below 10,
    none above 100. Where counts are larger, a normal law fits them as well; a Poisson law for a
    measurement would need a cluster for every few units, its variance being its mean.

    Parameters
    ----------
    values : ndarray of float64
        Without missing ones.
    are_integers : bool
        Whether the column is one of integers. Of floats that are whole, few different ones are
        taken for the same, and many for measurements.

    Returns
    -------
    kind : {"bool", "category", "integer", "float"}
        "bool" for 0 and 1, "integer" for counts, "float" for all that is none of these.
    """
    if not len(values) or not np.isfinite(values).all():
        return "float"
    if np.isin(values, (0.0, 1.0)).all():
        return "bool"
    n_equal = _rows_of_each(values)
    if n_equal is not None and len(n_equal) <= _MOST_LEVELS:
        return "integer" if are_plainly_counts(values) else "category"
    if are_integers and _may_be_counts(values):
        return "integer"
    is_tied = n_equal is not None and n_equal.max() >= _LEAST_TIED * len(values)
    return "category" if is_tied else "float"


def are_plainly_counts(values):
    """Whether numbers begin at 0 and vary as counts do, few of them as large as the largest."""
    if not _may_be_counts(values) or values.min() > 0 or (np.floor(values) != values).any():
        return False
    # Of a Poisson law's values the ratio of variance and mean has about this error.
    least = _LEAST_DISPERSION * (1.0 - np.sqrt(2.0 / len(values)))
    varies = values.var() >= least * values.mean()
    return bool(varies and np.mean(values == values.max()) <= _MOST_OF_LARGEST)


def _may_be_counts(values):
    return 0 <= values.min() <= 1 and np.median(values) < 10 and values.max() <= 100


def _rows_of_each(values):
    """How many rows each value has; None where these may not be levels."""
    # Of very many numbers most are told from some.
    if len(np.unique(values[:1_000])) > _MOST_TIED_LEVELS:
        return None
    n_equal = np.unique(values, return_counts=True)[1]
    is_few = 1 < len(n_equal) <= min(_MOST_TIED_LEVELS, len(values) // _LEAST_ROWS)
    return n_equal if is_few and np.abs(values).max() < LARGEST_WHOLE else None
