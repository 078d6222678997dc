"""The kernel's bookkeeping against the plain NumPy joint density, and its states."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal, assert_equal

from checks.icp_network import make_sampler, prior
from checks.slow import slow_where
from skbnp.icp_network import _model
from skbnp.icp_network._network import Network
from skbnp.laws import Gamma

TWO, THREE = ("gaussian",) * 2, ("gaussian",) * 3
# Prior, options of the sampler, and the share of missing cells.
CASES = {
    "default": (prior(THREE), {}, 0.0),
    "holes": (prior(THREE), {}, 0.3),
    "free orders, holes": (prior(THREE, (None, None, 0.0)), {}, 0.3),
    "equal orders": (prior(THREE, (0.4, 0.4, 0.0)), {}, 0.0),
    "supervised": (prior((*TWO, "input", "input")), {}, 0.0),
    "binary": (prior(("latent", "input")), {}, 0.0),
    "three classes": (prior(("latent",) * 3 + ("input",)), {}, 0.0),
    "paper": (prior(TWO, (None, None)), {"moves": "paper"}, 0.2),
    "dense": (prior(TWO, mass=4.0, concentration=0.5, max_units=60), {}, 0.0),
    "sparse": (prior(TWO, mass=2.0, concentration=50.0, max_units=60), {}, 0.0),
    "given": (prior(TWO, mass=1.0, concentration=2.0, observed_popularity=0.5), {}, 0.0),
    "slice": (prior(THREE), {"activation_update": "slice"}, 0.2),
    "mtm": (prior(THREE), {"activation_update": "mtm"}, 0.2),
}  # fmt: skip
every_case = pytest.mark.parametrize("case", CASES)


def drawn(case, n=25, seed=0):
    """The prior, a state, options of the sampler and where cells are missing."""
    law, options, share = CASES[case]
    rng = np.random.default_rng(seed)
    state = _model.draw_joint(law, n, rng)
    holes = rng.random(state["visible"].shape) < share
    return law, state, {"holes": holes, **options}


@every_case
@pytest.mark.parametrize("seed", slow_where([0, 1, 2], lambda seed: seed > 0))
@pytest.mark.parametrize("n", [0, 1, 25, 300])
def test_after_random_sweeps(case, n, seed):
    law, state, options = drawn(case, n, seed)
    data, seen = state["visible"], ~options["holes"]
    seen &= [role != "latent" for role in law.roles]
    sampler = make_sampler(law, state, seed, **options)
    for _ in range(15):
        state = sampler.get_state()
        _model.checked_state(state, law, n)
        sampler.state.check_invariant()
        assert_allclose(sampler.log_joint(), _model.log_joint(state, law), rtol=1e-8, atol=1e-8)
        assert_array_equal(state["visible"][seen], data[seen])
        if "latent" in law.roles:
            expected = _model.labels_of({"visible": data}, law)
            assert_array_equal(_model.labels_of(state, law), expected)
        sampler.sweep()
    assert sampler.broken_move == ""
    if "latent" not in law.roles:
        assert_array_equal(sampler.data(), np.where(options["holes"], np.nan, data))


@pytest.mark.parametrize("roles", [("gaussian",) * 8, ("gaussian",) * 2 + ("input",) * 6])
def test_where_updates_add_up(roles):
    """2,000 rows, eight columns, two dozen sweeps."""
    rng = np.random.default_rng(3)
    law = prior(roles, max_units=60, mass=3.0, concentration=1.0, noise_precision=Gamma(1.0, 0.1))
    sampler = make_sampler(law, _model.draw_joint(law, 2000, rng), step=0.01)
    for step in range(24):
        sampler.sweep()
        sampler.adapt(step)
    state = sampler.get_state()
    assert_allclose(sampler.log_joint(), _model.log_joint(state, law), rtol=1e-8)
    assert len(state["order"]) >= 10 and len(state["edges"]) >= 20
    assert sampler.broken_move == ""


@every_case
def test_state_restores_bit_for_bit(case):
    law, state, options = drawn(case)
    one = make_sampler(law, state, 1, **options)
    for step in range(10):
        one.sweep()
        one.adapt(step)
    saved = one.get_state()
    other = make_sampler(law, state, 2, **options)
    other.sweep()
    other.set_state(saved)
    assert_equal(other.get_state(), saved)
    assert other.log_joint() == one.log_joint()
    for _ in range(10):
        one.sweep()
        other.sweep()
    assert_equal(one.get_state(), other.get_state())
    assert one.scalars() == other.scalars()
    assert one.acceptance() == other.acceptance()


@every_case
def test_nodes_may_be_numbered_anew(case):
    """The same density from a state whose nodes came in another order, as after births."""
    law, state, options = drawn(case)
    sampler = make_sampler(law, state, **options)
    for _ in range(20):
        sampler.sweep()
    other = make_sampler(law, sampler.get_state(), **options)
    assert_allclose(other.log_joint(), sampler.log_joint(), rtol=1e-12)


def test_rows_and_columns_may_change_places():
    law, state, _ = drawn("free orders, holes")
    rng = np.random.default_rng(1)
    rows, columns = rng.permutation(25), np.array([2, 0, 1])
    n_nodes = len(state["order"])
    nodes = np.append(columns, np.arange(3, n_nodes))
    edges = np.argsort(nodes)[state["edges"]]
    by_child = np.lexsort(edges.T)
    moved = {
        **{name: state[name][nodes] for name in ("order", "biases", "unit_precision")},
        "edges": edges[by_child].astype(np.int32),
        "weights": state["weights"][by_child],
        "hyper": state["hyper"],
        "visible": state["visible"][rows][:, columns],
        "pre_activations": state["pre_activations"][rows],
    }
    other = prior(law.roles, tuple(law.orders[i] for i in columns))
    expected = make_sampler(law, state).log_joint()
    assert_allclose(make_sampler(other, moved).log_joint(), expected, rtol=1e-12)
    assert_allclose(_model.log_joint(moved, other), expected, rtol=1e-12)


def test_large_states_give_way_to_small_ones():
    """As when a chain that has grown is set back."""
    rng, n = np.random.default_rng(4), 30
    law = prior(TWO, mass=4.0, concentration=0.5, max_units=60)
    draws = [_model.draw_joint(law, n, rng) for _ in range(20)]
    small, large = (f(draws, key=lambda draw: len(draw["order"])) for f in (min, max))
    assert len(large["order"]) > 2 * len(small["order"])
    for first, second in ((large, small), (small, large)):
        second = second | {"visible": first["visible"]}
        sampler = make_sampler(law, first)
        for _ in range(3):
            sampler.sweep()
        sampler.set_state(sampler.get_state() | second)
        for _ in range(10):
            sampler.sweep()
            expected = _model.log_joint(sampler.get_state(), law)
            assert_allclose(sampler.log_joint(), expected, rtol=1e-8)


def test_a_state_is_a_copy():
    law, state, options = drawn("free orders, holes")
    sampler = make_sampler(law, state, **options)
    before, draw = sampler.state.get_state(), sampler.draw()
    kept = [{name: np.array(value) for name, value in of.items()} for of in (before, draw)]
    for _ in range(5):
        sampler.sweep()
    for of, copies in zip((before, draw), kept, strict=True):
        for name, value in copies.items():
            assert_array_equal(of[name], value, err_msg=name)


@every_case
def test_draws_are_states_without_the_rows(case):
    law, state, options = drawn(case)
    sampler = make_sampler(law, state, **options)
    for _ in range(5):
        sampler.sweep()
    draw, state = sampler.draw(), sampler.get_state()
    _model.checked_state(draw, law, 25, draw=True)
    assert draw.keys() < state.keys()
    for name in draw:
        assert_array_equal(draw[name], state[name], err_msg=name)


def test_the_guard_counts_what_it_refuses():
    law = prior(TWO, max_units=1, mass=2.0)
    sampler = make_sampler(law, _model.draw_joint(law, 5, np.random.default_rng(0)))
    for _ in range(200):
        sampler.sweep()
        assert len(sampler.get_state()["order"]) <= 3
    moves = sampler.get_state()["moves"]
    assert moves["births"]["n_guard_rejections"] > 0 and moves["splits"]["n_guard_rejections"] > 0


def test_no_births_while_the_chain_settles():
    law, state, _ = drawn("dense")
    sampler = make_sampler(law, state, n_settle=5)
    n_nodes = len(state["order"])
    for step in range(5):
        sampler.sweep()
        sampler.adapt(step)
        assert len(sampler.get_state()["order"]) == n_nodes
    for _ in range(20):
        sampler.sweep()
    assert sampler.acceptance()["births"][1] > 0


def test_the_jacobian_is_added():
    law, state, _ = drawn("default")
    plain, moved = make_sampler(law, state), make_sampler(law, state, log_jacobian=-7.5)
    assert moved.log_joint() == pytest.approx(plain.log_joint() - 7.5, abs=1e-9)


def test_scalars_say_what_the_state_says():
    law, state, _ = drawn("dense")
    sampler = make_sampler(law, state)
    scalars = sampler.scalars()
    assert scalars["n_hidden"] == len(state["order"]) - 2
    assert scalars["n_edges"] == len(state["edges"])
    names = ("mass", "concentration", "observed_popularity")
    assert_allclose([scalars[name] for name in names], state["hyper"])
    assert scalars["log_observed_precision"] == pytest.approx(
        np.log(state["unit_precision"][:2]).mean()
    )
    longest = np.zeros(len(state["order"]))
    for node in np.argsort(state["order"]):
        below = state["edges"][state["edges"][:, 0] == node, 1]
        longest[node] = 1 + longest[below].max() if len(below) else 0
    assert scalars["depth"] == longest.max()


def test_moves_have_names():
    law, state, _ = drawn("default")
    sampler = make_sampler(law, state)
    with pytest.raises(ValueError, match="move must be one of"):
        sampler.sweep_only("rows")
    sampler.sweep()
    assert sampler.seconds().keys() == {move.NAME for move in sampler.moves}


def test_a_network_stands_alone():
    """Built, looked at and set back without a sampler."""
    law, state, _ = drawn("default", 10)
    net = Network(state["visible"], law, state)
    net.check_invariant()
    assert net.log_joint() == pytest.approx(_model.log_joint(state, law), rel=1e-10)
    other = _model.draw_joint(law, 10, np.random.default_rng(1)) | {"visible": state["visible"]}
    net.set_state({**other, "n_settle": 0})
    net.check_invariant()
    assert net.log_joint() == pytest.approx(_model.log_joint(other, law), rel=1e-10)
    with pytest.raises(ValueError, match="weights"):
        net.set_state({**state, "weights": np.ones(99), "n_settle": 0})
    assert net.log_joint() == pytest.approx(_model.log_joint(other, law), rel=1e-10)
