"""What random cases have found, each with the input that showed it."""

import warnings

import numpy as np
import pytest

from fuzz import files
from fuzz.search import findings
from skbnp import (
    CIBPBeliefNet,
    DeepScaleModel,
    DirichletProcessMixture,
    InfiniteFactorClusterer,
    TreeFactorModel,
)
from skbnp.laws import Gamma, InverseGamma
from skbnp.samplers import MixtureSampler

SHORT = {"n_chains": 1, "n_warmup": 1, "n_draws": 2, "random_state": 0}


@pytest.fixture(autouse=True)
def no_runtime_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        yield


def table(n_samples=12, n_features=3):
    return np.random.default_rng(0).normal(size=(n_samples, n_features))


def test_a_sum_of_all_cells_that_overflows():
    mixture = DirichletProcessMixture(**SHORT).fit(1e300 * table())
    far = np.array([[1e308, 1e308, -1e308], [1e308, -1e308, -1e308]])
    assert np.isfinite(mixture.score_samples(far)).all()


def test_a_mean_that_overflows_is_refused():
    with pytest.raises(ValueError, match="mean and a spread in every column"):
        CIBPBeliefNet(**SHORT).fit(1.7e308 * np.sign(table()) * np.array([1, 0.9, 0.8]))


def test_a_mean_that_overflows_is_refused_by_the_tree():
    with pytest.raises(ValueError, match="mean and a spread in every column"):
        TreeFactorModel(**SHORT).fit(1.7e308 * np.sign(table()) * np.array([1, 0.9, 0.8]))


def test_a_constant_column_beside_tiny_ones():
    X = 1e-300 * table()
    X[:, 1] = 0.0
    assert np.isfinite(TreeFactorModel(**SHORT).fit(X).score_samples(X)).all()


def test_a_noise_floor_above_the_scale_of_row_clusters():
    """Their units have no noise, hence no bound on its precision."""
    options = {"max_layers": 1, "row_clusters": True, "noise_floor": 2.5}
    net = CIBPBeliefNet(**SHORT, **options).fit(table())
    assert np.isfinite(net.score_samples(table())).all()


def test_variances_that_no_float_holds_are_refused():
    """They are what the clusters are described by."""
    with pytest.raises(ValueError, match="X must have a variance in every column"):
        InfiniteFactorClusterer(**SHORT).fit(1e200 * table())


@pytest.mark.parametrize(
    "option",
    [
        {"noise_variance": InverseGamma(1e-6, Gamma(1.0, 5.0))},
        {"score_variance": InverseGamma(1e-6, 1.0)},
    ],
)
def test_gamma_draws_below_the_range_of_floats(option):
    clusterer = InfiniteFactorClusterer(**SHORT, **option).fit(table())
    assert not np.isnan(clusterer.novelty_proba(table())).any()


def test_a_kurtosis_beyond_the_range_of_floats():
    DeepScaleModel(**SHORT, scaling="none").fit(1e100 * table())


def test_a_detection_limit_beyond_float32():
    X = 1e100 * np.abs(table())
    clusterer = InfiniteFactorClusterer(**SHORT, detection_limit=2e99).fit(X)
    assert np.isfinite(clusterer.score_samples(X)).all()
    assert not np.array_equal(clusterer.score_samples(X), clusterer.score_samples(X + 1e99))


@pytest.mark.parametrize(
    "model",
    [
        DirichletProcessMixture(
            **SHORT, mean_precision_prior=1e308, sampler=MixtureSampler(algorithm="parallel")
        ),
        TreeFactorModel(**SHORT, local_shrinkage_df=0.01),
    ],
    ids=["mean_precision_prior", "local_shrinkage_df"],
)
def test_ends_of_a_prior_that_no_chain_reaches(model, request):
    with pytest.raises(ValueError, match=request.node.callspec.id):
        model.fit(table())


def test_a_member_of_an_archive_before_its_beginning():
    """The system calls the place an invalid argument; that is no fault of the disk."""
    assert files.damaged_file("DirichletProcessMixture", 15) == []


def test_distances_of_which_none_is_a_number():
    """Then no partner was found for a row, and its index, -1, was used in the kernel."""
    assert findings("InfiniteFactorClusterer", [9], "forged checkpoints") == []


@pytest.mark.parametrize("seed", [276, 305, 470])
def test_room_for_the_mean_of_a_first_factor(seed):
    """A chain without factors had none when one was born, and wrote beside it."""
    assert findings("InfiniteFactorClusterer", [seed]) == []
