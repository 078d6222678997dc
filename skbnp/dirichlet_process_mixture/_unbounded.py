"""Components along which densities have no bound: of copies, of ties, of dependent columns."""

from dataclasses import replace

import numpy as np
from scipy.spatial import cKDTree

from skbnp.mcmc.caller import warn
from skbnp.mcmc.remedies import Advice, Illness
from skbnp.reports import convergence
from skbnp.tables.dependence import dependent_columns

# Rows in components of equal rows that are worth a word.
_FEWEST_COPIES = 5
# Such components of rows that are nearly equal, rows of one at most, and how wide it is at most, of
# the distance to the next row that is usual for all of them: rows that were measured twice.
_FEWEST_NEAR, _MOST_NEAR_ROWS, _NEAR = 3, 10, 0.1
# Cells of a column, all equal, that make a component one of ties, and the share of all rows in such
# components that is worth a word.
_FEWEST_TIES, _LEAST_SHARE = 5, 0.1
# Of columns that follow from others by one law, but for a few rows.
_LEAST_SHARE_OF_DEPENDENT = 0.9

_LEAVE_OUT = "leave out what follows from the rest"
_OTHER_FAMILY = (
    "make columns of few values names, by astype('category') or the family 'categorical', split "
    "those of many zeros in two, leave out what says nothing of clusters or, if they are rounded, "
    "add noise of the width of a step (Ties in the user guide)"
)


class UnboundedMixin:
    """Finds such components of real columns and names the columns.

    Scores of rows say nothing then, and chains follow what they happen to have met.
    """

    def _find_unbounded(self, X):
        """Set what ``partition_info_`` says of them; X are the real columns."""
        posterior, info = self.posterior_, self.partition_info_
        # Chains may differ in which values they follow: each has its say, by its last draw.
        chains = [posterior[chain, -1]["label"] for chain in range(posterior.n_chains)]
        real = self._columns_of("gaussian")
        ties = np.array([_shares_of_ties(X, label) for label in chains])
        info["copies"], info["near_copies"] = _rows_of_copies(X, self.component_labels_)
        info["ties"] = [
            {
                "column": int(real[j]),
                "share": float(ties[:, j].max()),
                "n_chains": int((ties[:, j] >= _LEAST_SHARE).sum()),
            }
            for j in np.flatnonzero(ties.max(axis=0) >= _LEAST_SHARE)
        ]
        info["dependent"] = {}
        # A given prior is a bound.
        if self.covariance_type == "full" and self._learns_covariance():
            found = [_dependence(X, label) for label in chains]
            shares = np.array([share for share, _ in found])
            if shares.max() >= _LEAST_SHARE_OF_DEPENDENT:
                _, columns = found[int(shares.argmax())]
                info["dependent"] = {
                    "columns": real[columns].tolist(),
                    "whole_table": bool(dependent_columns(X).size),
                    "share": float(shares.max()),
                    "n_chains": int((shares >= _LEAST_SHARE_OF_DEPENDENT).sum()),
                }

    def _unbounded_in_words(self, is_news=False):
        """What such components are like, how many rows they have at most, and what to do.

        A pair of str; None where there are none. With ``is_news`` without what `fit` has said
        before it began to sample.
        """
        # A file of an older version says neither.
        info, found = self.partition_info_, []
        dependent, ties = info.get("dependent"), info.get("ties")
        if dependent and not (is_news and dependent["whole_table"]):
            columns = self._named(dependent["columns"])
            found.append(
                (dependent, f"have columns that follow from others, {columns}", _LEAVE_OUT)
            )
        if ties:
            most = max(ties, key=lambda one: (one["share"], one["n_chains"]))
            columns = self._named([one["column"] for one in ties])
            found.append((most, f"have one value in {columns}", _OTHER_FAMILY))
        if not found:
            return None
        which = [f"{self._rows_in_words(most)} {kind}" for most, kind, _ in found]
        return " and those ".join(which), "; ".join(remedy for *_, remedy in found)

    def _rows_in_words(self, most):
        # Never "100%" of rows of which some are exceptions.
        some = "all" if most["share"] == 1.0 else f"{min(most['share'], 0.99):.0%} of the"
        rows, n_chains = f"of {some} rows", self.posterior_.n_chains
        if most["n_chains"] == n_chains:
            return rows
        return f"{rows}, in {most['n_chains']} of {n_chains} chains,"

    def _lacks_of_chains(self):
        found, unbounded = super()._lacks_of_chains(), self._unbounded_in_words()
        if not unbounded and self._n_copies():
            unbounded = "of rows that are equal, or nearly so", "keep one of each such rows"
        if not found or not unbounded:
            return found
        follow = (
            f"components {unbounded[0]}, along which densities have no bound, and chains follow "
            "such rows"
        )
        return replace(found, advice=(Advice(Illness.UNBOUNDED, follow, unbounded[1]),))

    def _n_copies(self):
        """Rows in components of rows that are equal, or nearly so."""
        # A file of an older version does not say it.
        return sum(self.partition_info_.get(name, 0) for name in ("copies", "near_copies"))

    def _chains_section(self):
        """Chains may agree on densities that have no bound, but these are not to be trusted."""
        section = super()._chains_section()
        if not self._unbounded_in_words() and not self._n_copies():
            return section
        verdicts = tuple(one for one in section.verdicts if one.part != convergence.DENSITY)
        return replace(section, verdicts=verdicts)

    def _advice_on_far_cells(self):
        unbounded = self._unbounded_in_words()
        if not unbounded:
            return super()._advice_on_far_cells()
        return (
            f"Components {unbounded[0]}, and what other cells are told by that has no bound: "
            f"{unbounded[1]}"
        )

    def _judge_chains(self):
        super()._judge_chains()
        unbounded = self._unbounded_in_words(is_news=True)
        if unbounded and not self._lacks_of_chains():
            warn(
                f"Components {unbounded[0]}, along which densities have no bound: scores of rows "
                "say nothing, and clusters may be of that alone. If it should not tell clusters "
                f"apart, {unbounded[1]}"
            )
        copies, near = self.partition_info_["copies"], self.partition_info_["near_copies"]
        if copies:
            warn(
                f"{copies} rows are in components of rows that are equal in all real columns: "
                "densities have no bound where rows repeat. Leave copies out, as by "
                "numpy.unique(X, axis=0), or give columns of few values another family"
            )
        if near:
            warn(
                f"{near} rows are in components of a few rows that are nearly equal in all real "
                "columns, as those of things are that were measured several times. If they were, "
                "keep one row of each, or their mean; if such few rows are the clusters that you "
                "look for, all is well"
            )


def _block_by_block(X, components):
    """Sizes of components, where they begin in rows in their order, and these rows of X."""
    size = np.bincount(components)
    return size, np.cumsum(size) - size, X[np.argsort(components, kind="stable")]


def _are_copies(X, start):
    """Which components are of rows that are all equal, missing cells included."""
    X = np.where(np.isnan(X), np.inf, X)
    return (np.maximum.reduceat(X, start) == np.minimum.reduceat(X, start)).all(axis=1)


def _rows_of_copies(X, components):
    """How many rows are in components of two rows or more that are all equal, or nearly so.

    0 for a few.
    """
    if not X.shape[1]:
        return 0, 0
    size, start, X = _block_by_block(X, components)
    are_copies = _are_copies(X, start)
    found = int(size[are_copies & (size > 1)].sum())
    near = size[_are_near(X, size, start) & ~are_copies]
    return (
        found if found >= _FEWEST_COPIES else 0,
        int(near.sum()) if len(near) >= _FEWEST_NEAR else 0,
    )


def _are_near(X, size, start):
    """Which components are of a few rows, all complete, that lie closer than rows do elsewhere."""
    complete = ~np.isnan(X).any(axis=1)
    few = (size > 1) & (size <= _MOST_NEAR_ROWS) & np.logical_and.reduceat(complete, start)
    rows = np.flatnonzero(np.repeat(few, size))
    if not rows.size:
        return few
    X = np.where(complete[:, np.newaxis], X, 0.0)
    # First by the largest: squares of cells may be beyond the range of floats.
    largest = np.abs(X).max(axis=0)
    X = X / np.where(largest > 0.0, largest, 1.0)
    deviation = X[complete].std(axis=0)
    X = X / np.where(deviation > 0.0, deviation, np.inf)
    component = np.repeat(np.arange(len(size)), size)
    n_neighbors = min(_MOST_NEAR_ROWS + 1, int(complete.sum()))
    distance, neighbor = cKDTree(X[complete]).query(X[rows], k=n_neighbors)
    is_other = component[complete][neighbor] != component[rows][:, np.newaxis]
    to_others = np.where(is_other, distance, np.inf).min(axis=1)
    widths = np.maximum.reduceat(X, start) - np.minimum.reduceat(X, start)
    return few & (np.linalg.norm(widths, axis=1) < _NEAR * np.median(to_others))


def _shares_of_ties(X, components):
    """Share of the rows of which components have one value of a column, for each column.

    Neither columns that do not vary at all count nor components of copies.
    """
    if not X.shape[1]:
        return np.zeros(0)
    _, start, X = _block_by_block(X, components)
    n_seen = np.add.reduceat(~np.isnan(X), start, dtype=np.intp)
    low, high = np.fmin.reduceat(X, start), np.fmax.reduceat(X, start)
    tied = (low == high) & (n_seen >= _FEWEST_TIES)
    tied[_are_copies(X, start)] = False
    varies = np.fmin.reduce(low) < np.fmax.reduce(high)
    return np.sum(n_seen * tied, axis=0) * varies / len(X)


def _dependence(X, components):
    """Share of the rows that one law holds for in which columns follow from others, and which.

    Those of the components that have such columns, if they do so together. Where each component
    has a law of its own, or other constants in it, their covariances and means are a bound.
    """
    _, start, rows = _block_by_block(X, components)
    blocks = np.split(rows, start[1:])
    blocks = [block for block in blocks if dependent_columns(block).size]
    if not blocks:
        return 0.0, np.empty(0, dtype=np.intp)
    together = np.concatenate(blocks)
    columns = dependent_columns(together)
    return (len(together) / len(X) if columns.size else 0.0), columns
