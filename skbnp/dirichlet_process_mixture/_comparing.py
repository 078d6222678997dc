"""A chain that is compared with others, begun elsewhere, once it has made its first sweeps."""

import numpy as np

from skbnp.dirichlet_process_mixture._model import as_features
from skbnp.dirichlet_process_mixture._sampler import Sampler
from skbnp.dirichlet_process_mixture._work import work_of_sweep
from skbnp.numerics.k_means import k_means

# Sweeps after which a chain is compared; those of each other one; and the last ones, whose log
# joints are compared.
COMPARED_SWEEPS, RIVAL_SWEEPS, LAST_SWEEPS = 100, 60, 30
# How many others there are, from and to, and real columns for each of them.
_FEWEST_RIVALS, _MOST_RIVALS, _COLUMNS_OF_RIVAL = 2, 8, 5
# Standard deviations of a log joint from sweep to sweep by which the mean of another is higher.
COMPARED_GAIN = 1.0
# Nominal seconds that the others may take. Nothing can interrupt them, nor does `max_work` count
# them: thousands of incomplete rows in many columns would take minutes.
COMPARED_WORK = 5.0
_BLOCKS_OF_OTHERS = 10
# Principal components in which blocks are looked for, from and to.
_FEWEST_COMPONENTS, _MOST_COMPONENTS = 2, 6
# Centres of k-means, from and to, and rows for each of them, at least.
_FEWEST_CENTERS, _MOST_CENTERS, _ROWS_OF_CENTER = 5, 20, 8
# Weight of R beside the rows in the covariance that the others begin with, in units of what it has
# in the prior.
_WEIGHT_OF_GUESS = 0.2


def n_rivals(X, prior, algorithm):
    """How many others a chain is compared with: none if that would take long."""
    n_columns = 0 if prior.gaussian is None else len(prior.gaussian.columns)
    wanted = min(_MOST_RIVALS, max(_FEWEST_RIVALS, n_columns // _COLUMNS_OF_RIVAL))
    work = RIVAL_SWEEPS * work_of_sweep(_BLOCKS_OF_OTHERS, X, prior, algorithm)
    affordable = int(COMPARED_WORK / work)
    return min(wanted, affordable) if affordable >= _FEWEST_RIVALS else 0


class ComparingSampler(Sampler):
    """A chain that may go on from elsewhere once it has made its first sweeps.

    What a chain learns of covariances from few blocks may hold its rows in these: in many columns
    no split is better until what is known is the covariance within clusters. So others are begun
    with blocks and the covariance within these, and the chain goes on from the most probable of
    them if that is more probable than where it is. With fewer blocks each state may be more
    probable, but there are fewer of them: a row alone can be any one, so a block counts log n.
    """

    def __init__(self, X, prior, labels, bit_generator, **options):
        super().__init__(X, prior, labels, bit_generator, **options)
        self._X, self._prior, self._options = X, prior, options

    def adapt(self, sweep):
        """After each sweep of warm-up."""
        super().adapt(sweep)
        if sweep + 1 == COMPARED_SWEEPS:
            numbers = range(n_rivals(self._X, self._prior, self.algorithm))
            self._compare(self._ahead(), list(filter(None, map(self._rival, numbers))))

    def _compare(self, ahead, rivals):
        """Go on from the best of the others if it is better than what is ``ahead`` of this one."""
        if ahead is None:
            return
        log_joint, n_blocks = ahead
        of_a_block = np.log(len(self._X))
        best, most = None, 0.0
        for sampler, (found, n_found) in rivals:
            gain = found.mean() - log_joint.mean()
            gain -= of_a_block * max(0.0, n_blocks.mean() - n_found.mean())
            gain -= COMPARED_GAIN * max(found.std(), log_joint.std())
            if gain > most:
                best, most = sampler, gain
        if best is not None:
            self.set_state(best.get_state())

    # Chains beside this one have seeds of their own: where it does not go on from another, its
    # draws are those that it would make alone.

    def _ahead(self):
        """Log joint and number of blocks in sweeps that this chain may make next.

        None if they break down: that is for this chain to say.
        """
        bit_generator = self._seeded(_MOST_RIVALS)
        copy = Sampler(self._X, self._prior, self.labels, bit_generator, **self._options)
        copy.set_state(self.get_state() | {"bit_generator": bit_generator.state})
        return _figures(copy, LAST_SWEEPS)

    def _rival(self, number):
        """Another chain after its sweeps, and log joint and number of blocks in the last ones.

        None if it breaks down, which is no fault of this one.
        """
        bit_generator = self._seeded(number)
        rng = np.random.Generator(bit_generator)
        labels = rival_labels(self._X, self._prior, rng, in_components=number % 2 == 1)
        start = covariance_within(self._X, self._prior, labels)
        options = self._options | {"start": start}
        sampler = Sampler(self._X, self._prior, labels, bit_generator, **options)
        figures = _figures(sampler, RIVAL_SWEEPS)
        return None if figures is None else (sampler, figures)

    def _seeded(self, number):
        """The bit generator of a chain beside this one."""
        seed = self.bit_generator.seed_seq
        seed = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, number))
        return np.random.PCG64(seed)


def _figures(sampler, n_sweeps):
    """Log joint and number of blocks in the last of some sweeps of warm-up: (2, n_last).

    None where they break down.
    """
    figures = []
    try:
        for sweep in range(n_sweeps):
            sampler.sweep()
            sampler.adapt(sweep)
            figures.append((sampler.log_joint(), sampler.n_clusters))
    except ArithmeticError:
        return None
    figures = np.array(figures[-LAST_SWEEPS:]).T
    return figures if np.isfinite(figures).all() else None


def rival_labels(X, prior, rng, in_components):
    """First labels of another chain: k-means of the rows, or of their principal components.

    Clusters of many columns are often apart in the first few of these, whatever variance common
    factors give them: all are taken with variance 1.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    prior : skbnp.dirichlet_process_mixture._model.Prior
    rng : numpy.random.Generator
    in_components : bool

    Returns
    -------
    labels : ndarray of shape (n_samples,)
    """
    features, n = as_features(X, prior), len(X)
    varies = np.ptp(features, axis=0).any()
    if in_components and varies and min(features.shape) > _FEWEST_COMPONENTS:
        most = min(_MOST_COMPONENTS, features.shape[1])
        n_components = int(rng.integers(_FEWEST_COMPONENTS, most + 1))
        centered = features - features.mean(axis=0)
        values, vectors = np.linalg.eigh(centered.T @ centered)
        values, vectors = values[-n_components:], vectors[:, -n_components:]
        spread = values > 1e-10 * values[-1]
        features = centered @ vectors[:, spread] * np.sqrt(n / values[spread])
    most = max(_FEWEST_CENTERS, min(_MOST_CENTERS, n // _ROWS_OF_CENTER))
    n_centers = int(rng.integers(_FEWEST_CENTERS, most + 1))
    if prior.components_law is None and prior.n_components is not None:
        n_centers = min(n_centers, prior.n_components)
    return k_means(features, n_centers, rng)


def covariance_within(X, prior, labels):
    """What a chain with such labels begins with where covariances are learned.

    That is one covariance that all blocks have, and a degree of freedom that keeps them near it:
    with the covariance of the whole table blocks look like one.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    prior : skbnp.dirichlet_process_mixture._model.Prior
    labels : ndarray of shape (n_samples,)

    Returns
    -------
    start : dict
        Hyperparameters of a `Sampler`; empty where none are learned.
    """
    part = prior.gaussian
    if part is None or not part.learned:
        return {}
    X = part.as_features(X[:, part.columns])
    sizes = np.bincount(labels)
    means = np.array([np.bincount(labels, x) for x in X.T]).T / np.maximum(sizes, 1)[:, None]
    off = X - means[labels]
    R = np.array(part.covariance, ndmin=1)
    weight = _WEIGHT_OF_GUESS * (part.width + 2.0)
    if part.covariance_type == "full":
        scatter = off.T @ off
    else:
        scatter = np.sum(off**2, axis=0)
        scatter = scatter if part.covariance_type == "diag" else scatter.mean(keepdims=True)
    within = (scatter + weight * R) / (len(X) - np.count_nonzero(sizes) + weight)
    return {"covariance": within, "degrees_of_freedom": part.degrees_grid[-1] + part.width + 1.0}
