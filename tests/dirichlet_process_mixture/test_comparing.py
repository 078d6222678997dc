"""Chains that are compared with others in their warm-up, and what those begin with."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from checks.dirichlet_process_mixture import learned_prior
from checks.mixture_priors import mixed_prior
from skbnp import DirichletProcessMixture
from skbnp.dirichlet_process_mixture import _comparing, _model
from skbnp.dirichlet_process_mixture._comparing import (
    COMPARED_SWEEPS,
    LAST_SWEEPS,
    RIVAL_SWEEPS,
    ComparingSampler,
    covariance_within,
    n_rivals,
    rival_labels,
)
from skbnp.dirichlet_process_mixture._sampler import Sampler
from skbnp.dirichlet_process_mixture._searching import kind_of_sampler
from skbnp.laws import Gamma


def warm_up(sampler, sweeps):
    for sweep in sweeps:
        sampler.sweep()
        sampler.adapt(sweep)


def factors_apart(n=300, d=20, seed=0):
    """Three clusters in two factors, and all other variance of the columns is common to them."""
    rng = np.random.default_rng(seed)
    label = np.arange(n) % 3
    centers = 3.0 * np.array([[-1.0, -1.0], [1.0, 0.0], [0.0, 1.5]])
    loadings = rng.normal(size=(2, d)) * (rng.random((2, d)) < 0.5)
    X = (centers[label] + rng.normal(size=(n, 2))) @ loadings + 0.7 * rng.normal(size=(n, d))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    prior = learned_prior("full", np.zeros(d), np.corrcoef(X.T), concentration=Gamma(1.0, 1.0))
    return X, label, prior


def comparing(X, prior, labels, seed):
    return ComparingSampler(X, prior, labels, np.random.default_rng(seed).bit_generator)


def test_a_chain_that_is_held_by_one_block_goes_on_from_another():
    X, truth, prior = factors_apart()
    held = Sampler(X, prior, np.zeros(len(X), np.intp), np.random.default_rng(0).bit_generator)
    chain = comparing(X, prior, np.zeros(len(X), np.intp), 0)
    for sampler in (held, chain):
        warm_up(sampler, range(COMPARED_SWEEPS - 1))
    np.testing.assert_array_equal(chain.labels, held.labels)
    for sampler in (held, chain):
        warm_up(sampler, range(COMPARED_SWEEPS - 1, COMPARED_SWEEPS + 20))
    assert adjusted_rand_score(held.labels, truth) < 0.1
    assert adjusted_rand_score(chain.labels, truth) > 0.9
    assert chain.log_joint() > held.log_joint() + 50
    # It is compared once, and a state of it is one to go on from.
    again = comparing(X, prior, np.zeros(len(X), np.intp), 1)
    again.set_state(chain.get_state())
    for sampler in (chain, again):
        warm_up(sampler, range(COMPARED_SWEEPS + 20, COMPARED_SWEEPS + 30))
    np.testing.assert_array_equal(again.labels, chain.labels)


def test_any_other_chain_makes_the_draws_that_it_would_make_alone(monkeypatch):
    X, _, prior = factors_apart(n=90, d=6)
    monkeypatch.setattr(_comparing, "COMPARED_GAIN", np.inf)
    for labels in (np.zeros(len(X), np.intp), np.arange(len(X)) % 7):
        alone = Sampler(X, prior, labels, np.random.default_rng(3).bit_generator)
        chain = comparing(X, prior, labels, 3)
        for sampler in (alone, chain):
            warm_up(sampler, range(COMPARED_SWEEPS + 5))
        np.testing.assert_array_equal(chain.labels, alone.labels)
        assert chain.log_joint() == alone.log_joint()


def test_a_chain_restored_before_it_is_compared_goes_on_as_it_would_have():
    X, _, prior = factors_apart(n=90)
    whole, rest = (comparing(X, prior, np.zeros(len(X), np.intp), 2) for _ in range(2))
    warm_up(whole, range(COMPARED_SWEEPS - 7))
    rest.set_state(whole.get_state())
    for sampler in (whole, rest):
        warm_up(sampler, range(COMPARED_SWEEPS - 7, COMPARED_SWEEPS + 2))
    np.testing.assert_array_equal(whole.labels, rest.labels)
    assert whole.log_joint() == rest.log_joint()


@pytest.mark.parametrize(
    "gain, n_blocks, goes_on",
    [
        (2.5, 2.0, True),
        (1.5, 2.0, False),
        (2.5, 7.0, True),
        (2.5, 1.5, False),
        (2.5 + 0.5 * np.log(60), 1.5, True),
        (1.5 + 0.5 * np.log(60), 1.5, False),
    ],
)
def test_it_goes_on_from_what_is_more_probable(gain, n_blocks, goes_on):
    """By more than a standard deviation of a log joint, here 2, and log n for a block less."""
    X, _, prior = factors_apart(n=60, d=4)

    def after(labels, log_joint, n_blocks, seed):
        other = Sampler(X, prior, labels, np.random.default_rng(seed).bit_generator)
        return other, np.array([log_joint + np.array([-2.0, 2.0]), np.full(2, n_blocks)])

    chain = comparing(X, prior, np.arange(60) % 2, 5)
    ahead = np.array([[-1.0, 1.0], [2.0, 2.0]])
    rivals = [
        after(np.arange(60) % 4, gain - 1.0, n_blocks, 0),
        after(np.arange(60) % 3, gain, n_blocks, 1),
        after(np.zeros(60, np.intp), gain + 3.0, min(n_blocks, 2.0) - 1.0, 2),
    ]
    chain._compare(ahead, rivals)
    assert chain.n_clusters == (3 if goes_on else 2)
    chain._compare(None, rivals)
    chain._compare(ahead, [])
    assert chain.n_clusters == (3 if goes_on else 2)


def test_what_is_ahead_of_a_chain_begins_where_it_is(monkeypatch):
    X, _, prior = factors_apart(n=120, d=4)
    chain = comparing(X, prior, np.arange(120) % 3, 6)
    warm_up(chain, range(40))
    found = []
    monkeypatch.setattr(
        _comparing, "_figures", lambda copy, n_sweeps: found.append((copy, n_sweeps))
    )
    before = chain.get_state()
    chain._ahead()
    ((copy, n_sweeps),) = found
    assert n_sweeps == LAST_SWEEPS
    assert copy.log_joint() == chain.log_joint()
    np.testing.assert_array_equal(copy.labels, chain.labels)
    copy.sweep()
    chain.sweep()
    # By another seed.
    assert copy.log_joint() != chain.log_joint()
    chain.set_state(before)
    monkeypatch.undo()
    log_joint, n_blocks = chain._ahead()
    assert log_joint.shape == n_blocks.shape == (LAST_SWEEPS,)
    assert chain.get_state()["bit_generator"] == before["bit_generator"]


@pytest.mark.parametrize("n_broken", [1, 2])
@pytest.mark.parametrize("how", ["raises", "is not finite"])
def test_others_that_break_down_are_left_out(monkeypatch, n_broken, how):
    X, _, prior = factors_apart(n=60, d=4)
    done = []

    class Breaking(Sampler):
        def adapt(self, sweep):
            super().adapt(sweep)
            self.breaks = done.count(RIVAL_SWEEPS - 1) < n_broken
            done.append(sweep)
            if sweep == RIVAL_SWEEPS - 1 and self.breaks and how == "raises":
                raise ArithmeticError("too far out")

        def log_joint(self):
            return np.nan if self.breaks and how == "is not finite" else super().log_joint()

    monkeypatch.setattr(_comparing, "Sampler", Breaking)
    chain, found = comparing(X, prior, np.zeros(60, np.intp), 0), []
    monkeypatch.setattr(ComparingSampler, "_compare", lambda self, *others: found.append(others))
    monkeypatch.setattr(ComparingSampler, "_ahead", lambda self: None)
    chain.adapt(COMPARED_SWEEPS - 1)
    assert len(found[0][1]) == 2 - n_broken


def test_one_chain_alone_finds_clusters_in_many_columns():
    X, truth, _ = factors_apart(seed=4)
    mixture = DirichletProcessMixture(n_chains=1, n_warmup=200, n_draws=50, random_state=0).fit(X)
    assert adjusted_rand_score(mixture.labels_, truth) > 0.9


def test_others_begin_with_blocks_of_two_kinds_and_the_covariance_within_them(monkeypatch):
    X, _, prior = factors_apart(n=60, d=20)
    chain, begun = comparing(X, prior, np.zeros(60, np.intp), 0), []

    def labels(X, prior, rng, in_components):
        begun.append(in_components)
        return np.arange(60) % 3

    monkeypatch.setattr(_comparing, "rival_labels", labels)
    monkeypatch.setattr(_comparing, "RIVAL_SWEEPS", 1)  # work that is counted
    monkeypatch.setattr(_comparing, "_figures", lambda sampler, n_sweeps: np.zeros((2, 1)))
    monkeypatch.setattr(chain, "_compare", lambda ahead, rivals: begun.extend(rivals))
    chain.adapt(COMPARED_SWEEPS - 1)
    assert begun[:4] == [False, True, False, True]
    expected = covariance_within(X, prior, np.arange(60) % 3)["covariance"]
    for sampler, _ in begun[4:]:
        np.testing.assert_array_equal(sampler.draw()["covariance"], expected)
        np.testing.assert_array_equal(sampler.labels, np.arange(60) % 3)


def test_log_joints_are_those_of_the_last_sweeps():
    X, _, prior = factors_apart(n=40, d=4)
    one, other = (Sampler(X, prior, np.arange(40) % 2, np.random.PCG64(1)) for _ in range(2))
    found = _comparing._figures(one, LAST_SWEEPS + 5)
    warm_up(other, range(6))
    assert found[0, 0] == other.log_joint()
    warm_up(other, range(6, LAST_SWEEPS + 5))
    assert found[0, -1] == other.log_joint() and found[1, -1] == other.n_clusters


# -- what others begin with


def test_more_columns_are_given_more_others_and_long_sweeps_none():
    def number(n, d, share_missing=0.0):
        X = np.zeros((n, d))
        X[: int(n * share_missing), 0] = np.nan
        prior = learned_prior("full", np.zeros(d), np.eye(d))
        found = n_rivals(X, prior, "collapsed")
        kind = kind_of_sampler(X, prior, "collapsed", "auto")
        assert kind is (ComparingSampler if found else Sampler)
        return found

    assert [number(200, d) for d in (2, 14, 15, 30, 40, 60)] == [2, 2, 3, 6, 8, 8]
    assert 2 <= number(4000, 60) < 8
    assert number(4000, 40, share_missing=0.2) == 0


def test_blocks_are_seen_in_principal_components_beside_common_factors():
    """Four clusters, 1.2 apart in each of 40 columns, and a factor that has more variance."""
    rng = np.random.default_rng(8)
    truth = np.arange(240) % 4
    centers = 0.7 * rng.normal(size=(4, 40))
    common = rng.normal(size=(240, 2)) @ rng.normal(size=(2, 40))
    X = centers[truth] + common + rng.normal(size=(240, 40))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    prior = learned_prior("full", np.zeros(40), np.eye(40))

    def agreement(in_components):
        found = [
            rival_labels(X, prior, np.random.default_rng(seed), in_components) for seed in range(20)
        ]
        return np.median([adjusted_rand_score(truth, labels) for labels in found])

    assert agreement(True) > agreement(False) + 0.1


def test_first_labels_suit_the_table():
    rng = np.random.default_rng(9)
    prior = learned_prior("full", np.zeros(3), np.eye(3), n_components=3)
    X = rng.normal(size=(50, 3))
    X[rng.random(X.shape) < 0.2] = np.nan
    for in_components in (False, True):
        labels = rival_labels(X, prior, np.random.default_rng(0), in_components)
        assert labels.shape == (50,) and set(labels) <= {0, 1, 2}
        equal = rival_labels(np.zeros((5, 3)), prior, np.random.default_rng(0), in_components)
        assert set(equal) == {0}
    mixed = mixed_prior("full", concentration=1.0, prior_scale=1.0)
    rows = _model.draw_joint(mixed, 40, rng)[1]
    for seed in range(3):
        assert len(rival_labels(rows, mixed, np.random.default_rng(seed), True)) == 40


@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
def test_the_covariance_within_blocks_is_that_of_the_rows_about_their_means(kind):
    rng = np.random.default_rng(10)
    truth = np.repeat(np.arange(3), 4000)
    root = np.diag([0.5, 1.0, 2.0])
    root[2, 0] = 0.3
    X = 5.0 * rng.normal(size=(3, 3))[truth] + rng.normal(size=(12000, 3)) @ root.T
    sigma = root @ root.T
    guess = {"full": np.eye(3), "diag": np.ones(3), "spherical": np.array(1.0)}[kind]
    prior = learned_prior(kind, np.zeros(3), guess)
    # A label without rows.
    start = covariance_within(X, prior, truth + (truth == 2))
    expected = {"full": sigma, "diag": np.diag(sigma), "spherical": np.trace(sigma) / 3}[kind]
    np.testing.assert_allclose(start["covariance"], np.atleast_1d(expected), atol=0.15)
    sampler = Sampler(X[::40], prior, truth[::40], np.random.PCG64(0), start=start)
    sampler.sweep()
    assert np.isfinite(sampler.log_joint())
    # From single rows there is the guess alone.
    alone = covariance_within(X[:5], prior, np.arange(5))
    np.testing.assert_allclose(alone["covariance"], np.atleast_1d(guess))


def test_nothing_is_begun_with_where_nothing_is_learned():
    X = np.zeros((6, 6))
    mixed = mixed_prior("full", concentration=1.0, prior_scale=1.0)
    assert covariance_within(X, mixed, np.zeros(6, np.intp)) == {}


def test_clusters_in_thirty_columns_are_found_at_the_defaults():
    """Of 40 rows each, 8 standard deviations apart: all chains had them as one."""
    rng = np.random.default_rng(11)
    truth = np.arange(120) % 3
    X = rng.normal(size=(3, 30))[truth] + rng.normal(size=(120, 30))
    mixture = DirichletProcessMixture(max_work=2.0, random_state=0).fit(X)
    assert adjusted_rand_score(mixture.labels_, truth) > 0.9
