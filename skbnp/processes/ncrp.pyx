"""Nested Chinese restaurant process: paths of items down a tree of finite depth.

All items start at the root, level 0. The items at a node of level l are seated over its children
by a Chinese restaurant process of their own, with ``concentration[l]`` and a common ``discount``;
after ``depth`` levels every item has a path. A level with concentration 0 has one child per node:
trees that branch at some levels only are members of the family.

References
----------
- Blei, Griffiths & Jordan (2010), "The nested Chinese restaurant process and Bayesian
  nonparametric inference of topic hierarchies", Journal of the ACM 57.
- Zhang, Dunson & Carin (2011), "Tree-structured infinite sparse factor model", ICML.
- Escobar & West (1995), "Bayesian density estimation and inference using mixtures", Journal of
  the American Statistical Association 90.
"""

from libc.math cimport log
from numpy.random cimport bitgen_t

from skbnp.numerics.rng cimport borrow, draw_gamma, log_beta, uniform
from skbnp.numerics.special cimport log_rising
from skbnp.processes cimport crp_law

import numpy as np

from skbnp.numerics.rng import as_generator
from skbnp.processes._checks import (
    as_count,
    as_number,
    as_numbers,
    as_positive,
    as_prior,
    as_whole_array,
)
from skbnp.processes.crp import expected_block_sizes

__all__ = [
    "expected_nodes",
    "log_path_predictive",
    "log_prob",
    "node_table",
    "sample",
    "sample_concentration",
]


# -- the law ----------------------------------------------------------------------------------


cdef double log_prob_nodes(
    Py_ssize_t n_nodes, const Py_ssize_t* parent, const Py_ssize_t* level,
    const Py_ssize_t* count, const double* concentration, double discount,
    Py_ssize_t* n_children,
) noexcept nogil:
    """Log probability of a tree: the sum over its inner nodes of log EPPF of their children.

    Node 0 is the root and parents come before children. ``n_children`` is scratch, (n_nodes,).
    """
    cdef double total = 0.0, theta
    cdef Py_ssize_t v, above
    for v in range(n_nodes):
        n_children[v] = 0
    for v in range(1, n_nodes):
        above = parent[v]
        theta = concentration[level[above]]
        if n_children[above] == 0:
            total -= log_rising(theta + 1.0, count[above] - 1)
        else:
            total += crp_law.log_new_weight(n_children[above], theta, discount)
        total += log_rising(1.0 - discount, count[v] - 1)
        n_children[above] += 1
    return total


cdef double draw_concentration(
    bitgen_t* rng, double current, const Py_ssize_t* count, const Py_ssize_t* n_children,
    Py_ssize_t n_nodes, double shape, double rate,
) noexcept nogil:
    """Update a level's concentration under its Gamma(shape, rate) prior, discount 0.

    For each of the level's nodes eta ~ Beta(theta + 1, N) and s ~ Bernoulli(N / (N + theta)), then
    theta ~ Gamma(shape + sum (children - s), rate - sum log eta): Escobar & West's augmentation
    of Gamma(theta) / Gamma(theta + N) for several restaurants.
    """
    cdef Py_ssize_t v
    for v in range(n_nodes):
        rate -= log_beta(rng, current + 1.0, count[v])
        shape += n_children[v]
        if uniform(rng) * (count[v] + current) < count[v]:
            shape -= 1.0
    return draw_gamma(rng, shape, rate)


# -- checks of what the user gives ------------------------------------------------------------


def _levels(concentration, discount, depth):
    """(theta of each level, discount), checked; theta = 0 only without discount."""
    d = as_number("discount", discount)
    if not 0.0 <= d < 1.0:
        raise ValueError(f"discount must be in [0, 1), got {discount!r}")
    theta = as_numbers("concentration", concentration)
    if theta.shape not in ((), (depth,)):
        raise ValueError(
            f"concentration must be a number or one for each of the {depth} levels, "
            f"got shape {theta.shape}"
        )
    theta = np.array(np.broadcast_to(theta, depth))
    if d > 0.0 and not (theta > -d).all():
        raise ValueError(f"concentration must be > -discount = {-d}, got {concentration!r}")
    if d == 0.0 and not (theta >= 0.0).all():
        raise ValueError(f"concentration must be >= 0, got {concentration!r}")
    return theta, d


def _paths(paths):
    out = as_whole_array("paths", paths, least=0, n_dimensions=2)
    if out.size == 0:
        raise ValueError(f"paths must hold an item and a level at least, got shape {out.shape}")
    return out


# -- public functions -------------------------------------------------------------------------


def sample(n, depth, concentration, discount=0.0, random_state=None):
    """Draw the paths of n items.

    Parameters
    ----------
    n : int
        Number of items, at least 1.
    depth : int
        Number of levels below the root, at least 1.
    concentration : float or array-like of shape (depth,)
        Strength of the restaurants at levels 0 (the root), 1, ..., depth - 1; each > -discount,
        or 0, which means one child per node. Larger branches more.
    discount : float, default=0.0
        In [0, 1), of all restaurants.
    random_state : None, int, RandomState or Generator, default=None
        Source of randomness.

    Returns
    -------
    paths : ndarray of shape (n, depth)
        Child taken at each level, numbered below each parent in order of appearance.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Notes
    -----
    O(n depth), beside a sort of the items per level.

    Examples
    --------
    >>> from skbnp.processes import ncrp
    >>> paths = ncrp.sample(8, depth=3, concentration=[1.0, 0.5, 0.0], random_state=0)
    >>> paths.shape, paths[0].tolist()
    ((8, 3), [0, 0, 0])
    """
    n, depth = as_count("n", n), as_count("depth", depth)
    theta, d = _levels(concentration, discount, depth)
    bit_generator = as_generator(random_state).bit_generator
    cdef bitgen_t* rng = borrow(bit_generator)
    cdef Py_ssize_t[::1] label = np.empty(n, dtype=np.intp)
    cdef Py_ssize_t[::1] size = np.empty(n, dtype=np.intp)
    cdef Py_ssize_t[::1] start
    cdef Py_ssize_t v
    cdef double strength, decrement = d
    paths = np.zeros((n, depth), dtype=np.intp)
    node = np.zeros(n, dtype=np.intp)
    for level in range(depth):
        if theta[level] == 0.0 and d == 0.0:
            continue
        strength = theta[level]
        order = np.argsort(node, kind="stable")
        start = np.append(0, np.cumsum(np.bincount(node)))
        n_children = np.empty(len(start) - 1, dtype=np.intp)
        with bit_generator.lock:
            for v in range(start.shape[0] - 1):
                n_children[v] = crp_law.seat(
                    rng, start[v + 1] - start[v], strength, decrement, &label[start[v]], &size[0]
                )
        paths[order, level] = label
        node = (np.cumsum(n_children) - n_children)[node] + paths[:, level]
    return paths


def node_table(paths):
    """The tree that the paths make.

    Parameters
    ----------
    paths : array-like of int, shape (n, depth)
        Child of each item at each level; any names >= 0.

    Returns
    -------
    node : ndarray of shape (n, depth)
        Node of each item at each level.
    parent, level, count : ndarrays of shape (n_nodes,)
        Of each node: its parent, its level and its number of items. Node 0 is the root, with
        parent -1. Nodes are sorted by level, then by parent, then in order of appearance.

    Raises
    ------
    ValueError
        If the paths are malformed.
    """
    paths = _paths(paths)
    n, depth = paths.shape
    node = np.empty((n, depth), dtype=np.intp)
    parent, level, count = [np.array([-1])], [np.zeros(1, dtype=np.intp)], [np.array([n])]
    above, n_nodes = np.zeros(n, dtype=np.intp), 1
    for h in range(depth):
        pairs, first, which, size = np.unique(
            np.stack([above, paths[:, h]], axis=1),
            axis=0, return_index=True, return_inverse=True, return_counts=True,
        )
        order = np.lexsort((first, pairs[:, 0]))
        rank = np.empty(len(order), dtype=np.intp)
        rank[order] = np.arange(len(order))
        above = node[:, h] = n_nodes + rank[which.ravel()]
        parent.append(pairs[order, 0])
        level.append(np.full(len(order), h + 1))
        count.append(size[order])
        n_nodes += len(order)
    return node, *(np.concatenate(part).astype(np.intp) for part in (parent, level, count))


def log_prob(paths, concentration, discount=0.0):
    """Log probability of the nested partition that the paths describe.

    The names of the children and the order of the items do not matter.

    Parameters
    ----------
    paths : array-like of int, shape (n, depth)
        Child of each item at each level; any names >= 0.
    concentration, discount
        As in :func:`sample`.

    Returns
    -------
    log_prob : float
        Sums to one over all nested partitions of n items; -inf for a node with several children
        at a level of concentration 0.

    Raises
    ------
    ValueError
        If the paths are malformed or a parameter is out of its range.

    Examples
    --------
    >>> from skbnp.processes import ncrp
    >>> round(ncrp.log_prob([[0, 0], [0, 1]], concentration=[1.0, 0.5]), 6)  # 1/2 times 1/3
    -1.791759
    """
    _, parents, levels, counts = node_table(paths)
    theta, d = _levels(concentration, discount, levels.max())
    cdef const Py_ssize_t[::1] parent = parents, level = levels, count = counts
    cdef const double[::1] strength = theta
    cdef Py_ssize_t[::1] n_children = np.empty(parent.shape[0], dtype=np.intp)
    return log_prob_nodes(
        parent.shape[0], &parent[0], &level[0], &count[0], &strength[0], d, &n_children[0]
    )


def log_path_predictive(paths, path, concentration, discount=0.0):
    """Log probability that the next item takes a path.

    Parameters
    ----------
    paths : array-like of int, shape (n, depth)
        Paths of the items so far, n >= 1.
    path : array-like of int, shape (depth,)
        Path of the next item, in the names of ``paths``. A name that no item with the same path
        so far has means a new child; what it is called does not matter, nor what follows.
    concentration, discount
        As in :func:`sample`.

    Returns
    -------
    log_prob : float
        Product along the path of (n_child - d) / (n_node + theta), or of
        (theta + d children) / (n_node + theta) at the first new child; after it all is new.

    Raises
    ------
    ValueError
        If a path is malformed or a parameter is out of its range.
    """
    paths = _paths(paths)
    depth = paths.shape[1]
    path = as_whole_array("path", path, least=0)
    if path.shape != (depth,):
        raise ValueError(f"path must have {depth} levels, got {path.shape[0]}")
    theta, d = _levels(concentration, discount, depth)
    total, here = 0.0, np.ones(len(paths), dtype=bool)
    for level in range(depth):
        taken = paths[here, level]
        n_here, n_child = len(taken), np.count_nonzero(taken == path[level])
        if n_child == 0:
            weight = crp_law.log_new_weight(len(np.unique(taken)), theta[level], d)
            return total + weight - log(n_here + theta[level])
        total += log((n_child - d) / (n_here + theta[level]))
        here &= paths[:, level] == path[level]
    return total


def expected_nodes(n, depth, concentration, discount=0.0):
    """Expected number of nodes at each level.

    Parameters
    ----------
    n, depth, concentration, discount
        As in :func:`sample`.

    Returns
    -------
    mean : ndarray of shape (depth,)
        Expected number of occupied nodes at levels 1, ..., depth.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Notes
    -----
    The expected numbers of nodes of each size are carried from level to level through the
    expected block sizes of one restaurant: O(n^2 depth).

    Examples
    --------
    >>> from skbnp.processes import ncrp
    >>> ncrp.expected_nodes(8, depth=2, concentration=[1.0, 0.7]).round(6).tolist()
    [2.717857, 4.095508]
    """
    n, depth = as_count("n", n), as_count("depth", depth)
    theta, d = _levels(concentration, discount, depth)
    n_of_size = np.zeros(n + 1)
    n_of_size[n] = 1.0
    mean = np.empty(depth)
    for level in range(depth):
        if theta[level] != 0.0 or d > 0.0:
            below = np.zeros(n + 1)
            for size in np.flatnonzero(n_of_size):
                below[1:size + 1] += n_of_size[size] * expected_block_sizes(size, theta[level], d)
            n_of_size = below
        mean[level] = n_of_size.sum()
    return mean


def sample_concentration(
    paths, concentration, concentration_prior=(1.0, 1.0), random_state=None
):
    """One Gibbs update of each level's concentration given the paths, discount 0.

    It leaves p(concentration | paths) invariant: exact draws given auxiliary variables
    (Escobar & West 1995), one pair for each inner node. Levels with concentration 0 keep it.

    Parameters
    ----------
    paths : array-like of int, shape (n, depth)
        Child of each item at each level.
    concentration : float or array-like of shape (depth,)
        Current values, >= 0.
    concentration_prior : (shape, rate) or array-like of shape (depth, 2), default=(1.0, 1.0)
        Gamma prior of every level, or of each, mean shape / rate.
    random_state : None, int, RandomState or Generator, default=None
        Source of randomness.

    Returns
    -------
    concentration : ndarray of shape (depth,)
        The next values.

    Raises
    ------
    ValueError
        If the paths are malformed or a parameter is out of its range.
    """
    _, parent, level, count = node_table(paths)
    depth = level.max()
    theta, _ = _levels(concentration, 0.0, depth)
    prior = concentration_prior
    pairs = [prior] * depth if np.shape(prior) == (2,) else list(prior)
    if len(pairs) != depth:
        raise ValueError(
            f"concentration_prior must be one pair or one for each of the {depth} levels, "
            f"got {len(pairs)}"
        )
    n_children = np.bincount(parent[1:], minlength=len(parent))
    out = np.array(theta)
    bit_generator = as_generator(random_state).bit_generator
    cdef bitgen_t* rng = borrow(bit_generator)
    cdef const Py_ssize_t[::1] visitors, children
    cdef double shape, rate, current
    for h in range(depth):
        shape, rate = as_prior("concentration_prior", pairs[h])
        if theta[h] == 0.0:
            continue
        visitors = count[level == h]
        children = n_children[level == h].astype(np.intp)
        current = as_positive("concentration", theta[h])
        with bit_generator.lock:
            out[h] = draw_concentration(
                rng, current, &visitors[0], &children[0], visitors.shape[0], shape, rate,
            )
    return out
