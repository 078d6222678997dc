"""A chain over the rows of one table that begins with a search for its blocks."""

from skbnp.dirichlet_process_mixture._sampler import Sampler
from skbnp.dirichlet_process_mixture.records._start import search_blocks

# With fewer rows chains find them as well by themselves, and from more sides.
SEARCHED_ROWS = 5000


class SearchingSampler(Sampler):
    """A chain whose first sweep comes after ``search_blocks``.

    Not when it is made: a chain that goes on from a state has no use for it.
    """

    _has_searched = False

    def sweep(self):
        """One transition."""
        if self.n_sweeps == 0 and not self._has_searched:
            self._has_searched = True
            search_blocks(self)
        super().sweep()
