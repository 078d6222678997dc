"""Small belief networks drawn from their prior, and what tests compare of them."""

from dataclasses import replace

import numpy as np

from checks.joint_distribution import Moves
from checks.mutants import compiled, with_moves
from skbnp.cibp_belief_net._model import Prior, draw_joint
from skbnp.cibp_belief_net._sampler import Sampler
from skbnp.laws import Gamma, Uniform

# Wrong formulas: the move that has them, and the class in tests/mutants.
FAULTS = {
    "printed_ratio": ("rows", "RowsOfPrintedRatio"),
    "inverted_rate": ("rows", "RowsOfInvertedRate"),
    "squared_count": ("rows", "RowsOfSquaredCount"),
    "no_survivor_rule": ("rows", "RowsWithoutSurvivorRule"),
    "own_count": ("rows", "RowsOfOwnCount"),
    "no_truncation": ("hyper", "NoTruncation"),
    "stale_laws": ("clusters", "StaleLaws"),
    "no_urn": ("rows", "RowsWithoutUrn"),
    "no_pivot": ("rows", "RowsWithoutPivot"),
    "alone_for_free": ("matched_births", "AloneForFree"),
    "no_jacobian": ("matched_births", "NoJacobian"),
    "no_logarithm": ("noncentred", "NoLogarithm"),
    "same_place": ("noncentred", "SamePlace"),
}
# Of moves that sweeps try now and then.
RATES = ("birth_rate", "block_rate", "swap_rate", "matched_rate")


def prior(n_features=2, **changes):
    """A prior under which two or three units grow a network of a few."""
    options = dict(max_layers=3, mass=(Uniform(0, 1.2),), concentration=(Uniform(0, 1.5),))
    return Prior(n_features, **(options | changes))


def joint_draw(law, n_samples, *, holes=None, fault="none", only=None, **options):
    """make_joint_draw of `checks.joint_distribution`: rng -> sampler.

    ``holes`` (n_samples, n_features) are missing cells, ``only`` the moves of a sweep.
    """

    def make(rng):
        state = draw_joint(law, n_samples, rng)
        X = state["visible"].copy()
        if holes is not None:
            X[holes] = np.nan
        sampler = mutant(fault)(
            X,
            law,
            state,
            np.random.PCG64(rng.integers(2**63)),
            **(dict.fromkeys(RATES, 1.0) | options),
        )
        return sampler if only is None else Moves(sampler, only)

    return make


def make_sampler(law, state, X=None, seed=0, fault="none", **options):
    """A sampler in a state, on the state's own data unless X is given."""
    X = state["visible"] if X is None else X
    return mutant(fault)(X, law, state, np.random.PCG64(seed), **options)


def mutant(fault):
    """The sampler with a wrong formula, or as it is for "none"."""
    if fault == "none":
        return Sampler
    move, name = FAULTS[fault]
    return with_moves(Sampler, **{move: getattr(compiled("cibp_belief_net"), name)})


def structure(state, law):
    """Statistics of the edges."""
    widths, edges = state["widths"], state["edges"]
    layer = np.repeat(np.arange(len(widths)), widths)
    n_children = np.bincount(edges[:, 0], minlength=len(layer))[widths[0] :]
    out = {
        "width 1": float(widths[1]) if len(widths) > 1 else 0.0,
        "hidden units": float(widths[1:].sum()),
        "layers": float(len(widths) - 1),
        "edges": float(len(edges)),
        "visible edges": float(np.sum(layer[edges[:, 1]] == 0)),
        "squared children": float(np.sum(n_children**2)),
    }
    if law.skip_connections:
        out["skip edges"] = float(np.sum(layer[edges[:, 0]] - layer[edges[:, 1]] > 1))
    return out


def statistics(law):
    """What the joint-distribution tests look at: sampler -> dict of floats."""

    def bounded(x):
        return float(np.mean(x / (1 + x))) if np.size(x) else 0.5

    def function(sampler):
        state = sampler.get_state()
        u = np.tanh(np.hstack([state["visible"], state["pre_activations"]]) / 2)
        d = law.n_features
        out = structure(state, law)
        out |= {
            "tanh mu_w": float(np.tanh(state["weight_mean"][0])),
            "rho_w": bounded(state["weight_precision"]),
            "rho_b": bounded(state["bias_precision"]),
            "nu": bounded(state["unit_precision"][:d]),
            "hidden nu": bounded(state["unit_precision"][d:]),
            "sum tanh W": float(np.tanh(state["weights"]).sum()),
            "sum tanh b": float(np.tanh(state["biases"]).sum()),
            "hidden u^2": float(np.sum(u[:, d:] ** 2)),
        }
        if isinstance(law.noise_precision.rate, Gamma):
            out["b_nu"] = bounded(state["noise_rate"])
        if isinstance(law.mass[0], Uniform):
            out["mass"] = float(state["mass"][0])
            out["mass above"] = float(state["mass"][1:].sum())
        if isinstance(law.concentration[0], Uniform):
            out["concentration"] = float(state["concentration"][0])
        if law.row_clusters:
            z = state["row_cluster"]
            out["clusters"] = float(len(state["cluster_mean"]))
            out["together"] = float(z[0] == z[-1])
            out["s"] = bounded(state["cluster_rate"])
            out["cluster m"] = float(np.tanh(state["cluster_mean"]).sum())
            nu, m = state["cluster_precision"], state["cluster_mean"]
            out["cluster nu"] = bounded(nu)
            # How far activations are from the law of their cluster.
            top = state["pre_activations"][:, state["pre_activations"].shape[1] - m.shape[1] :]
            away = np.tanh(nu[z] * (top - m[z]) ** 2)
            out["cluster misfit"] = float(away.mean()) if away.size else 0.5
        if np.any(state["widths"][1:] > 1):
            hidden = u[:, d:]
            out["u0 u1"] = float(np.mean(hidden[:, 0] * hidden[:, 1]))
        else:
            out["u0 u1"] = 0.0
        # What binds data and state: how far the visible units are from what their parents say.
        a, mean = state["visible"], state["biases"][:d] + inputs(state, u, d)
        out["misfit"] = float(np.mean(np.tanh(state["unit_precision"][:d] * (a - mean) ** 2)))
        out["data by mean"] = float(np.mean(np.tanh(a) * np.tanh(mean)))
        return out

    return function


def inputs(state, u, n_visible):
    """Weighted activations of the visible units' parents."""
    matrix = np.zeros((u.shape[1], n_visible))
    (parents, children), weights = state["edges"].T, state["weights"]
    near = children < n_visible
    matrix[parents[near], children[near]] = weights[near]
    return u @ matrix


def without_bounds(law):
    """The same prior with its masses and concentrations fixed at the middle of their bounds."""
    middle = {
        name: tuple(float(np.mean(law.bounds(name, layer))) for layer in range(2))
        for name in ("mass", "concentration")
    }
    return replace(law, **middle)
