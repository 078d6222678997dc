"""Cascading Indian buffet process: layers of units of random width, in random number.

The units of layer m = 0 (visible, given), 1, 2, ... are the customers of restaurant m, an Indian
buffet process with ``mass[m]`` and ``concentration[m]``; the dishes that they take, their parents,
are the units of layer m + 1. The first layer without units ends the process, which comes with
probability one, though for masses above about 1.5 only after very many layers; restaurants
m >= ``max_depth`` are closed. So the widths are a Markov chain,
K_{m+1} | K_m ~ Poisson(mass c sum_{j=1}^{K_m} 1 / (c + j - 1)).

``mass`` and ``concentration`` are numbers, or sequences of one for each restaurant, of which the
last holds for all deeper ones.

With ``skip_connections`` (an extension of ours in the spirit of Dallaire et al.) every unit of
layer l offers itself to the units of layers 0, ..., l - 2 too, after all layers are drawn. They go
on as the next customers of its restaurant, with the same rule, but bring no new dishes.

References
----------
- Adams, Wallach & Ghahramani (2010), "Learning the structure of deep sparse graphical models",
  AISTATS.
- Dallaire, Giguere & Chaib-draa (2014), "Learning the structure of probabilistic graphical models
  with an extended cascading Indian buffet process", AAAI.
- Grassmann, Taksar & Heyman (1985), "Regenerative analysis and steady state distributions for
  Markov chains", Operations Research 33.
"""

from skbnp.processes.ibp cimport dishes_per_mass, log_dish

import warnings

import numpy as np
from scipy.special import gammaln, xlogy

from skbnp.numerics.rng import as_generator
from skbnp.processes import ibp
from skbnp.processes._checks import as_binary, as_count, as_numbers, as_option

__all__ = [
    "depth_cdf",
    "expected_depth",
    "expected_units",
    "expected_widths",
    "log_prob",
    "sample",
    "var_depth",
]

# Layers at which a sample without max_depth gives up, and the largest widths whose law is computed.
_DEEPEST = 1000
_WIDEST = 4000


# -- checks of what the user gives ------------------------------------------------------------


def _restaurants(mass, concentration, max_depth):
    """(mass, c) of the restaurants that differ, arrays of one length, and max_depth, checked."""
    parameters = []
    for name, value in (("mass", mass), ("concentration", concentration)):
        value = np.atleast_1d(as_numbers(name, value))
        if value.ndim != 1 or value.size == 0:
            raise ValueError(
                f"{name} must be a number or one for each restaurant, got shape {value.shape}"
            )
        if not (value > 0.0).all():
            raise ValueError(f"{name} must be > 0, got {value.min()}")
        parameters.append(value)
    length = max(value.size for value in parameters)
    if max_depth is not None:
        max_depth = as_count("max_depth", max_depth, least=0)
    return *(np.pad(v, (0, length - v.size), "edge") for v in parameters), max_depth


def _layers(Zs):
    """The non-empty matrices and the number of visible units, checked."""
    Zs = [as_binary(f"Zs[{m}]", Z) for m, Z in enumerate(Zs)]
    if not Zs:
        raise ValueError(
            "Zs must hold at least one matrix; no hidden layer is [np.zeros((n_visible, 0))]"
        )
    n_visible = Zs[0].shape[0]
    if n_visible == 0:
        raise ValueError("Zs[0] must have at least one row")
    for m in range(1, len(Zs)):
        if Zs[m].shape[0] != Zs[m - 1].shape[1]:
            raise ValueError(
                f"Zs[{m}] must have a row for each column of Zs[{m - 1}], "
                f"{Zs[m - 1].shape[1]}, got {Zs[m].shape[0]}"
            )
    for m, Z in enumerate(Zs):
        if not Z.any(axis=0).all():
            raise ValueError(f"Zs[{m}] must have no empty column")
    return [Z for Z in Zs if Z.shape[1] > 0], n_visible


def _skips(skips, Zs, n_visible):
    """The matrices of skip connections of the layers, checked."""
    skips = [as_binary(f"skips[{m}]", skip) for m, skip in enumerate(skips)]
    skips = [skip for skip in skips if skip.shape[1] > 0]
    widths = [n_visible] + [Z.shape[1] for Z in Zs]
    shapes = [(sum(widths[:m]), widths[m + 1]) for m in range(len(Zs))]
    if [skip.shape for skip in skips] != shapes:
        raise ValueError(
            "skips must have a row for each unit below the layer next to its own and a column for "
            f"each unit: shapes {shapes}, got {[skip.shape for skip in skips]}"
        )
    return skips


# -- public functions: draws and their probability --------------------------------------------


def sample(
    n_visible, mass, concentration=1.0, max_depth=None, skip_connections=False, random_state=None
):
    """Draw the layers above so many visible units.

    Parameters
    ----------
    n_visible : int
        Number of visible units, at least 1.
    mass : float or array-like of shape (n_restaurants,)
        Expected number of parents of a unit, > 0. Above about 1.5 in the deeper restaurants the
        process lives for very many layers: see :func:`expected_depth`.
    concentration : float or array-like of shape (n_restaurants,), default=1.0
        Above 0; larger: wider layers, fewer children of each unit.
    max_depth : int or None, default=None
        Number of hidden layers at most: deeper restaurants are closed. None: no bound, but a
        sample gives up at 1000 layers, with a warning.
    skip_connections : bool, default=False
        Whether units have children in all layers below their own.
    random_state : None, int, RandomState or Generator, default=None
        Source of randomness.

    Returns
    -------
    Zs : list of ndarrays of shape (K_m, K_{m+1}), uint8
        ``Zs[m][j, k]`` is 1 where unit k of layer m + 1 is a parent of unit j of layer m, with
        the columns in order of arrival. The first matrix, of n_visible rows, is always there,
        without columns if there are no hidden layers; all further ones have columns.
    skips : list of ndarrays of shape (K_0 + ... + K_{m-1}, K_{m+1}), uint8
        Only with ``skip_connections``: the children of the units of layer m + 1 among those of
        layers 0, ..., m - 1, which are numbered layer by layer. So
        ``np.vstack([skips[m], Zs[m]])`` are all children of layer m + 1.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Examples
    --------
    >>> from skbnp.processes import cibp
    >>> Zs = cibp.sample(5, mass=1.0, random_state=0)
    >>> all(below.shape[1] == Z.shape[0] for below, Z in zip(Zs, Zs[1:]))
    True
    """
    n_visible = as_count("n_visible", n_visible)
    masses, cs, max_depth = _restaurants(mass, concentration, max_depth)
    generator = as_generator(random_state)
    Zs, width, m = [], n_visible, 0
    while width > 0 and m < (_DEEPEST if max_depth is None else max_depth):
        h = min(m, len(masses) - 1)
        Z = ibp.draw_arrivals(generator.bit_generator, width, masses[h], cs[h], 0.0)
        Zs.append(Z)
        width = Z.shape[1]
        m += 1
    if width > 0 and max_depth is None:
        expected = expected_depth(n_visible, masses, cs)
        warnings.warn(
            f"the sample was cut at {_DEEPEST} layers, while {expected:.3g} are expected; "
            "a max_depth makes the cut part of the process",
            RuntimeWarning, stacklevel=2,
        )
    if m == 0:
        Zs.append(np.zeros((n_visible, 0), dtype=np.uint8))
    elif m > 1 and width == 0:
        Zs.pop()
    if not skip_connections:
        return Zs
    skips, n_below = [], 0
    for m, Z in enumerate(Zs):
        c = cs[min(m, len(cs) - 1)]
        skip = np.zeros((n_below, Z.shape[1]), dtype=np.uint8)
        n_takers = Z.sum(axis=0, dtype=np.intp)
        for j in range(n_below):
            skip[j] = generator.random(Z.shape[1]) * (len(Z) + j + c) < n_takers
            n_takers += skip[j]
        skips.append(skip)
        n_below += len(Z)
    return Zs, skips


def log_prob(Zs, mass, concentration=1.0, ordering="arrival", max_depth=None, skips=None):
    """Log probability of the layers.

    Parameters
    ----------
    Zs : list of array-likes of shape (K_m, K_{m+1})
        As :func:`sample` returns them. That the layer above the last is empty is part of what
        happens, unless its restaurant is closed; an empty matrix for it may be given or left out.
    mass, concentration, max_depth
        As in :func:`sample`.
    ordering : {"arrival", "labelled", "unordered"}, default="arrival"
        What the order of the units of a layer means: see :func:`skbnp.processes.ibp.log_prob`.
        "unordered" is the one for networks whose units are told apart by their weights.
    skips : list of array-likes or None, default=None
        As :func:`sample` returns them with ``skip_connections``; None: the process without.

    Returns
    -------
    log_prob : float
        -inf for more than max_depth layers and for columns that are not in order of arrival.

    Raises
    ------
    ValueError
        If the matrices are malformed or a parameter is out of its range.

    Examples
    --------
    >>> from skbnp.processes import cibp
    >>> Z = [[1, 0], [1, 1]]
    >>> round(cibp.log_prob([Z], mass=1.0, concentration=2.0, max_depth=1), 6)
    -3.170744
    """
    masses, cs, max_depth = _restaurants(mass, concentration, max_depth)
    as_option("ordering", ordering, ("arrival", "labelled", "unordered"))
    Zs, width = _layers(Zs)
    if skips is not None:
        skips = _skips(skips, Zs, width)
    if max_depth is not None and len(Zs) > max_depth:
        return -np.inf
    cdef double total = 0.0
    cdef Py_ssize_t n_below = 0
    for m, Z in enumerate(Zs):
        h = min(m, len(masses) - 1)
        total += ibp.log_prob(Z, masses[h], cs[h], ordering=ordering)
        if skips is not None:
            for adjacent, further in zip(Z.sum(axis=0, dtype=int), skips[m].sum(axis=0, dtype=int)):
                total += log_dish(adjacent + further, n_below + len(Z), cs[h])
                total -= log_dish(adjacent, len(Z), cs[h])
        n_below += len(Z)
        width = Z.shape[1]
    if max_depth is None or len(Zs) < max_depth:
        h = min(len(Zs), len(masses) - 1)
        total -= masses[h] * dishes_per_mass(width, cs[h])
    return total


# -- public functions: widths and depth -------------------------------------------------------


def expected_widths(n_visible, n_layers, mass, concentration=1.0, max_depth=None):
    """Expected widths of the first hidden layers.

    Parameters
    ----------
    n_visible : int
        Number of visible units, at least 1.
    n_layers : int
        Number of hidden layers to tell, at least 1.
    mass, concentration, max_depth
        As in :func:`sample`, but max_depth None means no bound whatever.

    Returns
    -------
    mean : ndarray of shape (n_layers,)
        E[K_1], E[K_2], ..., an absent layer having width 0.

    Raises
    ------
    ValueError
        If a parameter is out of its range, or if layers of some 4000 units must be reckoned with.

    Examples
    --------
    >>> from skbnp.processes import cibp
    >>> cibp.expected_widths(5, 3, mass=1.0).round(4).tolist()
    [2.2833, 1.4361, 1.0014]
    """
    n_layers = as_count("n_layers", n_layers)
    chain = _Chain(n_visible, mass, concentration, max_depth)
    return np.array([p @ np.arange(len(p)) for p in chain.width_probabilities(n_layers)])


def depth_cdf(n_visible, n_layers, mass, concentration=1.0, max_depth=None):
    """Distribution of the number of hidden layers.

    Parameters
    ----------
    n_visible, n_layers, mass, concentration, max_depth
        As in :func:`expected_widths`.

    Returns
    -------
    probability : ndarray of shape (n_layers + 1,)
        P(at most m hidden layers), m = 0, ..., n_layers.

    Raises
    ------
    ValueError
        If a parameter is out of its range, or if layers of some 4000 units must be reckoned with.
    """
    n_layers = as_count("n_layers", n_layers)
    chain = _Chain(n_visible, mass, concentration, max_depth)
    return np.array([p[0] for p in chain.width_probabilities(n_layers + 1)])


def expected_depth(n_visible, mass, concentration=1.0, max_depth=None):
    """Expected number of hidden layers.

    Parameters
    ----------
    n_visible, mass, concentration, max_depth
        As in :func:`expected_widths`.

    Returns
    -------
    mean : float
        Exact also where it is astronomical.

    Raises
    ------
    ValueError
        If a parameter is out of its range, or if layers of some 4000 units must be reckoned with.

    Notes
    -----
    Hitting times of the chain of widths, whose states are cut where they have probability below
    1e-20. They are solved without subtractions (Grassmann, Taksar & Heyman 1985), O(K^3) for K
    states.

    Examples
    --------
    >>> from skbnp.processes import cibp
    >>> round(cibp.expected_depth(5, mass=1.0), 4), round(cibp.expected_depth(5, mass=3.0), 1)
    (3.5118, 911.6)
    """
    return _finite(_Chain(n_visible, mass, concentration, max_depth).totals()[0])


def var_depth(n_visible, mass, concentration=1.0, max_depth=None):
    """Variance of the number of hidden layers.

    Parameters
    ----------
    n_visible, mass, concentration, max_depth
        As in :func:`expected_widths`.

    Returns
    -------
    variance : float
        Computed as :func:`expected_depth`.

    Raises
    ------
    ValueError
        If a parameter is out of its range, or if layers of some 4000 units must be reckoned with.
    """
    return _finite(_Chain(n_visible, mass, concentration, max_depth).totals()[2])


def expected_units(n_visible, mass, concentration=1.0, max_depth=None):
    """Expected number of hidden units.

    Parameters
    ----------
    n_visible, mass, concentration, max_depth
        As in :func:`expected_widths`.

    Returns
    -------
    mean : float
        Computed as :func:`expected_depth`.

    Raises
    ------
    ValueError
        If a parameter is out of its range, or if layers of some 4000 units must be reckoned with.
    """
    return _finite(_Chain(n_visible, mass, concentration, max_depth).totals()[1])


class _Chain:
    """The Markov chain of widths K_0 = n_visible, K_1, ..., with 0 absorbing."""

    def __init__(self, n_visible, mass, concentration, max_depth):
        n_visible = as_count("n_visible", n_visible)
        masses, cs, self.max_depth = _restaurants(mass, concentration, max_depth)
        self.n_different = len(masses)
        last = len(masses) if self.max_depth is None else min(self.max_depth - 1, len(masses))
        deeper = {min(m, len(masses) - 1) for m in range(1, last + 1)}
        # Restaurant 0 has n_visible customers, each later one at most n_states - 1.
        first = masses[0] * dishes_per_mass(n_visible, cs[0])
        rates, self.n_states = [first], 0
        while self.n_states <= _far_above(max(rates)):
            self.n_states = int(_far_above(max(rates))) + 2
            if self.n_states > _WIDEST:
                raise ValueError(
                    "mass and concentration must be smaller: the law of the widths would take "
                    f"more than {_WIDEST} of them"
                )
            rates = [first] + [masses[h] * dishes_per_mass(self.n_states, cs[h]) for h in deeper]
        k = np.arange(self.n_states)
        self.start = _poisson(np.array([first]), self.n_states)[0]
        self.transitions = {
            h: _poisson(masses[h] * np.array([dishes_per_mass(j, cs[h]) for j in k]), self.n_states)
            for h in deeper
        }

    def _transition(self, m):
        """Of restaurant m >= 1: P(K_{m+1} = k | K_m = j) at [j, k]."""
        return self.transitions[min(m, self.n_different - 1)]

    def width_probabilities(self, n_layers):
        """Yield the distributions of K_1, ..., K_{n_layers}."""
        nothing = np.eye(1, self.n_states)[0]
        for m in range(n_layers):
            if self.max_depth is not None and m >= self.max_depth:
                yield nothing
                continue
            p = self.start if m == 0 else p @ self._transition(m)
            yield p

    @np.errstate(all="ignore")
    def totals(self):
        """Mean of the depth, mean of the number of hidden units and variance of the depth.

        Not finite where they are beyond floating-point numbers.
        """
        if self.max_depth == 0:
            return 0.0, 0.0, 0.0
        k = np.arange(self.n_states, dtype=np.float64)
        here = (k > 0).astype(np.float64)
        # depth, units, variance: what is to come at layer m + 1 and above, by its width k.
        if self.max_depth is None:
            last = max(self.n_different - 1, 1)
            P = self._transition(last)
            absorption = _Absorption(P)
            depth, units = absorption.expected_sum(here), absorption.expected_sum(k)
            square = absorption.expected_sum(here * (1.0 + 2.0 * (P @ depth)))
            # Of the layers after the next, whose number is spread as widely as it is large: the
            # squares hardly cancel. Above, where they would, variances add up.
            variance = here * np.maximum(P @ square - (P @ depth) ** 2, 0.0)
            above = last - 1
        else:
            depth, units, variance = here, k, np.zeros_like(k)
            above = self.max_depth - 1
        for m in range(above, 0, -1):
            P = self._transition(m)
            variance = here * _total_variance(P, depth, variance)
            depth = here * (1.0 + P @ depth)
            units = k + here * (P @ units)
        start = self.start
        variance = _total_variance(start[np.newaxis], depth, variance)[0]
        return float(start @ depth), float(start @ units), float(variance)


def _total_variance(P, mean, variance):
    """Variance, for each row of P, of a mixture in these shares."""
    off = mean - (P @ mean)[:, np.newaxis]
    return P @ variance + np.sum(P * off**2, axis=1)


def _finite(total):
    if not np.isfinite(total):
        raise ValueError(
            "mass and concentration must be smaller: the process lives for more layers than there "
            "are floating-point numbers"
        )
    return total


def _far_above(rate):
    """A number that a Poisson variable exceeds with probability below 1e-20."""
    return rate + 10.0 * np.sqrt(rate) + 30.0


def _poisson(rates, n_states):
    """Poisson probabilities of 0, ..., n_states - 1, one row for each rate."""
    k, rates = np.arange(n_states), rates[:, np.newaxis]
    return np.exp(xlogy(k, rates) - rates - gammaln(k + 1))


class _Absorption:
    """Expected sums until a chain, with transition matrix P, is in state 0.

    States are eliminated from the last down, as in Gauss's elimination. The probability to leave
    a state is summed, not taken as one minus that to stay, and so nothing is ever subtracted: the
    results have all their digits also where the chain hardly ever ends.
    """

    def __init__(self, P):
        self.Q, self.leave = P.copy(), np.ones(len(P))
        _eliminate(self.Q, self.leave)

    def expected_sum(self, reward):
        """Expected sum of the rewards of the states met, for each state to start from."""
        Q, total = self.Q, reward.copy()
        total[0] = 0.0
        for k in range(len(Q) - 1, 0, -1):
            total[k] /= self.leave[k]
            total[1:k] += Q[1:k, k] * total[k]
        for k in range(1, len(Q)):
            total[k] += Q[k, 1:k] @ total[1:k]
        return total


def _eliminate(double[:, ::1] Q, double[::1] leave):
    """Replace Q by its factors: below the diagonal, where each state is left to; above it, how
    often the higher states are entered. ``leave`` gets the probabilities to leave."""
    cdef Py_ssize_t i, j, k
    cdef double total, share
    with nogil:
        for k in range(Q.shape[0] - 1, 0, -1):
            total = 0.0
            for j in range(k):
                total += Q[k, j]
            leave[k] = total
            for j in range(k):
                Q[k, j] /= total
            for i in range(1, k):
                share = Q[i, k]
                # Rarer jumps up change nothing: it is no easier to end from above.
                if share > 1e-40:
                    for j in range(k):
                        Q[i, j] += share * Q[k, j]
