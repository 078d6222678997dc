"""The estimator's promises: scikit-learn, units, clusters, files, resumed runs."""

import pickle

import joblib
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from skbnp import DeepScaleModel
from skbnp.deep_scale_model import _model
from skbnp.laws import Normal
from skbnp.mcmc.io import FileFormatError
from skbnp.samplers import DeepScaleSampler

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning",
    "ignore:X should have a column of kurtosis:UserWarning",
    "ignore:the density of:UserWarning",
)


def short(**changes):
    options = dict(n_chains=2, n_warmup=15, n_draws=10, predict_draws=6, random_state=0)
    return DeepScaleModel(**(options | changes))


def failed_checks(estimator):
    return {
        "check_clustering": "clusters that differ in their means alone are what the model does not "
        "see"
    }


@parametrize_with_checks([short(drift=Normal(0.0, 1.0))], expected_failed_checks=failed_checks)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def X():
    """Two far clusters with correlated columns and holes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2)) @ rng.normal(size=(2, 4)) + 0.3 * rng.normal(size=(80, 4))
    X[40:] += [6.0, -6.0, 6.0, 0.0]
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


def answers(model, X):
    return {
        **model.posterior_.traces,
        "labels_": model.labels_,
        "feature_labels_": model.feature_labels_,
        "energy_correlation_": model.energy_correlation_,
        "predict": model.predict(X),
        "predict_proba": model.predict_proba(X),
        "transform": model.transform(X),
        "score_samples": model.score_samples(X),
        "impute": np.stack(model.impute(X, return_std=True)),
        "sample": model.sample(5, random_state=0),
        "observed": model.posterior_.observed_data(),
        "log_likelihood": model.posterior_.log_likelihood(max_draws=4),
    }


def assert_same_answers(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert_array_equal(one[name], other[name], err_msg=name)


OPTIONS = [
    {"drift": Normal(0.0, 1.0)},
    {"max_layers": None, "transform_output": "log_energy"},
    {"drift": 2.0, "signed": True, "center": "sample", "transform_output": "magnitude"},
    {"birth_move": "finite", "noise_variance": 0.09, "center": "median"},
    {"birth_move": "pan-han", "noise_variance": [0.09, 0.09, 0.16, 0.16], "mass": 3.0},
    {"sampler": DeepScaleSampler(schedule="greedy", n_init_factors=4), "max_layers": 2},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_every_option_gives_finite_answers(X, options):
    model = short(**options).fit(X)
    for name, value in answers(model, X).items():
        if name not in ("observed",):
            assert np.isfinite(value[~np.isnan(value)]).all(), name
            assert not np.isnan(value).any(), name
    proba = model.predict_proba(X)
    assert_allclose(proba.sum(axis=1), 1.0)
    n_factors = len(model.get_feature_names_out())
    assert model.transform(X).shape == (80, n_factors)
    assert proba.shape == (80, 1 + n_factors)
    assert model.labels_.min() >= -1
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


def test_the_same_whatever_the_jobs(X):
    options = {"drift": Normal(0.0, 1.0)}
    one = short(**options).fit(X)
    assert_same_answers(answers(one, X), answers(short(n_jobs=2, **options).fit(X), X))
    with joblib.parallel_config(backend="loky", n_jobs=2):
        assert_same_answers(answers(one, X), answers(short(n_jobs=2, **options).fit(X), X))


def test_clones_pickles_and_files(X, tmp_path):
    model = short(noise_variance=0.09).fit(X)
    expected = answers(model, X)
    assert_same_answers(answers(clone(model).fit(X), X), expected)
    assert_same_answers(answers(pickle.loads(pickle.dumps(model)), X), expected)
    path = tmp_path / "model.skbnp"
    model.save(path)
    assert_same_answers(answers(DeepScaleModel.load(path), X), expected)


def test_runs_go_on_with_the_same_draws(X, tmp_path):
    options = {"max_layers": 2}
    whole = short(n_draws=20, **options).fit(X)
    short(checkpoint=tmp_path, **options).fit(X)
    resumed = short(n_draws=20, checkpoint=tmp_path, **options).fit(X)
    assert_same_answers(answers(whole, X), answers(resumed, X))
    warm = short(warm_start=True, **options).fit(X)
    assert_same_answers(answers(whole, X), answers(warm.set_params(n_draws=20).fit(X), X))


def changed(name, function):
    return lambda draw: {**draw, name: function(draw[name])}


DAMAGED = {
    "labels of no factor": changed("level_labels", lambda x: x + 1000),
    "labels short": changed("level_labels", lambda x: x[:, 1:]),
    "loadings": changed("loadings1", lambda x: x[:-1]),
    "scores": changed("scores1", lambda x: x[:-1]),
    "noise": changed("noise_variance", lambda x: -x),
    "location": changed("location", lambda x: x + 1.0),
    "drift": changed("hyper", lambda x: x + 1.0),
}


@pytest.mark.parametrize("how", DAMAGED)
def test_a_damaged_draw_is_refused(X, tmp_path, how):
    model = short().fit(X)
    damaged = DAMAGED[how](model.posterior_[0, 0])
    with pytest.raises(ValueError):
        model._check_draw(damaged)
    model._reference = damaged
    model.save(tmp_path / "damaged.skbnp")
    with pytest.raises(FileFormatError):
        DeepScaleModel.load(tmp_path / "damaged.skbnp")


def test_units_of_x(X):
    """Powers of two give identical draws; densities and moments follow the units."""
    options = {"drift": Normal(0.0, 1.0)}
    factors = 2.0 ** np.array([-20, 3, 0, 30])
    one, other = short(**options).fit(X), short(**options).fit(X * factors)
    for a, b in zip(one.posterior_, other.posterior_, strict=True):
        assert_array_equal(a["loadings1"], b["loadings1"])
    shift = np.where(np.isnan(X), 0.0, np.log(factors)).sum(axis=1)
    assert_allclose(other.score_samples(X * factors) + shift, one.score_samples(X), atol=1e-9)
    for got, expected in zip(
        other.impute(X * factors, return_std=True), one.impute(X, return_std=True), strict=True
    ):
        assert_allclose(got, expected * factors, rtol=1e-9)
    assert_array_equal(one.labels_, other.labels_)


def test_log_joint_is_in_the_units_of_x(X):
    """The trace equals the reference density of the data in its own units, to 1e-10."""
    model = short(n_chains=1, center="sample").fit(X)
    end = model.posterior_.final_states[0]
    jacobian = np.sum(~np.isnan(X), axis=0) @ np.log(np.nanstd(X, axis=0))
    expected = _model.log_joint(end, model._training_rows.X, model._prior) - jacobian
    assert_allclose(model.posterior_.traces["log_joint"][0, -1], expected, rtol=1e-10)


def test_densities_integrate_to_one():
    """Over the whole line, in the units of X; a missing cell leaves the marginal density."""
    rng = np.random.default_rng(4)
    X = 50.0 + 7.0 * rng.normal(size=(60, 2)) * (1 + 2 * (rng.random((60, 1)) < 0.3))
    model = short().fit(X)
    angle = np.linspace(-np.pi / 2, np.pi / 2, 1_003)[1:-1]
    rows = np.column_stack([50.0 + 10.0 * np.tan(angle), np.full(len(angle), np.nan)])
    slope = 10.0 / np.cos(angle) ** 2
    total = np.sum(np.exp(model.score_samples(rows)) * slope) * (angle[1] - angle[0])
    assert_allclose(total, 1.0, rtol=2e-3)


def test_rows_without_cells(X):
    empty = np.full((1, 4), np.nan)
    model = short().fit(X)
    assert model.score_samples(empty)[0] == 0.0
    assert np.isfinite(model.impute(empty)).all()
    assert_allclose(model.predict_proba(empty).sum(), 1.0)


def test_no_factors():
    """Independent columns of the same law: an answer, not a crash."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = short(sampler=DeepScaleSampler(n_init_factors=0, n_births=0, n_split_merge=0)).fit(X)
    assert model.n_factors_ == 0 and model.n_layers_ == 0 and model.n_clusters_ == 0
    assert (model.predict(X) == -1).all() and (model.labels_ == -1).all()
    assert model.transform(X).shape == (60, 0)
    assert_allclose(model.predict_proba(X), np.ones((60, 1)))
    assert np.isfinite(model.score_samples(X)).all()


def test_groups_of_columns():
    """Two groups of columns that become loud together."""
    rng = np.random.default_rng(2)
    amplitude = rng.normal(size=(300, 2)) @ np.kron(np.eye(2), np.ones(3))
    X = (2 * amplitude + 0.1) * rng.normal(size=(300, 6))
    model = short(n_warmup=150, n_draws=50).fit(X)
    labels = model.feature_labels_
    assert (labels[:3] == labels[0]).all() and (labels[3:] == labels[3]).all()
    assert labels[0] != labels[3] and (labels >= 0).all()
    # One factor that columns share alone gives 1/2.
    assert np.abs(model.energy_correlation_[0, 1] - 0.5) < 0.2
    assert np.abs(model.energy_correlation_[0, 4]) < 0.2
    stronger = np.argmax(np.abs(amplitude[:, [0, 3]]), axis=1)
    seen = model.labels_ >= 0
    assert adjusted_rand_score(stronger[seen], model.labels_[seen]) > 0.3
