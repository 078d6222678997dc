"""Numbers at the edge: an answer or the documented error, never NaN or a crash."""

import numpy as np
import pytest

from checks.edges import tables_at_the_edge
from checks.sparse_factors import assert_sound
from skbnp import DeepScaleModel
from skbnp.laws import Normal
from skbnp.samplers import DeepScaleSampler

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore::UserWarning"
)


def fit(X, **options):
    defaults = dict(n_chains=2, n_warmup=15, n_draws=8, predict_draws=3, random_state=0)
    return DeepScaleModel(**{**defaults, **options}).fit(X)


BASE, DATA = tables_at_the_edge()


@pytest.mark.parametrize("name", DATA)
def test_data_at_the_edge(name):
    assert_sound(fit(DATA[name], drift=Normal(0.0, 1.0), max_layers=2), DATA[name])


def test_many_identical_rows():
    X = np.repeat(BASE[:2], [10_000, 1], axis=0)
    lengths = dict(n_chains=1, n_warmup=3, n_draws=3, sampler=DeepScaleSampler(n_split_merge=2))
    found = fit(X, drift=Normal(0.0, 1.0), max_layers=2, **lengths)
    assert_sound(found, X)


EXTREMES = [
    {"noise_variance": 1e-8},
    {"noise_variance": 1e8},
    {"drift": 1e3},
    {"sampler": DeepScaleSampler(n_init_factors=40), "birth_move": "pan-han"},
    {"max_layers": None, "mass_upper": 1.0, "sampler": DeepScaleSampler(schedule="greedy")},
]


@pytest.mark.parametrize("options", EXTREMES, ids=str)
def test_extreme_parameters(options):
    assert_sound(fit(BASE, **options), BASE)
