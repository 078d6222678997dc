"""A chain over the rows of one table whose warm-up begins with a search for its blocks."""

from skbnp.dirichlet_process_mixture._sampler import Sampler
from skbnp.dirichlet_process_mixture.records._start import divide_and_unite

# With fewer rows chains find them as well by themselves, and from more sides.
SEARCHED_ROWS = 5000


class SearchingSampler(Sampler):
    """A chain between whose first sweeps of warm-up blocks are divided and united.

    These are no transitions that leave the posterior as it is, so there are none without a
    warm-up, and none once it is over.
    """

    def adapt(self, sweep):
        """After each sweep of warm-up."""
        super().adapt(sweep)
        divide_and_unite(self, sweep)
