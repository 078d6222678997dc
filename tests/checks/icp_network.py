"""Small networks drawn from the Indian chefs process, and what tests compare of them."""

import numpy as np

from checks.joint_distribution import Moves
from checks.mutants import compiled, with_moves, with_state
from skbnp.icp_network._model import Prior, draw_joint, labels_of, means_of, outputs_of
from skbnp.icp_network._sampler import Sampler
from skbnp.laws import Gamma, InverseGamma
from skbnp.samplers import ICPSampler

# Wrong formulas: the move that has them, and the class in tests/mutants.
MOVE_FAULTS = {
    "printed_ratio": ("births", "BirthsOfPrintedRatio"),
    "wrong_up": ("births", "BirthsOfWrongUp"),
    "singletons_stay": ("edges", "SingletonsStay"),
    "observed_stay": ("edges", "ObservedStay"),
    "wrong_gap": ("births", "WrongGap"),
    "own_edge": ("edges", "OwnEdge"),
    "no_descent": ("births", "BirthsWithoutDescent"),
    "no_jacobian": ("births", "BirthsWithoutJacobian"),
    "no_grid": ("activations", "NoGrid"),
    "plain_mass": ("hyper", "PlainMass"),
    "no_stretch": ("affine", "NoStretch"),
    "kept_rivals": ("trajectories", "KeptRivals"),
}
# And those of the state.
STATE_FAULTS = {"one_variance": "OneVariance", "no_log_scale": "NoLogScale"}
FAULTS = (*MOVE_FAULTS, *STATE_FAULTS, "printed_constant")

# The laws of the paper.
PAPER = dict(
    mass=Gamma(0.5, 0.5),
    concentration=InverseGamma(0.5, 0.5),
    observed_popularity=Gamma(0.5, 0.5),
    weight_variance=1.0,
    bias_variance=1.0,
    noise_precision=Gamma(0.5, 0.5),
)
# Options of the estimators that belong to the sampler.
KNOBS = set(ICPSampler().get_params())


def with_sampler(options):
    """Options of an estimator, those of its sampler as one value."""
    knobs = {name: value for name, value in options.items() if name in KNOBS}
    rest = {name: value for name, value in options.items() if name not in KNOBS}
    return {"sampler": ICPSampler(**knobs)} | rest


# Orders of the observed nodes of each role where they are not said.
ORDERS = {"gaussian": 0.0, "input": 1.0, "latent": 0.0}


def prior(roles=("gaussian", "gaussian"), orders=None, **changes):
    """A prior under which a few observed nodes have a network of a few hidden ones."""
    options = dict(
        max_units=12,
        mass=Gamma(3.0, 3.0),
        concentration=InverseGamma(4.0, 4.0),
        observed_popularity=Gamma(3.0, 3.0),
        noise_precision=Gamma(3.0, 3.0),
        input_weight_variance=0.5,
    )
    orders = tuple(ORDERS[role] for role in roles) if orders is None else orders
    return Prior(tuple(roles), orders, **(options | changes))


def joint_draw(law, n_samples, *, holes=None, fault="none", only=None, step=0.15, **options):
    """make_joint_draw of `checks.joint_distribution`: rng -> sampler.

    ``holes`` (n_samples, n_observed) are missing cells, ``only`` the moves of a sweep; ``step`` is
    that of the trajectories.
    """

    def make(rng):
        state = draw_joint(law, n_samples, rng)
        return make_sampler(
            law, state, rng.integers(2**63), holes=holes, fault=fault, only=only, step=step,
            **options,
        )  # fmt: skip

    return make


def make_sampler(law, state, seed=0, *, holes=None, fault="none", only=None, step=0.15, **options):
    """A sampler in a state, on the state's own data and labels."""
    X = state["visible"].copy()
    if holes is not None:
        X[holes] = np.nan
    labels = labels_of(state, law) if "latent" in law.roles else None
    sampler = mutant(fault)(
        X, law, state, np.random.PCG64(seed), labels=labels, step_length=step, **options
    )
    return sampler if only is None else Moves(sampler, only)


def mutant(fault):
    """The sampler with a wrong formula, or as it is for "none"."""
    if fault == "none":
        return Sampler
    wrong = compiled("icp_network")
    if fault == "printed_constant":
        return with_state(Sampler, GRAPH=wrong.PrintedConstant)
    if fault in STATE_FAULTS:
        name = STATE_FAULTS[fault]
        return type(f"{name}Mutant", (Sampler,), {"STATE": getattr(wrong, name)})
    move, name = MOVE_FAULTS[fault]
    return with_moves(Sampler, **{move: getattr(wrong, name)})


def bounded(x):
    """Mean of x / (1 + x), 1/2 for none."""
    return float(np.mean(x / (1 + x))) if np.size(x) else 0.5


def depth(state):
    """Edges of the longest path."""
    longest = np.zeros(len(state["order"]), dtype=int)
    parents, children = state["edges"].T
    for node in np.argsort(state["order"], kind="stable"):
        below = children[parents == node]
        longest[node] = longest[below].max() + 1 if len(below) else 0
    return int(longest.max())


def structure(state, law):
    """Statistics of edges and orders."""
    d, n_nodes = law.n_observed, len(state["order"])
    parents, children = state["edges"].T
    m = np.bincount(parents, minlength=n_nodes)
    n_parents = np.bincount(children, minlength=n_nodes)
    hidden = state["order"][d:]
    free = state["order"][:d][[order is None for order in law.orders]]
    return {
        "hidden": float(n_nodes - d),
        "edges": float(len(parents)),
        "observed edges": float(m[:d].sum()),
        "observed squared children": float((m[:d] ** 2).sum()),
        "squared children": float((m[d:] ** 2).sum()),
        "one child": float((m[d:] == 1).sum()),
        "orphans": float((n_parents[d:] == 0).sum()),
        "parents of the first": float(n_parents[0]),
        "depth": float(depth(state)),
        "order of hidden": float(hidden.sum()),
        "lowest hidden": float(hidden.min(initial=1.0)),
        "highest hidden": float(hidden.max(initial=0.0)),
        "order of free": float(free.sum()),
        "product of free": float(np.prod(free)),
    }


def statistics(law):
    """What the joint-distribution tests look at: sampler -> dict of floats.

    Only what can change under this prior.
    """
    sampled = [value is None for value in law.given]

    def function(sampler):
        state = sampler.get_state()
        d, n_nodes = law.n_observed, len(state["order"])
        rho, a = state["unit_precision"], state["visible"]
        out = structure(state, law)
        if None not in law.orders:
            del out["order of free"], out["product of free"]
        # Who is above whom among observed nodes is settled where their orders are.
        if len(set(law.orders)) == 1 and law.orders[0] is not None:
            del out["observed edges"], out["observed squared children"]
        for name, value, is_sampled in zip(
            ("mass", "log alpha", "log phi"), state["hyper"], sampled, strict=True
        ):
            if is_sampled:
                out[name] = float(value if name == "mass" else np.log(value))
        out["sum tanh b"] = float(np.tanh(state["biases"]).sum())
        out["sum tanh W"] = float(np.tanh(state["weights"]).sum())
        out["W^2"] = float(np.tanh(state["weights"] ** 2).sum())
        if "input" in law.roles:
            from_inputs = ~law.has_law(n_nodes)[state["edges"][:, 0]]
            out["input W^2"] = float(np.tanh(state["weights"][from_inputs] ** 2).sum())
        if "gaussian" in law.roles:
            out["rho"] = bounded(rho[:d][law.has_precision(n_nodes)[:d]])
        out["hidden rho"] = bounded(rho[d:])
        if len(a):
            u, mean = outputs_of(state, law), means_of(state, law)
            modelled = law.has_law(d)
            misfit = (rho[:d] * (a - mean[:, :d]) ** 2)[:, modelled]
            out["hidden u^2"] = float(np.sum(u[:, d:] ** 2))
            out["hidden misfit"] = bounded(rho[d:] * (state["pre_activations"] - mean[:, d:]) ** 2)
            out["misfit"] = float(np.mean(np.tanh(misfit)))
            out["data by mean"] = float(np.mean((np.tanh(a) * np.tanh(mean[:, :d]))[:, modelled]))
            # What binds the rows' activations to the first observed node.
            bound = u[:, :1] * u[:, d:]
            out["u0 by hidden"] = float(bound.mean()) if bound.size else 0.0
            if "latent" in law.roles:
                out["latents"] = float(np.mean(np.tanh(a[:, :1]) ** 2))
        return out

    return function
