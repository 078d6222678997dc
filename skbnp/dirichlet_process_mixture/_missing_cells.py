"""Draws of missing cells under one draw of the chains: of the training rows, and of new rows.

All rows are in the units of the draw. The training rows are of the draw's partition, and cells of
one block depend on one another through its parameters; a new row joins a block by its observed
cells, and new rows know nothing of one another.
"""

import numpy as np

from skbnp.dirichlet_process_mixture._model import CategoricalPrior, PoissonPrior
from skbnp.dirichlet_process_mixture._predictive import LEAST_GAMMA, draw_full_cells


def draw_training_cells(X, draw, prior, rng):
    """The training rows with their missing cells drawn from the joint law given the draw.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    draw : dict
    prior : Prior
    rng : RandomState

    Returns
    -------
    X_filled : ndarray of shape (n_samples, n_features)
    """
    out = X.copy()
    for part in prior.parts:
        rows, c = np.nonzero(np.isnan(X[:, part.columns]))
        if not rows.size:
            continue
        if part is prior.gaussian and part.covariance_type == "full":
            values = draw["imputed"]  # they are part of the state
        else:
            cells = _Cells(rows, c, draw["label"][rows].astype(np.intp), together=True)
            values = _drawn(part, draw, cells, X[:, part.columns], rng)
        out[rows, part.columns[c]] = values
    return out


def draw_new_cells(X, rows, draw, prior, log_p, rng):
    """New rows with their missing cells drawn, each row on its own.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
    rows : Rows
        The same rows.
    draw : dict
    prior : Prior
    log_p : ndarray of shape (n_rows, n_blocks + 1)
        Their ``log_densities``.
    rng : RandomState

    Returns
    -------
    X_filled : ndarray of shape (n_rows, n_features)
    """
    # The largest of log p with Gumbel noise has probability p.
    block = np.argmax(log_p + rng.gumbel(size=log_p.shape), axis=1)
    out = X[rows.order]
    for part, x in zip(prior.parts, rows.parts, strict=True):
        known = out[:, part.columns]
        if part is prior.gaussian and part.covariance_type == "full":
            out[:, part.columns] = _full_rows(part, draw, x, known, block, rng)
            continue
        i, c = np.nonzero(np.isnan(known))
        if i.size:
            cells = _Cells(i, c, block[i], together=False)
            out[i, part.columns[c]] = _drawn(part, draw, cells, known, rng)
    return rows.unsort(out)


class _Cells:
    """Missing cells of one kind of columns, and which of them have the same parameters.

    ``column`` counts the columns of this kind. Cells of one block and column share their
    parameters where rows are ``together``, otherwise each cell has its own.
    """

    def __init__(self, row, column, block, together):
        self.row, self.column, self.block, self.together = row, column, block, together
        self.first = self.which = np.arange(len(row))
        if together:
            _, self.first, which = np.unique(
                np.column_stack([block, column]), axis=0, return_index=True, return_inverse=True
            )
            self.which = which.reshape(-1)

    def at(self, table):
        """The entries of a table (n_blocks, n_columns) for each set of parameters."""
        return table[self.block[self.first], self.column[self.first]]


def _drawn(part, draw, cells, X, rng):
    """Parameters from their posterior, then cells given these: (n_cells,)."""
    if isinstance(part, CategoricalPrior):
        return _levels(part, draw, cells, rng)
    if isinstance(part, PoissonPrior):
        shape, rate = part.shape + draw["total"], part.rate + draw["cells"]
        mean = rng.standard_gamma(cells.at(shape)) / cells.at(rate)
        return rng.poisson(mean[cells.which])
    kappa0, df = part.numbers(draw)
    kappa = kappa0 + draw["count"]
    if part.covariance_type == "diag":
        gamma = rng.standard_gamma(cells.at((df + draw["count"]) / 2))
        variance = cells.at(draw["rate"]) / np.maximum(gamma, LEAST_GAMMA)
    else:
        variance = _shared_variance(draw, cells, X, kappa, df, rng)
    mean = cells.at(draw["mean"]) + np.sqrt(variance / cells.at(kappa)) * rng.standard_normal(
        len(variance)
    )
    noise = rng.standard_normal(len(cells.which))
    return mean[cells.which] + np.sqrt(variance[cells.which]) * noise


def _shared_variance(draw, cells, X, kappa, df, rng):
    """Variances of spherical blocks: one for each block, or given its own cells for each row."""
    shape, rate = (df + draw["count"].sum(axis=1)) / 2, draw["rate"][:, 0]
    own = cells.block
    if not cells.together:
        own = cells.row
        block = np.zeros(len(X), dtype=np.intp)
        block[cells.row] = cells.block
        off, weight = X - draw["mean"][block], kappa[block] / (kappa[block] + 1)
        shape = shape[block] + np.sum(~np.isnan(X), axis=1) / 2
        rate = rate[block] + np.nansum(weight * off**2, axis=1) / 2
    variance = rate / np.maximum(rng.standard_gamma(shape), LEAST_GAMMA)
    return variance[own[cells.first]]


def _levels(part, draw, cells, rng):
    """Probabilities of levels in logs, of which tiny pseudo counts make exact zeros otherwise."""
    counts = draw["level_count"] + np.concatenate(part.pseudo_counts)
    values = np.empty(len(cells.row))
    for j in np.unique(cells.column):
        here = np.flatnonzero(cells.column == j)
        sets, which = np.unique(cells.which[here], return_inverse=True)
        level = slice(part.level_start[j], part.level_start[j + 1])
        g = counts[cells.block[cells.first[sets]], level]
        log_p = np.log(rng.standard_gamma(g + 1)) + np.log1p(-rng.random_sample(g.shape)) / g
        noise = rng.gumbel(size=(len(here), g.shape[1]))
        values[here] = np.argmax(log_p[which.reshape(-1)] + noise, axis=1)
    return values


def _full_rows(part, draw, x, known, block, rng):
    """The conditional t law of the missing real cells given the observed ones."""
    kappa0, df = part.numbers(draw)
    df = df + draw["n_members"][block] - known.shape[1] + 1
    gamma = rng.standard_gamma((df + np.sum(~np.isnan(known), axis=1)) / 2)
    out = np.ascontiguousarray(known)
    draw_full_cells(
        x, draw["n_members"], draw["mean"], draw["factor"], kappa0, block,
        rng.standard_normal(known.shape), np.maximum(gamma, LEAST_GAMMA), out,
    )  # fmt: skip
    return out
