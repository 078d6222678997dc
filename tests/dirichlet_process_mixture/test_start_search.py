"""Where chains over many rows start: clusters are found, and their pieces united."""

import warnings
from itertools import combinations

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from checks.dirichlet_process_mixture import learned_prior, make_sampler, state_of
from checks.mixture_priors import mixed_prior
from skbnp import DirichletProcessMixture
from skbnp.dirichlet_process_mixture import _model
from skbnp.dirichlet_process_mixture._comparing import COMPARED_SWEEPS, ComparingSampler
from skbnp.dirichlet_process_mixture._estimator import _make_sampler
from skbnp.dirichlet_process_mixture._sampler import Sampler
from skbnp.dirichlet_process_mixture._searching import (
    SEARCHED_BLOCKS,
    SEARCHED_ROWS,
    SEARCHED_WARMUP,
    SearchingSampler,
    kind_of_sampler,
)
from skbnp.dirichlet_process_mixture.records import _start
from skbnp.dirichlet_process_mixture.records._start_search import StartSearch
from skbnp.laws import Gamma


def blobs(n, rng):
    centers = np.array([[-6.0, 0, 0], [6, 0, 0], [0, 6, 0], [0, 0, 6]])
    X = centers[rng.integers(4, size=n)] + rng.normal(size=(n, 3))
    return (X - X.mean(axis=0)) / X.std(axis=0)


def prior_of(kind, discount=0.0):
    guess = {"full": np.eye(3), "diag": np.ones(3), "spherical": np.array(1.0)}[kind]
    return learned_prior(kind, np.zeros(3), guess, concentration=Gamma(1.0, 1.0), discount=discount)


def pieces(kind, seed):
    """A prior, rows with holes, and labels that cut their clusters."""
    rng = np.random.default_rng(seed)
    if kind == "mixed":
        prior = mixed_prior("full", concentration=1.0, prior_scale=1.0)
        X = _model.draw_joint(prior, 160, rng)[1]
        label = rng.integers(6, size=len(X))
    else:
        prior, X = prior_of(kind), blobs(160, rng)
        label = KMeans(9, n_init=1, random_state=seed).fit_predict(X)
        X[rng.random(X.shape) < 0.1] = np.nan
    return prior, X, label


def log_joint_of(sampler, prior, label):
    """Of the same state under other labels, by the reference; imputed cells stay."""
    return _model.log_joint(state_of(sampler) | {"label": label}, sampler.completed_data(), prior)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("kind", ["full", "diag", "spherical", "mixed"])
def test_no_two_blocks_gain_by_becoming_one(kind, seed):
    prior, X, label = pieces(kind, seed)
    sampler = make_sampler(X, prior, label, seed)
    before, n_before = sampler.log_joint(), sampler.n_clusters
    StartSearch(sampler.state, sampler.bit_generator).unite_blocks()
    after, label = sampler.log_joint(), sampler.labels
    assert sampler.n_clusters < n_before and after > before
    assert log_joint_of(sampler, prior, label) == pytest.approx(after, rel=1e-9)
    for k, other in combinations(range(sampler.n_clusters), 2):
        united = np.where(label == k, other, label)
        assert log_joint_of(sampler, prior, united) < after


@pytest.mark.parametrize("kind", ["full", "diag", "spherical", "mixed"])
def test_splits_leave_a_state_whole(kind):
    prior, X, label = pieces(kind, 0)
    sampler = make_sampler(X, prior, np.zeros_like(label), 0)
    search = StartSearch(sampler.state, sampler.bit_generator)
    for _ in range(5):
        search.split_blocks()
    assert sampler.n_clusters > 1
    assert set(sampler.labels) == set(range(sampler.n_clusters))
    assert log_joint_of(sampler, prior, sampler.labels) == pytest.approx(sampler.log_joint())


def test_a_small_cluster_is_found():
    """Twenty rows of three thousand: two random rows seldom tell them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3))
    X[:20] = 0.5 * X[:20] + [7, 0, 0]
    prior, label = prior_of("full"), np.zeros(len(X), dtype=int)
    for seed in range(3):
        record = _start.found_start(prior, label, prior.start(), 1, _Rows(X), np.random.PCG64(seed))
        assert sorted(record["blocks"]["n_members"])[0] == pytest.approx(20, abs=3)


def clusters(n_clusters, n, rng):
    """Rows of clusters of different shapes in five columns."""
    factor = rng.normal(size=(n_clusters, 5, 5)) / np.sqrt(5)
    label = rng.integers(n_clusters, size=n)
    X = 3.0 * rng.normal(size=(n_clusters, 5))[label]
    X += np.einsum("nij,nj->ni", factor[label], rng.normal(size=(n, 5)))
    return (X - X.mean(axis=0)) / X.std(axis=0)


@pytest.mark.parametrize("n_centers", [1, 30])
def test_chains_start_with_the_clusters_that_there_are(n_centers):
    X, bits = clusters(12, 4000, np.random.default_rng(0)), np.random.PCG64(1)
    label = KMeans(n_centers, n_init=1, random_state=0).fit_predict(X)
    prior = learned_prior(
        "full", np.zeros(5), np.eye(5), concentration=Gamma(1.0, 1.0), discount=0.0
    )
    record = _start.found_start(prior, label, prior.start(), 1, _Rows(X), bits)
    assert len(record["blocks"]["n_members"]) == 12


class _Rows:
    def __init__(self, X):
        self.X = X

    def observed(self, rows):
        return self.X[rows]


# -- chains over the rows of one table


def twelve_clusters(n):
    rng = np.random.default_rng(3)
    centers = 8.0 * np.stack(np.meshgrid([0, 1, 2], [0, 1], [0, 1]), axis=-1).reshape(12, 3)
    label = np.arange(n) % 12
    X = centers[label] + rng.normal(size=(n, 3))
    return (X - X.mean(axis=0)) / X.std(axis=0), label


def chain_over(X, seed):
    return _make_sampler(np.random.PCG64(seed), 0, X=X, prior=prior_of("full"))


def warm_up(sampler, sweeps):
    for t in sweeps:
        sampler.sweep()
        sampler.adapt(t)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_warm_up_over_many_rows_begins_with_a_search(seed):
    X, truth = twelve_clusters(SEARCHED_ROWS)
    searched, alone = chain_over(X, seed), chain_over(X[1:], seed)
    warm_up(searched, range(6))
    warm_up(alone, range(6))
    assert adjusted_rand_score(searched.labels, truth) > 0.85
    assert adjusted_rand_score(alone.labels, truth[1:]) < 0.7


def test_a_search_goes_on_from_a_state():
    X, _ = twelve_clusters(SEARCHED_ROWS)
    first, second = chain_over(X, 0), chain_over(X, 1)
    warm_up(first, range(5))
    second.set_state(first.get_state())
    for sampler in (first, second):
        warm_up(sampler, range(5, 16))
    np.testing.assert_array_equal(first.labels, second.labels)
    assert first.log_joint() == second.log_joint()


def test_nothing_is_searched_after_the_first_sweeps_of_a_warm_up():
    X, _ = twelve_clusters(SEARCHED_ROWS)
    searching, plain = chain_over(X, 0), chain_over(X, 0)
    assert type(searching) is SearchingSampler
    for t in range(3):
        searching.sweep()
        searching.adapt(_start.START_SWEEPS + t)
        Sampler.sweep(plain)
        Sampler.adapt(plain, _start.START_SWEEPS + t)
    np.testing.assert_array_equal(searching.labels, plain.labels)
    assert searching.log_joint() == plain.log_joint()


@pytest.mark.parametrize(
    "n_samples, algorithm, n_warmup, expected",
    [
        (SEARCHED_ROWS, "collapsed", "auto", SearchingSampler),
        (SEARCHED_ROWS, "collapsed", SEARCHED_WARMUP, SearchingSampler),
        (SEARCHED_ROWS, "collapsed", SEARCHED_WARMUP - 1, Sampler),
        (SEARCHED_ROWS - 1, "collapsed", "auto", ComparingSampler),
        (SEARCHED_ROWS - 1, "collapsed", 2 * COMPARED_SWEEPS, ComparingSampler),
        (SEARCHED_ROWS - 1, "collapsed", 2 * COMPARED_SWEEPS - 1, Sampler),
        (SEARCHED_ROWS, "gibbs", "auto", Sampler),
        (100, "gibbs", "auto", Sampler),
    ],
)
def test_which_chains_search_and_which_compare(n_samples, algorithm, n_warmup, expected):
    X, prior = np.zeros((n_samples, 3)), prior_of("full")
    assert kind_of_sampler(X, prior, algorithm, n_warmup) is expected
    assert SEARCHED_WARMUP > _start.START_SWEEPS


def test_more_blocks_than_pairs_can_be_looked_at_are_left_alone():
    X = np.random.default_rng(0).normal(size=(SEARCHED_ROWS, 3))
    label = np.arange(len(X)) % (SEARCHED_BLOCKS + 100)
    sampler = SearchingSampler(X, prior_of("full"), label, np.random.PCG64(0))
    sampler.adapt(_start.START_SWEEPS - 1)
    assert sampler.n_clusters == SEARCHED_BLOCKS + 100


@pytest.mark.slow
def test_a_short_warm_up_keeps_no_draws_of_a_search():
    """Where clusters are many a search ends with a quarter of them; 100 rows do not matter."""
    X = np.random.default_rng(0).normal(size=(SEARCHED_ROWS, 2))
    sizes = []
    for n in (SEARCHED_ROWS, SEARCHED_ROWS - 100):
        mixture = DirichletProcessMixture(
            covariance_type="diag",
            concentration=20.0,
            merge_overlap=None,
            point_estimate="map",
            n_chains=1,
            n_warmup=60,
            n_draws=4,
            random_state=0,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            mixture.fit(X[:n])
        sizes.append(mixture.posterior_.traces["n_clusters"].mean())
    assert sizes[0] == pytest.approx(sizes[1], rel=0.3)
