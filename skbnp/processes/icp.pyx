"""Indian chefs process: directed acyclic graphs of some observed nodes and all their ancestors.

Every node has an order theta in [0, 1], and the parents of a node are strictly above it. Observed
nodes have given orders or free ones, uniform; their popularities are pi ~ Beta(phi, alpha). All
other nodes, with their orders and popularities, are a Poisson process of intensity
alpha gamma pi^-1 (1 - pi)^(alpha - 1) dtheta dpi. A node is a parent of each node below it with
probability pi; of the unobserved nodes only ancestors of observed ones are kept, the hidden nodes.
So gamma is the ``mass``, the expected number of hidden parents of a node of order 0; the larger
the ``concentration`` alpha the fewer children of each node; phi / (phi + alpha), of
``observed_popularity`` phi, is the probability that an observed node is a parent of one below.

Read upwards, the number n of nodes below an order is a pure birth process (an observation of
ours): with the rate alpha gamma (psi(alpha + n) - psi(alpha)) a hidden node comes, and each
observed node comes at its own order. Draws, the law of the number of hidden nodes and all moments
here rest on that (doc/mathematics/icp_network, section 2).

Equations are those of Dallaire et al., with these corrections. Equation 9: the density of the
sorted hidden orders has no factor 1 / K!. Equation 10: the number of children of a new observed
node is beta-binomial, its edges share one popularity. Equations 11 and 12: nodes wait until it is
their turn; the counts are of nodes that had it, and of the present one, which belongs to those
"below" in equation 12.

References
----------
- Dallaire, Ambrogioni, Trottier, Guclu, Hinne, Giguere, Chaib-draa, van Gerven & Laviolette, "The
  Indian chefs process".
- Thibaux & Jordan (2007), "Hierarchical beta processes and the Indian buffet process", AISTATS.
"""

from libc.math cimport INFINITY, log

from skbnp.numerics.special cimport lgamma

import numpy as np
from scipy.sparse import block_array, csr_array, diags_array
from scipy.sparse.linalg import expm_multiply
from scipy.special import betaln, gammaln, xlogy

from skbnp.numerics.rng import as_generator
from skbnp.processes._icp_draws import DrawNodeByNode, DrawByOrder
from skbnp.processes._checks import (
    as_binary,
    as_count,
    as_option,
    as_positive,
)

__all__ = [
    "TooManyNodesError",
    "expected_edges",
    "expected_hidden",
    "hidden_pmf",
    "log_prob",
    "sample",
    "var_hidden",
]

# The most hidden nodes whose law is computed.
_MOST_STATES = 4096
# Births, which its solver takes as steps, and births times states, at most: some seconds.
_MOST_BIRTHS, _MOST_WORK = 20_000, 20_000_000


class TooManyNodesError(ValueError):
    """A draw has more hidden nodes than it may have."""


# -- the law of a graph, for kernels ----------------------------------------------------------


cdef class GraphLaw:
    """Hyperparameters of the process, and tables of what depends on them for whole numbers.

    Whoever changes a hyperparameter calls ``fill``.
    """

    def __init__(self, double mass, double concentration, double popularity):
        self.mass, self.concentration, self.popularity = mass, concentration, popularity
        self.psi = np.zeros(0)
        self.reserve(0)

    cdef int reserve(self, Py_ssize_t n_nodes) except -1:
        """Tables for so many nodes."""
        if self.psi.shape[0] < n_nodes + 2:
            self.log_count, self.log_rest, self.psi, self.log_taken, self.log_both = np.zeros(
                (5, n_nodes + 2)
            )
            self.fill()
        return 0

    cdef void fill(self) noexcept nogil:
        """The tables anew."""
        cdef Py_ssize_t n
        cdef double alpha = self.concentration, phi = self.popularity
        self.log_count[0] = INFINITY
        self.psi[0] = 0.0
        for n in range(self.psi.shape[0]):
            if n > 0:
                self.log_count[n] = lgamma(n)
                self.psi[n] = self.psi[n - 1] + 1.0 / (alpha + (n - 1))
            self.log_rest[n] = lgamma(alpha + n)
            self.log_taken[n] = lgamma(phi + n)
            self.log_both[n] = lgamma(alpha + phi + n)
        self.log_observed = self.log_both[0] - self.log_taken[0] - self.log_rest[0]

    cdef double log_chosen(self, Py_ssize_t m, Py_ssize_t n) noexcept nogil:
        """Log probability of one set of m children of a hidden node among n: equation (I2.2)."""
        return self.log_children(True, m, n) - log(self.psi[n])

    cdef double log_taken_odds(self, bint hidden, Py_ssize_t m, Py_ssize_t n) noexcept nogil:
        """Log prior odds that one of n nodes below is a child, m of the others are: (I5.1).

        -inf if a hidden node would have none without it.
        """
        cdef double taken = m
        if hidden:
            if m == 0:
                return -INFINITY
        else:
            taken += self.popularity
        return log(taken / (self.concentration + n - 1.0 - m))

    cdef double taking(self, bint hidden, Py_ssize_t m, Py_ssize_t n) noexcept nogil:
        """Probability that a node with m children among n takes one more: equation (I5.5)."""
        cdef double taken = m
        if hidden:
            return taken / (self.concentration + n)
        taken += self.popularity
        return taken / (self.concentration + self.popularity + n)


# -- draws ------------------------------------------------------------------------------------


def _draw(
    observed_order, mass, alpha, phi, method, max_hidden, generator, node_by_node=DrawNodeByNode,
):
    """(order, Z) of :func:`sample`; nothing is checked."""
    free = np.isnan(observed_order)
    at = np.where(free, generator.random(len(free)), observed_order)
    process = DrawByOrder if method == "sweep" else node_by_node
    network = process(mass, alpha, phi, max_hidden, generator.bit_generator).draw(at)
    if network is None:
        raise TooManyNodesError(
            f"max_hidden = {max_hidden} is too small, or mass and concentration too large: the "
            "draw has more hidden nodes"
        )
    return network.arrays()


# -- the law of the number of hidden nodes ----------------------------------------------------


class _Birth:
    """The forward equation of the numbers of nodes below an order.

    A state is (number of free observed nodes, number of hidden nodes), and of each are propagated
    its probability and the expected numbers, times it, of edges from hidden and from observed
    nodes. Free orders are those of a Poisson process of the rate ``n_free``, given that it has
    just n_free points: so the equation has constant coefficients between fixed orders.
    """

    def __init__(self, observed_order, mass, alpha, share, max_hidden):
        free = np.isnan(observed_order)
        self.n_free, self.fixed = int(free.sum()), np.sort(observed_order[~free])
        self.mass, self.alpha, self.share = mass, alpha, share
        if max_hidden is not None:
            self.run(max_hidden + 1)
            few = self.pmf.sum()
            self.pmf, self.edges = self.pmf / few, tuple(e / few for e in self.edges)
            return
        n_states = 64
        while self.run(n_states) > 1e-12:
            n_states *= 2
            if n_states > _MOST_STATES:
                raise ValueError(
                    "mass and concentration must be smaller, or max_hidden given: the law of the "
                    f"number of hidden nodes would take more than {_MOST_STATES} of them"
                )

    def run(self, n_states):
        """Set ``pmf`` and ``edges`` for 0..n_states-1 hidden nodes; the probability of more."""
        x, n_fixed = 0.0, 0
        # Births per unit of order where there are most nodes: the solver takes as many steps.
        n_most = n_states + self.n_free + len(self.fixed)
        births = self.alpha * self.mass * np.sum(1.0 / (self.alpha + np.arange(n_most)))
        if not births * max(n_states, _MOST_WORK // _MOST_BIRTHS) <= _MOST_WORK:
            raise ValueError(
                "mass and concentration must be smaller, or max_hidden given and small: the law "
                f"of the number of hidden nodes would take {births:.3g} steps for {n_states} of "
                f"them"
            )
        n_movable = np.arange(self.n_free + 1)[:, np.newaxis] + np.arange(n_states)
        state = np.zeros((3,) + n_movable.shape)
        state[0, 0, 0] = 1.0
        for end in np.union1d(self.fixed, 1.0):
            if end > x:
                rates = (end - x) * self.generator(n_fixed + n_movable)
                state = expm_multiply(rates, state.ravel()).reshape(state.shape)
            n_here = np.count_nonzero(self.fixed == end)
            state[2] += n_here * self.share * (n_fixed + n_movable) * state[0]
            x, n_fixed = end, n_fixed + n_here
        has_all = np.exp(xlogy(self.n_free, self.n_free) - self.n_free - gammaln(self.n_free + 1))
        self.pmf, *edges = state[:, self.n_free] / has_all
        self.edges = tuple(float(total.sum()) for total in edges)
        return 1.0 - self.pmf.sum()

    def generator(self, n_below):
        """Of the columns (probability, hidden edges, observed edges), each over all states."""
        index = np.arange(n_below.size).reshape(n_below.shape)

        def flow(rate, source, target):
            entries = np.broadcast_to(rate, n_below.shape)[source]
            at = index[target].ravel(), index[source].ravel()
            return csr_array((entries.ravel(), at), shape=(n_below.size, n_below.size))

        all_but_last, all_but_first, each = slice(None, -1), slice(1, None), slice(None)
        hidden = (each, all_but_last), (each, all_but_first)
        observed = all_but_last, all_but_first
        per_mass = np.cumsum(np.append(0.0, 1.0 / (self.alpha + np.arange(n_below.max()))))
        birth = self.alpha * self.mass * per_mass[n_below]
        chain = flow(birth, *hidden) + flow(self.n_free, *observed)
        chain -= diags_array((birth + self.n_free).ravel())
        # At n nodes below, the children of hidden nodes come at the rate mass n.
        return block_array([
            [chain, None, None],
            [flow(self.mass * n_below, *hidden), chain, None],
            [flow(self.n_free * self.share * n_below, *observed), None, chain],
        ]).tocsr()


# -- checks of what the user gives ------------------------------------------------------------


def _parameters(mass, concentration, observed_popularity):
    return (
        as_positive("mass", mass),
        as_positive("concentration", concentration),
        as_positive("observed_popularity", observed_popularity),
    )


def _orders(name, value, may_be_free=False):
    """A vector of numbers in [0, 1], or NaN if that may be."""
    out = np.asarray(value)
    wanted = "in [0, 1], or NaN where they are free" if may_be_free else "in [0, 1]"
    if out.ndim != 1 or out.dtype.kind not in "iuf":
        raise ValueError(f"{name} must be a vector of numbers, got {value!r}")
    out = out.astype(np.float64)
    wrong = ~((out >= 0.0) & (out <= 1.0)) & ~(np.isnan(out) & may_be_free)
    if wrong.any():
        raise ValueError(f"{name} must be {wanted}, got {out[wrong.argmax()]}")
    return out


def _observed(value):
    out = _orders("observed_order", value, may_be_free=True)
    if out.size == 0:
        raise ValueError("observed_order must have at least one node")
    return out


# -- public functions -------------------------------------------------------------------------


def sample(
    observed_order, mass, concentration=1.0, observed_popularity=1.0, method="sweep",
    max_hidden=5000, random_state=None,
):
    """Draw a network of so many observed nodes and all their ancestors.

    Parameters
    ----------
    observed_order : array-like of shape (n_observed,)
        Orders of the observed nodes, in [0, 1]; NaN: free, uniform on it. A node of order 0 has no
        children, one of order 1 no parents.
    mass : float
        Expected number of hidden parents of a node of order 0, > 0. The number of hidden nodes
        grows little faster than the mass while it exceeds the concentration, like exp(mass) while
        it does not.
    concentration : float, default=1.0
        Above 0; larger: more hidden nodes with fewer children.
    observed_popularity : float, default=1.0
        Above 0; an observed node is a parent of each node below it with probability
        observed_popularity / (observed_popularity + concentration).
    method : {"sweep", "chefs"}, default="sweep"
        The nodes by their orders, or the chefs' process of Dallaire et al., equations 10 to 12
        as corrected, which is slower. The law is the same.
    max_hidden : int, default=5000
        A draw that turns out to have more hidden nodes ends in a TooManyNodesError; to draw again
        is to draw from the law given that there are so many at most.
    random_state : None, int, RandomState or Generator, default=None
        Source of randomness.

    Returns
    -------
    order : ndarray of shape (n_nodes,)
        The observed nodes as they are given, then the hidden ones, ascending.
    Z : ndarray of shape (n_nodes, n_nodes), uint8
        ``Z[i, k]`` is 1 where node k is a parent of node i.

    Raises
    ------
    ValueError
        If a parameter is out of its range.
    TooManyNodesError
        If the draw has more than max_hidden hidden nodes; a ValueError too.

    Notes
    -----
    O(n_nodes^2) for "sweep", O(n_nodes^3) for "chefs".

    Examples
    --------
    >>> from skbnp.processes import icp
    >>> order, Z = icp.sample([0.0, 0.0, 1.0], mass=1.0, random_state=0)
    >>> child, parent = Z.nonzero()
    >>> bool((order[parent] > order[child]).all())
    True
    """
    observed_order = _observed(observed_order)
    parameters = _parameters(mass, concentration, observed_popularity)
    as_option("method", method, ("sweep", "chefs"))
    max_hidden = as_count("max_hidden", max_hidden, least=0)
    generator = as_generator(random_state)
    return _draw(observed_order, *parameters, method, max_hidden, generator)


def log_prob(
    order, Z, n_observed, mass, concentration=1.0, observed_popularity=1.0, ordering="unordered"
):
    """Log density of a network and its hidden orders.

    Parameters
    ----------
    order : array-like of shape (n_nodes,)
        In [0, 1], of the observed nodes and then the hidden ones. Nodes of equal orders cannot be
        parents of each other.
    Z : array-like of shape (n_nodes, n_nodes)
        Of 0 and 1: whether the column's node is a parent of the row's. A hidden node has at least
        one child.
    n_observed : int
        Number of observed nodes, at least 1.
    mass, concentration, observed_popularity
        As in :func:`sample`.
    ordering : {"unordered", "labelled"}, default="unordered"
        Whether hidden nodes are told apart by their orders alone, so that this is a density of the
        sorted ones, or have labels in uniformly random order besides: "unordered" divided by
        n_hidden!.

    Returns
    -------
    log_prob : float
        -inf if an edge is not downwards. Free orders of observed nodes have density 1, given ones
        are no random variables: the value is the same.

    Raises
    ------
    ValueError
        If the network is malformed or a parameter is out of its range.

    Notes
    -----
    Dallaire et al., equation 9 without the factor 1 / K!.

    Examples
    --------
    >>> from skbnp.processes import icp
    >>> icp.log_prob([0.0], [[0]], n_observed=1, mass=0.7)  # no hidden node
    -0.7
    """
    order = _orders("order", order)
    Z = as_binary("Z", Z)
    n_observed = as_count("n_observed", n_observed)
    gamma, alpha, phi = _parameters(mass, concentration, observed_popularity)
    as_option("ordering", ordering, ("unordered", "labelled"))
    n_nodes, n_hidden = order.size, order.size - n_observed
    if n_hidden < 0:
        raise ValueError(f"order must have at least n_observed = {n_observed} nodes, got {n_nodes}")
    if Z.shape != (n_nodes, n_nodes):
        raise ValueError(f"Z must be of shape {(n_nodes, n_nodes)}, got {Z.shape}")
    m = Z.sum(axis=0, dtype=np.intp)
    if not m[n_observed:].all():
        childless = n_observed + m[n_observed:].argmin()
        raise ValueError(f"Z must give every hidden node a child, got node {childless} without")
    is_below = order[:, np.newaxis] < order
    if (Z > is_below).any():
        return -np.inf
    below = is_below.sum(axis=0)
    per_mass = np.cumsum(1.0 / (alpha + np.arange(n_nodes)))
    empty = alpha * (np.diff(np.append(np.sort(order), 1.0)) @ per_mass)
    shape = np.where(np.arange(n_nodes) < n_observed, phi, 0.0)
    total = betaln(shape + m, alpha + below - m).sum() - n_observed * betaln(phi, alpha)
    total += n_hidden * np.log(alpha * gamma) - gamma * empty
    return float(total - (gammaln(n_hidden + 1) if ordering == "labelled" else 0.0))


def hidden_pmf(observed_order, mass, concentration=1.0, max_hidden=None):
    """Distribution of the number of hidden nodes.

    Parameters
    ----------
    observed_order, mass, concentration
        As in :func:`sample`; the popularity of observed nodes is no matter here.
    max_hidden : int or None, default=None
        The distribution given that there are at most so many; None: no bound.

    Returns
    -------
    probability : ndarray of shape (max_hidden + 1,), or as long as it takes
        P(0 hidden nodes), P(1), ...; without ``max_hidden`` what is left out has probability
        1e-12 at most.

    Raises
    ------
    ValueError
        If a parameter is out of its range, or if more than some 4000 nodes must be reckoned with.

    Notes
    -----
    The forward equation of the birth process, solved by sparse matrix exponentials; its size is
    the number of free orders times that of probabilities.

    Examples
    --------
    >>> from skbnp.processes import icp
    >>> icp.hidden_pmf([0.0], mass=1.0)[:3].round(6).tolist()
    [0.367879, 0.289499, 0.179545]
    """
    return _birth(observed_order, mass, concentration, 1.0, max_hidden).pmf


def expected_hidden(observed_order, mass, concentration=1.0, max_hidden=None):
    """Expected number of hidden nodes.

    Parameters
    ----------
    observed_order, mass, concentration, max_hidden
        As in :func:`hidden_pmf`.

    Returns
    -------
    mean : float
        Computed as :func:`hidden_pmf`.

    Raises
    ------
    ValueError
        If a parameter is out of its range, or if more than some 4000 nodes must be reckoned with.

    Examples
    --------
    >>> import numpy as np
    >>> from skbnp.processes import icp
    >>> round(icp.expected_hidden([0.0, 0.0], mass=1.0), 4)
    1.739
    """
    pmf = hidden_pmf(observed_order, mass, concentration, max_hidden)
    return float(pmf @ np.arange(pmf.size))


def var_hidden(observed_order, mass, concentration=1.0, max_hidden=None):
    """Variance of the number of hidden nodes.

    Parameters
    ----------
    observed_order, mass, concentration, max_hidden
        As in :func:`hidden_pmf`.

    Returns
    -------
    variance : float
        Computed as :func:`hidden_pmf`.

    Raises
    ------
    ValueError
        If a parameter is out of its range, or if more than some 4000 nodes must be reckoned with.
    """
    pmf = hidden_pmf(observed_order, mass, concentration, max_hidden)
    n = np.arange(pmf.size)
    return float(pmf @ (n - pmf @ n) ** 2)


def expected_edges(
    observed_order, mass, concentration=1.0, observed_popularity=1.0, max_hidden=None
):
    """Expected numbers of edges to children, of hidden and of observed nodes.

    Parameters
    ----------
    observed_order, mass, concentration, observed_popularity
        As in :func:`sample`.
    max_hidden : int or None, default=None
        The expectations given that there are at most so many hidden nodes; None: no bound.

    Returns
    -------
    hidden, observed : float
        Of all hidden nodes together, and of all observed ones. Computed as :func:`hidden_pmf`.

    Raises
    ------
    ValueError
        If a parameter is out of its range, or if more than some 4000 nodes must be reckoned with.

    Examples
    --------
    >>> from skbnp.processes import icp
    >>> hidden, observed = icp.expected_edges([0.0, 1.0], mass=1.0)
    >>> round(hidden, 5), round(observed, 5)
    (1.58287, 1.12386)
    """
    return _birth(observed_order, mass, concentration, observed_popularity, max_hidden).edges


def _birth(observed_order, mass, concentration, observed_popularity, max_hidden):
    observed_order = _observed(observed_order)
    mass, alpha, phi = _parameters(mass, concentration, observed_popularity)
    if max_hidden is not None:
        max_hidden = as_count("max_hidden", max_hidden, least=0)
    return _Birth(observed_order, mass, alpha, phi / (phi + alpha), max_hidden)
