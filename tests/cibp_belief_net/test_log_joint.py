"""The kernel's bookkeeping against the plain NumPy joint density, and its states."""

import copy

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from checks.cibp_belief_net import make_sampler, prior
from checks.slow import slow_where
from skbnp.cibp_belief_net import _model
from skbnp.cibp_belief_net._start import start_state
from skbnp.cibp_belief_net._state import Network
from skbnp.laws import Gamma, Uniform
from skbnp.numerics.states import is_same

OPTIONS = dict(birth_rate=1.0, block_rate=1.0)
# Prior, and the share of missing cells.
CASES = {
    "default": (prior(4), 0.0),
    "holes": (prior(4), 0.3),
    "skip connections": (prior(4, skip_connections=True), 0.0),
    "row clusters": (prior(4, max_layers=1, row_clusters=True), 0.0),
    "row clusters, two layers, holes": (prior(4, max_layers=2, row_clusters=True), 0.3),
    "row clusters, skip connections": (
        prior(4, max_layers=2, row_clusters=True, skip_connections=True), 0.2,
    ),
    "unbounded": (prior(4, max_layers=None, max_units=30), 0.2),
    "unbounded, skip connections": (
        prior(4, max_layers=None, max_units=30, skip_connections=True), 0.0,
    ),
    "no bound on the precisions": (prior(4, highest_precision=np.inf), 0.0),
    "given": (prior(4, mass=(2.0, 1.0), concentration=(1.0, 2.0, 0.5)), 0.0),
    "given in some layers": (prior(4, mass=(Uniform(0, 2), 1.0), concentration=(1.0,)), 0.0),
    "given rate of the noise": (prior(4, noise_precision=Gamma(1.5, 1.2)), 0.2),
}  # fmt: skip
every_case = pytest.mark.parametrize("case", CASES)
every_update = pytest.mark.parametrize("update", ["auto", "slice", "hmc", "mtm", "ess"])


def drawn(case, n=25, seed=0):
    law, share = CASES[case]
    rng = np.random.default_rng(seed)
    state = _model.draw_joint(law, n, rng)
    X = state["visible"].copy()
    X[rng.random(X.shape) < share] = np.nan
    return law, state, X


def assert_same_states(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert is_same(one[name], other[name]), name


@every_case
@pytest.mark.parametrize("seed", slow_where([0, 1, 2], lambda seed: seed > 0))
def test_after_random_sweeps(case, seed):
    law, state, X = drawn(case, seed=seed)
    sampler = make_sampler(law, state, X, seed, **OPTIONS)
    seen = ~np.isnan(X)
    for _ in range(30):
        state = sampler.get_state()
        _model.checked_state(state, law, len(X))
        assert_allclose(sampler.log_joint(), _model.log_joint(state, law), rtol=1e-8, atol=1e-8)
        assert_array_equal(state["visible"][seen], X[seen])
        sampler.sweep()
    assert sampler.broken_move == ""
    assert_array_equal(sampler.data(), X)


@pytest.mark.parametrize(
    "changes",
    [{}, {"skip_connections": True}, {"max_layers": 1, "row_clusters": True}],
    ids=str,
)
def test_where_updates_add_up(changes):
    """2,000 rows, 30 columns, two dozen sweeps from principal components."""
    rng = np.random.default_rng(3)
    law = _model.Prior(30, **changes)
    X = np.tanh(rng.normal(size=(2000, 5)) @ rng.normal(size=(5, 30)))
    X += 0.2 * rng.normal(size=X.shape)
    X[rng.random(X.shape) < 0.1] = np.nan
    sampler = make_sampler(law, start_state(X, law, rng, "pca", 10), X)
    for _ in range(24):
        sampler.sweep()
    state = sampler.get_state()
    assert_allclose(sampler.log_joint(), _model.log_joint(state, law), rtol=1e-8)
    assert state["widths"][1] >= 5
    assert sampler.broken_move == ""


@every_case
@every_update
def test_state_restores_bit_for_bit(case, update):
    law, state, X = drawn(case)
    one = make_sampler(law, state, X, 1, activation_update=update, **OPTIONS)
    for step in range(10):
        one.sweep()
        one.adapt(step)
    saved = one.get_state()
    other = make_sampler(law, state, X, 2, activation_update=update, **OPTIONS)
    other.sweep()
    other.set_state(saved)
    assert_same_states(other.get_state(), saved)
    assert other.log_joint() == one.log_joint()
    for _ in range(10):
        one.sweep()
        other.sweep()
    assert_same_states(one.get_state(), other.get_state())
    assert one.scalars() == other.scalars()
    assert one.acceptance() == other.acceptance()


@pytest.mark.parametrize("changes", [{}, {"max_layers": 2, "row_clusters": True}], ids=str)
def test_large_states_give_way_to_small_ones(changes):
    """As when a chain that starts from many units is resumed where it had few."""
    law = _model.Prior(6, **changes)
    rng = np.random.default_rng(4)
    X = rng.normal(size=(40, 6))
    small = start_state(X, law, rng, "pca", 1)
    large = start_state(X, law, rng, "pca", 6)
    for first, second in ((large, small), (small, large)):
        sampler = make_sampler(law, first, X, **OPTIONS)
        for _ in range(3):
            sampler.sweep()
        sampler.set_state(sampler.get_state() | second)
        for _ in range(10):
            sampler.sweep()
            expected = _model.log_joint(sampler.get_state(), law)
            assert_allclose(sampler.log_joint(), expected, rtol=1e-8)


def test_a_state_is_a_copy():
    law, state, X = drawn("row clusters, two layers, holes")
    sampler = make_sampler(law, state, X, **OPTIONS)
    before = sampler.get_state()
    draw = sampler.draw()
    kept, draw_kept = copy.deepcopy(before), copy.deepcopy(draw)
    for _ in range(5):
        sampler.sweep()
    assert_same_states(before, kept)
    assert_same_states(draw, draw_kept)


@every_case
def test_draws_are_states_without_the_rows(case):
    law, state, X = drawn(case)
    sampler = make_sampler(law, state, X, **OPTIONS)
    for _ in range(5):
        sampler.sweep()
    draw, state = sampler.draw(), sampler.get_state()
    _model.checked_state(draw, law, len(X), draw=True)
    assert draw.keys() - state.keys() <= {"activations", "cluster_count"}
    for name in draw.keys() & state.keys():
        assert_array_equal(draw[name], state[name], err_msg=name)
    assert_array_equal(draw["activations"], state["pre_activations"])


def test_draws_keep_evenly_spaced_rows():
    law, state, X = drawn("default", n=2500)
    sampler = make_sampler(law, state, X)
    rows = np.linspace(0, 2500, 1000, endpoint=False).astype(int)
    expected = sampler.get_state()["pre_activations"][rows]
    assert_array_equal(sampler.draw()["activations"], expected)


def test_the_guard_counts_what_it_refuses():
    law = prior(3, max_layers=None, max_units=1, mass=(2.0,))
    sampler = make_sampler(law, _model.draw_joint(law, 5, np.random.default_rng(0)), **OPTIONS)
    for _ in range(200):
        sampler.sweep()
        assert len(sampler.get_state()["biases"]) <= 4
    assert sampler.get_state()["moves"]["rows"]["n_guard_rejections"] > 0


@every_case
def test_a_network_needs_no_sampler(case):
    law, state, X = drawn(case)
    net = Network(X, law, state)
    assert_allclose(net.log_joint(), _model.log_joint(state, law), rtol=1e-8)
    assert_allclose(_model.log_joint(net.get_state(), law), net.log_joint(), rtol=1e-8)
    assert_array_equal(net.data(), X)
    again = Network(X, law, net.get_state())
    assert_same_states(again.get_state(), net.get_state())
    damaged = net.get_state() | {"weights": np.append(state["weights"], 1.0)}
    with pytest.raises(ValueError, match="weights of the state"):
        net.set_state(damaged)
    assert_same_states(net.get_state(), again.get_state())


def test_a_state_that_does_not_fit_changes_nothing():
    law, state, X = drawn("default")
    sampler = make_sampler(law, state, X, **OPTIONS)
    for _ in range(5):
        sampler.sweep()
    before = sampler.get_state()
    other = make_sampler(law, state, X, 7, **OPTIONS).get_state()
    for damage in (
        {"biases": other["biases"][:-1]},
        {"n_sweeps": -1},
        {"moves": other["moves"] | {"jumps": {}}},
        {"moves": {"activations": other["moves"]["activations"] | {"step": 0.0}}},
        {"moves": {"rows": other["moves"]["rows"] | {"n_guard_rejections": -1}}},
        {"bit_generator": {"bit_generator": "MT19937"}},
    ):
        with pytest.raises(ValueError):
            sampler.set_state(other | damage)
        assert_same_states(sampler.get_state(), before)


def test_the_jacobian_is_added():
    law, state, X = drawn("default")
    plain, moved = make_sampler(law, state, X), make_sampler(law, state, X, log_jacobian=-7.5)
    assert moved.log_joint() == pytest.approx(plain.log_joint() - 7.5, abs=1e-9)


def test_moves_have_names():
    law, state, X = drawn("default")
    with pytest.raises(ValueError, match="move must be one of"):
        make_sampler(law, state, X).sweep_only("births")
