"""The prior, its joint density and the checks of states, against numbers computed elsewhere."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import betaln, gammaln

from checks.cibp_belief_net import make_sampler, prior
from checks.joint_distribution import assert_z_scores_small
from checks.monte_carlo import z_score
from checks.mutants import compiled
from checks.slow import slow_where
from skbnp.cibp_belief_net import _model
from skbnp.cibp_belief_net._model import Prior, draw_joint, log_joint, log_structure
from skbnp.laws import Gamma, Uniform
from skbnp.numerics.states import is_same
from skbnp.processes import cibp

regression_answers = compiled("nonlinear_gaussian", "faces").regression_answers

VECTOR = json.loads((Path(__file__).parent / "vectors.json").read_text())


def law_of_vector(**changes):
    options = dict(
        max_layers=3,
        mass=(Uniform(0.0, 2.0),),
        concentration=(Uniform(0.0, 3.0),),
        noise_precision=Gamma(1.5, Gamma(2.0, 2.0)),
        highest_precision=np.inf,
    )
    return Prior(2, **(options | changes))


def state_of_vector(skip=False):
    edges = [edge for edge in VECTOR["edges"]] + ([VECTOR["extended"]["skip_edge"]] if skip else [])
    edges = sorted(edges, key=lambda edge: (edge[1], edge[0]))
    A, hyper = np.array(VECTOR["A"]), VECTOR["hyper"]
    names = ("alpha", "beta", "mu_w", "rho_w", "mu_b", "rho_b", "b_nu")
    return {
        "widths": np.array([2, 2, 1]),
        "edges": np.array([edge[:2] for edge in edges], dtype=np.int32),
        "weights": np.array([edge[2] for edge in edges]),
        "biases": np.array(VECTOR["b"]),
        "unit_precision": np.array(VECTOR["nu"]),
        "visible": A[:, :2].copy(),
        "pre_activations": A[:, 2:].copy(),
        **{name: np.array(hyper[key]) for name, key in zip(_model.HYPER, names, strict=True)},
    }


# -- the vector of the joint density ----------------------------------------------------------


def test_joint_density():
    parts = log_joint(state_of_vector(), law_of_vector(), terms=True, ordering="labelled")
    expected = VECTOR["log_joint_labelled"]
    for name in ("hyper", "structure", "weights", "biases", "precisions", "activations"):
        assert parts[name] == pytest.approx(expected[name], abs=1e-10), name
    total = log_joint(state_of_vector(), law_of_vector(), ordering="labelled")
    assert total == pytest.approx(expected["total"], abs=1e-9)
    unordered = log_structure(state_of_vector(), law_of_vector())
    assert unordered == pytest.approx(VECTOR["structure_unordered"], abs=1e-10)


def test_the_sampler_has_the_same_density():
    sampler = make_sampler(law_of_vector(), state_of_vector())
    labels = gammaln(3) + gammaln(2)
    expected = VECTOR["log_joint_labelled"]["total"] + labels
    assert sampler.log_joint() == pytest.approx(expected, abs=1e-9)


def test_extended_process():
    law, extended = law_of_vector(skip_connections=True), VECTOR["extended"]
    without = log_structure(state_of_vector(), law, "labelled")
    assert without == pytest.approx(extended["structure_labelled_without_skip"], abs=1e-10)
    parts = log_joint(state_of_vector(skip=True), law, terms=True, ordering="labelled")
    assert parts["structure"] == pytest.approx(extended["structure_labelled"], abs=1e-10)
    assert parts["activations"] == pytest.approx(extended["activations"], abs=1e-10)


def row_of(child, active, **more):
    """The regression of a visible unit on the two units of layer 1."""
    state = state_of_vector()
    u = np.tanh(state["pre_activations"][:, :2] / 2)
    mean = np.array([state["bias_mean"][0], *[state["weight_mean"][0]] * 2])
    precision = np.array([state["bias_precision"][0], *[state["weight_precision"][0]] * 2])
    return regression_answers(
        np.column_stack([np.ones(3), u]), state["visible"][:, child].copy(),
        state["unit_precision"][child], mean, precision, [1, *active], (), **more,
    )  # fmt: skip


def test_toggle():
    assert VECTOR["toggle"]["parent"] == 2 and VECTOR["toggle"]["child"] == 1
    gain = row_of(1, (1, 1))["gains"][1]
    assert gain == pytest.approx(VECTOR["toggle"]["evidence_gain"], abs=1e-12)
    assert row_of(1, (0, 1))["gains"][1] == pytest.approx(gain, abs=1e-12)
    on, off = state_of_vector(), state_of_vector()
    off["edges"] = np.array([[2, 0], [3, 1], [4, 2]])
    odds = log_structure(on, law_of_vector()) - log_structure(off, law_of_vector())
    assert odds == pytest.approx(VECTOR["toggle"]["log_prior_odds"], abs=1e-12)


@pytest.mark.parametrize("birth", VECTOR["births"], ids=("child 0", "child 1"))
def test_births(birth):
    child, n_singletons = birth["child"], birth["n_singletons_before"]
    u = np.tanh(np.array(birth["newborn_A"]) / 2)
    gain = row_of(child, [(1, 0), (1, 1)][child], new=u, new_prior=(0.0, 1.0))["gain_of_new"]
    assert gain == pytest.approx(birth["evidence_gain"], abs=1e-12)
    # The newborn is unit 4 and what was unit 4 is unit 5, its child still unit 2.
    born = state_of_vector()
    born["widths"] = np.array([2, 3, 1])
    born["edges"] = np.array([[2, 0], [2, 1], [3, 1], [4, child], [5, 2]])
    change = log_structure(born, law_of_vector()) - log_structure(
        state_of_vector(), law_of_vector()
    )
    # The newborn, third customer of restaurant 1, takes neither its dish nor a new one.
    mass, beta = VECTOR["hyper"]["alpha"][1], VECTOR["hyper"]["beta"][1]
    change -= np.log1p(-1 / (2 + beta)) - mass * beta / (2 + beta)
    assert change - np.log(n_singletons + 1) == pytest.approx(birth["log_prior_part"], abs=1e-12)


def test_death():
    death, hyper = VECTOR["death"], VECTOR["hyper"]
    rate = hyper["alpha"][0] * hyper["beta"][0] / (hyper["beta"][0] + 2 - 1)
    gain = row_of(death["child"], (1, 1))["gains"][death["unit"] - 1]
    assert -np.log(rate) - gain == pytest.approx(death["log_ratio"], abs=1e-12)


def test_what_a_layer_hears_from_below_and_above():
    """T and S of layer 1 as the sampler computes them, and the means of its units."""
    expected = {name: np.array(value) for name, value in VECTOR["layer1"].items()}
    assert_allclose(_model.means_of(state_of_vector())[:, 2:4], expected["Y"], atol=1e-12)
    # Without the layer above, so that layer 1 is the last that a sweep visits.
    state = state_of_vector()
    state |= {"widths": np.array([2, 2]), "edges": state["edges"][:3]}
    state |= {name: state[name][:2] for name in _model.HYPER}
    state |= {name: state[name][:4] for name in ("biases", "unit_precision")}
    state |= {"weights": state["weights"][:3], "pre_activations": state["pre_activations"][:, :2]}
    sampler = make_sampler(law_of_vector(), state)
    sampler.sweep_only("activations")
    move = sampler.moves[0]
    assert_allclose(np.reshape(move.linear, (3, 2)), expected["T"], atol=1e-12)
    assert_allclose(np.reshape(move.quadratic, (2, 2)), expected["S"], atol=1e-12)


@pytest.mark.parametrize("skip", [False, True])
def test_structures_sum_to_one(skip):
    """Labelled matrices of two columns, at most six units, one layer; the rest is Poisson."""
    law = Prior(2, max_layers=1, mass=(1.2,), concentration=(0.7,), skip_connections=skip)
    total = 0.0
    for width in range(7):
        for columns in np.ndindex(*(3,) * width):  # the children of each: 0, 1 or both
            edges = [
                (2 + j, child)
                for child in range(2)
                for j, which in enumerate(columns)
                if which in (child, 2)
            ]
            state = {
                "widths": np.array([2, width][: 1 + (width > 0)]),
                "edges": np.array(edges, dtype=np.int32).reshape(-1, 2),
                "mass": np.full(2, 1.2),
                "concentration": np.full(2, 0.7),
            }
            total += np.exp(log_structure(state, law, "labelled"))
    assert total == pytest.approx(stats.poisson(cibp.expected_widths(2, 1, 1.2, 0.7)[0]).cdf(6))


# -- row clusters -----------------------------------------------------------------------------


def clustered():
    """Three rows, two units of the top layer, no visible unit that hears of them but one."""
    A = np.cos(np.arange(3)[:, np.newaxis] + 2 * np.arange(2))
    rng = np.random.default_rng(0)
    return {
        "widths": np.array([1, 2]),
        "edges": np.array([[1, 0], [2, 0]], dtype=np.int32),
        "weights": np.array([0.3, -0.2]),
        "biases": np.array([0.1, 0.0, 0.0]),
        "unit_precision": np.array([2.0, 1.0, 1.0]),
        **{name: np.ones(2) for name in _model.HYPER},
        "visible": rng.normal(size=(3, 1)),
        "pre_activations": A,
        "row_cluster": np.array([0, 0, 1]),
        "cluster_mean": rng.normal(size=(2, 2)),
        "cluster_precision": rng.gamma(2.0, size=(2, 2)),
        "cluster_rate": np.array([1.0, 0.7]),
    }


def test_row_clusters():
    """The density of the labels, and of activations with means and precisions integrated out.

    Dividing the joint density by the conditional law of the means and precisions integrates them
    out, whatever they are.
    """
    state = clustered()
    law = Prior(1, max_layers=1, row_clusters=True)
    parts = log_joint(state, law, terms=True)
    assert parts["row_clusters"] == pytest.approx(-2.128232, abs=5e-7)
    of_visible = _model.log_normal(
        state["visible"][:, 0], _model.means_of(state)[:, 0], state["unit_precision"][0]
    ).sum()
    integrated = parts["activations"] - of_visible + parts["clusters"]
    integrated -= _model.log_gamma_density(state["cluster_rate"], 1.0, 1.0).sum()
    sequential = 0.0
    for k, s in enumerate(state["cluster_rate"]):
        for c in range(2):
            x = state["pre_activations"][state["row_cluster"] == c, k]
            kappa, shape, rate, mean = 0.2, 2.0, s, 0.0
            for value in x:
                scale = np.sqrt(rate * (kappa + 1) / (shape * kappa))
                sequential += stats.t(2 * shape, mean, scale).logpdf(value)
                rate += kappa * (value - mean) ** 2 / (2 * (kappa + 1))
                mean, kappa, shape = (kappa * mean + value) / (kappa + 1), kappa + 1, shape + 0.5
            m, nu = state["cluster_mean"][c, k], state["cluster_precision"][c, k]
            integrated -= stats.gamma(shape, scale=1 / rate).logpdf(nu)
            integrated -= stats.norm(mean, (kappa * nu) ** -0.5).logpdf(m)
    assert integrated == pytest.approx(-8.177874, abs=5e-7)
    assert sequential == pytest.approx(integrated, abs=1e-10)


# -- draws from the prior ---------------------------------------------------------------------


def prior_draws(law, n_samples, n, seed):
    streams = np.random.SeedSequence(seed).spawn(n)
    return [draw_joint(law, n_samples, np.random.default_rng(s)) for s in streams]


@pytest.mark.parametrize("skip", slow_where([False, True], lambda skip: not skip))
def test_draws_have_the_law_of_the_process(skip):
    law = Prior(
        3, max_layers=2, mass=(0.8,), concentration=(1.5,), skip_connections=skip,
        highest_precision=np.inf,
    )  # fmt: skip
    drawn = prior_draws(law, 0, 2500, 0)
    widths = np.array([[*state["widths"], 0, 0][:3] for state in drawn])
    layer = [_model.layers_of(state)[state["edges"]] for state in drawn]
    expected = cibp.expected_widths(3, 2, 0.8, 1.5, max_depth=2)
    rate = expected[0]
    near_edges = [float(np.sum((e[:, 1] == 0) & (e[:, 0] == 1))) for e in layer]
    z = {
        "width 1": z_score(widths[:, 1].astype(float), rate),
        "width 2": z_score(widths[:, 2].astype(float), expected[1]),
        "empty": z_score((widths[:, 1] == 0).astype(float), np.exp(-rate)),
        "edges of columns": z_score(near_edges, 0.8 * 3),
    }
    if skip:
        # A unit of layer 2 with m of K_1 near children takes every column with probability
        # m / (K_1 + beta), and all of them together expect mass K_1 near children.
        k = np.arange(60)
        share = stats.poisson(rate).pmf(k) @ (k / (k + 1.5))
        far = [float(np.sum(e[:, 0] - e[:, 1] == 2)) for e in layer]
        z["far edges"] = z_score(far, 3 * 0.8 * share)
    assert_z_scores_small(z)
    # nu / (1 + nu) is uniform when the rate is an exponential variable.
    nu = np.concatenate([state["unit_precision"][:1] for state in drawn])
    assert stats.kstest(nu / (1 + nu), "uniform").pvalue > 1e-4
    weights = np.concatenate([state["weights"][:1] for state in drawn if len(state["weights"])])
    # mu ~ N(0, 1 / rho) and w ~ N(mu, 1 / rho), rho ~ Gamma(2, 2): a Student t law.
    assert stats.kstest(weights, stats.t(4, scale=np.sqrt(2)).cdf).pvalue > 1e-4


def test_draws_have_their_row_clusters():
    law = prior(max_layers=1, row_clusters=True)
    drawn = prior_draws(law, 5, 1500, 1)
    z = [state["row_cluster"] for state in drawn]
    expected = sum(5.0 / (5.0 + i) for i in range(5))
    assert_z_scores_small(
        {
            "together": z_score([float(one[0] == one[4]) for one in z], 1 / 6),
            "clusters": z_score([float(one.max() + 1) for one in z], expected),
        }
    )
    for state in drawn[:200]:
        _model.checked_state(state, law, 5)


def test_draws_keep_to_their_bounds():
    law = prior(max_layers=None, max_units=2, highest_precision=0.5)
    for state in prior_draws(law, 3, 200, 2):
        _model.checked_state(state, law, 3)
        assert np.isfinite(log_joint(state, law))


# -- states from outside ----------------------------------------------------------------------


def changed(name, index, value):
    def change(state):
        state[name] = np.array(state[name])
        state[name][index] = value

    return change


def replaced(name, value):
    def change(state):
        state[name] = value(state[name])

    return change


BAD_STATES = {
    "no widths": (lambda state: state.pop("widths"), "state has no widths"),
    "another number of columns": (changed("widths", 0, 3), "widths of the state must be 2"),
    "an empty layer": (
        replaced("widths", lambda w: np.array([2, 3, 0])), "widths of the state must be 2 and then",
    ),
    "too deep": (
        replaced("widths", lambda w: np.array([2, 1, 1, 1])), "keep to max_layers and max_units",
    ),
    "an edge to nowhere": (changed("edges", (0, 0), 9), "join units that there are"),
    "a negative unit": (changed("edges", (0, 1), -1), "join units that there are"),
    "unsorted edges": (replaced("edges", lambda e: e[::-1]), "sorted by child and parent"),
    "an edge twice": (changed("edges", 1, (2, 0)), "sorted by child and parent"),
    "an edge that skips": (changed("edges", 0, (4, 0)), "come from the layer above"),
    "an edge upwards": (changed("edges", 3, (0, 2)), "come from the layer above"),
    "a unit without a child": (changed("edges", 2, (2, 1)), "sorted|a child one layer below"),
    "weights of another length": (replaced("weights", lambda w: w[:-1]), "weights of the state"),
    "weights that are whole": (replaced("weights", lambda w: w.astype(int)), "not have dtype"),
    "an infinite weight": (changed("weights", 0, np.inf), "weights of the state must be finite"),
    "a NaN bias": (changed("biases", 1, np.nan), "biases of the state must be finite"),
    "a precision of 0": (changed("unit_precision", 2, 0.0), "unit_precision .* finite and > 0"),
    "a precision above its bound": (changed("unit_precision", 2, 1e9), "keep to its bound"),
    "a negative rate": (changed("noise_rate", 0, -1.0), "noise_rate of the state must be finite"),
    "a mass beyond its bounds": (changed("mass", 0, 2.5), "mass of the state must lie within"),
    "a concentration beyond": (changed("concentration", 1, 3.5), "must lie within its bounds"),
    "hyperparameters of a layer more": (
        replaced("mass", lambda m: np.append(m, 1.0)), "mass of the state must have shape",
    ),
    "other rows": (replaced("visible", lambda v: v[:2]), "visible of the state must have shape"),
    "a NaN activation": (changed("pre_activations", (0, 0), np.nan), "must be finite"),
    "huge activations": (changed("pre_activations", (0, 0), 1e200), "must be finite"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_STATES)
def test_bad_states_are_refused_by_name(name):
    change, message = BAD_STATES[name]
    state, law = state_of_vector(), law_of_vector(max_layers=2, highest_precision=1e4)
    sampler = make_sampler(law, state)
    before = sampler.get_state()
    bad = dict(before)
    change(bad)
    with pytest.raises(ValueError, match=message):
        sampler.set_state(bad)
    assert is_same(sampler.get_state(), before)


BAD_CLUSTERS = {
    "a gap": (changed("row_cluster", 2, 2), "number the clusters without a gap"),
    "a negative label": (changed("row_cluster", 0, -1), "number the clusters without a gap"),
    "a huge label": (changed("row_cluster", 0, 2**60), "number the clusters without a gap"),
    "too few rows": (replaced("row_cluster", lambda z: z[:2]), "row_cluster of the state"),
    "means of another shape": (replaced("cluster_mean", lambda m: m[:1]), "cluster_mean of"),
    "a precision of 0": (changed("cluster_precision", (0, 0), 0.0), "cluster_precision of"),
    "a negative rate": (changed("cluster_rate", 0, -1.0), "cluster_rate of the state"),
}


@pytest.mark.parametrize("name", BAD_CLUSTERS)
def test_bad_row_clusters_are_refused_by_name(name):
    change, message = BAD_CLUSTERS[name]
    law = Prior(1, max_layers=1, row_clusters=True)
    sampler = make_sampler(law, clustered())
    bad = sampler.get_state()
    change(bad)
    with pytest.raises(ValueError, match=message):
        sampler.set_state(bad)


@pytest.mark.parametrize(
    "move, name, value, message",
    [
        ("activations", "step", 0.0, "step"),
        ("activations", "step", "a", "step"),
        ("rows", "accepted", np.full(5, -1), "accepted of rows"),
        ("rows", "accepted", np.full(5, 9), "accepted of rows"),
        ("rows", "accepted", np.full(5, 0.5), "accepted"),
        ("rows", "proposed", np.zeros(4, dtype=np.intp), "proposed"),
        ("rows", "n_guard_rejections", -1, "n_guard_rejections"),
    ],
)
def test_bad_moves_are_refused_by_name(move, name, value, message):
    sampler = make_sampler(law_of_vector(), state_of_vector())
    state = sampler.get_state()
    state["moves"][move][name] = value
    with pytest.raises(ValueError, match=message):
        sampler.set_state(state)


def test_a_bad_bit_generator_is_refused():
    sampler = make_sampler(law_of_vector(), state_of_vector())
    with pytest.raises(ValueError, match="bit generator"):
        sampler.set_state(sampler.get_state() | {"bit_generator": {}})


def test_data_must_be_those_of_the_state():
    state = state_of_vector()
    X = state["visible"].copy()
    X[1, 0] += 1.0
    with pytest.raises(ValueError, match="visible of the state must be the data"):
        make_sampler(law_of_vector(), state, X)
    X[1, 0] = np.nan
    make_sampler(law_of_vector(), state, X)


def test_a_dish_has_the_probability_of_its_takers():
    """One unit of both columns: mass x concentration x B(2, concentration)."""
    law = Prior(2, max_layers=1, mass=(1.2,), concentration=(0.7,))
    state = {
        "widths": np.array([2, 1]),
        "edges": np.array([[2, 0], [2, 1]], dtype=np.int32),
        "mass": np.full(2, 1.2),
        "concentration": np.full(2, 0.7),
    }
    expected = np.log(1.2 * 0.7) + betaln(2, 0.7) - 1.2 * (1 + 0.7 / 1.7)
    assert log_structure(state, law) == pytest.approx(expected, abs=1e-12)
