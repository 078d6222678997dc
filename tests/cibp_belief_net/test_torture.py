"""Numbers at the edge: an answer or the documented error, never NaN or a crash."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skbnp import CIBPBeliefNet

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore::UserWarning"
)


def fit(X, **options):
    defaults = dict(
        max_depth=2, n_chains=2, n_warmup=15, n_draws=10, predict_draws=4, n_temperatures=10,
        n_particles=2, random_state=0,
    )  # fmt: skip
    return CIBPBeliefNet(**{**defaults, **options}).fit(X)


def assert_sound(net, X):
    """Every answer is a finite number and says what it must."""
    for name, trace in net.posterior_.traces.items():
        assert np.isfinite(trace).all(), name
    rng = np.random.default_rng(0)
    rows = np.concatenate([X[:30], np.full((1, X.shape[1]), np.nan)])
    holes = np.where(rng.random(rows.shape) < 0.5, np.nan, rows)
    for new in (rows, holes):
        density = net.score_samples(new)
        assert np.isfinite(density).all()
        assert density[-1] == 0.0
        filled, std = net.impute(new, return_std=True, n_burn_in=3, n_passes=4)
        seen = ~np.isnan(new)
        assert np.isfinite(filled).all() and np.isfinite(std).all()
        assert_array_equal(filled[seen], new[seen])
        assert (std[seen] == 0).all()
        u = net.transform(new)
        assert (np.abs(u) <= 1).all()
    assert np.isfinite(net.sample(50, random_state=0)).all()


RNG = np.random.default_rng(1)
BASE = RNG.normal(size=(30, 3)) + 3.0 * (np.arange(30) % 2)[:, np.newaxis]
DATA = {
    "constant column": BASE * [1.0, 0.0, 1.0],
    "duplicated columns": np.column_stack([BASE, BASE, BASE]),
    "tiny": BASE * 1e-8,
    "huge": BASE * 1e8,
    "mixed scales": BASE * [1e-8, 1.0, 1e8],
    "far from zero": BASE + 1e8,
    "two rows": BASE[:2],
    "more columns than rows": RNG.normal(size=(6, 25)),
    "rows without cells": np.where(np.arange(30)[:, np.newaxis] % 3 == 0, np.nan, BASE),
    "mostly holes": np.where(RNG.random(BASE.shape) < 0.8, np.nan, BASE) + 0.0,
    "one feature": BASE[:, :1],
    "integers": np.round(BASE),
    "binary": (BASE > 1.5).astype(float),
    "one value in almost all rows": np.where(np.arange(30)[:, np.newaxis] < 28, 1.0, BASE),
    "an outlier": np.concatenate([BASE, [[1e6, -1e6, 1e6]]]),
    "tight groups": 1e-3 * RNG.normal(size=(30, 3)) + (np.arange(30) % 2)[:, np.newaxis],
}
# Every column keeps two values.
DATA["mostly holes"][:2] = BASE[:2]
MODELS = {
    "default": {},
    "row clusters": {"max_depth": 1, "row_clusters": True},
    "sigmoid": {"visible": "sigmoid", "skip_connections": True},
}


@pytest.mark.parametrize("model", MODELS)
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
    {"mass_bounds": ((0, 1e4), (0, 1e4)), "max_units": 12},
    {"weight_prior": (0.0, 1.0, 1e6, 1e-6)},
    {"weight_prior": (1e6, 1e6, 2.0, 2.0)},
    {"weight_prior": (0.0, 1e-6, 1e-6, 1e6)},
    {"bias_prior": (-1e6, 1e6, 2.0, 2.0)},
    {"bias_prior": (0.0, 1e-6, 1e-6, 1e-6)},
    {"noise_prior": (1e-6, 1.0, 1.0)},
    {"noise_prior": (1e6, 1e6, 1e-6)},
    {"noise_prior": (1.0, 1e-6, 1e6)},
    {"row_clusters": True, "row_concentration": 1e-6},
    {"row_clusters": True, "row_concentration": 1e6},
    {"feature_range": 1 - 1e-9, "visible": "sigmoid"},
    {"feature_range": 1e-9, "visible": "sigmoid"},
    {"max_units": 1},
    {"n_init_units": 1000, "max_units": 2},
    {"max_depth": 100_000, "mass": [2.0, 0.5]},
    {"max_depth": 5, "row_clusters": True},
]


@pytest.mark.parametrize("options", EXTREMES, ids=str)
def test_extreme_parameters(options):
    assert_sound(fit(BASE, **options), BASE)
