"""Held-out log density of the belief network beside one Gaussian, mixtures and factor analysis.

Small tables are standardised by their training rows, which makes them the pre-activations of the
network. Densities are given twice: by the methods' own formulas (the network's by annealed
importance sampling, low on average), and for all alike by the distance of a held-out row to the
tenth nearest of 5,000 fantasies, draws from the fitted method; that is crude, and blurs all of
them. Means over splits and their standard errors.

Images get noise of one grey level, uniform, so that they have a density; figures are per image in
nats, means over the test images of one split, and their standard errors. The networks are those of
`_cibp_belief_net_images.py`.
"""

import warnings

import numpy as np
from _cibp_belief_net_images import CHAINS, OURS, SHORT
from _data import IMAGES, load_images
from _report import cpu_seconds, mean_and_error
from scipy.special import gammaln
from sklearn.datasets import load_iris, make_moons
from sklearn.decomposition import FactorAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import NearestNeighbors

from skbnp import CIBPBeliefNet
from skbnp.mcmc.diagnostics import rhat
from skbnp.samplers import BeliefNetSampler

N_FANTASIES, N_NEAREST = 5000, 10
STARTS = ("pca", "empty", "prior")
LONG = dict(n_chains=4, n_warmup=1000, n_draws=100, thin=5, n_jobs=1, random_state=0)
LEVELS = {"digits": 17, "Olivetti": 256, "MNIST": 256, "Frey": 256}
FACTORS = (5, 10, 20, 40, 80)
FACTOR_ANALYSIS = "FactorAnalysis"


def moons(seed):
    """300 rows to learn from and 300 others."""
    X, _ = make_moons(600, noise=0.08, random_state=seed)
    return X[:300], X[300:]


def iris(seed):
    """100 rows to learn from and the other 50."""
    X = np.random.default_rng(seed).permutation(load_iris().data)
    return X[:100], X[100:]


TABLES = {"Two Moons": moons, "Iris": iris}


def density(data, quick):
    """Tables of the small ones, of the chains from different starts, and of images."""
    tables = {"density: small tables": small_tables(quick), "density: starts": starts(quick)}
    names = [name for name in IMAGES if name == "digits" or (data.exists() and not quick)]
    rows = [row for name in names for row in of_images(name, data, quick)]
    return tables | {"density: images": rows}


# -- small tables


def small_tables(quick):
    """Both kinds of density of all methods."""
    rows = []
    for name, load in TABLES.items():
        found = {}
        for seed in range(1 if quick else 3):
            train, test = load(seed)
            center, scale = train.mean(axis=0), train.std(axis=0)
            train, test = (train - center) / scale, (test - center) / scale
            for method, fit in methods(quick).items():
                figures, time = cpu_seconds(figures_of, fit, train, test)
                found.setdefault(method, []).append((*figures, time))
                print(
                    f"density, {name}, split {seed}, {method}: {np.round(figures, 3)}", flush=True
                )
        for method, figures in found.items():
            own, by_fantasies, times = np.transpose(figures)
            rows.append(
                {
                    "table": name,
                    "method": method,
                    "log density": in_words(own, ".3f"),
                    "by fantasies": in_words(by_fantasies, ".3f"),
                    "s": times.mean(),
                }
            )
    return rows


def methods(quick):
    """Name -> a function of the training rows that returns what scores and samples."""
    chains = {**LONG, "n_warmup": 200, "n_draws": 20} if quick else LONG

    def network(**options):
        return lambda X: fitted_quietly(CIBPBeliefNet(**chains, **options), X)

    return {
        "one Gaussian": lambda X: GaussianMixture(1).fit(X),
        FACTOR_ANALYSIS: Factors,
        "mixture, components by BIC": by_bic,
        "network": network(),
        "network, skip connections": network(skip_connections=True),
        "network, row clusters, 1 layer": network(max_layers=1, row_clusters=True),
    }


def fitted_quietly(model, X):
    """Fitted without the warnings of short chains and constant columns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return model.fit(X)


def by_bic(X):
    """The mixture of full Gaussians with the best Bayesian information criterion."""
    mixtures = [GaussianMixture(k, n_init=3, random_state=0).fit(X) for k in range(1, 11)]
    return min(mixtures, key=lambda mixture: mixture.bic(X))


def figures_of(fit, train, test):
    """Mean log density of the test rows, by the method itself and by its fantasies."""
    model = fit(train)
    drawn = model.sample(N_FANTASIES)
    fantasies = drawn[0] if isinstance(drawn, tuple) else drawn
    return model.score_samples(test).mean(), by_nearest(fantasies, test).mean()


def by_nearest(fantasies, rows):
    """Log of the share of the nearest fantasies over the volume of the ball that they fill."""
    distance, _ = NearestNeighbors(n_neighbors=N_NEAREST).fit(fantasies).kneighbors(rows)
    d = rows.shape[1]
    log_unit_ball = 0.5 * d * np.log(np.pi) - gammaln(0.5 * d + 1)
    log_share = np.log(N_NEAREST / len(fantasies))
    return log_share - log_unit_ball - d * np.log(distance[:, -1])


# -- starts


def starts(quick):
    """R-hat of two chains from each start, of all six together."""
    chains = {**LONG, "n_chains": 2, "n_warmup": 200 if quick else 5000}
    rows = []
    for name, load in TABLES.items():
        train, _ = load(0)
        models = [
            fitted_quietly(CIBPBeliefNet(**chains, sampler=BeliefNetSampler(init=start)), train)
            for start in STARTS
        ]
        for trace in ("log_joint", "n_layers", "n_units", "n_edges"):
            found = [model.posterior_.traces[trace] for model in models]
            means = {start: found[i].mean() for i, start in enumerate(STARTS)}
            row = {"table": name, "trace": trace, "R-hat": rhat(np.concatenate(found))}
            rows.append(row | {f"mean from {start}": float(mean) for start, mean in means.items()})
    return rows


# -- images


def of_images(name, data, quick):
    """Log densities of the test images of one split, and less that of factor analysis, paired."""
    random = np.random.default_rng(0)
    train, test = (
        (np.round(rows * (LEVELS[name] - 1)) + random.random(rows.shape)) / LEVELS[name]
        for rows in load_images(name, data, 0)[:2]
    )
    chains = SHORT if quick else CHAINS
    methods = {
        FACTOR_ANALYSIS: lambda: Factors(train, FACTORS).score_samples(test),
        f"{FACTOR_ANALYSIS}, pixels scaled as the network does": lambda: scaled_factors(
            train, test
        ),
    }
    for method, options in OURS.items():
        model = CIBPBeliefNet(**{**chains, **options})
        methods[method] = lambda model=model: fitted_quietly(model, train).score_samples(test)
    found = {}
    for method, score in methods.items():
        found[method] = cpu_seconds(score)
        print(f"density, {name}, {method}: {found[method][0].mean():.2f}", flush=True)
    return [
        {
            "images": name,
            "method": method,
            "log density": in_words(figures, ".1f"),
            f"less {FACTOR_ANALYSIS}": in_words(figures - found[FACTOR_ANALYSIS][0], "+.1f"),
            "s": time,
        }
        for method, (figures, time) in found.items()
    ]


def in_words(values, form):
    """Mean and standard error."""
    mean, spread = mean_and_error(values)
    return f"{mean:{form}} ({spread:.2g})"


def scaled_factors(train, test):
    """Factor analysis of what "sigmoid" makes of pixels, a density of the pixels again."""

    def scaled(rows):
        return 2.0 * np.arctanh(0.9 * (2.0 * rows - 1.0))

    jacobian = np.log(3.6 / (1.0 - (0.9 * (2.0 * test - 1.0)) ** 2)).sum(axis=1)
    return Factors(scaled(train), FACTORS).score_samples(scaled(test)) + jacobian


class Factors:
    """Factor analysis, their number by cross-validation; draws rows too."""

    def __init__(self, X, numbers=None):
        numbers = [k for k in numbers or range(1, X.shape[1]) if k < X.shape[1]]
        search = GridSearchCV(FactorAnalysis(random_state=0), {"n_components": numbers}, cv=3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.model = search.fit(X).best_estimator_

    def score_samples(self, X):
        return self.model.score_samples(X)

    def sample(self, n):
        random = np.random.default_rng(0)
        return random.multivariate_normal(self.model.mean_, self.model.get_covariance(), n)
