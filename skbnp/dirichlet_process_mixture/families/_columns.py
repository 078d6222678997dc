"""What a family of columns brings to the mixture, beside its kernel."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from skbnp.numerics.scaling import column_scaling

# Gamma draws of a tiny shape underflow to 0.
LEAST_GAMMA = 1e-300


@dataclass(frozen=True)
class Kind:
    """A name that the parameter ``family`` takes, and what such a column holds.

    Attributes
    ----------
    name : str
    text : str
        What it holds, for the text of the parameter.
    rule : str
        What its numbers must be, in words.
    holds : callable, default=None
        ``holds(numbers)`` says which of them it may hold; None: all that are finite.
    is_for : callable
        ``is_for(dtype, values)``: whether "auto" takes a column of this dtype for it, one of
        "category", "text", "bool", "integer" or "float".
    has_levels : bool
        Whether its values are names, which become codes 0, 1, ...
    is_whole : bool
        Whether its values are whole numbers, so that what fills a cell may be rounded.
    """

    name: str
    text: str
    rule: str = ""
    holds: Callable | None = None
    is_for: Callable = lambda dtype, values: False
    has_levels: bool = False
    is_whole: bool = False


class ColumnsPrior:
    """The columns of one family under their prior: a frozen dataclass with ``columns``.

    A family defines ``KINDS``; ``PARAMETERS``, constructor parameters of the estimator by name,
    each a dict as ``skbnp.estimators.parameters.parameter`` takes it; ``of``; ``kernel``;
    ``log_marginal`` and ``draw_block``, the reference; and of a draw, whose statistics of blocks
    are those that the kernel's ``blocks`` returns, the last block being the empty one:
    ``shapes``, ``add_log_densities``, ``add_moments``, ``sample`` and ``draw_cells``.
    """

    KINDS: tuple = ()
    PARAMETERS: dict = {}
    # Statistics of blocks that are >= 0, and that are > 0.
    AT_LEAST_0: tuple = ()
    ABOVE_0: tuple = ()
    # Pseudo counts of the levels of each column, where values are levels.
    has_levels = False
    # Whether missing cells are imputed as part of the state.
    imputes = False

    @classmethod
    def of(cls, mixture, columns, X):
        """The prior that the parameters of a mixture make for these columns of standardised X."""
        raise NotImplementedError

    def kernel(self, X, start):
        """The blocks of these rows, a ``ConjugateFamily``; ``start`` has the hyperparameters."""
        raise NotImplementedError

    def log_marginal(self, X, state):
        """log m(X) of one block."""
        raise NotImplementedError

    def draw_block(self, n, state, rng):
        """n rows of one block whose parameters come from the prior."""
        raise NotImplementedError

    # -- new rows under a draw

    def pattern_order(self, x):
        """An order of rows in which they can be predicted together; None for any."""
        return None

    def prepare(self, x):
        """Rows as ``add_log_densities`` and ``add_moments`` take them."""
        return x

    def add_log_densities(self, rows, draw, out):
        """Add log p(row | block) of observed cells to ``out`` (n_rows, n_blocks + 1)."""
        raise NotImplementedError

    def add_moments(self, rows, draw, w, mean, variance):
        """Set mean and variance of missing cells, the blocks being weighed by w, by column."""
        raise NotImplementedError

    def sample(self, draw, k, rng):
        """One row of block k, (n_columns,)."""
        raise NotImplementedError

    def draw_cells(self, draw, cells, X, rng):
        """Parameters of blocks from their posterior, then ``cells`` given these, (n_cells,)."""
        raise NotImplementedError

    # -- starts

    def as_features(self, x):
        """Complete numbers of comparable spread, for distances between rows."""
        center, scale = column_scaling(x)
        return np.where(np.isnan(x), 0.0, (x - center) / scale)

    # -- files

    def check(self):
        """Raise a ValueError unless the numbers of the prior fit its columns."""
        raise NotImplementedError

    def check_column(self, place, kind, levels):
        """Raise a ValueError unless a column, the ``place``-th of these, may be of a kind."""
        if kind not in [own.name for own in self.KINDS]:
            raise ValueError(f"column {self.columns[place]} must not be {kind!r} under its prior")

    def shapes(self):
        """Name -> shape of each statistic of one block in a draw."""
        raise NotImplementedError

    def check_draw(self, draw, n_blocks, X):
        """Raise a ValueError unless the statistics of a draw may be those of the rows X."""
        for name, shape in self.shapes().items():
            check_array(name, draw[name], (n_blocks, *shape))
        for name in self.AT_LEAST_0:
            if name in self.shapes() and not (draw[name] >= 0.0).all():
                raise ValueError(f"{name} of a draw must be >= 0")
        for name in self.ABOVE_0:
            if name in self.shapes() and not (draw[name] > 0.0).all():
                raise ValueError(f"{name} of a draw must be > 0")


def check_array(name, array, shape, dtype=np.float64):
    """Raise a ValueError unless something is an array of this shape and dtype."""
    if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype != dtype:
        raise ValueError(
            f"{name} must have shape {shape} and dtype {np.dtype(dtype).name}, got "
            f"{getattr(array, 'shape', array)} and {getattr(array, 'dtype', type(array))}"
        )


def check_all_positive(name, array):
    """Raise a ValueError unless all numbers are > 0."""
    if not np.all(array > 0.0):
        raise ValueError(f"{name} must be > 0")


def same_moments(w, of_block, variance_of_block, holes, columns, mean, variance):
    """What does not depend on the row: mean and variance (K + 1, n_columns) by block."""
    for c, j in enumerate(columns):
        rows = np.flatnonzero(holes[:, c])
        mean[rows, j] = w[rows] @ of_block[:, c]
        off = of_block[:, c] - mean[rows, j, np.newaxis]
        variance[rows, j] = np.sum(w[rows] * (variance_of_block[:, c] + off**2), axis=1)
