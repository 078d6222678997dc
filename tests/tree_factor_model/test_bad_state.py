"""States that do not fit are refused by name and leave the chain as it was."""

import numpy as np
import pytest

from checks.slow import slow_where
from checks.tree_factor_model import make_sampler, prior_of
from skbnp.laws import Gamma
from skbnp.numerics.states import is_same
from skbnp.tree_factor_model import _model


@pytest.fixture
def sampler():
    p = prior_of("tree", n_features=3, branch_scale="loadings", concentration=Gamma(9.0, 2.0))
    state, X = _model.draw_joint(p, 12, np.random.default_rng(2))
    assert len(state["leaf_node"]) > 2
    return make_sampler(X, p, state)


def changed(name, index, value):
    def change(state):
        state[name] = np.array(state[name])
        state[name][index] = value

    return change


def replaced(name, value):
    def change(state):
        state[name] = value(state[name]) if callable(value) else value

    return change


def counted(name, value):
    return lambda state: state["moves"]["paths"].update({name: np.array(value)})


def without(name):
    return lambda state: state.pop(name)


FAULTS = {
    "no loadings": (without("loadings"), "state has no loadings"),
    "no generator": (without("bit_generator"), "state has no bit_generator"),
    "no count": (lambda state: state["moves"]["paths"].pop("accepted"), "state has no accepted"),
    "negative count": (counted("accepted", [-1]), "accepted of paths must be from 0"),
    "real count": (counted("proposed", [1.5]), "proposed of the state must not have dtype"),
    "huge count": (counted("proposed", [2**80]), "proposed of the state must not have dtype"),
    "more than proposed": (counted("accepted", [10**9]), "accepted of paths must be from 0"),
    "parent after child": (changed("parent", 0, 5), "parent of the state must come before"),
    "parent of itself": (changed("parent", 1, 1), "parent of the state must come before"),
    "parent below -1": (changed("parent", 0, -2), "parent of the state must be >= -1"),
    "two roots": (changed("parent", 1, -1), "level of the state must be one more"),
    "parent huge": (changed("parent", 1, 2**62), "parent of the state must be < "),
    "real parent": (replaced("parent", lambda x: x.astype(float)), "must not have dtype float64"),
    "objects": (replaced("parent", lambda x: x.astype(object)), "must not have dtype object"),
    "short parent": (replaced("parent", lambda x: x[:-1]), "of the state"),
    "no nodes": (replaced("parent", np.zeros(0, int)), "level of the state must have shape"),
    "level zero": (changed("level", 0, 0), "level of the state must be >= 1"),
    "level too deep": (changed("level", -1, 9), "level of the state must be < 4"),
    "leaf nowhere": (changed("leaf_node", 0, 10**6), "leaf_node of the state must be < "),
    "leaf negative": (changed("leaf_node", 0, -1), "leaf_node of the state must be >= 0"),
    "leaf too high": (changed("leaf_node", 0, 0), "leaf_node of the state must be at the last"),
    "row nowhere": (changed("branch", 3, 99), "branch of the state must be < "),
    "row negative": (changed("branch", 3, -1), "branch of the state must be >= 0"),
    "empty leaf": (changed("branch", slice(None), 0), "must name every leaf"),
    "too few rows": (replaced("branch", lambda x: x[:-1]), "branch of the state must have shape"),
    "two-dimensional": (replaced("branch", lambda x: x[:, None]), "branch of the state must have"),
    "wide loadings": (replaced("loadings", lambda x: np.ones((len(x), 4))), "must have shape"),
    "more loadings": (replaced("loadings", lambda x: np.ones((99, 3))), "must have shape"),
    "strings": (replaced("loadings", "abc"), "must not have dtype"),
    "NaN loading": (changed("loadings", (0, 0), np.nan), "loadings of the state must be finite"),
    "infinite mean": (changed("leaf_mean", (0, 0), np.inf), "leaf_mean of the state must be"),
    "negative precision": (changed("noise_precision", 0, -1.0), "noise_precision of the state"),
    "zero local": (changed("local_precision", (0, 0), 0.0), "local_precision of the state must"),
    "NaN rate": (replaced("noise_rate", np.nan), "noise_rate of the state must be finite"),
    "no concentration": (changed("concentration", 1, 0.0), "at the branching levels alone"),
    "extra concentration": (changed("concentration", 0, 1.0), "at the branching levels alone"),
    "too deep": (replaced("concentration", np.ones(9)), "must not have 9 levels"),
    "no levels": (replaced("concentration", np.zeros(0)), "must not have 0 levels"),
    "short scores": (replaced("scores", lambda x: x[:, :-1]), "scores of the state must have"),
    "other generator": (
        replaced("bit_generator", np.random.MT19937(0).state),
        "bit generator does not fit",
    ),
    "no dict": (replaced("bit_generator", 7), "bit generator does not fit"),
    "huge generator": (
        replaced(
            "bit_generator",
            {"bit_generator": "PCG64", "state": {"state": "x", "inc": 1}, "has_uint32": 0},
        ),
        "bit generator does not fit",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_bad_states_are_named(sampler, name):
    change, message = FAULTS[name]
    before = sampler.get_state()
    state = sampler.get_state()
    change(state)
    with pytest.raises(ValueError, match=message):
        sampler.set_state(state)
    assert is_same(sampler.get_state(), before)
    sampler.sweep()
    assert np.isfinite(sampler.log_joint())


@pytest.mark.parametrize("state", [None, 3, [], "state", np.zeros(3)])
def test_what_is_no_state(sampler, state):
    with pytest.raises(ValueError, match="state has no"):
        sampler.set_state(state)


def test_a_child_too_many(sampler):
    """Two children at a level that does not branch."""
    state = sampler.get_state()
    leaf = state["leaf_node"][0]
    for name in ("parent", "level", "loadings", "local_precision", "multiplier"):
        state[name] = np.concatenate([state[name], state[name][leaf : leaf + 1]])
    with pytest.raises(ValueError, match="make a tree that branches where it may"):
        sampler.set_state(state)


def test_scales_that_the_model_fixes():
    p = prior_of("tree", branch_scale="none")
    state, X = _model.draw_joint(p, 6, np.random.default_rng(0))
    state["noise_scale"] = state["noise_scale"] * 2.0
    with pytest.raises(ValueError, match="scales that branch_scale='none' fixes"):
        make_sampler(X, p, state)


def test_isotropic_noise_is_one_number():
    p = prior_of("tree", noise="isotropic")
    state, X = _model.draw_joint(p, 6, np.random.default_rng(0))
    state["noise_precision"] = np.array([1.0, 2.0])
    with pytest.raises(ValueError, match="must be the same for all features"):
        make_sampler(X, p, state)


@pytest.mark.parametrize("seed", slow_where([1, 2], lambda seed: seed == 2))
def test_random_damage_never_gets_through_unnoticed(sampler, seed):
    """Entries replaced at random: a ValueError, or a state with which sweeps work."""
    rng = np.random.default_rng(seed)
    sampler.sweep()
    good = sampler.get_state()
    arrays = [name for name, value in good.items() if isinstance(value, np.ndarray)]
    n_refused = 0
    for _ in range(200):
        state = {
            name: value.copy() if isinstance(value, np.ndarray) else value
            for name, value in good.items()
        }
        for name in rng.choice(arrays, size=rng.integers(1, 4), replace=False):
            flat = state[name].reshape(-1)
            at = rng.integers(flat.size)
            if flat.dtype.kind == "f":
                flat[at] = rng.choice([0.0, -1.0, 1e300, 1e-300, np.nan, np.inf, 2.0])
            else:
                flat[at] = rng.choice([-(2**63), -2, -1, 0, 1, 2, 7, 1000, 2**62])
        try:
            sampler.set_state(state)
        except ValueError:
            n_refused += 1
            continue
        for _ in range(3):
            sampler.sweep()
            sampler.log_joint()
    assert n_refused > 100


@pytest.mark.parametrize(
    "change, message",
    [
        ({"branch_scale": "all"}, "branch_scale must be one of"),
        ({"noise": "full"}, "noise must be one of"),
    ],
)
def test_bad_options(sampler, change, message):
    state = sampler.get_state()
    with pytest.raises(ValueError, match=message):
        make_sampler(sampler.state.data(), prior_of("tree", n_features=3, **change), state)
    with pytest.raises(ValueError, match="path_update must be one of"):
        make_sampler(sampler.state.data(), sampler.state.prior, state, path_update="parallel")
    with pytest.raises(ValueError, match="birth must be one of"):
        make_sampler(sampler.state.data(), sampler.state.prior, state, birth="posterior")
    with pytest.raises(ValueError, match="move must be one of"):
        sampler.sweep_only("births")
