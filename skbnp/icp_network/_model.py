"""The network's prior, its joint density in plain NumPy, and checks of states.

``log_joint`` is slow and readable on purpose: it is what the compiled sampler is tested against.

A state is a dict of arrays. The D observed nodes come first, in the order of ``Prior.roles``, then
the H hidden ones, in ascending order; K = D + H. Edges go from a node to nodes of lower order.

=================  ========  ==============================================================
order              (K,)      theta, in [0, 1]
edges              (E, 2)    [parent, child], sorted by child, then parent
weights            (E,)      W
biases             (K,)      b; 0 for inputs
unit_precision     (K,)      rho; 1 for inputs and latents
hyper              (3,)      mass gamma, concentration alpha, observed_popularity phi
visible            (N, D)    a of the observed nodes, missing cells and latents filled in; the
                             values themselves of inputs
pre_activations    (N, H)    a of the hidden nodes
=================  ========  ==============================================================
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import digamma, gammaln

from skbnp.icp_network._old_files import prior_of_file
from skbnp.laws import Gamma, InverseGamma, Law
from skbnp.numerics.states import check_positive, checked_array, checked_floats
from skbnp.processes import icp

HYPER = ("mass", "concentration", "observed_popularity")
# What the hyperparameters may be.
_LAWS = {
    "mass": (float, Gamma),
    "concentration": (float, InverseGamma),
    "observed_popularity": (float, Gamma),
    "noise_precision": Gamma,
}
# Beyond this a pre-activation is no result of a chain that works.
_LARGEST = 1e100
# Draws of a structure from the prior before one within max_units is given up.
_MOST_STRUCTURES = 1000


@dataclass(frozen=True)
class Prior:
    """Hyperparameters of the network.

    ``roles`` and ``orders`` have an entry for each observed node: "gaussian" (a modelled column),
    "input" (order 1, without a law of its own) or "latent" (order 0, unit precision: decides a
    label), and the node's order, None where it is free. ``mass``, ``concentration`` and
    ``observed_popularity`` are numbers, or laws where they are sampled; the precision of every unit
    has the law ``noise_precision``. Weights and biases are normal around 0, with
    ``weight_variance`` out of inputs too where ``input_weight_variance`` is None.
    """

    roles: tuple[str, ...]
    orders: tuple[float | None, ...]
    max_units: int = 200
    mass: float | Gamma = Gamma(1.0, 1.0)
    concentration: float | InverseGamma = InverseGamma(2.0, 2.0)
    observed_popularity: float | Gamma = Gamma(1.0, 1.0)
    weight_variance: float = 4.0
    input_weight_variance: float | None = None
    bias_variance: float = 4.0
    noise_precision: Gamma = Gamma(1.0, 0.1)

    @classmethod
    def from_data(cls, data):
        """The prior of a file, also of one that version 0.1 has written."""
        return cls(**prior_of_file(data))

    @property
    def n_observed(self):
        """Number of observed nodes."""
        return len(self.roles)

    @property
    def columns_are_leaves(self):
        """Whether there are columns alone, of one order, so that none has children."""
        one_order = len(set(self.orders)) == 1 and None not in self.orders
        return one_order and set(self.roles) == {"gaussian"}

    @property
    def given(self):
        """The hyperparameters in the order of ``HYPER``, None where sampled."""
        return tuple(None if isinstance(value, Law) else value for value in self.of_process)

    @property
    def of_process(self):
        """The hyperparameters in the order of ``HYPER``, numbers or laws."""
        return self.mass, self.concentration, self.observed_popularity

    @property
    def variance_from_inputs(self):
        """Of weights out of inputs."""
        if self.input_weight_variance is None:
            return self.weight_variance
        return self.input_weight_variance

    def weight_variances(self, parents):
        """Prior variances of weights out of these nodes."""
        is_hidden = self.has_law(max(self.n_observed, 1 + np.max(parents, initial=0)))[parents]
        return np.where(is_hidden, self.weight_variance, self.variance_from_inputs)

    def has_law(self, n_nodes):
        """Which of so many nodes have a bias and inputs: all but inputs."""
        out = np.ones(n_nodes, dtype=bool)
        out[: self.n_observed] = [role != "input" for role in self.roles]
        return out

    def has_precision(self, n_nodes):
        """Which of so many nodes have a precision that is sampled."""
        out = np.ones(n_nodes, dtype=bool)
        out[: self.n_observed] = [role == "gaussian" for role in self.roles]
        return out


# -- the law ----------------------------------------------------------------------------------


def log_structure(state, prior, ordering="unordered"):
    """Log density of edges and orders given the hyperparameters: equation (I2.3).

    ``ordering`` "labelled" gives every numbering of the hidden nodes its share.
    """
    mass, alpha, phi = state["hyper"]
    order = np.asarray(state["order"])
    n_observed, n_nodes = prior.n_observed, len(order)
    m = np.bincount(np.asarray(state["edges"]).reshape(-1, 2)[:, 0], minlength=n_nodes)
    d = (order[:, np.newaxis] > order).sum(axis=1)
    hidden, observed = slice(n_observed, None), slice(n_observed)
    if (m[hidden] < 1).any() or (m > d).any():
        return -np.inf
    gaps = np.diff(np.append(np.sort(order), 1.0))
    total = -mass * alpha * (gaps @ (digamma(alpha + np.arange(1, n_nodes + 1)) - digamma(alpha)))
    n_hidden = n_nodes - n_observed
    total += n_hidden * np.log(alpha * mass)
    total += (gammaln(m) + gammaln(alpha + d - m) - gammaln(alpha + d))[hidden].sum()
    total += (gammaln(phi + m) + gammaln(alpha + d - m) - gammaln(alpha + phi + d))[observed].sum()
    total += n_observed * (gammaln(alpha + phi) - gammaln(phi) - gammaln(alpha))
    return total - (gammaln(n_hidden + 1) if ordering == "labelled" else 0.0)


def outputs_of(state, prior):
    """What every node gives to its children, (N, K)."""
    a = np.hstack([state["visible"], state["pre_activations"]])
    return np.where(prior.has_law(a.shape[1]), np.tanh(a / 2), a)


def means_of(state, prior):
    """Mean of every node's pre-activation given its parents', (N, K)."""
    output = outputs_of(state, prior)
    mean = np.tile(state["biases"], (len(output), 1))
    for (parent, child), weight in zip(state["edges"], state["weights"], strict=True):
        mean[:, child] += weight * output[:, parent]
    return mean


def log_normal(x, mean, precision):
    """Log densities of N(mean, 1 / precision)."""
    return 0.5 * (np.log(precision / (2 * np.pi)) - precision * (x - mean) ** 2)


def log_hyper(state, prior):
    """Log density of the hyperparameters that are sampled."""
    pairs = zip(prior.of_process, state["hyper"], strict=True)
    return sum(law.log_density(value) for law, value in pairs if isinstance(law, Law))


def log_joint(state, prior, terms=False, ordering="unordered"):
    """log p(A, state), of the pre-activations ``visible`` given those of inputs.

    Parameters
    ----------
    state : dict
        As this module's docstring has it.
    prior : Prior
    terms : bool, default=False
        Return a dict of the terms instead of their sum.
    ordering : {"unordered", "labelled"}
        Hidden nodes as a set, or numbered at random.
    """
    n_nodes = len(state["order"])
    law, free = prior.has_law(n_nodes), prior.has_precision(n_nodes)
    a = np.hstack([state["visible"], state["pre_activations"]])
    parts = {
        "hyper": log_hyper(state, prior),
        "structure": log_structure(state, prior, ordering),
        "weights": log_normal(
            state["weights"], 0.0, 1 / prior.weight_variances(state["edges"][:, 0])
        ).sum(),
        "biases": log_normal(state["biases"][law], 0.0, 1 / prior.bias_variance).sum(),
        "precisions": prior.noise_precision.log_density(state["unit_precision"][free]).sum(),
        "activations": log_normal(a, means_of(state, prior), state["unit_precision"])[:, law].sum(),
    }
    return parts if terms else sum(parts.values())


# -- draws from the prior ---------------------------------------------------------------------


def draw_joint(prior, n_samples, rng):
    """One draw of the whole state from the prior, ``visible`` included; inputs are N(0, 1).

    rng is a numpy.random.Generator. Structures beyond ``max_units`` are thrown away with their
    hyperparameters, as the law is truncated jointly.
    """
    observed = np.array([np.nan if x is None else x for x in prior.orders])
    for _ in range(_MOST_STRUCTURES):
        hyper = _draw_hyper(prior, rng)
        try:
            order, Z = icp.sample(observed, *hyper, max_hidden=prior.max_units, random_state=rng)
        except icp.TooManyNodesError:
            continue
        break
    else:
        raise ValueError(
            f"max_units must leave room for networks of the prior, got {prior.max_units}: of "
            f"{_MOST_STRUCTURES} draws all had more; lower the mass"
        )
    children, parents = np.nonzero(Z)
    n_nodes = len(order)
    law, free = prior.has_law(n_nodes), prior.has_precision(n_nodes)
    state = {
        "order": order,
        "edges": np.stack([parents, children], axis=1).astype(np.int32),
        "weights": rng.normal(0.0, prior.weight_variances(parents) ** 0.5),
        "biases": np.where(law, rng.normal(0.0, prior.bias_variance**0.5, n_nodes), 0.0),
        "unit_precision": np.where(
            free, np.maximum(prior.noise_precision.sample(n_nodes, rng), 1e-300), 1.0
        ),
        "hyper": np.array(hyper),
    }
    a = activations_from(state, prior, rng.standard_normal((n_samples, n_nodes)))
    state["visible"], state["pre_activations"] = np.split(a, [prior.n_observed], axis=1)
    return state


def _draw_hyper(prior, rng):
    mass, alpha, phi = prior.of_process
    if isinstance(mass, Gamma):
        mass = mass.sample(random_state=rng)
    if isinstance(alpha, InverseGamma):
        alpha = 1 / max(rng.gamma(alpha.shape, 1 / alpha.scale), 1e-300)
    if isinstance(phi, Gamma):
        phi = phi.sample(random_state=rng)
    return mass, alpha, phi


def activations_from(state, prior, noise):
    """Pre-activations (N, K) that standard normal ``noise`` (N, K) gives; that of inputs is theirs.

    Also for a state without rows, such as a draw.
    """
    law, a = prior.has_law(len(state["order"])), noise.copy()
    weight = np.zeros((len(law), len(law)))
    weight[tuple(np.asarray(state["edges"]).reshape(-1, 2).T)] = state["weights"]
    for node in np.argsort(-state["order"], kind="stable"):
        if law[node]:
            output = np.where(law, np.tanh(a / 2), a)
            mean = state["biases"][node] + output @ weight[:, node]
            a[:, node] = mean + noise[:, node] / np.sqrt(state["unit_precision"][node])
    return a


def labels_of(state, prior):
    """The label of every row that its latents decide: the largest, or whether one is above 0."""
    latent = state["visible"][:, [role == "latent" for role in prior.roles]]
    if latent.shape[1] == 1:
        return (latent[:, 0] > 0).astype(np.intp)
    return latent.argmax(axis=1).astype(np.intp)


# -- states from outside ----------------------------------------------------------------------


def check_prior(prior):
    """Raise a ValueError unless the sizes and roles in a prior from outside make sense."""
    if type(prior.max_units) is not int or not 0 <= prior.max_units <= 100_000:
        raise ValueError("max_units of the prior must be an integer from 0 to 100000")
    if not prior.roles or len(prior.roles) != len(prior.orders):
        raise ValueError("roles and orders of the prior must have an entry for each observed node")
    for role, order in zip(prior.roles, prior.orders, strict=True):
        if role not in ("gaussian", "input", "latent"):
            raise ValueError(f"roles of the prior must be known, got {role!r}")
        if order is not None and not (isinstance(order, float) and 0.0 <= order <= 1.0):
            raise ValueError(f"orders of the prior must be None or from 0 to 1, got {order!r}")
        if order != {"input": 1.0, "latent": 0.0}.get(role, order):
            raise ValueError(f"orders of the prior must be 1 for inputs, 0 for latents: {order!r}")
    for name, kinds in _LAWS.items():
        value = getattr(prior, name)
        if not isinstance(value, kinds):
            raise ValueError(f"{name} of the prior must not be {value!r}")
    check_positive(prior, *_LAWS, "weight_variance", "input_weight_variance", "bias_variance")


def checked_state(state, prior, n_samples, draw=False):
    """The state with its arrays converted; raises ValueError for one that does not fit.

    A ``draw`` need not have the activations of the rows.
    """
    order = checked_floats(state, "order", (-1,))
    n_nodes, n_observed = len(order), prior.n_observed
    hidden = order[n_observed:]
    if n_nodes < n_observed or n_nodes - n_observed > prior.max_units:
        raise ValueError("order of the state must keep to the observed nodes and max_units")
    if ((order < 0) | (order > 1)).any() or (np.diff(hidden) < 0).any():
        raise ValueError("order of the state must be within [0, 1], ascending for hidden nodes")
    for node, given in enumerate(prior.orders):
        if given is not None and order[node] != given:
            raise ValueError("order of the state must be that of the prior where it is given")
    out = {"order": order, "edges": checked_array(state, "edges", (-1, 2), "iu", np.int32)}
    parents, children = out["edges"].T
    if ((out["edges"] < 0) | (out["edges"] >= n_nodes)).any():
        raise ValueError("edges of the state must join nodes that there are")
    place = children.astype(np.int64) * n_nodes + parents
    if (np.diff(place) <= 0).any():
        raise ValueError("edges of the state must be sorted by child and parent, each once")
    if (order[parents] <= order[children]).any():
        raise ValueError("edges of the state must come from nodes of higher order")
    if (np.bincount(parents, minlength=n_nodes)[n_observed:] < 1).any():
        raise ValueError("edges of the state must give every hidden node a child")
    out["weights"] = checked_floats(state, "weights", (len(parents),))
    out["biases"] = checked_floats(state, "biases", (n_nodes,))
    out["unit_precision"] = checked_floats(state, "unit_precision", (n_nodes,), positive=True)
    if (out["biases"][~prior.has_law(n_nodes)] != 0).any():
        raise ValueError("biases of the state must be 0 for inputs")
    if (out["unit_precision"][~prior.has_precision(n_nodes)] != 1).any():
        raise ValueError("unit_precision of the state must be 1 for inputs and latents")
    out["hyper"] = checked_floats(state, "hyper", (len(HYPER),), positive=True)
    for given, value in zip(prior.given, out["hyper"], strict=True):
        if given is not None and given != value:
            raise ValueError("hyper of the state must be that of the prior where it is given")
    if not draw:
        shape = {"visible": n_observed, "pre_activations": n_nodes - n_observed}
        for name, width in shape.items():
            out[name] = checked_floats(state, name, (n_samples, width), largest=_LARGEST)
    elif "pre_activations" in state:
        shape = (n_samples, n_nodes - n_observed)
        out["pre_activations"] = checked_floats(state, "pre_activations", shape)
    return out
