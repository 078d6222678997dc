"""The estimator's promises: scikit-learn, units, clusters, files, resumed runs."""

import pickle
from dataclasses import dataclass, replace

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from skbnp import InfiniteFactorClusterer
from skbnp.estimators.chains import BaseMCMCEstimator
from skbnp.infinite_factor_clusterer import _model
from skbnp.laws import Gamma, InverseGamma
from skbnp.mcmc import io
from skbnp.mcmc.io import FileFormatError
from skbnp.samplers import FactorClustererSampler
from skbnp.summaries.factors import aligned, matched_columns

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning",
)


def short(**changes):
    options = dict(n_chains=2, n_warmup=15, n_draws=10, predict_draws=6, random_state=0)
    return InfiniteFactorClusterer(**(options | changes))


@parametrize_with_checks([short()])
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
    found = {
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
        "component_labels_": model.component_labels_,
        "novelty_score": model.novelty_score(X),
        **model.cluster_energies_,
    }
    return found


def assert_same_answers(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert_array_equal(one[name], other[name], err_msg=name)


OPTIONS = [
    {},
    {"noise": "shared"},
    {"means": "both", "merge_overlap": None},
    {"means": "feature", "sampler": FactorClustererSampler(n_init_clusters=3)},
    {"tails": "t"},
    {"max_layers": 2, "mass_upper": 1.0},
    {"detection_limit": -2.0},
    {"detection_limit": [-2.0, -9.0, -3.0, -2.0], "tails": "t"},
    {
        "mass": 2.0,
        "concentration": 0.5,
        "loading_variance": InverseGamma(3.0, 1.0),
        "scaling": "none",
    },
    {
        "sampler": FactorClustererSampler(n_births=2, n_split_merge=1),
        "mean_precision_prior": 1.0,
        "noise_variance": InverseGamma(2, Gamma(2, 3)),
    },
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
    assert proba.shape == (80, model.n_clusters_)
    assert_array_equal(np.unique(model.labels_), np.arange(model.n_clusters_))
    assert model.cluster_energies_["factors"].shape == (model.n_clusters_, n_factors)
    assert model.cluster_energies_["noise"].shape == (model.n_clusters_, 4)
    assert (model.novelty_score(X) <= 1).all()
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


@pytest.mark.parametrize("options", [{}, {"tails": "t"}], ids=str)
def test_the_same_whatever_the_jobs(X, options):
    one = short(**options).fit(X)
    assert_same_answers(answers(one, X), answers(short(n_jobs=2, **options).fit(X), X))
    with joblib.parallel_config(backend="loky", n_jobs=2):
        assert_same_answers(answers(one, X), answers(short(n_jobs=2, **options).fit(X), X))


@pytest.mark.parametrize(
    "options",
    [{}, {"max_layers": 2, "detection_limit": -2.0}],
    ids=str,
)
def test_clones_pickles_and_files(X, tmp_path, options):
    model = short(**options).fit(X)
    expected = answers(model, X)
    assert_same_answers(answers(clone(model).fit(X), X), expected)
    assert_same_answers(answers(pickle.loads(pickle.dumps(model)), X), expected)
    path = tmp_path / "model.skbnp"
    model.save(path)
    assert_same_answers(answers(InfiniteFactorClusterer.load(path), X), expected)


@pytest.mark.parametrize("options", [{}, {"max_layers": 2}], ids=str)
def test_runs_go_on_with_the_same_draws(X, tmp_path, options):
    whole = short(n_draws=20, **options).fit(X)
    short(checkpoint=tmp_path, **options).fit(X)
    resumed = short(n_draws=20, checkpoint=tmp_path, **options).fit(X)
    assert_same_answers(answers(whole, X), answers(resumed, X))
    warm = short(warm_start=True, **options).fit(X)
    assert_same_answers(answers(whole, X), answers(warm.set_params(n_draws=20).fit(X), X))


def changed(name, function):
    return lambda draw: {**draw, name: function(draw[name])}


DAMAGED = {
    "label of no cluster": changed("label", lambda x: x + 1),
    "label short": changed("label", lambda x: x[1:]),
    "members": changed("n_members", lambda x: x[::-1] + 1),
    "loadings": changed("loadings1", lambda x: x[:-1]),
    "noise": changed("noise_variance", lambda x: -x),
    "energies": changed("score_energy", lambda x: np.append(x, 1.0)),
    "hyper": changed("hyper", lambda x: x[:3]),
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
        InfiniteFactorClusterer.load(tmp_path / "damaged.skbnp")


@pytest.mark.parametrize("options", [{}, {"tails": "t"}], ids=str)
def test_units_of_x(X, options):
    """Powers of two give identical draws; densities and moments follow the units."""
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
    model = short(n_chains=1).fit(X)
    end = model.posterior_.final_states[0]
    jacobian = np.sum(~np.isnan(X), axis=0) @ np.log(np.nanstd(X, axis=0))
    expected = _model.log_joint(end, model._training_rows.X, model._prior) - jacobian
    assert_allclose(model.posterior_.traces["log_joint"][0, -1], expected, rtol=1e-10)


@pytest.mark.parametrize("options", [{}, {"tails": "t"}, {"max_layers": 2}], ids=str)
def test_densities_integrate_to_one(options):
    """Over the whole line, in the units of X; a missing cell leaves the marginal density."""
    rng = np.random.default_rng(4)
    X = 50.0 + 7.0 * rng.normal(size=(60, 2)) * (1 + 2 * (rng.random((60, 1)) < 0.3))
    model = short(**options).fit(X)
    angle = np.linspace(-np.pi / 2, np.pi / 2, 1_003)[1:-1]
    rows = np.column_stack([50.0 + 10.0 * np.tan(angle), np.full(len(angle), np.nan)])
    slope = 10.0 / np.cos(angle) ** 2
    total = np.sum(np.exp(model.score_samples(rows)) * slope) * (angle[1] - angle[0])
    assert_allclose(total, 1.0, rtol=2e-3)


def test_pandas_and_names(X):
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = short().set_output(transform="pandas").fit(frame)
    out = model.transform(frame)
    assert list(out.columns) == list(model.get_feature_names_out())
    assert out.columns[0] == "factor0"
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"a": "z"}))


def test_pipelines_and_searches(X):
    pipeline = make_pipeline(StandardScaler(), short())
    assert len(pipeline.fit_predict(X)) == len(X)
    search = GridSearchCV(short(), {"noise": ["cluster", "shared"]}, cv=KFold(2, shuffle=True))
    assert np.isfinite(search.fit(X).cv_results_["mean_test_score"]).all()


def test_rows_without_cells(X):
    empty = np.full((1, 4), np.nan)
    model = short().fit(X)
    assert model.score_samples(empty)[0] == 0.0
    assert np.isfinite(model.impute(empty)).all()
    assert_allclose(model.predict_proba(empty).sum(), 1.0)


@pytest.mark.filterwarnings("ignore:Pareto's k:UserWarning")
def test_leave_one_out(X):
    """PSIS-LOO is near the held-out score, and a chain of one cluster does not know its rows."""
    model = short(n_draws=40, n_warmup=60).fit(X[::2])
    loo = model.posterior_.loo()
    assert abs(loo.elpd / 40 - model.score(X[1::2])) < 1.0
    assert loo.elpd / 40 < model.score(X[::2])


# -- files of 0.1


# Parameters of 0.1 that are not those of chains.
OLD_PARAMETERS = dict(
    top="dp", max_layers=1, mass="sample", mass_prior=(1.0, 2.0), mass_upper=0.5, slab_shape=3.0,
    slab_scale=2.0, concentration=0.5, concentration_prior=(1.0, 1.0), score_shape=2.0,
    score_scale=1.5, score_precision=0.4, noise="auto", noise_shape=2.5,
    noise_rate_prior=(1.0, 4.0), means="both", tails="student", merge_overlap=0.15,
    detection_limit=None, n_init_clusters=(2, 4), n_births="auto", n_split_merges=5, drift=0.0,
    center="mean", birth_move="singleton", schedule="joint", signed=False,
    transform_output="auto", standardize=False, n_init_factors=2,
)  # fmt: skip
NEW_PARAMETERS = dict(
    max_layers=1, mass=Gamma(1.0, 2.0), mass_upper=0.5, loading_variance=InverseGamma(3.0, 2.0),
    concentration=0.5, score_variance=InverseGamma(2.0, 1.5), mean_precision_prior=0.4,
    noise="cluster", noise_variance=InverseGamma(2.5, Gamma(1.0, 4.0)), means="both", tails="t",
    merge_overlap=0.15, detection_limit=None, scaling="none",
)  # fmt: skip


@dataclass(frozen=True)
class OldPrior:
    """A prior of 0.1; None means sampled."""

    concentration: float | None = 0.5
    concentration_prior: tuple = (1.0, 1.0)
    mass: float | None = None
    mass_prior: tuple = (1.0, 2.0)
    mass_upper: float = 0.5
    slab_shape: float = 3.0
    slab_scale: float = 2.0
    score_shape: float = 2.0
    score_scale: float = 1.5
    score_precision: float = 0.4
    noise: str = "cluster"
    noise_shape: float = 2.5
    noise_rate_prior: tuple = (1.0, 4.0)
    means: str = "both"
    offset_precision_prior: tuple = (1.0, 5.0)
    tails: str = "student"
    max_layers: int = 1


OldPrior.__name__ = "Prior"


def as_of_old(model, path, prior, **changes):
    """Write a fitted clusterer as 0.1 did."""
    now = model.get_params(deep=False)
    chains = {name: now[name] for name in BaseMCMCEstimator._declared}
    fitted = {name: value for name, value in vars(model).items() if name not in now}
    fitted = {name: value for name, value in fitted.items() if "callback" not in name}
    fitted["_prior"] = prior
    fitted["_training_rows"] = replace(fitted["_training_rows"], prior=prior)
    content = {"parameters": chains | OLD_PARAMETERS | changes, "fitted": fitted}
    types = [*InfiniteFactorClusterer._types_in_files(), type(prior)]
    io.write(path, "fitted InfiniteFactorClusterer", content, types)


def test_files_of_0_1(X, tmp_path):
    sampler = FactorClustererSampler(n_init_clusters=(2, 4), n_split_merge=5)
    model = short(**NEW_PARAMETERS, sampler=sampler).fit(X)
    as_of_old(model, tmp_path / "old.skbnp", OldPrior())
    loaded = InfiniteFactorClusterer.load(tmp_path / "old.skbnp")
    assert_same_answers(answers(loaded, X), answers(model, X))
    found = loaded.get_params(deep=False)
    assert repr(found.pop("sampler")) == repr(sampler)
    assert found == {name: x for name, x in model.get_params(deep=False).items() if name in found}
    loaded.save(tmp_path / "new.skbnp")
    again = InfiniteFactorClusterer.load(tmp_path / "new.skbnp")
    assert_same_answers(answers(again, X), answers(model, X))


def test_older_files_of_the_scale_model_are_refused(X, tmp_path):
    @dataclass(frozen=True)
    class ScalePrior:
        drift: float = 0.0

    path = tmp_path / "old.skbnp"
    as_of_old(short().fit(X), path, ScalePrior(), top="gaussian")
    with pytest.raises(FileFormatError) as caught:
        InfiniteFactorClusterer.load(path)
    message = str(caught.value)
    assert message.startswith(f"{path} cannot be read any more: it holds a clusterer of top=")
    assert "is the estimator DeepScaleModel now: fit that one" in message


# -- clusters


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.default_rng(1)
    truth = np.repeat(np.arange(3), 40)
    return rng.normal(size=(120, 5)) + 12.0 * np.eye(3, 5)[truth], truth


@pytest.mark.parametrize("options", [{}, {"noise": "shared"}, {"means": "feature"}], ids=str)
def test_separated_blobs(blobs, options):
    """The truth, and new rows like old ones."""
    X, truth = blobs
    # From more clusters than there are: splits of whole clusters are found slowly.
    model = short(
        n_warmup=60, n_draws=20, sampler=FactorClustererSampler(n_init_clusters=8), **options
    ).fit(X)
    assert adjusted_rand_score(truth, model.labels_) == 1.0
    assert_array_equal(model.predict(X), model.labels_)
    assert model.score_samples(X).mean() > model.score_samples(X[::-1] * [1, 1, 1, 1, -1]).mean()


def test_novelty(blobs):
    X, _ = blobs
    model = short(n_warmup=60, n_draws=20).fit(X)
    score = model.novelty_score(np.concatenate([X[:5], np.full((1, 5), 50.0)]))
    assert (score[:5] < 0.1).all()
    assert score[5] > 10 * score[:5].max()


def test_bursts():
    """Groups of columns that are loud together, with the same means: disjoint ones."""
    rng = np.random.default_rng(3)
    truth = rng.integers(4, size=300)
    loud = np.kron(np.eye(4), np.ones(3))[truth]
    X = rng.normal(size=(300, 12)) * (0.3 + 1.7 * loud)
    model = short(n_chains=1, n_warmup=100, n_draws=60, predict_draws=30).fit(X)
    assert adjusted_rand_score(truth, model.labels_) > 0.95
    assert np.sum(np.bincount(model.labels_) > 3) == 4
    holes = X.copy()
    holes[rng.random(X.shape) < 0.1] = np.nan
    assert adjusted_rand_score(truth, model.fit(holes).labels_) > 0.85


def test_overlapping_components_are_joined():
    """Two clusters of nested components: the more overlap is borne, the more clusters there are."""
    rng = np.random.default_rng(5)
    scale = np.where(rng.random((300, 1)) < 0.5, 0.3, 1.5)
    X = scale * rng.normal(size=(300, 3))
    X[150:, 2] += 15.0
    options = dict(n_chains=1, n_warmup=60, n_draws=30)
    models = [short(merge_overlap=q, **options).fit(X) for q in (1e-3, 0.05, None)]
    counts = [model.n_clusters_ for model in models]
    assert counts == sorted(counts) and counts[0] <= 2 < counts[2]
    assert_array_equal(models[2].labels_, models[2].component_labels_)
    assert_array_equal(models[0].component_labels_, models[2].component_labels_)


def test_half_of_the_draws_support_every_cluster(tmp_path):
    """Chains from different starts on one t law: the cut that each makes is its own."""
    X = np.random.default_rng(7).standard_t(2, size=(150, 3))
    model = short(n_chains=4, n_warmup=20, n_draws=15, merge_overlap=0.4).fit(X)
    info = model.partition_info_
    assert len(info["support"]) == model.n_clusters_
    assert min(info["support"]) >= 0.5
    assert info["dropped"] and all(one["support"] < 0.5 for one in info["dropped"])
    draws = model.posterior_.evenly_spaced(300)
    counts = [len(np.unique(labels)) for labels in model._merged_labels(draws)]
    assert model.n_clusters_ <= np.quantile(counts, 0.95, method="inverted_cdf")
    model.save(tmp_path / "model.skbnp")
    assert InfiniteFactorClusterer.load(tmp_path / "model.skbnp").partition_info_ == info


def test_cells_below_the_limit_tell_clusters_apart():
    """Two clusters that differ in which columns are heard."""
    rng = np.random.default_rng(6)
    truth = np.repeat([0, 1], 60)
    X = rng.normal(size=(120, 6))
    X[:60, :3] -= 8.0
    X[60:, 3:] -= 8.0
    X[X < -4] = -np.inf
    model = short(n_chains=1, n_warmup=60, n_draws=20, detection_limit=-4.0).fit(X)
    assert adjusted_rand_score(truth, model.labels_) > 0.95
    assert_array_equal(model.predict(X), model.labels_)
    # Any reading below the limit says the same.
    assert_array_equal(model.predict_proba(np.where(np.isinf(X), -4.0, X)), model.predict_proba(X))
    rows = np.where(np.isinf(X), -77.0, X)
    rows[0, 5] = np.nan
    filled = model.impute(rows)
    assert_array_equal(filled[1:], rows[1:])
    assert abs(filled[0, 5]) < 2.0


def test_constant_columns_are_restored(X):
    wide = np.insert(X, 1, 7.0, axis=1)
    with pytest.warns(UserWarning, match="X is constant in column.s. 1, set aside"):
        model = short().fit(wide)
    plain = short().fit(X)
    assert_array_equal(model.labels_, plain.labels_)
    assert_array_equal(model.score_samples(wide), plain.score_samples(X))
    assert (model.sample(4, random_state=0)[:, 1] == 7.0).all()
    assert model.feature_labels_[1] == -1
    wide[0, 1] = np.nan
    filled, std = model.impute(wide, return_std=True)
    assert filled[0, 1] == 7.0 and std[0, 1] == 0.0


def test_a_second_layer_above_the_clusters():
    """Twelve columns of four factors that are loud together, in half of the rows."""
    rng = np.random.default_rng(1)
    loud = rng.random((200, 1)) < 0.5
    scores = rng.normal(size=(200, 4)) * np.where(loud, 4.0, 0.5)
    X = np.repeat(scores, 3, axis=1) + 0.3 * rng.normal(size=(200, 12))
    sampler = FactorClustererSampler(n_init_clusters=1, n_split_merge=0)
    model = short(n_chains=1, n_warmup=60, n_draws=20, max_layers=2, concentration=1e-6,
                  sampler=sampler).fit(X)  # fmt: skip
    assert model.n_clusters_ == 1
    assert model.n_layers_ == 2 and model.n_shared_factors_ >= 4
    labels = model.labels_per_level_[1]
    assert labels.shape == (200,) and labels.min() >= -1
    assert np.mean(labels[loud[:, 0]] >= 0) > np.mean(labels[~loud[:, 0]] >= 0) + 0.3


# -- factors of several draws


def test_matched_columns():
    rng = np.random.default_rng(0)
    reference = rng.normal(size=(50, 3))
    scores = np.column_stack([-reference[:, 2], rng.normal(size=50), 3 * reference[:, 0]])
    column, sign = matched_columns(reference, scores)
    assert column.tolist() == [2, 1, 0]
    assert sign[0] == 1 and sign[2] == -1
    column, sign = matched_columns(reference, scores[:, :1])
    assert column.tolist() == [-1, -1, 0]
    out = aligned(scores[:, :1], column, sign)
    assert_array_equal(out, np.column_stack([np.zeros((50, 2)), reference[:, 2]]))
    column, sign = matched_columns(reference[:, :0], scores)
    assert aligned(scores, column, sign).shape == (50, 0)


def test_signs_of_factors(X):
    model = short().fit(X)
    w = model._reference["loadings1"]
    scores = model.transform(np.nan_to_num(X))
    largest = np.abs(w).argmax(axis=0)
    for k, n in enumerate(largest):
        assert np.corrcoef(scores[:, k], np.nan_to_num(X)[:, n])[0, 1] > 0
