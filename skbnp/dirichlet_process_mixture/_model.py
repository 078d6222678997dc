"""The mixture's prior, its joint density in plain NumPy, and how the prior follows the data.

``log_joint`` is slow and readable on purpose: it is what the compiled sampler is tested against.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import betaln, gammaln, multigammaln
from sklearn.cluster import kmeans_plusplus

from skbnp.processes import crp

# s in {1, 1/2, ..., 2^-12}, uniform (spec 8.1)
SCALE_GRID = 2.0 ** -np.arange(13.0)

# Chains start from these in turn.
STARTS = ("one_block", "kmeans", "random")


@dataclass(frozen=True)
class Prior:
    """Hyperparameters of the Gaussian mixture, in one set of units.

    ``covariance`` holds Psi0 (d, d) for "full", its diagonal (d,) for "diag" and a number for
    "spherical"; the prior scale s multiplies it. A number for ``concentration``, ``discount`` or
    ``prior_scale`` fixes it, None means it is sampled.
    """

    covariance_type: str
    mean: np.ndarray
    mean_precision: float
    degrees_of_freedom: float
    covariance: np.ndarray
    n_components: int | None = None
    concentration: float | None = None
    concentration_prior: tuple[float, float] = (1.0, 1.0)
    discount: float | None = 0.0
    discount_prior: tuple[float, float] = (1.0, 9.0)
    prior_scale: float | None = None

    @property
    def scale_grid(self):
        """Values of the prior scale: its grid, or the one it is fixed to."""
        return SCALE_GRID if self.prior_scale is None else np.array([float(self.prior_scale)])


def log_eppf(sizes, concentration, discount):
    """log probability of a partition with these block sizes: spec processes 1.1."""
    sizes = np.asarray(sizes, dtype=float)
    opened = np.arange(1, len(sizes))
    with np.errstate(divide="ignore"):  # more blocks than components: -inf
        total = np.sum(np.log(np.maximum(concentration + opened * discount, 0.0)))
    total -= gammaln(concentration + sizes.sum()) - gammaln(concentration + 1)
    return total + np.sum(gammaln(sizes - discount) - gammaln(1 - discount))


def log_marginal(X, prior, scale):
    """log m(X) of one block, missing cells of diagonal and spherical blocks integrated out."""
    kappa0, df = prior.mean_precision, prior.degrees_of_freedom
    if prior.covariance_type == "full":
        n, d = X.shape
        if n == 0:
            return 0.0
        psi0 = scale * prior.covariance
        center = X.mean(axis=0)
        off = center - prior.mean
        psi = psi0 + (X - center).T @ (X - center) + kappa0 * n / (kappa0 + n) * np.outer(off, off)
        return (
            -n * d / 2 * np.log(np.pi)
            + multigammaln((df + n) / 2, d)
            - multigammaln(df / 2, d)
            + df / 2 * np.linalg.slogdet(psi0)[1]
            - (df + n) / 2 * np.linalg.slogdet(psi)[1]
            + d / 2 * np.log(kappa0 / (kappa0 + n))
        )
    seen = ~np.isnan(X)
    n = seen.sum(axis=0)
    filled = np.where(seen, X, 0.0)
    center = filled.sum(axis=0) / np.maximum(n, 1)
    scatter = np.sum(np.where(seen, X - center, 0.0) ** 2, axis=0)
    gain = 0.5 * scatter + 0.5 * kappa0 * n / (kappa0 + n) * (center - prior.mean) ** 2
    total = np.sum(-n / 2 * np.log(2 * np.pi) + 0.5 * np.log(kappa0 / (kappa0 + n)))
    # IG(df / 2, covariance / 2): in one dimension the same as the full family.
    a0, b0 = df / 2, scale * np.asarray(prior.covariance, dtype=float) / 2
    if prior.covariance_type == "spherical":
        n, gain = n.sum(), gain.sum()
    a, b = a0 + n / 2, b0 + gain
    return total + np.sum(gammaln(a) - gammaln(a0) + a0 * np.log(b0) - a * np.log(b))


def log_joint(state, X, prior, terms=False):
    """log p(rho, X, concentration, discount, scale), normalised.

    Parameters
    ----------
    state : dict
        label (n_samples,), concentration, discount, prior_scale.
    X : ndarray of shape (n_samples, n_features)
        Data in the prior's units; imputed for full covariance, else with NaN where missing.
    prior : Prior
    terms : bool, default=False
        Return a dict of the terms instead of their sum.
    """
    label = np.asarray(state["label"])
    blocks = [X[label == k] for k in np.unique(label)]
    concentration, discount = state["concentration"], state["discount"]
    if prior.n_components is not None:
        discount = -concentration / prior.n_components
    parts = {
        "partition": log_eppf([len(block) for block in blocks], concentration, discount),
        "data": sum(log_marginal(block, prior, state["prior_scale"]) for block in blocks),
        "concentration": 0.0,
        "discount": 0.0,
        "prior_scale": -np.log(len(prior.scale_grid)),
    }
    if prior.concentration is None:
        shape, rate = prior.concentration_prior
        parts["concentration"] = (
            shape * np.log(rate)
            - gammaln(shape)
            + (shape - 1) * np.log(concentration)
            - rate * concentration
        )
    if prior.discount is None:
        a, b = prior.discount_prior
        parts["discount"] = (
            (a - 1) * np.log(discount) + (b - 1) * np.log(1 - discount) - betaln(a, b)
        )
    return parts if terms else sum(parts.values())


def shrunk_correlation(X):
    """Correlation of the columns, pairwise complete, shrunk, positive definite (spec 8.1).

    Shrunk by 0.01 towards the identity, by 0.5 when there are fewer than five rows a column.
    """
    n, d = X.shape
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
    weight = 0.5 if n < 5 * d else 0.01
    return (1 - weight) * correlation + weight * np.eye(d)


def column_scaling(X, common=False):
    """Center and scale of each column, NaN left out: mean and standard deviation.

    A constant column has scale 1; ``common`` gives all columns the root of their mean variance.
    """
    highest = np.nanmax(X, axis=0)
    constant = highest == np.nanmin(X, axis=0)
    # The mean of a large constant is off by its rounding, which scale 1 would not take away.
    center = np.where(constant, highest, np.nanmean(X, axis=0))
    # Squares are taken near one, so that no magnitude of X over- or underflows.
    exponent = np.frexp(np.nanmax(np.abs(X - center), axis=0))[1]
    if common:
        exponent = np.full_like(exponent, exponent.max())
    variance = np.nanmean(np.ldexp(X - center, -exponent) ** 2, axis=0)
    if common and not constant.all():
        return center, np.ldexp(np.full(X.shape[1], np.sqrt(variance[~constant].mean())), exponent)
    return center, np.where(constant, 1.0, np.ldexp(np.sqrt(variance), exponent))


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
    """First labels of a chain: "one_block", "kmeans" (k-means++ centres) or "random"."""
    n = len(X)
    if start == "one_block" or n == 1:
        return np.zeros(n, dtype=np.intp)
    n_blocks = round(min(n, 2 * max(5.0, float(crp.expected_blocks(n, 1.0)))))
    n_blocks = min(n_blocks, prior.n_components or n)
    if start == "random":
        return rng.integers(n_blocks, size=n)
    filled = np.where(np.isnan(X), 0.0, X)
    centers, _ = kmeans_plusplus(filled, n_blocks, random_state=int(rng.integers(2**31)))
    squares = np.sum(centers**2, axis=1) - 2 * filled @ centers.T
    return np.argmin(squares, axis=1)
