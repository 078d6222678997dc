"""TreeFactorModel on image patches: filling what is missing and density, beside the alternatives.

Table 1 of Zhang, Dunson and Carin (2011) with its conventions spelled out: patches split by image,
error over the missing pixels alone as 100 times the mean over patches of their mean squared error,
in the units of the normalisation. "unit" takes mean and spread of every complete patch out, which
leaks them to all methods; "dc" takes the patch mean out and divides by one spread; "raw" only
centres and divides by one spread. Pixels of "dc" and "raw" are spread evenly over their grey level.
ld50 is the log density of the observed half of the pixels, full that of whole patches, in nats.

Prints Markdown tables and writes them as JSON beside this file.
"""

import argparse
import json
import time
import warnings
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from _data import load_patches
from _tables import markdown
from scipy.special import logsumexp
from sklearn.decomposition import FactorAnalysis
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import NearestNeighbors

from skbnp import TreeFactorModel

RATES = (0.5, 0.6, 0.7, 0.8)
NORMALISATIONS = ("unit", "dc", "raw")
CHAINS = dict(n_chains=1, n_warmup=80, n_draws=16, thin=5, predict_draws=16, n_jobs=-1)
OURS = {
    "single FA, L = 64": dict(structure="single", branch_scale="none"),
    "DP-MFA, L = 64": dict(structure="mixture", branch_scale="none", init_children=8),
    "tree, the paper's (L = 32, early branching, none)": dict(
        branch_scale="none", branch_depth=4, max_depth=32, init_children=2
    ),
    "tree, default": dict(),
    "tree, default, init='em'": dict(init="em"),
}


# -- patches


def normalised(patches, kind, scale, random):
    """Patches in the units of a normalisation; ``scale`` is that of the training patches."""
    X = patches.astype(float)
    if kind == "unit":
        X = X - X.mean(axis=1, keepdims=True)
        spread = X.std(axis=1, keepdims=True)
        return X / np.where(spread > 0, spread, 1.0)
    X = X + random.uniform(-0.5, 0.5, X.shape)
    if kind == "dc":
        return (X - X.mean(axis=1, keepdims=True)) / scale
    return (X - scale[0]) / scale[1]


def scale_of(patches, kind):
    """What `normalised` needs to know of the training patches."""
    X = patches.astype(float)
    if kind == "dc":
        return (X - X.mean(axis=1, keepdims=True)).std()
    return X.mean(), X.std()


def masks(n, d, rate, seed):
    """Which pixels are missing: as many in each patch."""
    random = np.random.default_rng(seed)
    order = np.argsort(random.random((n, d)), axis=1)
    return order < round(rate * d)


# -- the alternatives: mixtures of Gaussians with exact conditional means


class Gaussians:
    """A mixture of full Gaussians that scores and fills incomplete rows."""

    def __init__(self, weights, means, covariances):
        self.log_weights = np.log(weights)
        self.means, self.covariances = means, covariances

    def score_samples(self, X):
        return np.array([logsumexp(self._of_row(x)[0]) for x in X])

    def impute(self, X):
        filled = X.copy()
        for x in filled:
            log_p, missing, conditional = self._of_row(x)
            x[missing] = np.exp(log_p - logsumexp(log_p)) @ conditional
        return filled

    def _of_row(self, x):
        missing = np.isnan(x)
        seen = ~missing
        log_p = self.log_weights.copy()
        conditional = np.empty((len(log_p), missing.sum()))
        for k, (mean, covariance) in enumerate(zip(self.means, self.covariances, strict=True)):
            half = np.linalg.cholesky(covariance[np.ix_(seen, seen)])
            z = np.linalg.solve(half, x[seen] - mean[seen])
            log_p[k] += -0.5 * z @ z - np.log(np.diag(half)).sum()
            log_p[k] -= 0.5 * seen.sum() * np.log(2 * np.pi)
            cross = np.linalg.solve(half, covariance[np.ix_(seen, missing)])
            conditional[k] = mean[missing] + cross.T @ z
        return log_p, missing, conditional


def gaussian_mixture(X, n_components, seed):
    found = GaussianMixture(n_components, reg_covar=1e-3, random_state=seed).fit(X)
    return Gaussians(found.weights_, found.means_, found.covariances_)


def factor_analysis(X, n_components):
    found = FactorAnalysis(n_components).fit(X)
    return Gaussians(np.ones(1), found.mean_[None], found.get_covariance()[None])


def one_gaussian(X):
    covariance = np.cov(X.T) + 1e-6 * np.eye(X.shape[1])
    return Gaussians(np.ones(1), X.mean(axis=0)[None], covariance[None])


class Pooled:
    """Fits with several seeds, averaged as densities."""

    def __init__(self, mixtures):
        n = len(mixtures)
        self.of_all = Gaussians(
            np.concatenate([np.exp(m.log_weights) / n for m in mixtures]),
            np.concatenate([m.means for m in mixtures]),
            np.concatenate([m.covariances for m in mixtures]),
        )
        self.score_samples, self.impute = self.of_all.score_samples, self.of_all.impute


class Neighbour:
    """The pixels of the training patch that is nearest in the observed ones."""

    def __init__(self, X):
        self.X = X

    def impute(self, X):
        filled = X.copy()
        for x in filled:
            seen = ~np.isnan(x)
            nearest = NearestNeighbors(n_neighbors=1).fit(self.X[:, seen])
            x[~seen] = self.X[nearest.kneighbors(x[None, seen])[1][0, 0], ~seen]
        return filled


def peers(X, quick):
    """Name -> a function that fits it."""
    found = {
        "one full Gaussian": lambda: one_gaussian(X),
        "FactorAnalysis(32)": lambda: factor_analysis(X, 32),
        "GaussianMixture(8)": lambda: gaussian_mixture(X, 8, 0),
        "GaussianMixture(8), 4 seeds": lambda: Pooled(
            [gaussian_mixture(X, 8, seed) for seed in range(4)]
        ),
        "nearest neighbour": lambda: Neighbour(X),
    }
    if quick:
        del found["nearest neighbour"], found["GaussianMixture(8), 4 seeds"]
    return found


def ours(X, quick):
    """The same for the three structures of the model and its two starts."""
    chains = {**CHAINS, "n_warmup": 20, "n_draws": 5} if quick else CHAINS
    names = list(OURS)[:4] if quick else list(OURS)

    def fitter(options):
        return lambda: TreeFactorModel(**chains, random_state=0, **options).fit(X)

    return {name: fitter(OURS[name]) for name in names}


# -- figures


def errors(model, X, missing):
    """Mean squared error over the missing pixels of each patch, times 100."""
    filled = model.impute(np.where(missing, np.nan, X))
    square = np.where(missing, (filled - X) ** 2, 0.0)
    return 100 * square.sum(axis=1) / missing.sum(axis=1)


def table(kind, data, n_train, n_test, mask_seeds, quick):
    """Every method on one normalisation; errors of each patch are kept for paired differences."""
    train, test = load_patches(data, n_train, n_test)
    random = np.random.default_rng(0)
    scale = scale_of(train, kind)
    X = normalised(train, kind, scale, random)
    new = normalised(test, kind, scale, random)
    rows, of_patch = [], {}
    for name, fit in {**peers(X, quick), **ours(X, quick)}.items():
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = fit()
        row, of_patch[name] = {"method": name}, {}
        for rate in RATES[::3] if quick else RATES:
            found = [errors(model, new, masks(*new.shape, rate, seed)) for seed in mask_seeds]
            of_patch[name][f"{rate:.0%}"] = np.mean(found, axis=0)
            row[f"{rate:.0%}"] = float(np.mean(found))
        if hasattr(model, "score_samples"):
            half = np.where(masks(*new.shape, 0.5, mask_seeds[0]), np.nan, new)
            of_patch[name]["ld50"] = model.score_samples(half)
            row["ld50"] = float(of_patch[name]["ld50"].mean())
            row["full"] = float(model.score_samples(new).mean())
        else:
            row["ld50"] = row["full"] = float("nan")
        row["s"] = time.perf_counter() - started
        rows.append(row)
        print(f"{kind}: {row}", flush=True)
    return rows, differences(of_patch)


def differences(of_patch, ours="tree, default"):
    """Tree less each rival, paired over patches: mean and its standard error."""
    rows = []
    for name, figures in of_patch.items():
        if name == ours:
            continue
        row = {"tree, default, less": name}
        for what, values in figures.items():
            d = of_patch[ours][what] - values
            row[what] = f"{d.mean():+.3g} ({d.std(ddof=1) / np.sqrt(len(d)):.2g})"
        rows.append(row)
    return rows


def main():
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--quick", action="store_true", help="500 / 100 patches, 'dc' alone")
    parser.add_argument("--only", nargs="+", choices=NORMALISATIONS)
    arguments = parser.parse_args()
    sizes = (500, 100, [0]) if arguments.quick else (5000, 1000, [0, 1])
    kinds = arguments.only or (["dc"] if arguments.quick else NORMALISATIONS)
    result = {"date": f"{datetime.now(UTC):%Y-%m-%d}", "quick": arguments.quick}
    for kind in kinds:
        rows, paired = table(kind, arguments.data, *sizes, arguments.quick)
        result[kind], result[f"{kind}, paired"] = rows, paired
        print(f"\n### {kind}\n\n{markdown(rows)}\n\n{markdown(paired)}\n", flush=True)
    Path(__file__).with_suffix(".json").write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
