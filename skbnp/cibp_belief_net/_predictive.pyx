"""What one draw of the belief network says of rows: samples, densities, missing entries, means.

Rows stand as pre-activations A_0 (n_rows, n_features) with NaN where an entry is missing;
"sigmoid" visible units report expectations of s(a) = tanh(a / 2), "gaussian" ones of a. Given the
hidden activations u the observed entries of a row have the log density
    const + T'u - 1/2 u'S u,   S = W diag(nu) W',   T = W diag(nu) (a - b),
over the observed visible units alone, W (n_hidden, n_features); rows with the same missing
entries share S.

With row clusters the law of the top layer is a mixture, here ``components``: log weights (C,),
means and precisions (C, K). Nothing of a draw is changed, and a row's random numbers depend on
seed, t and the row's own values alone: the functions may be called from several threads on any
blocks, and a row's answer is the same in any company, up to the rounding of matrix products.
"""

import numpy as np

from skbnp.cibp_belief_net._draw_network cimport DrawNetwork, Moments

from skbnp.cibp_belief_net._expansion import (
    N_IMPORTANCE, PROPOSALS, component_shares, expanded_moments, importance, laplace,
)
from skbnp.cibp_belief_net._inner_chain import annealed, sampled
from skbnp.cibp_belief_net._predictive_laws import (
    from_the_top, has_row_clusters, labels_of, means_given_fantasies,
)
from skbnp.likelihoods.nonlinear_gaussian._fantasies import Fantasies, Noise
from skbnp.likelihoods.nonlinear_gaussian._leaf_network import FEW_FEATURES, LeafNetwork
from skbnp.likelihoods.nonlinear_gaussian._modes import N_STARTING, around_modes
from skbnp.likelihoods.nonlinear_gaussian._particles import Particles
from skbnp.numerics.rows import patterns, row_keys

# Fantasies of a draw, and points around modes where few of them are near a row.
N_FANTASIES, N_POINTS = 2000, 64
# Points around modes, of a half, below which they are not trusted; and what tells seeds apart.
FEWEST, ANNEALED = 5.0, 1 << 40
# Points around modes of all hidden layers of many features, their share in densities that annealing
# has the rest of, and units up to which modes are sought.
N_POINTS_OF_ALL, SHARE_OF_POINTS, MOST_UNITS = 200, 0.1, 128


def _own_component(draw):
    """The law of a single hidden layer without row clusters, as a mixture of one component."""
    D = draw["widths"][0]
    return (
        np.zeros(1), np.array(draw["biases"][np.newaxis, D:]),
        np.array(draw["unit_precision"][np.newaxis, D:]),
    )


def fantasies_of(draw, seed, t=0, components=None, n_fantasies=N_FANTASIES):
    """The network with fantasies that rows are compared with; None where they would not do.

    That is with many features, and without hidden units, where answers are exact.
    """
    widths = np.asarray(draw["widths"])
    cdef Py_ssize_t D = widths[0], n_units = widths.sum()
    if D > FEW_FEATURES or len(widths) == 1:
        return None
    noise = Noise(int(np.random.default_rng([seed, t]).integers(2**62)), n_fantasies)
    # Those of a component follow one another: every second one is in a half.
    halves = np.r_[0:n_fantasies:2, 1:n_fantasies:2]
    mean = means_given_fantasies(draw, 0, noise, components)
    of_units = np.vstack([noise.of(m, widths[m]) for m in range(1, len(widths))])
    component = None if components is None else labels_of(components[0], noise)[halves]
    return LeafNetwork(
        draw["edges"], draw["weights"], draw["biases"], draw["unit_precision"],
        np.arange(D, n_units)[::-1], mean[:, halves], of_units[::-1, halves], components, component,
    )


def imputed_moments(draw, A, visible, seed, t=0, components=None, n_burn_in=10,
                    n_kept=20, n_samples=8, fantasies=None):
    """Posterior mean and variance of missing entries under one draw.

    By ``fantasies``, those of ``fantasies_of``, for "gaussian" units, and points around modes where
    few of them are near a row; otherwise by an inner chain of ``n_burn_in`` + ``n_kept`` passes, or
    with ``components`` and one hidden layer by Laplace's approximation of each component,
    ``n_samples`` draws around its mode.
    About 0.7 ms per row by expansions (64 features, 20 units, 42 clusters), .5 ms by a chain.

    Parameters
    ----------
    draw : dict
        A network; nothing of it is changed.
    A : array of shape (n_rows, n_features)
        Visible pre-activations, NaN where missing.
    visible : {"gaussian", "sigmoid"}
        Whether they are those of a or of s(a), over the unit's own noise as well.
    seed, t : int
        Random numbers of a row depend on seed, t and the row's values alone.
    components : tuple, default=None
        ``cluster_components`` where the draw has row clusters, or ``row_components``.

    Returns
    -------
    mean, variance : array of shape (n_rows, n_features)
        0 where an entry is observed.
    """
    A = np.ascontiguousarray(A, dtype=np.float64)
    if fantasies is not None and visible == "gaussian":
        return fantasies.moments(A, seed, t, N_POINTS)
    net = DrawNetwork(draw, components)
    moments = Moments(net, visible)
    if net.n_layers == 1 and net.n_components > 0:
        return expanded_moments(net, A, moments, seed, t, n_samples)
    if net.n_layers > 0:
        return sampled(
            net, A, draw["activations"], moments, 0, seed, t, n_burn_in, n_kept
        )
    return _independent_moments(net, moments, A)


def _independent_moments(DrawNetwork net, Moments moments, A):
    """Moments where there are no hidden units."""
    cdef double[:, ::1] both = np.zeros((2, net.n_features))
    cdef const Py_ssize_t[::1] every = np.arange(net.n_features)
    moments.add(0.0, 1.0, NULL, every, &both[0, 0], &both[1, 0])
    missing = np.isnan(A)
    return tuple(np.where(missing, one, 0.0) for one in np.asarray(both))


def log_densities(draw, A, seed, t=0, components=None, **options):
    """log p(observed entries of each row | draw), (n_rows,): the first of ``judged_densities``."""
    return judged_densities(draw, A, seed, t, components, **options)[0]


def judged_densities(draw, A, seed, t=0, components=None, method="auto",
                     n_temperatures=150, n_particles=4, n_importance=N_IMPORTANCE,
                     proposals=PROPOSALS, fantasies=None):
    """log p(observed entries of each row | draw) in the space of pre-activations, (n_rows,).

    And the inverse of how many particles of annealing, or points with them, it rests on, (n_rows,),
    0 where there are none: near 1 it rests on one, and is low by half a nat or more.

    exp of either method is unbiased, so each is low on average and integrates to one.
    "importance", for one hidden layer, samples (component, a) around the modes that are found
    from the components' means and from the best of 128 draws of the prior, and from the prior,
    ``n_importance`` points in all, as ``proposals`` says; for more layers without row clusters
    all their noises, as ``densities_around_modes`` does. "ais" is annealed importance sampling
    from the network's prior; any depth. With row clusters each particle stays in a component, drawn
    from Laplace's shares.
    "auto" is the first for one hidden layer; without row clusters annealing takes the place of half
    the points where of the other half fewer than 5 count. For more layers it is nine tenths of
    annealing's density and a tenth of the points': with little noise the former is too low by tens
    of nats and more, and with many units the latter by some. With row clusters, or more than 128
    units, it is annealing alone. Without hidden units
    both are exact; a row without entries has log density 0. With ``fantasies``, those of
    ``fantasies_of``, "auto" is the mean over them or, where few are near a row, over N_POINTS
    points around its modes.

    The other parameters are those of ``imputed_moments``.
    """
    if method not in ("auto", "importance", "ais"):
        raise ValueError(f"method must be 'auto', 'importance' or 'ais', got {method!r}")
    n_layers = len(draw["widths"]) - 1
    A = np.ascontiguousarray(A, dtype=np.float64)
    share = np.zeros(len(A))
    if method == "auto" and fantasies is not None:
        return fantasies.log_densities(A, seed, t, N_POINTS)[0], share
    sampling = method != "ais" and n_layers == 1
    if sampling and components is None and not has_row_clusters(draw):
        components = _own_component(draw)
    net = DrawNetwork(draw, components)
    base = net.log_density_without_units(A)
    if n_layers == 0:
        return base, share
    if sampling:
        halves, n_effective = importance(net, A, seed, t, n_importance, proposals)
        if method == "auto" and net.n_components == 1:
            _anneal_few(net, A, halves, n_effective, share, seed, t, n_temperatures, n_particles)
        return base + np.logaddexp(halves[:, 0], halves[:, 1]) - np.log(2.0), share
    if method == "importance":
        if net.n_components > 0:
            raise ValueError(
                f"method 'importance' with row clusters needs one hidden layer, got {n_layers}"
            )
        return densities_around_modes(draw, A, seed, t)[0], share
    log_share = None
    if net.n_components > 0:
        log_share = component_shares(_flattened(draw, components, seed, t), A)
    found, share = annealed(net, A, log_share, seed, t, n_temperatures, n_particles)
    found += base
    if method == "auto" and net.n_components == 0 and np.sum(draw["widths"][1:]) <= MOST_UNITS:
        return _mean_of(found, share, *densities_around_modes(draw, A, seed, t))
    return found, share


def densities_around_modes(draw, A, seed, t=0, n_points=N_POINTS_OF_ALL, near=None):
    """log p(observed entries of each row | draw) and how many points it rests on, (n_rows,).

    By importance sampling of the noises of all hidden units, without row clusters. The modes are
    sought from fantasies, or next to ``near`` (n_rows, n_units), pre-activations of all units given
    the rows. exp of the density is unbiased.
    """
    A = np.ascontiguousarray(A, dtype=np.float64)
    n_units = len(draw["biases"])
    net, key = {**draw, "order": np.arange(n_units)}, row_keys(A)
    noise = np.random.default_rng([seed, t]).standard_normal((n_units, N_STARTING))
    nothing = np.empty(0, dtype=np.intp)
    # Exact for rows whose entries have no hidden ancestors.
    found, n_effective = DrawNetwork(draw).log_density_without_units(A), np.ones(len(A))
    for rows in patterns(A):
        particles = Particles(net, ~np.isnan(A[rows[0]]))
        if particles.random:
            found[rows], n_effective[rows], *_ = around_modes(
                particles, A[rows], key[rows], noise, seed, t, n_points, nothing, 0,
                None if near is None else near[rows],
            )
    return found, n_effective


def _mean_of(particles, share, points, n_effective):
    """A mean of two estimates of densities, and the inverse of how many samples it rests on."""
    particles = particles + np.log(1.0 - SHARE_OF_POINTS)
    total = np.logaddexp(particles, points + np.log(SHARE_OF_POINTS))
    p = np.exp(particles - np.maximum(total, -np.finfo(float).max))
    return total, p**2 * share + (1.0 - p) ** 2 / n_effective


def _anneal_few(net, A, halves, n_effective, share, seed, t, n_temperatures, n_particles):
    """Annealing in place of half the points where in the other half few count.

    Each half is judged by the other: by itself it would stay where it happens to be high.
    """
    few = n_effective[:, ::-1] < FEWEST
    rows = np.flatnonzero(few.any(axis=1))
    if len(rows):
        # By other random numbers than those of the points, which have chosen these rows.
        found, share[rows] = annealed(
            net, A[rows], np.zeros((len(rows), 1)), seed ^ ANNEALED, t, n_temperatures, n_particles
        )
        halves[rows] = np.where(few[rows], found[:, np.newaxis], halves[rows])


def densities_by_fantasies(draw, A, noise, components=None):
    """log p(observed entries of each row | draw) and how many fantasies it rests on, (n_rows,).

    exp of it is unbiased over the numbers of ``noise``. For few features.
    """
    mean = means_given_fantasies(draw, 0, noise, components)
    return Fantasies(mean, draw["unit_precision"][:draw["widths"][0]]).log_densities(A)


def densities_by_laplace(draw, A, noise, components=None):
    """log p(observed entries of each row | draw), roughly: Laplace's approximation, (n_rows,).

    It is one of the first hidden layer, whose law is a mixture of as many components as there are
    fantasies of the layers above. No visible unit may have parents there.
    """
    A = np.ascontiguousarray(A, dtype=np.float64)
    D, M = draw["widths"][0], len(draw["widths"]) - 1
    if M == 0:
        return DrawNetwork(draw).log_density_without_units(A)
    if M == 1:
        net = DrawNetwork(draw, _own_component(draw) if components is None else components)
        return net.log_density_without_units(A) + laplace(net, A)
    mean = means_given_fantasies(draw, 1, noise, components).T
    precision = draw["unit_precision"][D:D + draw["widths"][1]]
    shared = np.full(len(mean), -np.log(len(mean))), mean, np.tile(precision, (len(mean), 1))
    net = DrawNetwork(_first_hidden_layer(draw), shared)
    return net.log_density_without_units(A) + laplace(net, A)


def _first_hidden_layer(draw):
    """The network without its other layers."""
    D, K = draw["widths"][:2]
    kept = (draw["edges"][:, 1] < D) & (draw["edges"][:, 0] < D + K)
    return {
        "widths": draw["widths"][:2], "edges": draw["edges"][kept],
        "weights": draw["weights"][kept], "biases": draw["biases"][:D + K],
        "unit_precision": draw["unit_precision"][:D + K],
    }


def expected_activations(draw, A, layer, seed, t=0, components=None, n_burn_in=50,
                         n_kept=80, n_samples=8):
    """Posterior mean of u of hidden layer ``layer`` = 1.. given each row, (n_rows, K_layer).

    Parameters are those of ``imputed_moments``, and so is the way it is done.
    """
    n_layers = len(draw["widths"]) - 1
    if not 1 <= layer <= n_layers:
        raise ValueError(f"layer must be in 1..{n_layers}, the draw's hidden layers, got {layer}")
    A = np.ascontiguousarray(A, dtype=np.float64)
    net = DrawNetwork(draw, components)
    if n_layers == 1 and net.n_components > 0:
        return expanded_moments(net, A, None, seed, t, n_samples)[0]
    return sampled(net, A, draw["activations"], None, layer, seed, t, n_burn_in, n_kept)[0]


def sample_rows(draw, n_rows, generator, components=None):
    """Rows of the network's own from the top layer down: visible pre-activations, (n_rows, D).

    With row clusters give fresh ``components`` or all new rows share one new cluster. ``generator``
    is a numpy.random.Generator. "sigmoid" units are s of what is returned.
    """
    label = None
    if components is not None and len(draw["widths"]) > 1:
        weight = np.exp(components[0])
        label = generator.choice(len(weight), size=n_rows, p=weight / weight.sum())
    a = from_the_top(draw, n_rows, generator, components, label)
    return np.ascontiguousarray(a[:, :draw["widths"][0]])


def _flattened(draw, components, seed, t, n_samples=200):
    """All hidden layers as one: a DrawNetwork whose components have the moments of each component's
    own samples from the top layer down.
    """
    log_weight, mean, precision = components
    widths, n_components = draw["widths"], len(log_weight)
    visible = draw["edges"][:, 1] < widths[0]
    flat = {
        "widths": np.array([widths[0], widths[1:].sum()]), "edges": draw["edges"][visible],
        "weights": draw["weights"][visible], "biases": draw["biases"],
        "unit_precision": draw["unit_precision"],
    }
    if len(widths) > 2:
        generator = np.random.default_rng([seed, t])
        label = np.repeat(np.arange(n_components), n_samples)
        a = from_the_top(draw, len(label), generator, components, label)[:, widths[0]:]
        a = a.reshape(n_components, n_samples, -1)
        mean, precision = a.mean(axis=1), 1.0 / a.var(axis=1)
    return DrawNetwork(flat, (log_weight, mean, precision))
