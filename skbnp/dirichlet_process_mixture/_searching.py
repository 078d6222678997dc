"""Chains over the rows of one table that look for better blocks as their warm-up begins.

These are no transitions that leave the posterior as it is, so there are none without a warm-up,
and none once it is over.
"""

import numpy as np

from skbnp.dirichlet_process_mixture._model import start_labels
from skbnp.dirichlet_process_mixture._sampler import Sampler
from skbnp.dirichlet_process_mixture._work import work_of_sweep
from skbnp.dirichlet_process_mixture.records._start import divide_and_unite

# With fewer rows chains find them as well by themselves, and from more sides.
SEARCHED_ROWS = 5000
# Sweeps in which what a search leaves behind is forgotten too: it ends with the 60th, at a mode.
SEARCHED_WARMUP = 100
# Of more blocks the pairs are too many to look at.
SEARCHED_BLOCKS = 300
# Sweeps after which a chain is compared with so many others.
COMPARED_SWEEPS, N_RIVALS = 100, 2
# Standard deviations of a log joint from sweep to sweep: chains of the same blocks differ by less.
COMPARED_GAIN = 3.0
# Nominal seconds that the others may take. Nothing can interrupt them, nor does `max_work` count
# them: thousands of incomplete rows in many columns would take minutes.
COMPARED_WORK = 10.0
_BLOCKS_OF_OTHERS = 10


def kind_of_sampler(X, prior, algorithm, n_warmup):
    """The class of a chain over X; ``n_warmup`` is a number or "auto"."""
    searches = len(X) >= SEARCHED_ROWS
    least = SEARCHED_WARMUP if searches else 2 * COMPARED_SWEEPS
    if algorithm != "collapsed" or (n_warmup != "auto" and n_warmup < least):
        return Sampler
    if searches:
        return SearchingSampler
    n_sweeps = N_RIVALS * COMPARED_SWEEPS
    work = n_sweeps * work_of_sweep(_BLOCKS_OF_OTHERS, X, prior, algorithm)
    return ComparingSampler if work <= COMPARED_WORK else Sampler


class SearchingSampler(Sampler):
    """A chain between whose first sweeps of warm-up blocks are divided and united."""

    def adapt(self, sweep):
        """After each sweep of warm-up."""
        super().adapt(sweep)
        if self.n_clusters <= SEARCHED_BLOCKS:
            divide_and_unite(self, sweep)


class ComparingSampler(Sampler):
    """A chain that may go on from elsewhere once it has made its first sweeps.

    What a chain learns of covariances from few blocks may hold its rows in these: in many columns
    no split is better until what is known is the covariance within clusters. So other chains of as
    many sweeps are run from k-means, and this one goes on from the most probable of them if that is
    far more probable. Not if it has fewer blocks: one by one its states are more probable then, but
    there may be far fewer of them.
    """

    def __init__(self, X, prior, labels, bit_generator, **options):
        super().__init__(X, prior, labels, bit_generator, **options)
        self._X, self._prior, self._options = X, prior, options

    def adapt(self, sweep):
        """After each sweep of warm-up."""
        super().adapt(sweep)
        if sweep + 1 == COMPARED_SWEEPS:
            self._compare(list(filter(None, map(self._rival, range(N_RIVALS)))))

    def _compare(self, rivals):
        """Go on from the best of the others if it is that much better."""
        if not rivals:
            return
        sampler, (log_joint, n_blocks) = max(rivals, key=lambda rival: rival[1][0].mean())
        gain = log_joint.mean() - self.log_joint()
        if gain > COMPARED_GAIN * log_joint.std() and n_blocks.mean() > self.n_clusters - 0.5:
            self.set_state(sampler.get_state())

    def _rival(self, number):
        """Another chain after as many sweeps; log joint and number of blocks in the last ones.

        None if it breaks down, which is no fault of this one.
        """
        # It has a seed of its own: a chain that goes on where it is makes the draws that it made.
        seed = self.bit_generator.seed_seq
        seed = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, number))
        bit_generator = np.random.PCG64(seed)
        rng = np.random.Generator(bit_generator)
        labels = start_labels("kmeans", self._X, self._prior, rng)
        sampler = Sampler(self._X, self._prior, labels, bit_generator, **self._options)
        figures = []
        try:
            for sweep in range(COMPARED_SWEEPS):
                sampler.sweep()
                sampler.adapt(sweep)
                figures.append((sampler.log_joint(), sampler.n_clusters))
        except ArithmeticError:
            return None
        figures = np.array(figures[3 * COMPARED_SWEEPS // 4 :]).T
        return (sampler, figures) if np.isfinite(figures).all() else None
