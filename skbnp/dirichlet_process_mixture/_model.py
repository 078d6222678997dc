"""The mixture's prior, its joint density in plain NumPy, and how the prior follows the data.

``log_joint`` is slow and readable on purpose: it is what the compiled sampler is tested against.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln
from sklearn.cluster import kmeans_plusplus

from skbnp.dirichlet_process_mixture.families import GaussianPrior
from skbnp.dirichlet_process_mixture.families._columns import ColumnsPrior
from skbnp.laws import Beta, Gamma, Grid, Law, ShiftedBetaNegativeBinomial
from skbnp.processes import crp, mfm

# s in {1, 1/2, ..., 2^-12}, uniform: equation (M1.5)
SCALE_GRID = Grid(2.0 ** -np.arange(13.0))

# What kernels draw from: the laws that hyperparameters may have.
LAWS = {"concentration": Gamma, "discount": Beta, "prior_scale": Grid}

# Chains start from these in turn.
STARTS = ("one_block", "kmeans")

# Centres of k-means, from and to, its rounds at most, and rows whose distances fit in memory.
_FEWEST_CENTERS, _MOST_CENTERS, _KMEANS_ROUNDS, _KMEANS_ROWS = 5, 20, 10, 2**16


@dataclass(frozen=True)
class Prior:
    """Hyperparameters of the mixture: those of the partition and those of the columns.

    ``parts`` hold at most one prior of each kind and share out the columns of the table; given
    the block of a row they are independent. A number for ``concentration``, ``discount`` or
    ``prior_scale`` fixes it, a law samples it. Under a law of ``n_components`` the number of
    components is sampled, and ``concentration``, a number, is that of each.
    """

    parts: tuple[ColumnsPrior, ...]
    n_components: int | ShiftedBetaNegativeBinomial | None = None
    concentration: float | Law = Gamma(1.0, 1.0)
    discount: float | Law = 0.0
    prior_scale: float | Law = SCALE_GRID

    @classmethod
    def from_data(cls, fields):
        """The prior that a file holds; in version 0.1 a law was None and its numbers a tuple."""
        if "n_components_prior" in fields:
            fields = dict(fields)
            law = fields.pop("n_components_prior")
            if law is not None:
                fields["n_components"] = ShiftedBetaNegativeBinomial(*law)
            for name in ("concentration", "discount"):
                numbers = fields.pop(f"{name}_prior")
                if fields[name] is None:
                    fields[name] = LAWS[name](*numbers)
            if fields["prior_scale"] is None:
                fields["prior_scale"] = SCALE_GRID
        return cls(**fields)

    @property
    def components_law(self):
        """The law of the number of components, None where that is a number or infinite."""
        return self.n_components if isinstance(self.n_components, Law) else None

    @property
    def gaussian(self):
        """The prior of the real columns, None where there are none."""
        return next((part for part in self.parts if isinstance(part, GaussianPrior)), None)

    @property
    def learned(self):
        """Whether there are real columns and their covariances are learned."""
        return self.gaussian is not None and self.gaussian.learned

    def start(self):
        """The hyperparameters of the real columns at the start of a chain."""
        return self.gaussian.start() if self.learned else {"prior_scale": self.scale_grid[0]}

    @property
    def n_features(self):
        """Number of columns of the table."""
        return sum(len(part.columns) for part in self.parts)

    @property
    def n_values(self):
        """Numbers that say what is known of a row's cells: one a column, then one a level."""
        return len(self.columns_of_values)

    @property
    def columns_of_values(self):
        """The column that each of them is about; -1 for the one of a column of levels."""
        columns = np.arange(self.n_features)
        for part in self.parts:
            if part.has_levels:
                columns[part.columns] = -1
                levels = np.repeat(part.columns, np.diff(part.level_start))
                columns = np.concatenate([columns, levels])
        return columns

    @property
    def scale_grid(self):
        """Values of the prior scale: its grid, or the one it is fixed to."""
        if self.gaussian is None or self.learned:
            return np.ones(1)
        if isinstance(self.prior_scale, Grid):
            return np.array(self.prior_scale.values)
        return np.array([float(self.prior_scale)])


def log_eppf(sizes, concentration, discount):
    """log probability of a partition with these block sizes: equation (M2.1)."""
    sizes = np.asarray(sizes, dtype=float)
    opened = np.arange(1, len(sizes))
    with np.errstate(divide="ignore"):  # more blocks than components: -inf
        total = np.sum(np.log(np.maximum(concentration + opened * discount, 0.0)))
    total -= gammaln(concentration + sizes.sum()) - gammaln(concentration + 1)
    return total + np.sum(gammaln(sizes - discount) - gammaln(1 - discount))


def log_eppf_finite_mixtures(sizes, concentration, components_law):
    """The same where the number of components is sampled: equation (M2.3)."""
    sizes = np.asarray(sizes, dtype=float)
    n, t = int(sizes.sum()), len(sizes)
    log_v = mfm.log_coefficient(t, n, concentration, components_law)
    return log_v + np.sum(gammaln(sizes + concentration) - gammaln(concentration))


def log_marginal(X, prior, state):
    """log m(X) of one block, the sum over the kinds of columns."""
    return sum(part.log_marginal(X[:, part.columns], state) for part in prior.parts)


def log_joint(state, X, prior, terms=False):
    """log p(rho, X, concentration, discount, scale), normalised.

    Parameters
    ----------
    state : dict
        label (n_samples,), concentration, discount; prior_scale or, where covariances are
        learned, mean_precision, degrees_of_freedom and covariance.
    X : ndarray of shape (n_samples, n_features)
        Data in the prior's units; imputed for full covariance, else with NaN where missing.
    prior : Prior
    terms : bool, default=False
        Return a dict of the terms instead of their sum.
    """
    label = np.asarray(state["label"])
    blocks = [X[label == k] for k in np.unique(label)]
    concentration, discount = state["concentration"], state["discount"]
    sizes = [len(block) for block in blocks]
    if prior.components_law is not None:
        of_partition = log_eppf_finite_mixtures(sizes, concentration, prior.components_law)
    else:
        if prior.n_components is not None:
            discount = -concentration / prior.n_components
        of_partition = log_eppf(sizes, concentration, discount)
    parts = {
        "partition": of_partition,
        "data": sum(log_marginal(block, prior, state) for block in blocks),
        "concentration": 0.0,
        "discount": 0.0,
        "prior_scale": -np.log(len(prior.scale_grid)),
        "covariance": 0.0,
    }
    if prior.learned:
        parts["covariance"] = prior.gaussian.log_base(state)
    for name in ("concentration", "discount"):
        law = getattr(prior, name)
        if isinstance(law, Law):
            parts[name] = law.log_density(state[name])
    return parts if terms else sum(parts.values())


def draw_joint(prior, n_samples, rng):
    """One draw of hyperparameters, partition and complete rows from the prior: (state, X).

    rng is a numpy.random.Generator; X is in the prior's units.
    """
    concentration, discount = prior.concentration, prior.discount
    if isinstance(concentration, Law):
        # A shape near 0 rounds most draws to 0, shapes of a discount near 0 half of them to 1.
        concentration = max(concentration.sample(random_state=rng), np.finfo(float).tiny)
    if isinstance(discount, Law):
        discount = min(discount.sample(random_state=rng), np.nextafter(1.0, 0.0))
    base = {"prior_scale": rng.choice(prior.scale_grid)}
    if prior.learned:
        base = prior.gaussian.draw_base(rng)
    if prior.components_law is not None:
        discount = -concentration
        label = mfm.sample(n_samples, concentration, prior.components_law, random_state=rng)
    elif prior.n_components:
        label = crp.sample(
            n_samples, concentration, n_components=prior.n_components, random_state=rng
        )
    else:
        label = crp.sample(n_samples, concentration, discount, random_state=rng)
    X = np.empty((n_samples, prior.n_features))
    for k in np.unique(label):
        rows = np.flatnonzero(label == k)
        for part in prior.parts:
            X[np.ix_(rows, part.columns)] = part.draw_block(len(rows), base, rng)
    state = {
        "label": label,
        "concentration": concentration,
        "discount": discount,
        **base,
    }
    return state, X


def shrunk_correlation(X):
    """Correlation of the columns, pairwise complete, shrunk, positive definite.

    Shrunk by 0.01 towards the identity, by 0.5 when there are fewer than five complete rows a
    column. Pairwise estimates do not fit together: their matrix is nearly singular, or made so, and
    as a prior it would draw the variances of missing cells given the others towards 0.
    """
    d = X.shape[1]
    seen = ~np.isnan(X)
    filled = np.where(seen, X, 0.0)
    both = seen.T.astype(float) @ seen.astype(float)
    squares = (filled**2).T @ seen
    norm = np.sqrt(squares * squares.T)
    correlation = np.divide(filled.T @ filled, norm, out=np.zeros((d, d)), where=norm > 0)
    correlation[both < 3] = 0.0
    np.fill_diagonal(correlation, 1.0)
    if np.any(~seen):  # pairwise estimates need not fit together
        values, vectors = np.linalg.eigh(correlation)
        correlation = (vectors * np.maximum(values, 0.0)) @ vectors.T
        root = np.sqrt(np.diag(correlation))
        correlation = correlation / np.outer(root, root)
    weight = 0.5 if np.sum(seen.all(axis=1)) < 5 * d else 0.01
    return (1 - weight) * correlation + weight * np.eye(d)


def guess_covariance(X, covariance_type):
    """R of learned covariances for standardised X."""
    if covariance_type == "full":
        return shrunk_correlation(X)
    return np.ones(X.shape[1]) if covariance_type == "diag" else np.array(1.0)


def default_covariance(X, covariance_type, degrees_of_freedom):
    """The base of the prior covariance for standardised X: E[Sigma] = s times correlation.

    Below the default degrees of freedom, where the mean runs away, the base is that of the default.
    """
    d = X.shape[1]
    df = max(degrees_of_freedom, default_degrees_of_freedom(d, covariance_type))
    if covariance_type == "full":
        return (df - d - 1) * shrunk_correlation(X)
    # a0 = df / 2, b0 = covariance / 2 and E[sigma2] = b0 / (a0 - 1).
    return np.full(d, df - 2) if covariance_type == "diag" else np.array(df - 2)


def default_degrees_of_freedom(n_features, covariance_type):
    """nu0 = d + 2 for full covariance, so that E[Sigma] = Psi0; 4 (a0 = 2) otherwise."""
    return n_features + 2.0 if covariance_type == "full" else 4.0


def start_labels(start, X, prior, rng):
    """First labels of a chain: "one_block", or "kmeans" with 5 to 20 centres."""
    n = len(X)
    if start == "one_block" or n == 1:
        return np.zeros(n, dtype=np.intp)
    most = n if prior.components_law else prior.n_components or n
    n_centers = min(n, most, rng.integers(_FEWEST_CENTERS, _MOST_CENTERS + 1))
    return _kmeans(as_features(X, prior), n_centers, int(rng.integers(2**31)))


def _kmeans(X, n_centers, seed):
    """Label of each row by k-means from k-means++ centres.

    Written out: sums over rows in scikit-learn's depend on its number of threads, and a chain has
    the same start on every machine.
    """
    centers, _ = kmeans_plusplus(X, n_centers, random_state=seed)
    label = _nearest_center(X, centers)
    for _ in range(_KMEANS_ROUNDS):
        size = np.bincount(label, minlength=n_centers)
        # A centre without rows stays where it is.
        sums = np.array([np.bincount(label, x, minlength=n_centers) for x in X.T]).T
        centers = np.where(size[:, None] > 0, sums / np.maximum(size, 1)[:, None], centers)
        before, label = label, _nearest_center(X, centers)
        if np.array_equal(label, before):
            break
    return label


def _nearest_center(X, centers):
    """The nearest centre of each row."""
    norms = np.sum(centers**2, axis=1)
    blocks = (X[i : i + _KMEANS_ROWS] for i in range(0, len(X), _KMEANS_ROWS))
    return np.concatenate([np.argmin(norms - 2 * x @ centers.T, axis=1) for x in blocks])


def as_features(X, prior):
    """The table as complete numbers of comparable spread, for distances between rows.

    A missing cell stands at its column's mean.
    """
    return np.hstack([part.as_features(X[:, part.columns]) for part in prior.parts])
