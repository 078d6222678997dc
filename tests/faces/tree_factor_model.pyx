"""What tests ask of the kernels of the tree factor model: C methods, with arrays for pointers."""

import numpy as np

from skbnp.tree_factor_model._leaf_laws cimport LeafLaws
from skbnp.tree_factor_model._rows cimport Law
from skbnp.tree_factor_model._state cimport State
from skbnp.tree_factor_model._system cimport System
from skbnp.tree_factor_model._threads cimport Scratch
from skbnp.tree_factor_model.moves.loadings cimport Loadings


def log_densities(LeafLaws laws, Py_ssize_t b):
    """Log density of every row in leaf b, shape (n_samples,)."""
    cdef double[::1] out = np.empty(laws.state.n_samples)
    cdef Law law = Law(laws.state.rows, laws.state.max_depth)
    if laws.fill_densities(law, b, &out[0]) != 0:
        raise ArithmeticError(f"the covariance of leaf {b} is not positive definite")
    return np.asarray(out)


def system(Loadings move, Py_ssize_t p):
    """The linear system of feature p and its factor: node rows, then leaf rows, of each."""
    cdef Scratch scratch = Scratch(move.state)
    move.products.need()
    move.features.reserve()
    move.features.add_products()
    move.features.begin(scratch, p)
    before = rows(scratch.system)
    if scratch.system.eliminate() != 0:
        raise ArithmeticError(f"the system of feature {p} is not positive definite")
    return before, rows(scratch.system)


cdef rows(System system):
    """A row of couplings and pivot for every node, then for every leaf."""
    cdef State tree = system.tree
    nodes = [np.array(system.node_row[n, :tree.level[n]]) for n in range(tree.n_nodes)]
    return nodes + [np.array(system.leaf_row[b, :tree.depth + 1]) for b in range(tree.n_leaves)]
