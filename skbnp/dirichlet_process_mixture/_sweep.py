"""A sweep of the mixture: its moves in their order, and the settings that they look at."""

# ruff: noqa: F401
from collections.abc import Callable
from dataclasses import dataclass

from skbnp.mcmc.chain import Move

# A line for each move, in the order of a sweep.
# isort: off
from skbnp.dirichlet_process_mixture.moves.gibbs import Gibbs
from skbnp.dirichlet_process_mixture.moves.all_rows import AllRows
from skbnp.dirichlet_process_mixture.moves.split_merge import SplitMerge
from skbnp.dirichlet_process_mixture.moves.hyperparameters import Concentration
from skbnp.dirichlet_process_mixture.moves.hyperparameters import Discount
from skbnp.dirichlet_process_mixture.moves.hyperparameters import PriorScale
from skbnp.dirichlet_process_mixture.moves.hyperparameters import LearnCovariance
# isort: on

# A module keeps its names in the order of its lines.
MOVES = tuple(
    found
    for found in list(globals().values())
    if isinstance(found, type) and issubclass(found, Move) and found is not Move
)

# How labels are redrawn.
ALGORITHMS = ("collapsed", "gibbs", "parallel")

# How a split divides a block.
DIVISIONS = ("sequential", "restricted_gibbs")

# Rows that "parallel" redraws one by one in a sweep. Records of draws do not say which these were,
# but how many is part of what finds them again: files are read by this number too.
SUBSET = 2000


def in_order(function, n_items, size):
    """Call function(start, stop) for each chunk of the items, one after the other."""
    for start in range(0, n_items, size):
        function(start, min(start + size, n_items))


@dataclass(frozen=True)
class Sweep:
    """Settings of a sweep.

    The classmethod ``of(state, sweep, bit_generator)`` of a move makes it by them, or returns None
    where it has no part in a sweep of such a state.

    Attributes
    ----------
    algorithm : {"collapsed", "gibbs", "parallel"}
    split_merge : {"sequential", "restricted_gibbs"}
    n_split_merge : int or "auto"
    n_subset : int
        Rows that "parallel" redraws one by one.
    for_rows : callable
        ``for_rows(function, n_items, size)`` calls ``function(start, stop)`` for every chunk of
        that size, by threads if it likes.
    """

    algorithm: str = "collapsed"
    split_merge: str = "sequential"
    n_split_merge: int | str = "auto"
    n_subset: int = SUBSET
    for_rows: Callable = in_order

    def __post_init__(self):
        if self.algorithm not in ALGORITHMS:
            raise ValueError(f"algorithm must be one of {ALGORITHMS}, got {self.algorithm!r}")
        if self.split_merge not in DIVISIONS:
            raise ValueError(f"split_merge must be one of {DIVISIONS}, got {self.split_merge!r}")

    @property
    def by_rows(self):
        """Whether some rows are redrawn one by one."""
        return self.algorithm != "gibbs"

    @property
    def at_once(self):
        """Whether all rows are redrawn at once."""
        return self.algorithm != "collapsed"
