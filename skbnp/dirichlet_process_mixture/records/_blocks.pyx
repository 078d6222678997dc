"""Statistics of blocks as plain arrays, from one family to another on other rows."""

from skbnp.likelihoods.conjugate.dirichlet_categorical cimport DirichletCategorical
from skbnp.likelihoods.conjugate.family cimport ConjugateFamily
from skbnp.likelihoods.conjugate.gamma_poisson cimport GammaPoisson
from skbnp.likelihoods.conjugate.normal_inverse_wishart cimport NormalInverseWishart

import numpy as np

from skbnp.likelihoods.conjugate.product import ProductFamily

# What a family's state says of the cells of its rows.
OF_CELLS = {
    "missing_mean", "missing_variance", "imputed_mean", "imputed_square", "imputed",
}


def united(parts, columns):
    """One family of several, each of some columns."""
    return parts[0] if len(parts) == 1 else ProductFamily(parts, columns)


def take_blocks(ConjugateFamily family, Py_ssize_t n):
    """Numbers of the prior and statistics of slots 0..n-1, as plain arrays that own their data."""
    return _without_cells(family.get_state(n))


def empty_blocks(ConjugateFamily family, Py_ssize_t n):
    """The same of n blocks without rows."""
    cdef Py_ssize_t k
    family.reserve(n)
    for k in range(n):
        family.clear(k)
    return take_blocks(family, n)


def _without_cells(state):
    return {
        name: _without_cells(value) if isinstance(value, dict) else value
        for name, value in state.items()
        if name not in OF_CELLS
    }


def put_blocks(ConjugateFamily family, blocks, Py_ssize_t at=0):
    """Let slots from ``at`` on be these blocks, and the prior theirs.

    Where that is another prior than before, all other slots are out of date.
    """
    put_prior(family, blocks)
    put_slots(family, blocks, at)


def put_prior(ConjugateFamily family, blocks):
    """Take over the numbers of the prior alone."""
    if isinstance(family, ProductFamily):
        family.scale = blocks["scale"]
        for p, part in enumerate(family.parts):
            put_prior(part, blocks[f"part{p}"])
    else:
        family._set_prior(blocks)


def put_slots(ConjugateFamily family, blocks, Py_ssize_t at):
    """Take over the slots alone."""
    cdef Py_ssize_t n = len(blocks["n_members"])
    family.reserve(at + n)
    if isinstance(family, ProductFamily):
        np.asarray(family.n_members)[at:at + n] = blocks["n_members"]
        for p, part in enumerate(family.parts):
            put_slots(part, blocks[f"part{p}"], at)
        return
    for name in family.SLOTS:
        np.asarray(getattr(family, name))[at:at + n] = blocks[name]
    _settle(family, at, at + n)


cdef int _settle(ConjugateFamily family, Py_ssize_t first, Py_ssize_t stop) except -1:
    """Bring up to date what follows from some slots and is kept beside them."""
    cdef Py_ssize_t k
    if isinstance(family, NormalInverseWishart):
        (<NormalInverseWishart> family).lanes.touch_all()
    elif isinstance(family, DirichletCategorical):
        for k in range(first, stop):
            (<DirichletCategorical> family)._settle(k)
    elif isinstance(family, GammaPoisson):
        for k in range(first, stop):
            (<GammaPoisson> family)._settle(k)
        expect_counts(family, stop)
    return 0


def expect_counts(ConjugateFamily family, Py_ssize_t n):
    """Let blocks of counts be ready for the sums of the first n slots, whose rows are elsewhere.
    """
    cdef GammaPoisson counts
    cdef Py_ssize_t j
    if isinstance(family, ProductFamily):
        for part in family.parts:
            expect_counts(part, n)
    elif isinstance(family, GammaPoisson):
        counts = family
        total = np.sum(np.asarray(counts.total)[:n], axis=0)
        counts.column_sum = np.maximum(counts.column_sum, total)
        for j in range(counts.n_features):
            counts._bound_digits(j)


def about_rows(blocks):
    """The same with the mean of the rows in the place of that of each block."""
    out = {
        name: about_rows(value) if isinstance(value, dict) else value
        for name, value in blocks.items()
    }
    return out | {"mean": out["row_mean"]} if "row_mean" in out else out


def rows_of_blocks(blocks, chosen):
    """The same of some of the blocks, in this order."""
    return {
        name: rows_of_blocks(value, chosen) if isinstance(value, dict)
        else value[chosen] if name not in ("covariance",) and np.ndim(value) else value
        for name, value in blocks.items()
    }


def joined_blocks(first, second):
    """One list of blocks behind another, under the prior of the first."""
    return {
        name: joined_blocks(value, second[name]) if isinstance(value, dict)
        else np.concatenate([value, second[name]])
        if name not in ("covariance",) and np.ndim(value) else value
        for name, value in first.items()
    }
