"""The pass over all rows at once: bookkeeping at size, threads, restored states."""

import threading

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from checks.dirichlet_process_mixture import gaussian_prior, make_sampler, state_of
from skbnp.dirichlet_process_mixture import _model
from skbnp.laws import Beta
from skbnp.mcmc.rows import for_row_blocks

KINDS = ["full", "diag", "spherical"]


def prior(kind, d=4, **changes):
    covariance = {"full": np.eye(d) + 0.3, "diag": np.linspace(1, 2, d), "spherical": np.array(1.5)}
    return gaussian_prior(kind, np.zeros(d), 0.2, d + 3.0, covariance[kind], **changes)


def clusters(n=5000, d=4, n_clusters=9, spread=0.05, holes=0.02, seed=0):
    rng = np.random.default_rng(seed)
    label = rng.integers(n_clusters, size=n)
    X = rng.normal(size=(n_clusters, d))[label] * 3 + rng.normal(size=(n, d)) * spread
    X[rng.random(X.shape) < holes] = np.nan
    return X, label


def sampler_on(kind, X, label, algorithm, **options):
    changes = {"n_components": 12} if algorithm == "gibbs" else {"discount": Beta(1.0, 9.0)}
    return make_sampler(X, prior(kind, **changes), label, seed=1, algorithm=algorithm, **options)


@pytest.mark.parametrize("spread", [0.003, 1.0])
@pytest.mark.parametrize("algorithm", ["parallel", "gibbs"])
@pytest.mark.parametrize("kind", KINDS)
def test_log_joint_after_sweeps_on_thousands_of_rows(kind, algorithm, spread):
    """Rows join and leave, blocks open and run empty; cells are imputed: to 1e-8."""
    X, label = clusters(spread=spread)
    start = np.random.default_rng(1).integers(9, size=len(X)) if spread == 1.0 else label
    sampler = sampler_on(kind, X, start, algorithm, n_subset=50)
    for _ in range(30):
        sampler.sweep()
        data = sampler.completed_data()
        expected = _model.log_joint(state_of(sampler), data, sampler_prior(kind, algorithm))
        assert_allclose(sampler.log_joint(), expected, rtol=1e-8)
        assert_array_equal(sampler.draw()["n_members"][:-1], np.bincount(sampler.labels))


def sampler_prior(kind, algorithm):
    return prior(
        kind, **({"n_components": 12} if algorithm == "gibbs" else {"discount": Beta(1.0, 9.0)})
    )


def test_rows_far_from_the_old_mean_of_their_block():
    """Two clusters a hundred thousand times tighter than their distance part: digits are kept."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(3000, 4)) + np.where(np.arange(3000) < 1500, 0.0, 1e5)[:, None]
    p = prior("full", concentration=1.0, prior_scale=1.0)
    label = (np.arange(3000) >= 1500) * 1
    label[:700] = 1
    sampler = make_sampler(X, p, label, algorithm="parallel", n_split_merge=0, n_subset=1)
    for _ in range(3):
        sampler.sweep()
        assert_allclose(sampler.log_joint(), _model.log_joint(state_of(sampler), X, p), rtol=1e-8)


class Threads:
    """``for_rows`` on so many threads; remembers who called."""

    def __init__(self, n):
        self.n, self.names = n, set()

    def __call__(self, function, n_items, size):
        def watched(start, stop):
            self.names.add(threading.get_ident())
            function(start, stop)

        for_row_blocks(watched, n_items, size, n_threads=self.n)


@pytest.mark.parametrize("algorithm", ["parallel", "gibbs"])
@pytest.mark.parametrize("kind", KINDS)
def test_threads_do_not_change_the_draws(kind, algorithm):
    X, _ = clusters(n=9000, spread=1.0)
    start = np.random.default_rng(3).integers(9, size=len(X))
    one = sampler_on(kind, X, start, algorithm)
    others = [sampler_on(kind, X, start, algorithm, for_rows=Threads(n)) for n in (1, 2, 3)]
    for _ in range(3):
        one.sweep()
        for other in others:
            other.sweep()
    for other in others:
        assert other.log_joint() == one.log_joint()
        assert_array_equal(other.completed_data(), one.completed_data())
        for name, value in one.draw().items():
            assert_array_equal(other.draw()[name], value)


def test_the_threads_were_used():
    X, label = clusters(n=9000)
    threads = Threads(3)
    sampler_on("full", X, label, "parallel", for_rows=threads).sweep()
    assert len(threads.names) > 1


@pytest.mark.parametrize("algorithm", ["parallel", "gibbs"])
@pytest.mark.parametrize("kind", KINDS)
def test_state_restores_bit_for_bit(kind, algorithm):
    X, label = clusters(n=3000, spread=1.0)
    one = sampler_on(kind, X, label, algorithm, n_subset=100)
    for t in range(4):
        one.sweep()
        one.adapt(t)
    other = sampler_on(kind, X, np.zeros(len(X), int), algorithm, n_subset=100)
    other.sweep()
    other.set_state(one.get_state())
    for _ in range(6):
        one.sweep()
        other.sweep()
    assert one.log_joint() == other.log_joint()
    assert one.acceptance() == other.acceptance()
    assert_array_equal(one.completed_data(), other.completed_data())
    for name, value in one.draw().items():
        assert_array_equal(value, other.draw()[name])


@pytest.mark.parametrize("algorithm", ["parallel", "gibbs"])
@pytest.mark.parametrize("kind", KINDS)
def test_means_of_missing_cells(kind, algorithm):
    """Every row is counted once a sweep: two tight clusters tell what a hole holds."""
    X, label = clusters(n=1500, n_clusters=2, spread=0.01, holes=0.0)
    truth = X.copy()
    X[::3, 1] = np.nan
    sampler = sampler_on(kind, X, label, algorithm, n_subset=100)
    for t in range(10):
        sampler.sweep()
        if t < 5:
            sampler.adapt(t)
    state = sampler.get_state()
    assert state["n_imputed"] == 5
    mean = state["family"]["imputed_mean"]
    assert np.mean(np.abs(mean - truth[::3, 1]) < 0.2) > 0.98


def test_labels_take_few_bytes():
    X, _ = clusters(n=2000, holes=0.0)
    for n_clusters, kind in [(1, np.uint8), (255, np.uint8), (256, np.uint16)]:
        label = np.arange(2000) % n_clusters
        sampler = make_sampler(X, prior("diag"), label)
        assert sampler.draw()["label"].dtype == kind
