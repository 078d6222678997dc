"""What is the estimator's own; `tests/sparse_factors` has what it shares."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from checks import sparse_factors
from checks.sparse_factors import answers, assert_same_answers, table
from skbnp import InfiniteFactorClusterer
from skbnp.estimators.chains import BaseMCMCEstimator
from skbnp.laws import Gamma, InverseGamma
from skbnp.mcmc import io
from skbnp.mcmc.io import FileFormatError
from skbnp.samplers import FactorClustererSampler
from skbnp.summaries.factors import aligned, matched_columns
from skbnp.summaries.partitions import coclustering

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning",
)


short = partial(sparse_factors.short, InfiniteFactorClusterer)


@parametrize_with_checks([short(n_chains=1, n_warmup=4, n_draws=4)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def X():
    return table()


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
    score = model.novelty_proba(np.concatenate([X[:5], np.full((1, 5), 50.0)]))
    assert (score[:5] < 0.1).all()
    assert score[5] > 10 * score[:5].max()


def test_bursts():
    """Groups of columns that are loud together, with the same means: disjoint ones."""
    rng = np.random.default_rng(3)
    truth = rng.integers(4, size=300)
    loud = np.kron(np.eye(4), np.ones(3))[truth]
    X = rng.normal(size=(300, 12)) * (0.3 + 1.7 * loud)
    model = short(n_chains=1, n_warmup=60, n_draws=40).fit(X)
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
    for model in models:
        draws = model._summary_draws()
        plain = [draw["label"] for draw in draws]
        least = model.merge_overlap
        joined = plain if least is None else model._merged_labels(draws, least)
        model.set_params(merge_overlap=0.5)  # what was found stays
        assert_array_equal(model.coclustering(), coclustering(joined))
        assert_array_equal(model.coclustering(joined=False), coclustering(plain))
        model.set_params(merge_overlap=least)
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
    counts = [len(np.unique(labels)) for labels in model._merged_labels(draws, 0.4)]
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
