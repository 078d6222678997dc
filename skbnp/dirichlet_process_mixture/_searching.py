"""Chains over the rows of one table that look for better blocks as their warm-up begins.

These are no transitions that leave the posterior as it is, so there are none without a warm-up,
and none once it is over.
"""

from skbnp.dirichlet_process_mixture._comparing import COMPARED_SWEEPS, ComparingSampler, n_rivals
from skbnp.dirichlet_process_mixture._sampler import Sampler
from skbnp.dirichlet_process_mixture.records._start import divide_and_unite

# With fewer rows chains find them as well by themselves, and from more sides.
SEARCHED_ROWS = 5000
# Sweeps in which what a search leaves behind is forgotten too: it ends with the 60th, at a mode.
SEARCHED_WARMUP = 100
# Of more blocks the pairs are too many to look at.
SEARCHED_BLOCKS = 300


def kind_of_sampler(X, prior, algorithm, n_warmup):
    """The class of a chain over X; ``n_warmup`` is a number or "auto"."""
    searches = len(X) >= SEARCHED_ROWS
    least = SEARCHED_WARMUP if searches else 2 * COMPARED_SWEEPS
    if algorithm != "collapsed" or (n_warmup != "auto" and n_warmup < least):
        return Sampler
    if searches:
        return SearchingSampler
    return ComparingSampler if n_rivals(X, prior, algorithm) else Sampler


class SearchingSampler(Sampler):
    """A chain between whose first sweeps of warm-up blocks are divided and united."""

    def adapt(self, sweep):
        """After each sweep of warm-up."""
        super().adapt(sweep)
        if self.n_clusters <= SEARCHED_BLOCKS:
            divide_and_unite(self, sweep)
