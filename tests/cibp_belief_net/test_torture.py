"""Numbers at the edge: an answer or the documented error, never NaN or a crash."""

import numpy as np
import pytest

from checks import edges
from checks.edges import tables_at_the_edge
from checks.slow import slow_where
from skbnp import CIBPBeliefNet
from skbnp.laws import Gamma, NormalGamma, Uniform
from skbnp.samplers import BeliefNetSampler
from skbnp.units import steps

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore::UserWarning"
)


def fit(X, **options):
    defaults = dict(
        max_layers=2, n_chains=2, n_warmup=15, n_draws=10, predict_draws=4, n_temperatures=10,
        n_particles=2, random_state=0,
    )  # fmt: skip
    return CIBPBeliefNet(**{**defaults, **options}).fit(X)


def assert_sound(net, X):
    """Every answer is a finite number and says what it must, of units too."""
    for new in edges.assert_sound(net, X, n_burn_in=3, n_passes=4):
        assert (np.abs(net.transform(new)) <= 1).all()


BASE, DATA = tables_at_the_edge()
MODELS = {
    "default": {},
    "row clusters": {"max_layers": 1, "row_clusters": True},
    "sigmoid": {"visible": "sigmoid", "skip_connections": True},
}


@pytest.mark.parametrize("model", slow_where(MODELS, lambda model: model != "default"))
@pytest.mark.parametrize("name", DATA)
def test_data_at_the_edge(name, model):
    assert_sound(fit(DATA[name], **MODELS[model]), DATA[name])


@pytest.mark.parametrize("model", MODELS)
def test_many_identical_rows(model):
    X = np.repeat(BASE[:2], [10_000, 1], axis=0)
    net = fit(X, n_chains=1, n_warmup=5, n_draws=5, **MODELS[model])
    assert_sound(net, X)


EXTREMES = [
    {"noise_floor": 1e-6},
    {"noise_floor": 1e3},
    {"mass": 1e4, "max_units": 12},
    {"mass": 1e-6, "concentration": 1e-6},
    {"concentration": 1e4},
    {"mass": Uniform(0, 1e4), "max_units": 12},
    {"noise_precision": Gamma(1e6, 1e-6)},
    {"noise_precision": Gamma(1e-6, 1e6)},
    {"weight_prior": NormalGamma(0.0, 1.0, 1e6, 1e-6)},
    {"weight_prior": NormalGamma(1e6, 1e6, 2.0, 2.0)},
    {"weight_prior": NormalGamma(0.0, 1e-6, 1e-6, 1e6)},
    {"bias_prior": NormalGamma(-1e6, 1e6, 2.0, 2.0)},
    {"bias_prior": NormalGamma(0.0, 1e-6, 1e-6, 1e-6)},
    {"noise_precision": Gamma(1e-6, Gamma(1.0, 1.0))},
    {"noise_precision": Gamma(1e6, Gamma(1e6, 1e-6))},
    {"noise_precision": Gamma(1.0, Gamma(1e-6, 1e6))},
    {"row_clusters": True, "row_concentration": 1e-6},
    {"row_clusters": True, "row_concentration": 1e6},
    {"feature_range": 0.999, "visible": "sigmoid"},
    {"feature_range": 1e-6, "visible": "sigmoid"},
    {"max_units": 1},
    {"sampler": BeliefNetSampler(n_init_units=1000), "max_units": 2},
    {"max_layers": 100_000, "mass": [2.0, 0.5]},
    {"max_layers": 5, "row_clusters": True},
]


@pytest.mark.parametrize("options", EXTREMES, ids=str)
def test_extreme_parameters(options):
    assert_sound(fit(BASE, **options), BASE)


ROWS = np.random.default_rng(0).normal(size=(40, 1)) * [1.0, 2.0, -1.0]
ROWS += 0.3 * np.random.default_rng(1).normal(size=(40, 3))


# -- settings that do not go together -------------------------------------------------------------


def test_rows_are_kept_as_they_were():
    Y = ROWS.copy()
    net = fit(Y, max_layers=1, n_draws=40)
    before = net.posterior_.loo().elpd
    Y[:] = 100 * Y[::-1]
    assert net.posterior_.loo().elpd == before


@pytest.mark.parametrize("options", [{"max_units": 20}, {"max_units": 3}, {"max_layers": 5}])
def test_starts_of_row_clusters_keep_to_max_units(options):
    Y = np.random.default_rng(0).normal(size=(30, 40))
    net = fit(Y, row_clusters=True, n_warmup=2, n_draws=2, **options)
    assert net.network()["layer"].max() <= options.get("max_layers", 2)


def test_row_clusters_need_a_unit_in_every_layer():
    with pytest.raises(ValueError, match="max_units must be at least max_layers.*got 1 and 2"):
        fit(ROWS, row_clusters=True, max_units=1)


@pytest.mark.parametrize(
    "options",
    [
        {"noise_precision": Gamma(100.0, Gamma(1.0, 100.0))},
        {"noise_floor": 1e3},
        {"bias_prior": NormalGamma(0, 1, 0.5, 1)},
    ],
)
def test_starts_from_the_prior_come_to_an_end(options):
    assert fit(ROWS, sampler=BeliefNetSampler(init="prior"), **options).n_layers_ >= 0


def test_a_prior_beyond_max_units_is_refused():
    with pytest.raises(ValueError, match="max_units must leave room .* got 2"):
        fit(ROWS, sampler=BeliefNetSampler(init="prior"), mass=200.0, max_units=2)


def test_steps_look_through_rounding():
    random = np.random.default_rng(1)
    v = random.integers(0, 4, size=(200, 1)) * (random.random((200, 1)) < 0.5)
    rounded = np.where((v == 3) & (random.random(v.shape) < 0.5), 0.1 + 0.2, 0.1 * v)
    rounded[v == 3] -= 5e-17 * (random.random((v == 3).sum()) < 0.5)
    assert steps(rounded) == pytest.approx(0.1)


def test_ends_of_a_constant_column_may_meet():
    Y = np.column_stack([ROWS, np.full(len(ROWS), 3.0)])
    ends = np.append(np.full(3, 99.0), 3.0)
    with pytest.warns(UserWarning, match="constant"):
        fit(Y, feature_bounds=(-ends + [0.0, 0.0, 0.0, 6.0], ends))
