"""What the estimators with sparse factors promise, each over its options."""

import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from checks.slow import slow_where
from checks.sparse_factors import answers, assert_same_answers, short, table
from skbnp import DeepScaleModel, InfiniteFactorClusterer
from skbnp.deep_scale_model import _model as scale_model
from skbnp.infinite_factor_clusterer import _model as clusterer_model
from skbnp.laws import Gamma, InverseGamma, Normal
from skbnp.mcmc.io import FileFormatError
from skbnp.samplers import DeepScaleSampler, FactorClustererSampler

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning",
    "ignore:X should have a column of kurtosis:UserWarning",
    "ignore:the density of:UserWarning",
)

DRIFT = {"drift": Normal(0.0, 1.0)}
OPTIONS = [
    (InfiniteFactorClusterer, {}),
    (InfiniteFactorClusterer, {"noise": "shared"}),
    (InfiniteFactorClusterer, {"means": "both", "merge_overlap": None}),
    (
        InfiniteFactorClusterer,
        {"means": "feature", "sampler": FactorClustererSampler(n_init_clusters=3)},
    ),
    (InfiniteFactorClusterer, {"tails": "t"}),
    (InfiniteFactorClusterer, {"max_layers": 2, "mass_upper": 1.0}),
    (InfiniteFactorClusterer, {"detection_limit": -2.0}),
    (InfiniteFactorClusterer, {"detection_limit": [-2.0, -9.0, -3.0, -2.0], "tails": "t"}),
    (
        InfiniteFactorClusterer,
        {
            "mass": 2.0,
            "concentration": 0.5,
            "loading_variance": InverseGamma(3.0, 1.0),
            "scaling": "none",
        },
    ),
    (
        InfiniteFactorClusterer,
        {
            "sampler": FactorClustererSampler(n_births=2, n_split_merge=1),
            "mean_precision_prior": 1.0,
            "noise_variance": InverseGamma(2, Gamma(2, 3)),
        },
    ),
    (DeepScaleModel, {"drift": Normal(0.0, 1.0)}),
    (DeepScaleModel, {"max_layers": None, "transform_output": "log_energy"}),
    (
        DeepScaleModel,
        {"drift": 2.0, "signed": True, "center": "sample", "transform_output": "magnitude"},
    ),
    (DeepScaleModel, {"birth_move": "finite", "noise_variance": 0.09, "center": "median"}),
    (
        DeepScaleModel,
        {"birth_move": "pan-han", "noise_variance": [0.09, 0.09, 0.16, 0.16], "mass": 3.0},
    ),
    (
        DeepScaleModel,
        {"sampler": DeepScaleSampler(schedule="greedy", n_init_factors=4), "max_layers": 2},
    ),
]


# Where answers are compared to the last bit, whatever they are.
LITTLE = dict(n_warmup=6, n_draws=4, predict_draws=3)


def over(*cases):
    return pytest.mark.parametrize(("kind", "options"), cases, ids=str)


@pytest.fixture(scope="module")
def X():
    return table()


@over(*slow_where(OPTIONS, lambda one: OPTIONS.index(one) % 2 == 1))
def test_every_option_gives_finite_answers(X, kind, options):
    model = short(kind, **options).fit(X)
    for name, value in answers(model, X).items():
        if name != "observed":
            assert np.isfinite(value[~np.isnan(value)]).all(), name
            assert not np.isnan(value).any(), name
    proba = model.predict_proba(X)
    assert_allclose(proba.sum(axis=1), 1.0)
    n_factors = len(model.get_feature_names_out())
    assert model.transform(X).shape == (80, n_factors)
    if kind is DeepScaleModel:
        assert proba.shape == (80, 1 + n_factors)
        assert model.labels_.min() >= -1
    else:
        assert proba.shape == (80, model.n_clusters_)
        assert_array_equal(np.unique(model.labels_), np.arange(model.n_clusters_))
        assert model.cluster_energies_["factors"].shape == (model.n_clusters_, n_factors)
        assert model.cluster_energies_["noise"].shape == (model.n_clusters_, 4)
        assert (model.novelty_proba(X) <= 1).all()
    filled, std = model.impute(X, return_std=True)
    seen = ~np.isnan(X)
    assert_array_equal(filled[seen], X[seen])
    assert (std[seen] == 0).all() and (std[~seen] > 0).all()
    assert_array_equal(model.impute(X), filled)
    assert len(model.labels_per_level_) >= 1
    assert_array_equal(model.labels_per_level_[0], model.labels_)
    assert 0 <= model.n_shared_factors_ <= model.n_factors_
    assert 0 <= model.n_layers_ <= 8
    assert_allclose(np.diag(model.energy_correlation_), 1.0)


@over(
    (InfiniteFactorClusterer, {}),
    (InfiniteFactorClusterer, {"tails": "t"}),
    (DeepScaleModel, DRIFT),
)
def test_the_same_whatever_the_jobs(X, kind, options):
    expected = answers(short(kind, **LITTLE, **options).fit(X), X)
    two = short(kind, n_jobs=2, **LITTLE, **options)
    assert_same_answers(expected, answers(two.fit(X), X))
    with joblib.parallel_config(backend="loky", n_jobs=2):
        assert_same_answers(expected, answers(two.fit(X), X))


@over(
    (InfiniteFactorClusterer, {}),
    (InfiniteFactorClusterer, {"max_layers": 2, "detection_limit": -2.0}),
    (DeepScaleModel, {"noise_variance": 0.09, "sampler": DeepScaleSampler(n_births=1)}),
)
def test_clones_pickles_and_files(X, tmp_path, kind, options):
    model = short(kind, **LITTLE, **options).fit(X)
    expected = answers(model, X)
    assert_same_answers(answers(clone(model).fit(X), X), expected)
    assert_same_answers(answers(pickle.loads(pickle.dumps(model)), X), expected)
    path = tmp_path / "model.skbnp"
    model.save(path)
    assert_same_answers(answers(kind.load(path), X), expected)


@over(
    (InfiniteFactorClusterer, {}),
    (InfiniteFactorClusterer, {"max_layers": 2}),
    (DeepScaleModel, {"max_layers": 2}),
)
def test_runs_go_on_with_the_same_draws(X, tmp_path, kind, options):
    options = LITTLE | options
    expected = answers(short(kind, **options | {"n_draws": 8}).fit(X), X)
    half = short(kind, checkpoint=tmp_path, **options).fit(X)
    resumed = clone(half).set_params(n_draws=8).fit(X)
    assert_same_answers(expected, answers(resumed, X))
    warm = short(kind, warm_start=True, **options).fit(X)
    assert_same_answers(expected, answers(warm.set_params(n_draws=8).fit(X), X))


def changed(name, function):
    return lambda draw: {**draw, name: function(draw[name])}


DAMAGED = {
    InfiniteFactorClusterer: {
        "label of no cluster": changed("label", lambda x: x + 1),
        "label short": changed("label", lambda x: x[1:]),
        "members": changed("n_members", lambda x: x[::-1] + 1),
        "loadings": changed("loadings1", lambda x: x[:-1]),
        "noise": changed("noise_variance", lambda x: -x),
        "energies": changed("score_energy", lambda x: np.append(x, 1.0)),
        "hyper": changed("hyper", lambda x: x[:3]),
    },
    DeepScaleModel: {
        "labels of no factor": changed("level_labels", lambda x: x + 1000),
        "labels short": changed("level_labels", lambda x: x[:, 1:]),
        "loadings": changed("loadings1", lambda x: x[:-1]),
        "scores": changed("scores1", lambda x: x[:-1]),
        "noise": changed("noise_variance", lambda x: -x),
        "location": changed("location", lambda x: x + 1.0),
        "drift": changed("hyper", lambda x: x + 1.0),
    },
}


@pytest.fixture(scope="module")
def fitted(X):
    """A fit of each kind; what a test changes of it, it puts back."""
    return {kind: short(kind, **LITTLE).fit(X) for kind in DAMAGED}


@pytest.mark.parametrize(
    ("kind", "how"), [(kind, how) for kind, cases in DAMAGED.items() for how in cases]
)
def test_a_damaged_draw_is_refused(fitted, monkeypatch, tmp_path, kind, how):
    model = fitted[kind]
    damaged = DAMAGED[kind][how](model.posterior_[0, 0])
    with pytest.raises(ValueError):
        model._check_draw(damaged)
    monkeypatch.setattr(model, "_reference", damaged)
    model.save(tmp_path / "damaged.skbnp")
    with pytest.raises(FileFormatError):
        kind.load(tmp_path / "damaged.skbnp")


@over(
    (InfiniteFactorClusterer, {}),
    (InfiniteFactorClusterer, {"tails": "t"}),
    (DeepScaleModel, DRIFT),
)
def test_units_of_x(X, kind, options):
    """Powers of two give identical draws; densities and moments follow the units."""
    factors = 2.0 ** np.array([-20, 3, 0, 30])
    one, other = (short(kind, **LITTLE, **options).fit(X * c) for c in (1.0, factors))
    for a, b in zip(one.posterior_, other.posterior_, strict=True):
        assert_array_equal(a["loadings1"], b["loadings1"])
    shift = np.where(np.isnan(X), 0.0, np.log(factors)).sum(axis=1)
    assert_allclose(other.score_samples(X * factors) + shift, one.score_samples(X), atol=1e-9)
    for got, expected in zip(
        other.impute(X * factors, return_std=True), one.impute(X, return_std=True), strict=True
    ):
        assert_allclose(got, expected * factors, rtol=1e-9)
    assert_array_equal(one.labels_, other.labels_)


@over((InfiniteFactorClusterer, {}), (DeepScaleModel, {"center": "sample"}))
def test_log_joint_is_in_the_units_of_x(X, kind, options):
    """The trace equals the reference density of the data in its own units, to 1e-10."""
    reference = scale_model if kind is DeepScaleModel else clusterer_model
    model = short(kind, n_chains=1, **options).fit(X)
    end = model.posterior_.final_states[0]
    jacobian = np.sum(~np.isnan(X), axis=0) @ np.log(np.nanstd(X, axis=0))
    expected = reference.log_joint(end, model._training_rows.X, model._prior) - jacobian
    assert_allclose(model.posterior_.traces["log_joint"][0, -1], expected, rtol=1e-10)


@over(
    (InfiniteFactorClusterer, {}),
    (InfiniteFactorClusterer, {"tails": "t"}),
    pytest.param(InfiniteFactorClusterer, {"max_layers": 2}, marks=pytest.mark.slow),
    (DeepScaleModel, {}),
)
def test_densities_integrate_to_one(kind, options):
    """Over the whole line, in the units of X; a missing cell leaves the marginal density."""
    rng = np.random.default_rng(4)
    X = 50.0 + 7.0 * rng.normal(size=(60, 2)) * (1 + 2 * (rng.random((60, 1)) < 0.3))
    model = short(kind, **LITTLE, **options).fit(X)
    angle = np.linspace(-np.pi / 2, np.pi / 2, 1_003)[1:-1]
    rows = np.column_stack([50.0 + 10.0 * np.tan(angle), np.full(len(angle), np.nan)])
    slope = 10.0 / np.cos(angle) ** 2
    total = np.sum(np.exp(model.score_samples(rows)) * slope) * (angle[1] - angle[0])
    assert_allclose(total, 1.0, rtol=2e-3)


@over((InfiniteFactorClusterer, {}), (DeepScaleModel, {}))
def test_pandas_and_names(X, kind, options):
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = short(kind, **LITTLE).set_output(transform="pandas").fit(frame)
    out = model.transform(frame)
    assert list(out.columns) == list(model.get_feature_names_out())
    assert out.columns[0] == "factor0"
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"a": "z"}))


@over(
    (InfiniteFactorClusterer, {"sampler": FactorClustererSampler()}),
    (DeepScaleModel, {"sampler": DeepScaleSampler()}),
)
def test_pipelines_and_searches(X, kind, options):
    pipeline = make_pipeline(StandardScaler(), short(kind, **LITTLE))
    assert len(pipeline.fit_predict(X)) == len(X)
    values = {"mass": [1.0, Gamma(1, 1)], "sampler__n_split_merge": [0, 5]}
    search = GridSearchCV(short(kind, **LITTLE, **options), values, cv=KFold(2, shuffle=True))
    assert np.isfinite(search.fit(X).cv_results_["mean_test_score"]).all()


@over((InfiniteFactorClusterer, {}), (DeepScaleModel, {}))
def test_rows_without_cells(X, kind, options):
    empty = np.full((1, 4), np.nan)
    model = short(kind, **LITTLE).fit(X)
    assert model.score_samples(empty)[0] == 0.0
    assert np.isfinite(model.impute(empty)).all()
    assert_allclose(model.predict_proba(empty).sum(), 1.0)
