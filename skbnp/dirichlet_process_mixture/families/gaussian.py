"""Columns of real numbers."""

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, multigammaln

from skbnp.dirichlet_process_mixture.families._columns import (
    LEAST_GAMMA,
    ColumnsPrior,
    Kind,
    check_all_positive,
    check_array,
)
from skbnp.dirichlet_process_mixture.families._gaussian_rows import (
    PatternRows,
    add_diagonal_log_densities,
    add_full_log_densities,
    diagonal_moments,
    draw_full_cells,
    full_moments,
)
from skbnp.likelihoods.conjugate.learned_covariance import GammaCovariance, WishartCovariance
from skbnp.likelihoods.conjugate.normal_inverse_gamma import NormalInverseGamma
from skbnp.likelihoods.conjugate.normal_inverse_wishart import NormalInverseWishart
from skbnp.numerics.rng import sample_wishart
from skbnp.numerics.states import check_positive

# delta and kappa0 of learned covariances, uniform. With powers of 2, chains stay at one delta.
DEGREES_GRID = 2.0 ** np.arange(0.0, 9.25, 0.25)
PRECISION_GRID = 2.0 ** np.arange(-10.0, 1.0)


@dataclass(frozen=True)
class GaussianPrior(ColumnsPrior):
    """Real columns: one conjugate Gaussian over all of them, in one set of units.

    With numbers for ``mean_precision`` and ``degrees_of_freedom``, ``covariance`` is Psi0: (d, d)
    for "full", its diagonal (d,) for "diag" and a number for "spherical"; the prior scale s
    multiplies it. Where ``degrees_of_freedom`` is None, covariances are learned: ``covariance`` is
    then R, the guess at Lam, which a state holds as its ``covariance``. A ``mean_precision`` of
    None is sampled, on the grid.
    """

    columns: np.ndarray
    covariance_type: str
    mean: np.ndarray
    mean_precision: float | None
    degrees_of_freedom: float | None
    covariance: np.ndarray

    KINDS = (Kind("gaussian", "real numbers"),)
    AT_LEAST_0 = ("count",)
    ABOVE_0 = ("rate",)

    @classmethod
    def of(cls, mixture, columns, X):
        """In the units of standardised X."""
        return mixture._gaussian_prior(columns, X[:, columns])

    @property
    def imputes(self):
        """Cells of full covariance depend on one another."""
        return self.covariance_type == "full"

    @property
    def learned(self):
        """Whether nu0 and Psi0 are part of the state."""
        return self.degrees_of_freedom is None

    @property
    def degrees_grid(self):
        """Values of delta."""
        return DEGREES_GRID

    @property
    def mean_precision_grid(self):
        """Values of kappa0: its grid, or the one it is fixed to."""
        return PRECISION_GRID if self.mean_precision is None else np.array([self.mean_precision])

    @property
    def width(self):
        """Rows of the matrices that have a Wishart prior."""
        return len(self.mean) if self.covariance_type == "full" else 1

    def start(self):
        """Where a chain begins with what is learned: Lam = R, delta near d, kappa0 near 0.1."""
        d, grid = len(self.mean), self.mean_precision_grid
        return {
            "mean_precision": _nearest(grid, 0.1),
            "degrees_of_freedom": _nearest(self.degrees_grid, d) + self.width + 1.0,
            "covariance": np.array(self.covariance, dtype=float, ndmin=1),
        }

    def numbers(self, state):
        """kappa0 and nu0 of a state or draw."""
        if not self.learned:
            return self.mean_precision, self.degrees_of_freedom
        return state["mean_precision"], state["degrees_of_freedom"]

    def base(self, state):
        """kappa0, nu0 and Psi0 of a state; the last a number, a diagonal or a matrix."""
        kappa0, df = self.numbers(state)
        if not self.learned:
            return kappa0, df, state["prior_scale"] * np.asarray(self.covariance)
        psi0 = (df - self.width - 1) * np.asarray(state["covariance"])
        return kappa0, df, psi0[0] if self.covariance_type == "spherical" else psi0

    def draw_base(self, rng):
        """Draw what a state holds of learned covariances from its prior."""
        p, a = self.width, self.width + 2
        guess = np.asarray(self.covariance)
        if self.covariance_type == "full":
            half = np.linalg.cholesky(guess / a)
            covariance = sample_wishart(rng.bit_generator, float(a), half, 1)[0]
        else:
            covariance = np.atleast_1d(guess * rng.chisquare(a, size=np.shape(guess)) / a)
        return {
            "mean_precision": float(rng.choice(self.mean_precision_grid)),
            "degrees_of_freedom": float(rng.choice(self.degrees_grid)) + p + 1,
            "covariance": covariance,
        }

    def log_base(self, state):
        """Log density of that."""
        p, a = self.width, self.width + 2
        lam, guess = np.asarray(state["covariance"]), np.asarray(self.covariance)
        if self.covariance_type == "full":
            pairs = [(lam, guess)]
        else:
            both = zip(lam, np.atleast_1d(guess), strict=True)
            pairs = [(np.array([[x]]), np.array([[r]])) for x, r in both]
        total = -np.log(len(self.degrees_grid)) - np.log(len(self.mean_precision_grid))
        for matrix, center in pairs:
            total += (
                (a - p - 1) / 2 * np.linalg.slogdet(matrix)[1]
                - a / 2 * np.trace(np.linalg.solve(center, matrix))
                - a * p / 2 * np.log(2)
                - a / 2 * np.linalg.slogdet(center / a)[1]
                - multigammaln(a / 2, p)
            )
        return total

    def kernel(self, X, start, kind=None):
        """Blocks of real rows; ``kind`` takes the place of the compiled class."""
        mean_precision, df, _ = self.base(start)
        if self.learned:
            covariance, scale = start["covariance"], df - self.width - 1
        else:
            covariance, scale = self.covariance, start["prior_scale"]
        if self.covariance_type == "full":
            kind = kind or NormalInverseWishart
            return kind(X, self.mean, mean_precision, df, covariance, scale, self.learned)
        kind, shared = kind or NormalInverseGamma, self.covariance_type == "spherical"
        rate = np.asarray(covariance) / 2
        return kind(X, self.mean, mean_precision, df / 2, rate, scale, shared, self.learned)

    def covariance_updates(self, kernel):
        """The updates of what blocks share, where covariances are learned."""
        kind = WishartCovariance if self.covariance_type == "full" else GammaCovariance
        return kind(kernel, self)

    def log_marginal(self, X, state):
        """log m(X) of one block; missing cells of "diag" and "spherical" are integrated out."""
        kappa0, df, psi0 = self.base(state)
        if self.covariance_type == "full":
            n, d = X.shape
            if n == 0:
                return 0.0
            center = X.mean(axis=0)
            off = center - self.mean
            shift = kappa0 * n / (kappa0 + n) * np.outer(off, off)
            psi = psi0 + (X - center).T @ (X - center) + shift
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
        gain = 0.5 * scatter + 0.5 * kappa0 * n / (kappa0 + n) * (center - self.mean) ** 2
        total = np.sum(-n / 2 * np.log(2 * np.pi) + 0.5 * np.log(kappa0 / (kappa0 + n)))
        # IG(df / 2, covariance / 2): in one dimension the same as the full family.
        a0, b0 = df / 2, psi0 / 2
        if self.covariance_type == "spherical":
            n, gain = n.sum(), gain.sum()
        a, b = a0 + n / 2, b0 + gain
        return total + np.sum(gammaln(a) - gammaln(a0) + a0 * np.log(b0) - a * np.log(b))

    def draw_block(self, n, state, rng):
        """n rows of one block whose parameters come from the prior."""
        d = len(self.mean)
        kappa0, df, psi0 = self.base(state)
        if self.covariance_type == "full":
            half = np.linalg.cholesky(np.linalg.inv(psi0))
            precision = sample_wishart(rng.bit_generator, df, half, 1)[0]
            root = np.linalg.inv(np.linalg.cholesky(precision)).T
        else:
            b0 = psi0 / 2
            variance = b0 / rng.gamma(df / 2, size=np.shape(b0))
            root = np.diag(np.sqrt(np.broadcast_to(variance, d)))
        mean = self.mean + root @ rng.standard_normal(d) / np.sqrt(kappa0)
        return mean + rng.standard_normal((n, d)) @ root.T

    # -- new rows under a draw

    def pattern_order(self, x):
        """With full covariance, rows that lack the same cells stand together."""
        if not self.imputes:
            return None
        _, inverse = np.unique(np.isnan(x), axis=0, return_inverse=True)
        return np.argsort(inverse.reshape(-1), kind="stable")

    def prepare(self, x):
        """Rows that lack the same cells share one factorisation per block."""
        if not self.imputes:
            return x
        patterns, inverse = np.unique(np.isnan(x), axis=0, return_inverse=True)
        return PatternRows(x, patterns, inverse.reshape(-1))

    def add_log_densities(self, rows, draw, out):
        """Of t laws."""
        kappa0, df = self.numbers(draw)
        if self.imputes:
            add_full_log_densities(
                rows, draw["n_members"], draw["mean"], draw["factor"], kappa0, df, out
            )
        else:
            add_diagonal_log_densities(
                rows, draw["count"], draw["mean"], draw["rate"], kappa0, df / 2,
                self.covariance_type == "spherical", out,
            )  # fmt: skip

    def add_moments(self, rows, draw, w, mean, variance):
        """Of conditional t laws; inf where one has no second moment."""
        kappa0, df = self.numbers(draw)
        if self.imputes:
            full_moments(
                rows, draw["n_members"], draw["mean"], draw["factor"], kappa0, df, w,
                self.columns, mean, variance,
            )  # fmt: skip
        else:
            diagonal_moments(
                rows, draw["count"], draw["mean"], draw["rate"], kappa0, df / 2,
                self.covariance_type == "spherical", w, self.columns, mean, variance,
            )  # fmt: skip

    def sample(self, draw, k, rng):
        """One row of a t law."""
        mean = draw["mean"][k]
        z = rng.standard_normal(len(mean))
        kappa0, df = self.numbers(draw)
        if self.imputes:
            n = draw["n_members"][k]
            kappa = kappa0 + n
            df = df + n - len(mean) + 1
            spread = (kappa + 1) / kappa / max(rng.chisquare(df), LEAST_GAMMA)
            return mean + np.sqrt(spread) * (z @ np.triu(draw["factor"][k]))
        count = draw["count"][k]
        kappa = kappa0 + count
        seen = count.sum() if self.covariance_type == "spherical" else count
        a = (df + seen) / 2
        variance = draw["rate"][k] / np.maximum(rng.standard_gamma(a), LEAST_GAMMA)
        return mean + np.sqrt(variance * ((kappa + 1) / kappa)) * z

    def draw_cells(self, draw, cells, X, rng):
        """Means and variances, then cells; not for full covariance."""
        kappa0, df = self.numbers(draw)
        kappa = kappa0 + draw["count"]
        if self.covariance_type == "diag":
            gamma = rng.standard_gamma(cells.at((df + draw["count"]) / 2))
            variance = cells.at(draw["rate"]) / np.maximum(gamma, LEAST_GAMMA)
        else:
            variance = _shared_variance(draw, cells, X, kappa, df, rng)
        mean = cells.at(draw["mean"]) + np.sqrt(variance / cells.at(kappa)) * rng.standard_normal(
            len(variance)
        )
        noise = rng.standard_normal(len(cells.which))
        return mean[cells.which] + np.sqrt(variance[cells.which]) * noise

    def draw_rows(self, draw, rows, known, block, rng):
        """The conditional t law of missing cells given observed ones, each row given its block."""
        kappa0, df = self.numbers(draw)
        df = df + draw["n_members"][block] - known.shape[1] + 1
        gamma = rng.standard_gamma((df + np.sum(~np.isnan(known), axis=1)) / 2)
        out = np.ascontiguousarray(known)
        draw_full_cells(
            rows, draw["n_members"], draw["mean"], draw["factor"], kappa0, block,
            rng.standard_normal(known.shape), np.maximum(gamma, LEAST_GAMMA), out,
        )  # fmt: skip
        return out

    # -- starts and files

    def as_features(self, x):
        """As they are: they have been standardised."""
        return np.where(np.isnan(x), 0.0, x)

    def check(self):
        """Mean and covariance."""
        d = len(self.columns)
        shape = {"full": (d, d), "diag": (d,), "spherical": ()}[self.covariance_type]
        check_array("mean", self.mean, (d,))
        check_array("covariance", np.asarray(self.covariance), shape)
        check_positive(self, "mean_precision", "degrees_of_freedom")
        diagonal = np.diag(self.covariance) if shape == (d, d) else self.covariance
        check_all_positive("covariance", diagonal)

    def shapes(self):
        """Means, and factors or counts and rates."""
        d = len(self.columns)
        if self.imputes:
            return {"mean": (d,), "factor": (d, d)}
        shared = self.covariance_type == "spherical"
        return {"mean": (d,), "count": (d,), "rate": (1 if shared else d,)}

    def check_draw(self, draw, n_blocks, X):
        """And factors that can be divided by, learned covariances, imputed cells."""
        if self.learned:
            self._check_learned(draw)
        super().check_draw(draw, n_blocks, X)
        if not self.imputes:
            return
        factor = draw["factor"]
        if not (np.diagonal(factor, axis1=1, axis2=2) > 0.0).all() or np.tril(factor, -1).any():
            raise ValueError("factor of a draw must be upper triangular, its diagonal > 0")
        n_missing = int(np.isnan(X).sum())
        if n_missing:
            check_array("imputed", draw["imputed"], (n_missing,))

    def _check_learned(self, draw):
        """What a draw says of learned covariances: kernels take a root of Lam."""
        check_array("covariance", draw["covariance"], self.start()["covariance"].shape)
        if not draw["degrees_of_freedom"] > self.width + 1:
            raise ValueError(f"degrees_of_freedom of a draw must be > {self.width + 1}")
        if self.covariance_type != "full":
            check_all_positive("covariance", draw["covariance"])
            return
        try:
            np.linalg.cholesky(draw["covariance"])
        except np.linalg.LinAlgError as error:
            raise ValueError("covariance of a draw must be positive definite") from error


def _shared_variance(draw, cells, X, kappa, df, rng):
    """Variances of spherical blocks: one for each block, or given its own cells for each row."""
    shape, rate = (df + draw["count"].sum(axis=1)) / 2, draw["rate"][:, 0]
    own = cells.block
    if not cells.together:
        own = cells.row
        block = np.zeros(len(X), dtype=np.intp)
        block[cells.row] = cells.block
        off, weight = X - draw["mean"][block], kappa[block] / (kappa[block] + 1)
        shape = shape[block] + np.sum(~np.isnan(X), axis=1) / 2
        rate = rate[block] + np.nansum(weight * off**2, axis=1) / 2
    variance = rate / np.maximum(rng.standard_gamma(shape), LEAST_GAMMA)
    return variance[own[cells.first]]


def _nearest(grid, value):
    """The element of a grid of positive numbers that is nearest to a value in logs."""
    return float(grid[np.argmin(np.abs(np.log(grid / value)))])
