"""The belief network's prior, its joint density in plain NumPy, and checks of states.

``log_joint`` is slow and readable on purpose: it is what the compiled sampler is tested against.

A state is a dict of arrays. Its units are numbered layer by layer, the D visible ones (layer 0)
first; U are all units, M is the number of hidden layers, none of them empty.

==================  ===========  ==========================================================
widths              (M + 1,)     K_0 = D, K_1, ..., K_M
edges               (E, 2)       [parent, child], sorted by child, then parent
weights             (E,)         W
biases              (U,)         b
unit_precision      (U,)         nu
mass                (M + 1,)     alpha of the restaurant whose customers are the layer's units
concentration       (M + 1,)     beta
weight_mean         (M + 1,)     mu_w of the layer's units as children
weight_precision    (M + 1,)     rho_w
bias_mean           (M + 1,)     mu_b
bias_precision      (M + 1,)     rho_b
noise_rate          (M + 1,)     b_nu
visible             (N, D)       a of the visible units, missing cells filled
pre_activations     (N, U - D)   a of the hidden units
==================  ===========  ==========================================================

With row clusters, further; the units of layer ``max_layers`` then have bias 0 and precision 1 in
the arrays above, which mean nothing, and their number below is K, 0 if there is no such layer:

==================  ===========  ==========================================================
row_cluster         (N,)         z
cluster_mean        (C, K)       m
cluster_precision   (C, K)       nu of the cluster
cluster_rate        (K,)         s
==================  ===========  ==========================================================
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import betaln, digamma, gammainc, gammaln

from skbnp.laws import Gamma, Law, NormalGamma, Uniform
from skbnp.numerics.rng import sample_truncated_gamma
from skbnp.numerics.states import checked_array, checked_floats
from skbnp.processes import crp, ibp

HYPER = (
    *("mass", "concentration", "weight_mean", "weight_precision"),
    *("bias_mean", "bias_precision", "noise_rate"),
)
# The law of a layer's rate of the noise, where it has one.
NOISE_RATE_LAW = Gamma
# Beyond this a pre-activation is no result of a chain that works.
_LARGEST = 1e100
# Draws of a structure from the prior before one within max_units is given up.
_MOST_STRUCTURES = 200


@dataclass(frozen=True)
class Prior:
    """Hyperparameters of the belief network.

    ``mass`` and ``concentration`` have for each layer a number, where it is given, or a law; the
    last serves all layers above. ``weight_prior`` and ``bias_prior`` are laws of a layer's mean and
    precision. ``noise_precision`` is that of units: a layer has their rate, which is given or has a
    law in turn. ``cluster_prior`` is (kappa, shape) of the clusters' normal-gamma law and (shape,
    rate) of its rate's prior.
    """

    n_features: int
    max_layers: int | None = 3
    max_units: int = 2000
    mass: tuple[float | Uniform, ...] = (Uniform(0, 20), Uniform(0, 2))
    concentration: tuple[float | Uniform, ...] = (Uniform(0, 20), Uniform(0, 2))
    weight_prior: NormalGamma = NormalGamma(0, 1, 2, 2)
    bias_prior: NormalGamma = NormalGamma(0, 1, 2, 2)
    noise_precision: Gamma = Gamma(1, Gamma(1, 1))
    highest_precision: float = 1e4
    skip_connections: bool = False
    row_clusters: bool = False
    row_concentration: float = 5.0
    cluster_prior: tuple[float, float, float, float] = (0.2, 2.0, 1.0, 1.0)

    @property
    def deepest(self):
        """The last layer that there may be."""
        return self.max_units if self.max_layers is None else self.max_layers

    def bounds(self, name, layer):
        """Where a layer's mass or concentration lies; a single point where it is given."""
        laws = getattr(self, name)
        law = laws[min(layer, len(laws) - 1)]
        return (law.low, law.high) if isinstance(law, Uniform) else (law, law)

    @classmethod
    def from_data(cls, data):
        """The prior of a file, of any version."""
        return cls(**laws_of_file(data))


def laws_of_file(old):
    """Hyperparameters of a file by name; in version 0.1 laws were numbers beside them."""
    if "max_depth" not in old:
        return old
    new = dict(old)
    new["max_layers"] = new.pop("max_depth")
    for name in ("mass", "concentration"):
        bounds = new.pop(f"{name}_bounds")
        if new[name] is None or isinstance(new[name], str):
            new[name] = tuple(Uniform(*pair) for pair in bounds)
    for name in ("weight_prior", "bias_prior"):
        new[name] = NormalGamma(*new[name])
    shape, *rate = new.pop("noise_prior")
    new["noise_precision"] = Gamma(shape, Gamma(*rate))
    return new


# -- the law ----------------------------------------------------------------------------------


def dishes_per_mass(n, concentration):
    """Expected number of dishes of n customers, divided by the mass."""
    return concentration * (digamma(concentration + n) - digamma(concentration)) if n else 0.0


def layers_of(state):
    """Layer of each unit."""
    return np.repeat(np.arange(len(state["widths"])), state["widths"])


def log_structure(state, prior, ordering="unordered"):
    """Log probability of the edges given the masses and concentrations.

    ``ordering`` "labelled" gives every numbering of the hidden units its share.
    """
    widths, layer = np.asarray(state["widths"]), layers_of(state)
    parents, children = np.asarray(state["edges"]).reshape(-1, 2).T
    near = layer[parents] == layer[children] + 1
    n_near = np.bincount(parents[near], minlength=len(layer))
    n_children = np.bincount(parents, minlength=len(layer))
    total = 0.0
    for m, width in enumerate(widths):
        if m >= prior.deepest:
            break
        mass, beta = state["mass"][m], state["concentration"][m]
        dishes = np.flatnonzero(layer == m + 1)
        total += len(dishes) * np.log(mass * beta) - mass * dishes_per_mass(width, beta)
        if ordering == "labelled":
            total -= gammaln(len(dishes) + 1)
        takers, offered = n_near[dishes], width
        if (takers < 1).any():
            return -np.inf
        if prior.skip_connections:
            takers, offered = n_children[dishes], widths[: m + 1].sum()
        total += betaln(takers, offered - takers + beta).sum()
    return total


def means_of(state):
    """Mean of every unit's pre-activation given its parents', (N, U)."""
    activation = np.tanh(np.hstack([state["visible"], state["pre_activations"]]) / 2)
    mean = np.tile(state["biases"], (len(activation), 1))
    for (parent, child), weight in zip(state["edges"], state["weights"], strict=True):
        mean[:, child] += weight * activation[:, parent]
    return mean


def log_gamma_density(x, shape, rate):
    """Log densities of Gamma(shape, rate)."""
    return shape * np.log(rate) - gammaln(shape) + (shape - 1) * np.log(x) - rate * x


def log_normal(x, mean, precision):
    """Log densities of N(mean, 1 / precision)."""
    return 0.5 * (np.log(precision / (2 * np.pi)) - precision * (x - mean) ** 2)


def log_normal_gamma(mean, precision, law):
    """Log densities of a layer's mean and precision."""
    return log_gamma_density(precision, law.shape, law.rate) + log_normal(
        mean, law.location, law.kappa * precision
    )


def log_noise_rate(rate, law):
    """Log densities of layers' rates under ``noise_precision``; 0 where that gives the rate."""
    return law.rate.log_density(rate) if isinstance(law.rate, Law) else np.zeros(np.shape(rate))


def log_noise_precision(precision, rate, law, highest):
    """Log densities of units' precisions up to ``highest``, given their layers' rates."""
    log_mass = 0.0
    if np.isfinite(highest):
        log_mass = np.log(gammainc(law.shape, rate * highest))
    return log_gamma_density(precision, law.shape, rate) - log_mass


def log_joint(state, prior, terms=False, ordering="unordered"):
    """log p(A, state), normalised, of the pre-activations ``visible`` as they are.

    Parameters
    ----------
    state : dict
        As this module's docstring has it.
    prior : Prior
    terms : bool, default=False
        Return a dict of the terms instead of their sum.
    ordering : {"unordered", "labelled"}
        Hidden units as a set, or numbered at random.
    """
    layer, n_layers = layers_of(state), len(state["widths"])
    hyper = {name: np.asarray(state[name]) for name in HYPER}
    child = np.asarray(state["edges"]).reshape(-1, 2)[:, 1]
    a = np.hstack([state["visible"], state["pre_activations"]])
    own_law = np.ones(len(layer), dtype=bool)
    if prior.row_clusters:
        own_law = layer < prior.max_layers
    parts = {
        "hyper": np.sum(
            log_normal_gamma(hyper["weight_mean"], hyper["weight_precision"], prior.weight_prior)
            + log_normal_gamma(hyper["bias_mean"], hyper["bias_precision"], prior.bias_prior)
            + log_noise_rate(hyper["noise_rate"], prior.noise_precision)
        ),
        "structure": log_structure(state, prior, ordering),
        "weights": log_normal(
            state["weights"],
            hyper["weight_mean"][layer[child]],
            hyper["weight_precision"][layer[child]],
        ).sum(),
    }
    for name in ("mass", "concentration"):
        bounds = [prior.bounds(name, m) for m in range(n_layers)]
        parts["hyper"] -= np.sum(np.log([high - low for low, high in bounds if low < high]))
    of, nu = layer[own_law], state["unit_precision"][own_law]
    b, rate = state["biases"][own_law], hyper["noise_rate"][of]
    parts["biases"] = log_normal(b, hyper["bias_mean"][of], hyper["bias_precision"][of]).sum()
    parts["precisions"] = log_noise_precision(
        nu, rate, prior.noise_precision, prior.highest_precision
    ).sum()
    mean = means_of(state)[:, own_law]
    parts["activations"] = log_normal(a[:, own_law], mean, nu).sum()
    if prior.row_clusters:
        z = np.asarray(state["row_cluster"])
        kappa, shape, *cluster_rate_prior = prior.cluster_prior
        s, m, nu = (state[f"cluster_{name}"] for name in ("rate", "mean", "precision"))
        parts["row_clusters"] = crp.log_prob(z, prior.row_concentration) if len(z) else 0.0
        parts["clusters"] = (
            log_gamma_density(s, *cluster_rate_prior).sum()
            + log_gamma_density(nu, shape, s).sum()
            + log_normal(m, 0.0, kappa * nu).sum()
        )
        parts["activations"] += log_normal(a[:, ~own_law], m[z], nu[z]).sum()
    return parts if terms else sum(parts.values())


# -- draws from the prior ---------------------------------------------------------------------


def draw_joint(prior, n_samples, rng):
    """One draw of the whole state from the prior, ``visible`` included.

    rng is a numpy.random.Generator. Structures beyond ``max_units`` are thrown away with their
    hyperparameters, as the law is truncated jointly.
    """
    for _ in range(_MOST_STRUCTURES):
        state = _draw_structure(prior, rng)
        if state is not None:
            break
    else:
        raise ValueError(
            f"max_units must leave room for networks of the prior, got {prior.max_units}: of "
            f"{_MOST_STRUCTURES} draws all had more; lower the mass"
        )
    layer = layers_of(state)
    n_units = len(layer)
    hyper = {name: state[name] for name in HYPER}
    child = layer[state["edges"][:, 1]]
    state["weights"] = rng.normal(
        hyper["weight_mean"][child], hyper["weight_precision"][child] ** -0.5
    )
    state["biases"] = rng.normal(hyper["bias_mean"][layer], hyper["bias_precision"][layer] ** -0.5)
    state["unit_precision"] = np.array(
        [_draw_precision(prior, hyper["noise_rate"][m], rng) for m in layer]
    )
    top = np.zeros(n_units, dtype=bool)
    a = np.zeros((n_samples, n_units))
    if prior.row_clusters:
        top = layer == prior.max_layers
        a[:, top] = _draw_clusters(state, prior, n_samples, top.sum(), rng)
        state["biases"][top], state["unit_precision"][top] = 0.0, 1.0
    matrix = np.zeros((n_units, n_units))
    matrix[tuple(state["edges"].T)] = state["weights"]
    for unit in range(n_units - 1, -1, -1):
        if not top[unit]:
            mean = state["biases"][unit] + np.tanh(a / 2) @ matrix[:, unit]
            a[:, unit] = rng.normal(mean, state["unit_precision"][unit] ** -0.5)
    n_visible = prior.n_features
    state["visible"], state["pre_activations"] = a[:, :n_visible], a[:, n_visible:]
    return state


def _draw_precision(prior, rate, rng):
    return sample_truncated_gamma(
        rng.bit_generator, prior.noise_precision.shape, rate, prior.highest_precision, 1
    )[0]


def _draw_hyper(prior, layer, rng):
    """A layer's hyperparameters, by name."""
    out = {name: rng.uniform(*prior.bounds(name, layer)) for name in ("mass", "concentration")}
    for of, law in (("weight", prior.weight_prior), ("bias", prior.bias_prior)):
        rho = max(rng.gamma(law.shape, 1 / law.rate), 1e-300)
        out[f"{of}_mean"] = rng.normal(law.location, (law.kappa * rho) ** -0.5)
        out[f"{of}_precision"] = rho
    rate = prior.noise_precision.rate
    out["noise_rate"] = rate.sample(random_state=rng) if isinstance(rate, Law) else rate
    return out


def typical_noise_rate(prior, precision):
    """The rate of a layer of units with these precisions, to start a chain from."""
    law = prior.noise_precision
    return law.shape / np.mean(precision) if isinstance(law.rate, Law) else law.rate


def _draw_structure(prior, rng):
    """Widths, edges and hyperparameters; None beyond ``max_units``."""
    widths, edges, layers = [prior.n_features], [], [_draw_hyper(prior, 0, rng)]
    below = np.arange(prior.n_features)  # the customers
    n_units = prior.n_features
    while len(widths) <= prior.deepest:
        m, mass, beta = len(widths) - 1, layers[-1]["mass"], layers[-1]["concentration"]
        dishes = ibp.sample(len(below), mass, beta, random_state=rng)
        takers = dishes.sum(axis=0, dtype=np.intp).tolist()
        near = [(n_units + i, below[j]) for j, i in zip(*np.nonzero(dishes), strict=True)]
        if not takers:
            break
        if n_units + len(takers) - prior.n_features > prior.max_units:
            return None
        edges += near
        if prior.skip_connections:
            lower = np.arange(n_units - widths[-1])
            for i, count in enumerate(takers):
                n_seen = widths[-1]
                for customer in rng.permutation(lower):
                    if rng.random() < count / (n_seen + beta):
                        edges.append((n_units + i, customer))
                        count += 1
                    n_seen += 1
        widths.append(len(takers))
        below = np.arange(n_units, n_units + len(takers))
        n_units += len(takers)
        layers.append(_draw_hyper(prior, m + 1, rng))
    edges = np.array(sorted(edges, key=lambda edge: edge[::-1]), dtype=np.int32).reshape(-1, 2)
    hyper = {name: np.array([layer[name] for layer in layers]) for name in HYPER}
    return {"widths": np.array(widths, dtype=np.intp), "edges": edges, **hyper}


def _draw_clusters(state, prior, n_samples, width, rng):
    """Put row clusters into the state; returns the top units' pre-activations."""
    kappa, shape, rate_shape, rate_rate = prior.cluster_prior
    z = np.zeros(0, dtype=np.intp)
    if n_samples:
        z = crp.sample(n_samples, prior.row_concentration, random_state=rng)
    n_clusters = z.max(initial=-1) + 1
    s = rng.gamma(rate_shape, 1 / rate_rate, size=width)
    nu = np.maximum(rng.gamma(shape, 1 / s, size=(n_clusters, width)), 1e-300)
    m = rng.normal(0.0, (kappa * nu) ** -0.5)
    state |= {
        "row_cluster": z, "cluster_mean": m, "cluster_precision": nu, "cluster_rate": s,
    }  # fmt: skip
    return rng.normal(m[z], nu[z] ** -0.5)


# -- states from outside ----------------------------------------------------------------------


def checked_state(state, prior, n_samples, draw=False):
    """The state with its arrays converted; raises ValueError for one that does not fit.

    A ``draw`` has the activations of some rows alone, and the number of rows of every cluster.
    """
    widths = checked_array(state, "widths", (-1,), "iu", np.intp)
    n_layers, n_visible = len(widths), prior.n_features
    if not n_layers or widths[0] != n_visible or (widths < 1).any():
        raise ValueError(f"widths of the state must be {n_visible} and then positive")
    n_hidden = int(widths[1:].sum())
    if n_layers - 1 > prior.deepest or n_hidden > prior.max_units:
        raise ValueError("widths of the state must keep to max_layers and max_units")
    n_units = n_visible + n_hidden
    layer = np.repeat(np.arange(n_layers), widths)
    out = {"widths": widths, "edges": checked_array(state, "edges", (-1, 2), "iu", np.int32)}
    parents, children = out["edges"].T
    if ((out["edges"] < 0) | (out["edges"] >= n_units)).any():
        raise ValueError("edges of the state must join units that there are")
    place = children.astype(np.int64) * n_units + parents
    if (np.diff(place) <= 0).any():
        raise ValueError("edges of the state must be sorted by child and parent, each once")
    step = layer[parents] - layer[children]
    if (step < 1).any() or (not prior.skip_connections and (step > 1).any()):
        raise ValueError("edges of the state must come from the layer above")
    near = np.bincount(parents[step == 1], minlength=n_units)
    if (near[n_visible:] < 1).any():
        raise ValueError("edges of the state must give every hidden unit a child one layer below")
    out["weights"] = checked_floats(state, "weights", (len(parents),))
    out["biases"] = checked_floats(state, "biases", (n_units,))
    out["unit_precision"] = checked_floats(state, "unit_precision", (n_units,), positive=True)
    # Units whose activations are those of row clusters have no noise of their own.
    own = layer < prior.max_layers if prior.row_clusters else slice(None)
    if (out["unit_precision"][own] > prior.highest_precision).any():
        raise ValueError("unit_precision of the state must keep to its bound")
    for name in HYPER:
        out[name] = checked_floats(state, name, (n_layers,), positive=not name.endswith("mean"))
    for name in ("mass", "concentration"):
        bounds = np.array([prior.bounds(name, m) for m in range(n_layers)])
        if ((out[name] < bounds[:, 0]) | (out[name] > bounds[:, 1])).any():
            raise ValueError(f"{name} of the state must lie within its bounds")
    rate = prior.noise_precision.rate
    if not isinstance(rate, Law) and (out["noise_rate"] != rate).any():
        raise ValueError("noise_rate of the state must be the one that is given")
    if draw:
        out["activations"] = checked_floats(state, "activations", (-1, n_hidden))
    else:
        shape = {"visible": n_visible, "pre_activations": n_hidden}
        for name, width in shape.items():
            out[name] = checked_floats(state, name, (n_samples, width), largest=_LARGEST)
    if prior.row_clusters:
        _check_clusters(state, out, prior, n_samples, draw)
    return out


def _check_clusters(state, out, prior, n_samples, draw):
    widths = out["widths"]
    width = int(widths[-1]) if len(widths) == prior.max_layers + 1 else 0
    z = checked_array(state, "row_cluster", (n_samples,), "iu", np.intp)
    # Out of range first: bincount refuses negative labels, and a huge one takes all memory.
    in_range = ((z >= 0) & (z < len(z))).all()
    count = np.bincount(z) if z.size and in_range else np.zeros(0, dtype=np.intp)
    if not in_range or (count < 1).any():
        raise ValueError("row_cluster of the state must number the clusters without a gap")
    out["row_cluster"] = z
    out["cluster_mean"] = checked_floats(state, "cluster_mean", (len(count), width))
    out["cluster_precision"] = checked_floats(state, "cluster_precision", (len(count), width), True)
    out["cluster_rate"] = checked_floats(state, "cluster_rate", (width,), positive=True)
    if draw:
        out["cluster_count"] = checked_array(state, "cluster_count", (len(count),), "iu", np.intp)
        if not np.array_equal(out["cluster_count"], count):
            raise ValueError("cluster_count of the state must count the rows of every cluster")
