"""Faces from few random measurements: TreeFactorModel beside factor analysis and mixtures of it.

Figure 2 of Zhang, Dunson and Carin (2011) on 698 faces of 32 x 32 pixels, where theirs had 64 x 64:
one model is trained on 598 of them, the other 100 are told from m random weighted sums of their
pixels, without noise. The figure is 100 times the Frobenius norm of what the faces differ by over
that of the faces. Splits and measurements are the same for all methods.
"""

import time
import warnings

import numpy as np
from _data import load_faces
from _report import mean_and_error
from scipy.linalg import cho_factor, cho_solve
from sklearn.decomposition import PCA, FactorAnalysis

from skbnp import TreeFactorModel
from skbnp.samplers import TreeSampler

N_TEST = 100
MEASUREMENTS = (10, 20, 40, 60, 80, 100, 150, 200)
# Four short chains are better than a long one here: they start from different clusters.
CHAINS = dict(n_chains=4, n_warmup=10, n_draws=3, thin=3, n_jobs=1, random_state=0)
MIXTURE = dict(
    structure="mixture", max_depth=40, sampler=TreeSampler(init="kmeans", init_children=6)
)
PAPER = dict(
    branch_levels=(1, 2), max_depth=40, sampler=TreeSampler(init="kmeans", init_children=(3, 2))
)
TREE = "tree, default"
OURS = {
    "single FA, L = 80": dict(structure="single", max_depth=80),
    "DP-MFA, 6 components, L = 40, none": dict(MIXTURE, branch_scale="none"),
    "DP-MFA, 6 components, L = 40, loadings": MIXTURE,
    # As many as the tree starts with by default.
    "DP-MFA, 9 components, L = 40, loadings": dict(
        MIXTURE, sampler=TreeSampler(init="kmeans", init_children=9)
    ),
    "tree, the paper's shape, none": dict(PAPER, branch_scale="none"),
    "tree, the paper's shape, loadings": PAPER,
    TREE: {},
}


class Gaussian:
    """One Gaussian, inverted as each branch of the tree is."""

    def __init__(self, model):
        self.mean, self.covariance = model.mean_, model.get_covariance()

    def invert(self, Phi, v):
        crossed = self.covariance @ Phi.T
        factor = cho_factor(Phi @ crossed)
        return self.mean + cho_solve(factor, (v - Phi @ self.mean).T).T @ crossed.T


def methods(X, quick):
    """Name -> a function that fits it."""
    chains = {**CHAINS, "n_chains": 1} if quick else CHAINS

    def fitter(options):
        return lambda: TreeFactorModel(**chains, **options).fit(X)

    return {
        "Gaussian, 300 principal components": lambda: Gaussian(PCA(300).fit(X)),
        "FactorAnalysis(80)": lambda: Gaussian(FactorAnalysis(80, random_state=0).fit(X)),
        **{name: fitter(options) for name, options in OURS.items()},
    }


def faces(data, quick, splits=10):
    """Tables of the errors over splits, and of the default tree's less those of each rival."""
    X = load_faces(data)
    counts = MEASUREMENTS[::3] if quick else MEASUREMENTS
    errors, times = {}, {}
    for seed in range(2 if quick else splits):
        random = np.random.default_rng(seed)
        order = random.permutation(len(X))
        test, train = X[order[:N_TEST]], X[order[N_TEST:]]
        measurements = [random.standard_normal((m, X.shape[1])) for m in counts]
        for name, fit in methods(train, quick).items():
            started = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # short chains, black corners
                model = fit()
            times.setdefault(name, []).append(time.perf_counter() - started)
            found = [error(model, Phi, test) for Phi in measurements]
            errors.setdefault(name, []).append(found)
            print(f"faces, split {seed}, {name}: {np.round(found, 1)}", flush=True)
    return {
        "faces": [
            {"method": name, **over_splits(counts, figures, ".1f"), "fit, s": np.mean(times[name])}
            for name, figures in errors.items()
        ],
        "faces, paired": [
            {
                f"{TREE}, less": name,
                **over_splits(counts, np.subtract(errors[TREE], figures), "+.2f"),
            }
            for name, figures in errors.items()
            if name != TREE
        ],
    }


def error(model, Phi, X):
    """Norm of the error of rows told from their measurements, in percent of that of the rows."""
    return 100 * np.linalg.norm(model.invert(Phi, X @ Phi.T) - X) / np.linalg.norm(X)


def over_splits(counts, figures, form):
    """Mean and its standard error over splits, for each number of measurements."""
    cells = [mean_and_error(column) for column in np.transpose(figures)]
    return {
        f"m = {m}": f"{mean:{form}} ({spread:.2g})"
        for m, (mean, spread) in zip(counts, cells, strict=True)
    }
