"""TreeFactorModel on image patches: filling what is missing and density, beside the alternatives.

Table 1 of Zhang, Dunson and Carin (2011) with its conventions spelled out: patches split by image,
error over the missing pixels alone as 100 times the mean over patches of their mean squared error,
in the units of the normalisation. "unit" takes mean and spread of every complete patch out, which
leaks them to all methods; "dc" takes the patch mean out and divides by one spread; "raw" only
centres and divides by one spread. Pixels of "dc" and "raw" are spread evenly over their grey level.
ld50 is the log density of the observed half of the pixels, full that of whole patches, in nats.
"""

import time
import warnings

import numpy as np
from _data import load_patches
from _gaussians import factor_analysis, gaussian_mixture, one_gaussian, pooled
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer

from skbnp import TreeFactorModel
from skbnp.samplers import TreeSampler

RATES = (0.5, 0.6, 0.7, 0.8)
NORMALISATIONS = ("unit", "dc", "raw")
# Training patches, test patches, masks of each test patch.
QUICK, FULL = (5_000, 1_000, (0, 1)), (100_000, 25_000, (0,))
PUBLISHED = {
    "the paper's FA": (17.6, 22.3, 30.1, 47.7),
    "the paper's DP-MFA": (16.1, 22.6, 31.6, 50.2),
    "the paper's tree": (16.6, 21.1, 29.8, 41.3),
}
CHAINS = dict(n_chains=1, n_warmup=80, n_draws=8, thin=5, predict_draws=8, n_jobs=-1)
DEFAULT = "tree, default"
OURS = {
    "single FA, L = 64": dict(structure="single", branch_scale="none"),
    "DP-MFA, L = 64": dict(
        structure="mixture", branch_scale="none", sampler=TreeSampler(init_children=8)
    ),
    "tree, the paper's (L = 32, early branching, none)": dict(
        branch_scale="none",
        branch_levels=(1, 2, 3),
        max_depth=32,
        sampler=TreeSampler(init_children=2),
    ),
    DEFAULT: dict(),
    "tree, default, 4 chains": dict(n_chains=4, predict_draws=32),
    "tree, default, init='klines'": dict(sampler=TreeSampler(init="klines")),
    "tree, default, tails='t'": dict(tails="t"),
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


def n_missing(rate, d):
    """Missing pixels of a patch of d."""
    return round(rate * d)


def masks(n, d, rate, seed):
    """Which pixels are missing: as many in each patch."""
    random = np.random.default_rng(seed)
    order = np.argsort(random.random((n, d)), axis=1)
    return order < n_missing(rate, d)


# -- the alternatives


class Zero:
    """The centre of the normalisation, whatever is observed."""

    def impute(self, X):
        return np.nan_to_num(X, nan=0.0)


class Neighbour:
    """The pixels of the training patch that is nearest in the observed ones."""

    def __init__(self, X):
        self.impute = KNNImputer(n_neighbors=1).fit(X).transform


class Iterative:
    """scikit-learn's chained regressions, fitted to training and incomplete patches together.

    Fitted to complete patches it would learn to fill nothing.
    """

    def __init__(self, X):
        self.X = X

    def impute(self, X):
        both = IterativeImputer(random_state=0).fit_transform(np.vstack([self.X, X]))
        return both[len(self.X) :]


def peers(X, quick):
    """Name -> a function that fits it."""
    found = {
        "predict zero": Zero,
        "one full Gaussian": lambda: one_gaussian(X),
        "FactorAnalysis(32)": lambda: factor_analysis(X, 32),
        "GaussianMixture(8)": lambda: gaussian_mixture(X, 8, 0),
        "GaussianMixture(8), 4 seeds": lambda: pooled(
            [gaussian_mixture(X, 8, seed) for seed in range(4)]
        ),
        "IterativeImputer, 200 training patches": lambda: Iterative(X[:200]),
    }
    if quick:  # its time goes with the product of the two numbers of patches
        found["nearest neighbour"] = lambda: Neighbour(X)
    return found


def ours(X):
    """The same for the three structures of the model and its two starts."""

    def fitter(options):
        return lambda: TreeFactorModel(**{**CHAINS, **options}, random_state=0).fit(X)

    return {name: fitter(options) for name, options in OURS.items()}


# -- figures


def errors(model, X, missing):
    """Mean squared error over the missing pixels of each patch, times 100."""
    filled = model.impute(np.where(missing, np.nan, X))
    square = np.where(missing, (filled - X) ** 2, 0.0)
    return 100 * square.sum(axis=1) / missing.sum(axis=1)


def table(kind, train, test, mask_seeds, quick):
    """Every method on one normalisation; errors of each patch are kept for paired differences."""
    random = np.random.default_rng(0)
    scale = scale_of(train, kind)
    X = normalised(train, kind, scale, random)
    new = normalised(test, kind, scale, random)
    rows, of_patch = [], {}
    for name, fit in {**peers(X, quick), **ours(X)}.items():
        started = time.perf_counter()
        row, figures = {"method": name}, {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the chains are short
            model = fit()
            for rate in RATES:
                found = [errors(model, new, masks(*new.shape, rate, seed)) for seed in mask_seeds]
                figures[f"{rate:.0%}"] = np.mean(found, axis=0)
        if hasattr(model, "score_samples"):
            half = np.where(masks(*new.shape, 0.5, mask_seeds[0]), np.nan, new)
            figures["ld50"] = model.score_samples(half)
            figures["full"] = model.score_samples(new)
        for what in (*(f"{rate:.0%}" for rate in RATES), "ld50", "full"):
            row[what] = float(np.mean(figures.get(what, np.nan)))
        row["s"] = time.perf_counter() - started
        rows.append(row)
        of_patch[name] = figures
        print(f"{kind}: {row}", flush=True)
    return rows, differences(of_patch)


def differences(of_patch):
    """Tree less each rival, paired over patches: mean and its standard error."""
    rows = []
    for name, figures in of_patch.items():
        if name == DEFAULT:
            continue
        row = {f"{DEFAULT}, less": name}
        for what, found in of_patch[DEFAULT].items():
            d = found - figures.get(what, np.nan)
            row[what] = f"{d.mean():+.3g} ({d.std(ddof=1) / np.sqrt(len(d)):.2g})"
        rows.append(row)
    return rows


def over_all_pixels(rows, d):
    """Errors over all d pixels, observed ones without any, below the published ones.

    The paper does not say its scale; this one is the likely one.
    """
    rates = [f"{rate:.0%}" for rate in RATES]
    share = {f"{rate:.0%}": n_missing(rate, d) / d for rate in RATES}
    published = [
        {"method": name, **dict(zip(rates, values, strict=True))}
        for name, values in PUBLISHED.items()
    ]
    return published + [
        {"method": row["method"], **{rate: row[rate] * share[rate] for rate in rates}}
        for row in rows
    ]


def patches(data, quick, only=NORMALISATIONS):
    """All tables, by name."""
    n_train, n_test, mask_seeds = QUICK if quick else FULL
    train, test = load_patches(data, n_train, n_test)
    result = {}
    for kind in only:
        rows, paired = table(kind, train, test, mask_seeds, quick)
        name = f"patches, {kind}: {len(train):,} to learn from, {len(test):,} to fill"
        result[name], result[f"{name}; paired differences"] = rows, paired
        if kind == "unit":
            result[f"{name}; over all pixels"] = over_all_pixels(rows, train.shape[1])
    return result
