"""Numbers at the edge: an answer or the documented error, never NaN or a crash."""

import numpy as np
import pytest

from checks import edges
from checks.edges import assert_finite_traces, tables_at_the_edge
from checks.icp_network import PAPER, with_sampler
from checks.slow import slow_where
from skbnp import ICPNetwork, ICPNetworkClassifier, ICPNetworkRegressor
from skbnp.laws import Gamma

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore::UserWarning"
)

CHAIN = dict(
    n_chains=1, n_warmup=12, n_draws=6, predict_draws=3, n_leapfrog=5, n_init_units=3,
    random_state=0,
)  # fmt: skip


def fit(X, **options):
    defaults = dict(n_fantasies=20, n_importance=10, n_temperatures=5, n_particles=2)
    return ICPNetwork(**with_sampler({**CHAIN, **defaults, **options})).fit(X)


def assert_sound(net, X):
    """Every answer is a finite number and says what it must, of units and edges too."""
    for new in edges.assert_sound(net, X):
        assert (np.abs(net.transform(new)) <= 1 + 1e-12).all()
    for probability in (net.edge_probabilities(), net.ancestor_probabilities()):
        assert ((probability >= 0) & (probability <= 1)).all()


BASE, DATA = tables_at_the_edge()
MODELS = {
    "default": {},
    "sigmoid": {"visible": "sigmoid"},
    "free orders": {"observed_order": "free"},
}


@pytest.mark.parametrize("model", slow_where(MODELS, lambda model: model != "default"))
@pytest.mark.parametrize("name", DATA)
def test_data_at_the_edge(name, model):
    assert_sound(fit(DATA[name], **MODELS[model]), DATA[name])


def test_many_identical_rows():
    X = np.repeat(BASE[:2], [5000, 1], axis=0)
    assert_sound(fit(X, n_warmup=4, n_draws=4), X)


EXTREMES = [
    {"noise_precision": Gamma(1e-6, 1.0)},
    {"noise_precision": Gamma(1e6, 1e6)},
    {"noise_precision": Gamma(1.0, 1e-6)},
    {"weight_variance": 1e-6, "bias_variance": 1e-6},
    {"weight_variance": 1e6},
    {"bias_variance": 1e6},
    {"mass": 1e-6, "concentration": 1e-6},
    {"mass": 50.0, "max_units": 6},
    {"concentration": 1e4, "max_units": 10},
    {"observed_popularity": 1e-6, "observed_order": "free"},
    {"observed_popularity": 1e4, "observed_order": "free"},
    PAPER | {"max_units": 20},
    {"max_units": 0},
    {"max_units": 1, "n_init_units": 50},
    {"n_births": 0, "n_hmc": 0, "n_noise_slices": 0},
    {"observed_order": [0.0, 0.0, 1.0]},
    {"observed_order": [0.5, 0.5, 0.5]},
    {"moves": "paper", "init": "empty"},
]


@pytest.mark.parametrize("options", EXTREMES, ids=str)
def test_extreme_parameters(options):
    assert_sound(fit(BASE, **options), BASE)


TARGETS = {
    "tiny": 1e-8 * BASE[:, 0],
    "huge": 1e8 * BASE[:, :2],
    "far from zero": BASE[:, 0] + 1e8,
    "an outlier": np.where(np.arange(30) == 7, 1e6, BASE[:, 1]),
    "two values": (BASE[:, 0] > 1.5).astype(float),
}


@pytest.mark.parametrize("name", TARGETS)
def test_targets_at_the_edge(name):
    X, y = BASE, TARGETS[name]
    net = ICPNetworkRegressor(n_fantasies=10, **with_sampler(CHAIN)).fit(X, y)
    assert_finite_traces(net)
    mean, std = net.predict(np.concatenate([X, 1e6 * X]), return_std=True)
    assert np.isfinite(mean).all() and np.isfinite(std).all() and (std > 0).all()
    assert np.isfinite(net.sample_y(X, 3, random_state=0)).all()


FEATURES = {name: DATA[name] for name in ("constant column", "mixed scales", "an outlier", "tiny")}


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", FEATURES)
def test_classes_at_the_edge(name, n_classes):
    X = FEATURES[name]
    y = np.arange(len(X)) % n_classes
    net = ICPNetworkClassifier(n_fantasies=10, **with_sampler(CHAIN)).fit(X, y)
    assert_finite_traces(net)
    p = net.predict_proba(np.concatenate([X, 1e3 * X]))
    assert np.isfinite(p).all() and (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0)


def test_one_rare_class():
    y = (np.arange(30) == 4).astype(int)
    net = ICPNetworkClassifier(n_fantasies=10, **with_sampler(CHAIN)).fit(BASE, y)
    assert net.predict_proba(BASE)[:, 1].mean() < 0.5
