"""The prior, its joint density and the checks of states."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from checks.icp_network import make_sampler, prior, structure
from checks.monte_carlo import z_score
from skbnp.icp_network import _model
from skbnp.icp_network._model import Prior, check_prior, checked_state, draw_joint, log_joint
from skbnp.laws import Gamma, InverseGamma
from skbnp.processes import icp

LAWS = {
    "two at 0": prior(),
    "free orders": prior(("gaussian",) * 3, (None, 0.4, None)),
    "supervised": prior(("gaussian", "gaussian", "input")),
    "classes": prior(("latent",) * 3 + ("input",)),
    "given": prior(mass=1.5, concentration=2.0, observed_popularity=0.7),
}
every_law = pytest.mark.parametrize("law", LAWS.values(), ids=list(LAWS))


def naive(state, law):
    """The joint density, one factor at a time."""
    order, rho, b = state["order"], state["unit_precision"], state["biases"]
    d, n_nodes = law.n_observed, len(order)
    Z = np.zeros((n_nodes, n_nodes))
    W = np.zeros((n_nodes, n_nodes))
    for (parent, child), weight in zip(state["edges"], state["weights"], strict=True):
        Z[child, parent], W[child, parent] = 1, weight
    mass, alpha, phi = state["hyper"]
    total = icp.log_prob(order, Z, d, mass, alpha, phi)
    if isinstance(law.mass, Gamma):
        total += stats.gamma.logpdf(mass, law.mass.shape, scale=1 / law.mass.rate)
    if isinstance(law.concentration, InverseGamma):
        shape, scale = law.concentration.shape, law.concentration.scale
        total += stats.invgamma.logpdf(alpha, shape, scale=scale)
    if isinstance(law.observed_popularity, Gamma):
        shape, rate = law.observed_popularity.shape, law.observed_popularity.rate
        total += stats.gamma.logpdf(phi, shape, scale=1 / rate)
    role = [*law.roles, *["hidden"] * (n_nodes - d)]
    a = np.hstack([state["visible"], state["pre_activations"]])
    for i in range(n_nodes):
        if role[i] == "input":
            continue
        total += stats.norm.logpdf(b[i], scale=law.bias_variance**0.5)
        if role[i] != "latent":
            shape, rate = law.noise_precision.shape, law.noise_precision.rate
            total += stats.gamma.logpdf(rho[i], shape, scale=1 / rate)
        for k in range(n_nodes):
            if Z[i, k]:
                variance = {"input": law.input_weight_variance}.get(role[k], law.weight_variance)
                total += stats.norm.logpdf(W[i, k], scale=variance**0.5)
        for row in a:
            mean = b[i]
            for k in range(n_nodes):
                u = row[k] if role[k] == "input" else 2 / (1 + np.exp(-row[k])) - 1
                mean += W[i, k] * u
            total += stats.norm.logpdf(row[i], mean, rho[i] ** -0.5)
    return total


@every_law
def test_joint_density_is_the_product_of_its_factors(law):
    rng, n_hidden = np.random.default_rng(0), 0
    for _ in range(10):
        state = draw_joint(law, 4, rng)
        expected = naive(state, law)
        assert log_joint(state, law) == pytest.approx(expected, rel=1e-10)
        assert sum(log_joint(state, law, terms=True).values()) == pytest.approx(expected)
        assert make_sampler(law, state).log_joint() == pytest.approx(expected, rel=1e-10)
        n_hidden += len(state["order"]) - law.n_observed
    assert n_hidden > 5


def test_labelled_states():
    law = LAWS["two at 0"]
    rng = np.random.default_rng(1)
    state = max((draw_joint(law, 2, rng) for _ in range(10)), key=lambda s: len(s["order"]))
    n_hidden = len(state["order"]) - 2
    assert n_hidden > 1
    log_labels = np.log(np.arange(1, n_hidden + 1)).sum()
    labelled = log_joint(state, law, ordering="labelled")
    assert labelled == pytest.approx(log_joint(state, law) - log_labels)


def test_impossible_structures():
    law = LAWS["given"]
    state = draw_joint(law, 2, np.random.default_rng(2))
    state |= {
        "order": np.array([0.0, 0.0, 0.5]), "edges": np.zeros((0, 2), dtype=np.int32),
        "weights": np.zeros(0),
    }  # fmt: skip
    assert _model.log_structure(state, law) == -np.inf


@every_law
def test_draws_have_the_law_of_the_process(law):
    """Means given fixed hyperparameters, for each its own bound; false alarm 6e-5 each."""
    law = replace(law, mass=1.2, concentration=1.5, observed_popularity=0.8)
    observed = [np.nan if order is None else order for order in law.orders]
    rng = np.random.default_rng(3)
    draws = [structure(draw_joint(law, 0, rng), law) for _ in range(1500)]
    process = observed, 1.2, 1.5
    hidden, from_observed = icp.expected_edges(*process, 0.8, law.max_units)
    mean = icp.expected_hidden(*process, law.max_units)
    assert abs(z_score([draw["hidden"] for draw in draws], mean)) < 4
    assert abs(z_score([draw["edges"] for draw in draws], hidden + from_observed)) < 4
    assert abs(z_score([draw["observed edges"] for draw in draws], from_observed)) < 4


@every_law
def test_draws_are_states(law):
    rng = np.random.default_rng(4)
    for _ in range(30):
        state = draw_joint(law, 3, rng)
        checked = checked_state(state, law, 3)
        for name in state:
            assert_array_equal(checked[name], state[name], err_msg=name)


def test_activations_follow_their_law():
    """Noises of 0 give means, and rows of a draw have residuals of unit variance."""
    law, rng = LAWS["supervised"], np.random.default_rng(5)
    state = max((draw_joint(law, 2000, rng) for _ in range(20)), key=lambda s: len(s["edges"]))
    a = np.hstack([state["visible"], state["pre_activations"]])
    e = (a - _model.means_of(state, law)) * np.sqrt(state["unit_precision"])
    e = e[:, law.has_law(a.shape[1])]
    assert abs(z_score(e.mean(axis=1), 0.0)) < 4
    assert abs(z_score((e**2).mean(axis=1), 1.0)) < 4
    a = _model.activations_from(state, law, np.zeros((1, a.shape[1])))
    quiet = state | {"visible": a[:, :3], "pre_activations": a[:, 3:]}
    means = _model.means_of(quiet, law)
    assert_allclose(means[:, [0, 1, *range(3, a.shape[1])]], np.delete(a, 2, axis=1))


def test_labels():
    state = {"visible": np.array([[0.2, -1.0, 0.1], [-3.0, -1.0, -2.0]])}
    one = Prior(("input", "latent", "input"), (1.0, 0.0, 1.0))
    assert _model.labels_of(state, one).tolist() == [0, 0]
    three = Prior(("latent",) * 3, (0.0,) * 3)
    assert _model.labels_of(state, three).tolist() == [0, 1]


# -- states and priors from outside -----------------------------------------------------------

STATE = {
    "order": np.array([0.0, 0.5, 0.4, 0.7]),
    "edges": np.array([[1, 0], [2, 0], [3, 1], [3, 2]], dtype=np.int32),
    "weights": np.ones(4),
    "biases": np.zeros(4),
    "unit_precision": np.ones(4),
    "hyper": np.array([1.0, 2.0, 3.0]),
    "visible": np.zeros((3, 2)),
    "pre_activations": np.zeros((3, 2)),
}
OUTSIDE = Prior(("gaussian", "gaussian"), (0.0, None), concentration=2.0, max_units=5)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"order": np.array([0.0, 0.5, 0.7, 0.4])}, "ascending for hidden nodes"),
        ({"order": np.array([0.0, 1.5, 0.4, 0.7])}, "within"),
        ({"order": np.array([0.1, 0.5, 0.4, 0.7])}, "that of the prior where it is given"),
        ({"order": np.arange(9) / 9}, "max_units"),
        ({"order": np.array([0.0, np.nan, 0.4, 0.7])}, "order"),
        ({"edges": np.array([[1, 0], [2, 0], [3, 1], [4, 2]])}, "nodes that there are"),
        ({"edges": np.array([[2, 0], [1, 0], [3, 1], [3, 2]])}, "sorted by child and parent"),
        ({"edges": np.array([[1, 0], [1, 0], [3, 1], [3, 2]])}, "each once"),
        ({"edges": np.array([[1, 0], [2, 0], [2, 1], [3, 2]])}, "nodes of higher order"),
        ({"edges": np.array([[1, 0], [2, 0]]), "weights": np.ones(2)}, "hidden node a child"),
        ({"edges": STATE["edges"] * 1.0}, "edges"),
        ({"weights": np.ones(3)}, "weights"),
        ({"biases": np.full(4, np.nan)}, "biases"),
        ({"unit_precision": np.zeros(4)}, "unit_precision"),
        ({"hyper": np.array([1.0, 3.0, 3.0])}, "hyper of the state must be that of the prior"),
        ({"hyper": np.array([-1.0, 2.0, 3.0])}, "hyper"),
        ({"visible": np.zeros((2, 2))}, "visible"),
        ({"pre_activations": np.full((3, 2), 1e200)}, "pre_activations"),
    ],
)
def test_states_that_do_not_fit(change, message):
    checked_state(STATE, OUTSIDE, 3)
    with pytest.raises(ValueError, match=message):
        checked_state(STATE | change, OUTSIDE, 3)


@pytest.mark.parametrize("name", STATE)
def test_states_must_be_whole(name):
    with pytest.raises(ValueError, match=name):
        checked_state({k: v for k, v in STATE.items() if k != name}, OUTSIDE, 3)


def test_a_wrong_state_leaves_the_chain_as_it_was():
    law = LAWS["two at 0"]
    sampler = make_sampler(law, draw_joint(law, 3, np.random.default_rng(6)))
    before, log_density = sampler.get_state(), sampler.log_joint()
    moves = before["moves"]
    for change in (
        {"weights": np.ones(99)}, {"n_settle": -1}, {"bit_generator": {}}, {"moves": {}.items()},
        {"moves": moves | {"trajectories": moves["trajectories"] | {"length": -1.0}}},
        {"moves": moves | {"births": moves["births"] | {"n_guard_rejections": -1}}},
    ):  # fmt: skip
        with pytest.raises(ValueError):
            sampler.set_state(before | change)
        assert sampler.log_joint() == log_density
        assert sampler.get_state()["bit_generator"] == before["bit_generator"]


@pytest.mark.parametrize(
    "change, message",
    [
        ({"max_units": -1}, "max_units"),
        ({"max_units": 2.0}, "max_units"),
        ({"mass": None}, "mass of the prior must not be None"),
        ({"mass": InverseGamma(1, 1)}, "mass of the prior must not be InverseGamma"),
        ({"mass": Gamma(1, Gamma(1, 1))}, "mass of the prior must be positive"),
        ({"concentration": -2.0}, "concentration of the prior must be positive"),
        ({"noise_precision": 1.0}, "noise_precision of the prior must not be 1.0"),
        ({"roles": ("gaussian",)}, "an entry for each observed node"),
        ({"roles": ("gaussian", "output")}, "roles of the prior must be known, got 'output'"),
        ({"orders": (0.0, 1.5)}, "None or from 0 to 1, got 1.5"),
        ({"roles": ("gaussian", "input")}, "1 for inputs"),
        ({"roles": ("latent", "gaussian"), "orders": (1.0, 0.0)}, "0 for latents"),
    ],
)
def test_priors_that_make_no_sense(change, message):
    check_prior(OUTSIDE)
    with pytest.raises(ValueError, match=message):
        check_prior(replace(OUTSIDE, **change))


def test_a_prior_beyond_max_units_is_refused():
    law = Prior(("gaussian",), (0.0,), max_units=0, mass=50.0)
    with pytest.raises(ValueError, match="max_units must leave room .* got 0"):
        draw_joint(law, 2, np.random.default_rng(0))
