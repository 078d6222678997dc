"""A chain over the rows of one table whose warm-up begins with a search for its blocks."""

from skbnp.dirichlet_process_mixture._sampler import Sampler
from skbnp.dirichlet_process_mixture.records._start import divide_and_unite

# With fewer rows chains find them as well by themselves, and from more sides.
SEARCHED_ROWS = 5000
# Sweeps in which what a search leaves behind is forgotten too: it ends with the 60th, at a mode.
SEARCHED_WARMUP = 100
# Of more blocks the pairs are too many to look at.
SEARCHED_BLOCKS = 300


def searches(n_samples, algorithm, n_warmup):
    """Whether a chain begins with a search; ``n_warmup`` is a number or "auto"."""
    is_long = n_warmup == "auto" or n_warmup >= SEARCHED_WARMUP
    return algorithm == "collapsed" and n_samples >= SEARCHED_ROWS and is_long


class SearchingSampler(Sampler):
    """A chain between whose first sweeps of warm-up blocks are divided and united.

    These are no transitions that leave the posterior as it is, so there are none without a
    warm-up, and none once it is over.
    """

    def adapt(self, sweep):
        """After each sweep of warm-up."""
        super().adapt(sweep)
        if self.n_clusters <= SEARCHED_BLOCKS:
            divide_and_unite(self, sweep)
