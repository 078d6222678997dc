"""Every kernel runs once: each setting swept a few times, then asked for every public answer.

``make test-debug-smoke`` runs this with bounds checks, where a kernel that reads or writes beyond
an array, or uses one that was never set, fails here. In the plain build estimators are left out:
there it would say little that other tests do not.
"""

import os

import numpy as np
import pandas as pd
import pytest

from contract.registry import SETTINGS, Setting
from skbnp import DirichletProcessMixture, InfiniteFactorClusterer, TreeFactorModel
from skbnp.processes import cibp, crp, ibp, icp, mfm, multiplicative_gamma, ncrp
from skbnp.samplers import MixtureSampler, TreeSampler
from skbnp.summaries import partitions

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore::UserWarning"
)

# Few sweeps, but some in each phase.
SWEEPS = dict(n_chains=1, n_warmup=3, n_draws=2, predict_draws=2)
# More rows than kernels take together; more columns than rows; one column; few rows.
SHAPES = [(300, 4), (6, 9), (40, 1), (3, 2)]

# Settings whose kernels differ from those that the registry has.
MORE = [
    Setting(
        "mixture-fixed-parallel",
        DirichletProcessMixture,
        {"sampler": MixtureSampler(algorithm="parallel"), "n_components": 4},
    ),
    Setting("mixture-pitman-yor", DirichletProcessMixture, {"discount": 0.3}),
    Setting("tree-collapsed", TreeFactorModel, {"sampler": TreeSampler(path_update="collapsed")}),
    Setting(
        "tree-collapsed-prior",
        TreeFactorModel,
        {"sampler": TreeSampler(path_update="collapsed", birth="prior")},
    ),
    Setting("clusterer-both", InfiniteFactorClusterer, {"means": "both", "noise": "shared"}),
    Setting("clusterer-layers", InfiniteFactorClusterer, {"max_layers": 3}),
    Setting("clusterer-t", InfiniteFactorClusterer, {"tails": "t"}),
]
# Public answers: method -> calls of it, each a function of the estimator and rows.
ANSWERS = {
    "score_samples": [lambda m, X: m.score_samples(X)],
    "score": [lambda m, X: m.score(X)],
    "transform": [lambda m, X: m.transform(X)],
    "predict": [lambda m, X: m.predict(X)],
    "predict_proba": [lambda m, X: m.predict_proba(X)],
    "novelty_proba": [lambda m, X: m.novelty_proba(X)],
    "impute": [lambda m, X: m.impute(X), lambda m, X: m.impute(X, return_std=True)],
    "sample": [lambda m, X: m.sample(3, random_state=0)],
    "sample_missing": [lambda m, X: m.sample_missing(X, random_state=0)],
    "sample_prior": [lambda m, X: m.sample_prior(3, random_state=0)],
    "sample_y": [lambda m, X: m.sample_y(X, 2, random_state=0)],
    "network": [lambda m, X: m.network()],
    "edge_probabilities": [lambda m, X: m.edge_probabilities()],
    "ancestor_probabilities": [lambda m, X: m.ancestor_probabilities()],
    "coclustering": [lambda m, X: m.coclustering(), lambda m, X: m.coclustering([0], [0, 1])],
    "credible_ball": [lambda m, X: m.credible_ball()],
}


def table(n, d, holes):
    """Two clusters; with holes a tenth of the cells, some in every row but a few."""
    rng = np.random.default_rng(n + d)
    X = rng.normal(size=(n, d)) + 3.0 * (np.arange(n) % 2)[:, None]
    if holes:
        hole = rng.random(X.shape) < 0.1
        hole[:2] = False
        X[hole] = np.nan
    return X


def ask(estimator, X, tmp_path, supervised):
    """All public answers, to fitted rows, new ones, an empty row and one far away."""
    queries = [X, X[:1]]
    if not supervised:
        queries.append(np.full((1, X.shape[1]), 1e3))
    if estimator.__sklearn_tags__().input_tags.allow_nan and not supervised:
        queries.append(np.full((2, X.shape[1]), np.nan))
    for name, calls in ANSWERS.items():
        if name == "score" and supervised or not hasattr(estimator, name):
            continue
        for call in calls:
            for rows in queries:
                call(estimator, rows)
    estimator.save(tmp_path / "model.skbnp")
    loaded = type(estimator).load(tmp_path / "model.skbnp")
    for name in ("score_samples", "predict"):
        if hasattr(estimator, name):
            np.testing.assert_array_equal(getattr(loaded, name)(X), getattr(estimator, name)(X))


@pytest.mark.skipif("SKBNP_REPORTS" not in os.environ, reason="is for builds with bounds checks")
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape)))
@pytest.mark.parametrize("setting", SETTINGS + MORE, ids=str)
def test_every_estimator(setting, shape, tmp_path):
    X = table(*shape, holes=setting.takes_holes and shape[0] > 10)
    ask(setting.fit(X, **SWEEPS), X, tmp_path, setting.is_supervised)


@pytest.mark.parametrize("algorithm", ["auto", "parallel"])
def test_a_mixture_of_mixed_columns(algorithm, tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "size": rng.normal(size=60),
            "weight": rng.normal(size=60),
            "colour": pd.Categorical(rng.choice(["red", "green", "blue"], 60)),
            "old": pd.array(rng.random(60) < 0.5, dtype="boolean"),
            "visits": rng.poisson(3.0, 60),
        }
    )
    X.loc[::7, "size"] = np.nan
    X.loc[::9, "colour"] = np.nan
    mixture = DirichletProcessMixture(
        family="auto", sampler=MixtureSampler(algorithm=algorithm), random_state=0, **SWEEPS
    ).fit(X)
    for name in ("score_samples", "transform", "predict", "predict_proba", "impute"):
        getattr(mixture, name)(X)
        getattr(mixture, name)(X[:1])
    mixture.sample(3, random_state=0)
    mixture.save(tmp_path / "model.skbnp")
    DirichletProcessMixture.load(tmp_path / "model.skbnp").score_samples(X)


# -- functions -----------------------------------------------------------------------------------

LABELS = np.array([[0, 0, 1, 1, 2], [0, 0, 0, 1, 1], [0, 1, 2, 3, 4], [5, 5, 5, 5, 5]])
PATHS = [[0, 0, 0], [0, 0, 1], [0, 1, 2], [1, 2, 3]]
Z = [[1, 0, 1], [1, 1, 0], [0, 1, 0]]
SEED = dict(random_state=0)

# Every public function of a module: calls with ordinary, small and empty arguments.
CALLS = {
    crp: {
        "sample": [
            lambda f: f(50, 1.0, **SEED),
            lambda f: f(1, 1.0, 0.5, **SEED),
            lambda f: f(9, 1.0, n_components=3, **SEED),
        ],
        "log_prob": [lambda f: f([0, 0, 1], 1.0, 0.3), lambda f: f([0], 1.0)],
        "log_prob_sizes": [lambda f: f([1], 1.0)],
        "log_predictive": [
            lambda f: f([2, 1], 1.0, 0.3),
            lambda f: f([], 1.0),
            lambda f: f([2, 1], 1.0, n_components=2),
        ],
        "expected_blocks": [lambda f: f(100, 1.0, 0.3), lambda f: f(1, [1.0, 2.0])],
        "var_blocks": [lambda f: f(100, 1.0, 0.3)],
        "pmf_blocks": [lambda f: f(30, 1.0, 0.3), lambda f: f(1, 1.0)],
        "expected_block_sizes": [lambda f: f(30, 1.0, 0.3), lambda f: f(1, 1.0)],
        "stick_breaking": [lambda f: f(5, 1.0, 0.3, **SEED), lambda f: f(1, 1.0, **SEED)],
        "posterior_weights": [lambda f: f([2, 1], 1.0, 0.3, **SEED), lambda f: f([], 1.0, **SEED)],
        "concentration_for_expected_blocks": [lambda f: f(100, 5.0)],
        "sample_concentration": [
            lambda f: f([3, 2, 1], 1.0, **SEED),
            lambda f: f([3, 2, 1], 1.0, 0.3, **SEED),
        ],
        "sample_discount": [lambda f: f([3, 2, 1], 1.0, 0.3, **SEED)],
    },
    mfm: {
        "sample": [lambda f: f(50, **SEED), lambda f: f(1, 0.3, (2, 1.5, 1), **SEED)],
        "log_prob": [lambda f: f([0, 0, 1]), lambda f: f([0])],
        "log_prob_sizes": [lambda f: f([1])],
        "log_predictive": [lambda f: f([2, 1]), lambda f: f([])],
        "log_coefficient": [lambda f: f(2, 9), lambda f: f([1, 9], 9), lambda f: f([], 9)],
        "pmf_blocks": [lambda f: f(30), lambda f: f(1)],
        "expected_blocks": [lambda f: f(30), lambda f: f(1)],
        "var_blocks": [lambda f: f(30), lambda f: f(1)],
        "log_prob_components": [lambda f: f(3, 2, 9), lambda f: f([1, 3], 2, 9)],
        "expected_components": [lambda f: f(2, 9), lambda f: f(1, 1)],
    },
    ibp: {
        "sample": [lambda f: f(9, 2.0, 1.0, 0.3, **SEED), lambda f: f(1, 1e-9, **SEED)],
        "log_prob": [
            lambda f: f(Z, 1.0),
            lambda f: f(np.zeros((3, 0), int), 1.0),
            lambda f: f(Z, 1.0, 1.0, 0.3, "unordered"),
        ],
        "log_predictive_existing": [lambda f: f([2, 1], 3), lambda f: f([], 3)],
        "new_rate": [lambda f: f(1, 1.0), lambda f: f(3, 1.0, 1.0, 0.3)],
        "expected_new": [lambda f: f(9, 1.0), lambda f: f(1, 1.0, 1.0, 0.3)],
        "expected_features": [lambda f: f(9, 1.0, 1.0, 0.3)],
        "var_features": [lambda f: f(9, 1.0, 1.0, 0.3)],
        "expected_edges": [lambda f: f(9, 1.0, 1.0, 0.3)],
        "var_edges": [lambda f: f(9, 1.0, 1.0, 0.3)],
        "expected_features_of_size": [lambda f: f(9, 1.0, 1.0, 0.3)],
        "draw_arrivals": [
            lambda f: f(np.random.PCG64(0), 9, 2.0, 1.0, 0.3),
            lambda f: f(np.random.PCG64(0), 1, 1e-9, 1.0, 0.0),
        ],
    },
    cibp: {
        "sample": [
            lambda f: f(5, 1.0, **SEED),
            lambda f: f(1, 1e-9, **SEED),
            lambda f: f(5, 1.0, max_depth=2, skip_connections=True, **SEED),
        ],
        "log_prob": [lambda f: f([Z], 1.0, max_depth=1), lambda f: f([np.zeros((3, 0))], 1.0)],
        "expected_widths": [lambda f: f(5, 3, 1.0)],
        "depth_cdf": [lambda f: f(5, 3, 1.0), lambda f: f(1, 1, 1.0)],
        "expected_depth": [lambda f: f(5, 1.0), lambda f: f(1, 1.0, max_depth=2)],
        "var_depth": [lambda f: f(5, 1.0)],
        "expected_units": [lambda f: f(5, 1.0)],
    },
    icp: {
        "sample": [
            lambda f: f([0.0, 0.0, np.nan], 1.0, **SEED),
            lambda f: f([1.0], 1e-9, **SEED),
            lambda f: f([0.0, 0.3], 1.0, method="chefs", **SEED),
        ],
        "log_prob": [
            lambda f: f([0.0], [[0]], 1, 0.7),
            lambda f: f([0.0, 0.5], [[0, 1], [0, 0]], 1, 0.7),
        ],
        "hidden_pmf": [lambda f: f([0.0], 1.0), lambda f: f([1.0], 1.0)],
        "expected_hidden": [lambda f: f([0.0, 0.0], 1.0)],
        "var_hidden": [lambda f: f([0.0, 0.0], 1.0)],
        "expected_edges": [lambda f: f([0.0, 1.0], 1.0)],
    },
    ncrp: {
        "sample": [lambda f: f(9, 3, [1.0, 0.5, 0.0], **SEED), lambda f: f(1, 1, 1.0, **SEED)],
        "node_table": [lambda f: f(PATHS), lambda f: f([[0]])],
        "log_prob": [lambda f: f(PATHS, 1.0), lambda f: f([[0]], 1.0)],
        "log_path_predictive": [
            lambda f: f(PATHS, [0, 0, 0], 1.0),
            lambda f: f(PATHS, [2, 4, 4], 1.0),
        ],
        "expected_nodes": [lambda f: f(9, 2, [1.0, 0.7])],
        "sample_concentration": [lambda f: f(PATHS, 1.0, (1.0, 1.0), **SEED)],
    },
    multiplicative_gamma: {
        "check_shrinkage": [lambda f: f(2.0, 3.0)],
        "sample": [
            lambda f: f(5, 2.0, 3.0, **SEED),
            lambda f: f(1, 2.0, 3.0, size=4, **SEED),
            lambda f: f(3, 2.0, 3.0, parent=[-1, 0, 0], truncated=True, **SEED),
        ],
        "log_prob": [lambda f: f([2.0, 1.5], 2.0, 3.0)],
        "expected_precision": [lambda f: f(3, 2.0, 3.0)],
        "expected_variance": [lambda f: f(3, 2.0, 3.0)],
        "expected_log_precision": [lambda f: f(3, 2.0, 3.0, shifted=True)],
        "var_log_precision": [lambda f: f(3, 2.0, 3.0)],
        "expected_product": [lambda f: f(3, 2, 1, 2.0, 4.0)],
        "sample_local_precision": [lambda f: f([[1.0, 2.0], [0.5, 0.1]], [1.0, 2.0], 3.0, **SEED)],
        "sample_multipliers": [
            lambda f: f([1.0, 0.5], 4, [2.0, 1.5], 2.0, 3.0, **SEED),
            lambda f: f([1.0, 0.5], 4, [2.0, 1.5], 2.0, 3.0, [-1, 0], **SEED),
        ],
    },
    partitions: {
        "make_generator": [lambda f: f(0), lambda f: f(np.random.RandomState(0))],
        "expected_loss": [lambda f: f(LABELS[0], LABELS), lambda f: f([0], [[3]], "binder")],
        "central_draw": [lambda f: f(LABELS), lambda f: f([[0]])],
        "consensus_partition": [lambda f: f(LABELS, **SEED), lambda f: f([[0]], **SEED)],
        "credible_ball": [lambda f: f(LABELS[0], LABELS)],
        "relabel_by_size": [lambda f: f([5, 3, 3]), lambda f: f([0])],
        "coclustering": [lambda f: f(LABELS), lambda f: f(LABELS, [0], [1, 2])],
        "companion_table": [lambda f: f(LABELS[0], 3, LABELS[1], 2)],
    },
}
CASES = [
    pytest.param(module, name, id=f"{module.__name__.removeprefix('skbnp.')}.{name}")
    for module, calls in CALLS.items()
    for name in calls
]


@pytest.mark.parametrize("module, name", CASES)
def test_every_function(module, name):
    for call in CALLS[module][name]:
        call(getattr(module, name))


@pytest.mark.parametrize("module", CALLS, ids=lambda module: module.__name__)
def test_no_function_is_forgotten(module):
    public = {
        name
        for name, value in vars(module).items()
        if callable(value)
        and not isinstance(value, type)
        and name[0] != "_"
        and getattr(value, "__module__", None) == module.__name__
    }
    assert public == set(CALLS[module])
