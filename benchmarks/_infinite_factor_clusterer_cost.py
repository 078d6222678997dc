"""What a sweep of InfiniteFactorClusterer and of DeepScaleModel costs, and a fit at defaults.

Sweeps are timed in a state planted at random, births, deaths, splits and merges included, and in
each size alone; slopes are those of the logarithms. Times are processor times with one BLAS thread,
the shortest of several.
"""

import time
import warnings

import numpy as np
from _report import cpu_seconds, growth_row, shortest
from sklearn.exceptions import ConvergenceWarning

from skbnp import InfiniteFactorClusterer
from skbnp.deep_scale_model import _model as _scale_model
from skbnp.deep_scale_model._model import Prior as ScalePrior
from skbnp.deep_scale_model._sampler import Sampler as ScaleSampler
from skbnp.infinite_factor_clusterer import _model
from skbnp.infinite_factor_clusterer._model import Prior
from skbnp.infinite_factor_clusterer._sampler import Sampler

N_SETTLE, N_TIMED = 2, 5  # sweeps
BASE = {"T": 2000, "N": 16, "K": 5, "G": 8}
GRID = {
    "T": [1000, 2000, 4000, 8000, 16000],
    "N": [8, 16, 32, 64],
    "K": [2, 5, 10, 20],
    "G": [2, 4, 8, 16],
}
MINUTES = 8.0  # asked of the fit on two cores


def cost(data, quick):
    """Tables of what sweeps and a fit cost; data are drawn."""
    tables = {"cost: a sweep (elsewhere T = 2,000, N = 16, K = 5, G = 8)": growth(quick)}
    if not quick:
        tables["cost: T = 2,000, N = 16, four chains at defaults"] = whole_fit()
    return tables


def links(n_features, n_factors, rng):
    """Loadings of which three in ten are links, two of each factor at least."""
    loadings = np.where(rng.random((n_features, n_factors)) < 0.3, 1.0, 0.0)
    for k in range(n_factors):
        loadings[rng.choice(n_features, 2, replace=False), k] = 1.0
    return loadings * rng.normal(size=loadings.shape)


def mixture_chain(T, N, K, G, seed=0):
    """A chain of the clusterer with K factors and G clusters."""
    rng = np.random.default_rng(seed)
    state, _ = _model.draw_joint(Prior(max_layers=1), T, N, rng)
    label = np.arange(T) % G
    state |= {
        "label": label,
        "loadings1": links(N, K, rng),
        "slab_variance": np.ones(K),
        "score_mean": 3.0 * rng.normal(size=(G, K)),
        "score_variance": np.ones((G, K)),
        "noise_variance": np.full((G, N), 0.3),
        "noise_rate": np.full(N, 0.3),
        "offset": np.zeros((G, N)),
    }
    state["scores1"] = state["score_mean"][label] + rng.normal(size=(T, K))
    X = state["scores1"] @ state["loadings1"].T + np.sqrt(0.3) * rng.normal(size=(T, N))
    return Sampler(X, Prior(), state | {"filled": X.copy()}, np.random.PCG64(seed))


def scale_chain(T, N, K, G, seed=0):
    """A chain of the deep scale model with K factors; it has no clusters."""
    rng = np.random.default_rng(seed)
    state = {
        "loadings1": links(N, K, rng),
        "scores1": rng.normal(size=(T, K)),
        "noise_variance": np.full(N, 0.05),
        "location": np.zeros(N),
        "hyper": np.array([1.0, 0.0]),
    }
    X = _scale_model.draw_data(state, rng)
    return ScaleSampler(X, ScalePrior(), state, np.random.PCG64(seed))


def growth(quick):
    """Time of a sweep in each size alone, and the slope of its logarithm."""
    rows = []
    for model, chain in (("clusterer", mixture_chain), ("scale model", scale_chain)):
        for size, values in GRID.items():
            if model == "scale model" and size == "G":
                continue
            times = []
            for value in values[:3] if quick else values:
                sampler = chain(**(BASE | {size: value}))
                for _ in range(N_SETTLE):
                    sampler.sweep()
                times.append(shortest(sampler.sweep, repeats=N_TIMED))
            rows.append(
                {"model": model, "size": size}
                | growth_row(values[: len(times)], times, "sweep, ms", 1e3)
            )
    return rows


def whole_fit():
    """Wall time of a fit with all defaults on two cores."""
    X = np.asarray(mixture_chain(**BASE).data())
    estimator = InfiniteFactorClusterer(n_jobs=2, random_state=0)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        _, cpu = cpu_seconds(estimator.fit, X)
    minutes = (time.perf_counter() - start) / 60
    return [
        {
            "sweeps of a chain": estimator.n_warmup_ + estimator.n_draws_,
            "CPU min": cpu / 60,
            "wall min": minutes,
            "within 8 min": "yes" if minutes <= MINUTES else "no",
        }
    ]
