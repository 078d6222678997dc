"""The model that fills a table of which nothing is said but its shape and kinds of columns."""

from collections import Counter
from numbers import Real

import numpy as np
from scipy.stats import spearmanr

from skbnp.dirichlet_process_mixture import DirichletProcessMixture
from skbnp.imputer._layout import Layout
from skbnp.imputer._semicontinuous import common_values
from skbnp.tables.columns import columns_of
from skbnp.tables.kinds_of_numbers import kind_of_numbers
from skbnp.tree_factor_model import TreeFactorModel

# Columns up to which a mixture fills a table of numbers. Chosen on tables of which no benchmark
# knows, by `benchmarks/imputer.py --choice`: errors of the two models are about the same there, and
# above a handful of columns the tree takes a tenth of the time.
MOST_MIXTURE_COLUMNS = 4
# Real columns up to which a mixture has full covariances beside columns of names, the share of a
# column's values that may be equal where these are not set apart, and the share of its two most
# frequent values up to which a column of counts is real. In components of equal values a covariance
# has no bound, and tells other cells what is far out.
MOST_FULL_COLUMNS, MOST_EQUAL, MOST_OF_TWO = 20, 0.5, 0.55
# Rank correlation with a real column from which on numbers of few values are real, and how many
# values they must have. Levels have no order, and tell nothing of other columns within a cluster;
# where there are fewer of them, components hold rows of one alone.
LEAST_CORRELATION, FEWEST_VALUES = 0.5, 6
# Rows with both cells, below which no correlation is looked at.
_FEWEST_PAIRS = 20
# Of a mixture: what fills cells is known long before partitions are.
MAX_WORK = 6.0


def holds_names(column):
    """Whether a column of a table holds names of levels, or dates, rather than numbers.

    Parameters
    ----------
    column : skbnp.tables.columns.Column
    """
    if column.kind != "text":
        return column.kind in ("category", "bool", "date")
    values = column.values.tolist()
    words = {value for value in values if isinstance(value, (str, bool))}
    others = [value for value in values if not isinstance(value, (str, bool))]
    if not others:
        return not column.holds_numbers_as_text()
    if not all(isinstance(value, Real) for value in others):
        return False  # the model says so
    # Names among numbers; of a few words among many numbers the model says that they are none.
    return len(words) >= len(set(others)) and not _is_number(words)


def _is_number(words):
    """Whether all of them are texts of numbers."""
    try:
        np.array(list(words), dtype=np.float64)
    except ValueError:
        return False
    return True


def default_estimator(columns, semicontinuous=True):
    """The model for these columns, all of which vary.

    Parameters
    ----------
    columns : list of skbnp.tables.columns.Column
    semicontinuous : bool, default=True
        Whether common values of real columns are set apart.

    Returns
    -------
    estimator : DirichletProcessMixture or TreeFactorModel
    """
    if all(map(_is_binary, columns)):
        return DirichletProcessMixture(family="bernoulli", max_work=MAX_WORK)
    if not any(map(holds_names, columns)):
        if len(columns) > MOST_MIXTURE_COLUMNS:
            return TreeFactorModel()
        two = list(map(_is_binary, columns))
        family = ["bernoulli" if one else "gaussian" for one in two] if any(two) else "gaussian"
        return DirichletProcessMixture(family=family, max_work=MAX_WORK)
    family = list(map(_family_beside_names, columns))
    numbers = [column for column, name in zip(columns, family, strict=True) if name == "gaussian"]
    family = [
        "gaussian" if name == "auto" and _goes_with(column, numbers) else name
        for column, name in zip(columns, family, strict=True)
    ]
    numbers = [column for column, name in zip(columns, family, strict=True) if name == "gaussian"]
    are_spread = [
        _share_of_most_frequent(column, 1) <= MOST_EQUAL
        or (semicontinuous and len(common_values(column)) > 0)
        for column in numbers
    ]
    is_full = len(numbers) <= MOST_FULL_COLUMNS and all(are_spread)
    shape = "full" if is_full else "diag"
    return DirichletProcessMixture(family=family, covariance_type=shape, max_work=MAX_WORK)


def _is_binary(column):
    """Whether a column holds the numbers 0 and 1 alone."""
    return column.kind in ("real", "integer") and bool(np.isin(column.values, (0, 1)).all())


def _family_beside_names(column):
    """The family of a column in a table in which some hold names."""
    if _is_binary(column):
        return "bernoulli"
    if holds_names(column):
        # Of dates "auto" says what to do with them.
        return "auto" if column.kind == "date" else "categorical"
    # Few different numbers are levels for "auto", and counts of which most have one of two values
    # are counts.
    kind = _kind_of(column)
    are_counts = kind == "integer" and _share_of_most_frequent(column, 2) > MOST_OF_TWO
    is_auto = kind == "category" or are_counts
    return "auto" if is_auto else "gaussian"


def _goes_with(column, others):
    """Whether numbers of few values rise or fall with one of some real columns."""
    if _kind_of(column) != "category" or len(np.unique(column.values)) < FEWEST_VALUES:
        return False
    if _share_of_most_frequent(column, 1) > MOST_EQUAL:
        return False
    x, x_seen = _numbers_of(column)
    for other in others:
        y, y_seen = _numbers_of(other)
        both = x_seen & y_seen
        if both.sum() >= _FEWEST_PAIRS and np.ptp(x[both]) > 0 and np.ptp(y[both]) > 0:
            if abs(spearmanr(x[both], y[both]).statistic) > LEAST_CORRELATION:
                return True
    return False


def _numbers_of(column):
    """The numbers of a column, NaN where missing, and which cells have one."""
    numbers = np.full(len(column.missing), np.nan)
    numbers[~column.missing] = column.values.astype(np.float64)
    return numbers, ~column.missing


def _kind_of(column):
    """What the numbers of a column are, None where it may hold others than numbers."""
    if column.kind not in ("integer", "real"):
        return None
    return kind_of_numbers(column.values.astype(np.float64), column.kind == "integer")


def _share_of_most_frequent(column, n_values):
    """The share of a column's cells that have one of its most frequent values."""
    counted = Counter(map(str, column.values.tolist())).most_common(n_values)
    return sum(n_equal for _, n_equal in counted) / len(column.values)


def default_model(X, semicontinuous=True):
    """What a `BNPImputer` with ``estimator="auto"`` fits to a table, to set its parameters.

    Parameters
    ----------
    X : array-like or frame of shape (n_samples, n_features)
    semicontinuous : bool, default=True
        The parameter of the imputer. The model's ``family`` is of the columns of X that vary, to
        which the imputer adds those of two values.

    Returns
    -------
    estimator : DirichletProcessMixture or TreeFactorModel
        Not fitted.
    """
    columns = columns_of(X)
    modelled = Layout.of(columns, False).modelled
    return default_estimator([columns[j] for j in modelled], semicontinuous)
