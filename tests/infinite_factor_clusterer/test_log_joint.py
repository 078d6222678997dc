"""The kernel's bookkeeping against the joint density in plain NumPy; states in and out."""

import numpy as np
import pytest

from checks.infinite_factor_clusterer import MOVES, make_moves
from skbnp.infinite_factor_clusterer._model import Prior, draw_joint, log_joint
from skbnp.infinite_factor_clusterer._sampler import Sampler
from skbnp.infinite_factor_clusterer._start import start_state

LAWS = {
    "default": Prior(),
    "both means, students": Prior(means="both", tails="t"),
    "means of features, shared noise": Prior(means="feature", noise="shared"),
    "given": Prior(mass=2.0, concentration=0.5, tails="t", noise="shared"),
    "deep": Prior(max_layers=3, mass=3.0, mass_upper=1.0, tails="t"),
}


def problem(law, seed, kind, n_samples=7, n_features=4):
    """(state, X, limit) of a table that is complete, has holes, or readings below a limit."""
    rng = np.random.default_rng(seed)
    state, X = draw_joint(law, n_samples, n_features, rng)
    limit = None
    if kind != "complete":
        X = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    if kind == "censored":
        limit = np.full(n_features, -0.2)
        X = np.where(X < limit, -np.inf, X)
    return state, X, limit


def assert_agrees(sampler, X, law, limit=None):
    expected = log_joint(sampler.get_state(), X, law, limit)
    assert abs(sampler.log_joint() - expected) < 1e-8 * max(1.0, abs(expected))


@pytest.mark.parametrize("kind", ["complete", "holes", "censored"])
@pytest.mark.parametrize("name", LAWS)
def test_kernel_and_reference(name, kind):
    law = LAWS[name]
    for seed in range(4):
        state, X, limit = problem(law, seed, kind)
        sampler = Sampler(X, law, state, np.random.Philox(seed), limit=limit, n_births=3)
        assert_agrees(sampler, X, law, limit)
        for _ in range(10):
            sampler.sweep()
            assert_agrees(sampler, X, law, limit)
        for move in MOVES:
            make_moves(sampler, move)
            assert_agrees(sampler, X, law, limit)


@pytest.mark.parametrize("max_layers", [1, 2])
def test_thousands_of_rows(max_layers):
    law = Prior(max_layers=max_layers)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 3))[:, [0, 0, 1, 1, 2, 2]] + 0.3 * rng.normal(size=(3000, 6))
    X[rng.random(X.shape) < 0.02] = np.nan
    sampler = Sampler(X, law, start_state(X, law, rng, 4), np.random.Philox(2))
    for _ in range(30 if max_layers == 1 else 3):
        sampler.sweep()
    assert sampler.broken_move == ""
    assert_agrees(sampler, X, law)


@pytest.mark.parametrize("name", LAWS)
def test_a_state_restored_goes_on_alike(name):
    law = LAWS[name]
    state, X, limit = problem(law, 5, "censored")
    first = Sampler(X, law, state, np.random.Philox(1), limit=limit)
    other = Sampler(X, law, state, np.random.Philox(2), limit=limit)
    for _ in range(5):
        first.sweep()
    other.set_state(first.get_state())
    for _ in range(3):
        first.sweep()
        other.sweep()
    for a, b in zip(first.get_state().values(), other.get_state().values(), strict=True):
        np.testing.assert_equal(a, b)
    assert first.log_joint() == other.log_joint()


@pytest.mark.parametrize(
    ("name", "wrong", "said"),
    [
        ("label", np.full(7, 3), "out of range|every cluster"),
        ("loadings1", np.zeros((3, 2)), "loadings1"),
        ("noise_variance", -np.ones((1, 4)), "noise_variance"),
        ("hyper", np.array([1.0, 1.0, 1.0, 5.5]), "degrees of freedom"),
        ("filled", np.zeros((7, 4)), "where they are known"),
        ("bit_generator", {"state": 3}, "bit generator"),
        ("moves", {"births": {"accepted": [9, 0], "proposed": [1, 0]}}, "accepted of births"),
    ],
)
def test_states_that_do_not_fit(name, wrong, said):
    law = Prior()
    state, X = draw_joint(law, 7, 4, np.random.default_rng(2))
    sampler = Sampler(X, law, state, np.random.Philox(1))
    before = sampler.get_state()
    with pytest.raises(ValueError, match=said):
        sampler.set_state(before | {name: wrong})
    assert sampler.get_state()["bit_generator"]["state"]["counter"].tolist() == (
        before["bit_generator"]["state"]["counter"].tolist()
    )
    assert_agrees(sampler, X, law)


def test_a_reading_below_the_limit_needs_the_limit():
    law = Prior()
    state, X = draw_joint(law, 7, 4, np.random.default_rng(2))
    X[0, 0] = -np.inf
    with pytest.raises(ValueError, match="limit must be given"):
        Sampler(X, law, state, np.random.Philox(1))


@pytest.mark.parametrize("means", ["factor", "both"])
def test_order_of_factors_and_signs_do_not_matter(means):
    law = Prior(means=means, mass=3.0)
    state, X = draw_joint(law, 7, 4, np.random.default_rng(3))
    k = state["loadings1"].shape[1]
    assert k > 1
    turned = state | {
        name: state[name][..., ::-1] * (-1.0 if "variance" not in name else 1.0)
        for name in ("loadings1", "scores1", "score_mean", "score_variance", "slab_variance")
    }
    assert log_joint(turned, X, law) == pytest.approx(log_joint(state, X, law), abs=1e-9)
