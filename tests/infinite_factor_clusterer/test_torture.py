"""Numbers at the edge: an answer or the documented error, never NaN or a crash."""

import numpy as np
import pytest

from checks.edges import tables_at_the_edge
from checks.slow import slow_where
from checks.sparse_factors import assert_sound
from skbnp import InfiniteFactorClusterer
from skbnp.laws import Gamma, InverseGamma
from skbnp.samplers import FactorClustererSampler

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore::UserWarning"
)


def fit(X, **options):
    defaults = dict(n_chains=2, n_warmup=15, n_draws=8, predict_draws=3, random_state=0)
    return InfiniteFactorClusterer(**{**defaults, **options}).fit(X)


BASE, DATA = tables_at_the_edge()
MODELS = {
    "default": {},
    "t, both": {"tails": "t", "means": "both"},
    "layers": {"max_layers": 3, "mass_upper": 1.0, "noise": "shared"},
}


@pytest.mark.parametrize("model", slow_where(MODELS, lambda model: model != "default"))
@pytest.mark.parametrize("name", DATA)
def test_data_at_the_edge(name, model):
    assert_sound(fit(DATA[name], **MODELS[model]), DATA[name])


def test_many_identical_rows():
    X = np.repeat(BASE[:2], [10_000, 1], axis=0)
    found = fit(
        X, n_chains=1, n_warmup=3, n_draws=3, sampler=FactorClustererSampler(n_split_merge=2)
    )
    assert_sound(found, X)


HOLES = np.random.default_rng(2).random(BASE.shape) < 0.4
CENSORED = {
    "some": np.where(BASE < 0.5, -np.inf, BASE),
    "nearly all": np.where(np.arange(30)[:, np.newaxis] > 1, -np.inf, BASE + 1.0),
    "with holes": np.where(HOLES, np.nan, np.where(BASE < 0, -9.0, BASE)),
    "a whole column": np.column_stack([BASE, np.full(30, -np.inf)]),
}


@pytest.mark.parametrize("tails", ["gaussian", "t"])
@pytest.mark.parametrize("name", CENSORED)
def test_cells_below_the_limit(name, tails):
    X = CENSORED[name]
    assert_sound(fit(X, detection_limit=0.5, tails=tails), X)


EXTREMES = [
    {"mass": 1e4, "n_warmup": 2, "n_draws": 2},
    {"mass": 1e-6},
    {"mass": Gamma(1e6, 1e-6), "n_warmup": 2, "n_draws": 2},
    {"concentration": 100, "n_warmup": 2, "n_draws": 2},
    {"concentration": 1e-6},
    {"loading_variance": InverseGamma(1e6, 1e-6)},
    {"loading_variance": InverseGamma(1e-3, 1e6)},
    {"score_variance": InverseGamma(1e6, 1.0)},
    {"score_variance": InverseGamma(0.1, 1e-6)},
    {"mean_precision_prior": 1e6},
    {"mean_precision_prior": 1e-6},
    {"noise_variance": InverseGamma(1e6, Gamma(1e-3, 1e6))},
    {"noise_variance": InverseGamma(0.1, Gamma(1e6, 1e-6))},
    {"sampler": FactorClustererSampler(n_init_clusters=1000)},
    {"sampler": FactorClustererSampler(n_births=0, n_split_merge=0)},
    {"merge_overlap": 1e-12},
    {"merge_overlap": 1.0},
    {"scaling": "none"},
]


@pytest.mark.parametrize("options", EXTREMES, ids=str)
def test_extreme_parameters(options):
    assert_sound(fit(BASE, **options), BASE)
