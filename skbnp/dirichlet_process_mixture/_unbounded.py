"""Components along which densities have no bound: of copies, of ties, of dependent columns."""

from dataclasses import replace

import numpy as np

from skbnp.mcmc.caller import warn
from skbnp.reports import convergence

# Rows in components of equal rows that are worth a word.
_FEWEST_COPIES = 5
# Cells of a column, all equal, that make a component one of ties, and the share of all rows in such
# components, or in those of dependent columns, that is worth a word.
_FEWEST_TIES, _LEAST_SHARE = 5, 0.1
# Columns are dependent where so many complete rows a column, or more, have correlations with an
# eigenvalue below this; those with a weight above the other number are a part of it.
_ROWS_PER_COLUMN, _DEPENDENT, _PART_OF_IT = 5, 1e-7, 1e-3


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
        info["copies"] = _rows_of_copies(X, self.component_labels_)
        info["ties"] = [
            {"column": int(real[j]), **_over_chains(ties[:, j])}
            for j in np.flatnonzero(ties.max(axis=0) >= _LEAST_SHARE)
        ]
        info["dependent"] = {}
        if self.covariance_type == "full":
            found = [_dependence(X, label) for label in chains]
            shares = np.array([share for share, _ in found])
            if shares.max() >= _LEAST_SHARE:
                _, columns = found[int(shares.argmax())]
                whole = bool(dependent_columns(X).size)
                info["dependent"] = {
                    "columns": real[columns].tolist(), "whole_table": whole, **_over_chains(shares)
                }  # fmt: skip

    def _unbounded_in_words(self):
        """What such components are like, how many rows they have at most, and what to do.

        A pair of str, for the worst of it; None where there are none.
        """
        # A file of an older version says neither.
        info, n_chains = self.partition_info_, self.posterior_.n_chains
        if info.get("dependent"):
            most = info["dependent"]
            kind = f"have columns that follow from others, {self._named(most['columns'])}"
            remedy = "leave out what follows from the rest"
        elif info.get("ties"):
            most = max(info["ties"], key=lambda one: (one["share"], one["n_chains"]))
            kind = f"have one value in {self._named([one['column'] for one in info['ties']])}"
            remedy = (
                "give columns of few values another family, such as 'categorical', split those of "
                "many zeros in two, leave out what says nothing of clusters or, if they are "
                "rounded, add noise of the width of a step (Ties in the user guide)"
            )
        else:
            return None
        rows = f"of {most['share']:.0%} of the rows"
        if most["n_chains"] < n_chains:
            rows += f", in {most['n_chains']} of {n_chains} chains,"
        return f"{rows} {kind}", remedy

    def _lacks_of_chains(self):
        problems, advice = super()._lacks_of_chains()
        unbounded = self._unbounded_in_words()
        if problems and unbounded:
            advice = [
                f"components {unbounded[0]}, along which densities have no bound, and chains "
                f"follow such rows: {unbounded[1]}"
            ]
        return problems, advice

    def _chains_section(self):
        """Chains may agree on densities that have no bound, but these are not to be trusted."""
        section = super()._chains_section()
        if not self._unbounded_in_words():
            return section
        verdicts = tuple(one for one in section.verdicts if one.part != convergence.DENSITY)
        return replace(section, verdicts=verdicts)

    def _judge_chains(self):
        super()._judge_chains()
        unbounded = self._unbounded_in_words()
        # Of columns that are dependent in the whole table the prior has warned.
        is_news = not self.partition_info_["dependent"].get("whole_table", False)
        if unbounded and is_news and not self._lacks_of_chains()[0]:
            warn(
                f"Components {unbounded[0]}, along which densities have no bound: scores of rows "
                "say nothing, and clusters may be of that alone. If it should not tell clusters "
                f"apart, {unbounded[1]}"
            )
        copies = self.partition_info_["copies"]
        if copies:
            warn(
                f"{copies} rows are in components of rows that are equal in all real columns: "
                "densities have no bound where rows repeat. Leave copies out, as by "
                "numpy.unique(X, axis=0), or give columns of few values another family"
            )


def dependent_columns(X, rows_per_column=_ROWS_PER_COLUMN):
    """Which columns have a part in what never varies.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Rows that lack cells are left out, and columns of one value.
    rows_per_column : int, default=5
        With fewer rows than that none are found.

    Returns
    -------
    columns : ndarray of int
    """
    # Halves, as differences of what floats hold may be too large for them.
    X = X[~np.isnan(X).any(axis=1)] / 2.0
    off = X - X[:1]
    reach = np.abs(off).max(axis=0, initial=0.0)
    varies = np.flatnonzero(reach > 0.0)
    if len(varies) < 2 or len(X) < rows_per_column * len(varies):
        return varies[:0]
    eigenvalue, vector = np.linalg.eigh(np.corrcoef(off[:, varies] / reach[varies], rowvar=False))
    never_vary = np.abs(vector[:, eigenvalue < _DEPENDENT])
    return varies[never_vary.max(axis=1, initial=0.0) > _PART_OF_IT]


def _over_chains(shares):
    """The largest share, and how many chains have one worth a word."""
    return {"share": float(shares.max()), "n_chains": int((shares >= _LEAST_SHARE).sum())}


def _block_by_block(X, components):
    """Sizes of components, where they begin in rows in their order, and these rows of X."""
    size = np.bincount(components)
    return size, np.cumsum(size) - size, X[np.argsort(components, kind="stable")]


def _are_copies(X, start):
    """Which components are of rows that are all equal, missing cells included."""
    X = np.where(np.isnan(X), np.inf, X)
    return (np.maximum.reduceat(X, start) == np.minimum.reduceat(X, start)).all(axis=1)


def _rows_of_copies(X, components):
    """How many rows are in components of two rows or more that are all equal; 0 for a few."""
    if not X.shape[1]:
        return 0
    size, start, X = _block_by_block(X, components)
    found = int(size[_are_copies(X, start) & (size > 1)].sum())
    return found if found >= _FEWEST_COPIES else 0


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
    """Share of the rows whose components have dependent columns, and which these mostly are."""
    _, start, rows = _block_by_block(X, components)
    total, weight = 0, np.zeros(X.shape[1])
    for block in np.split(rows, start[1:]):
        found = dependent_columns(block)
        if found.size:
            total += len(block)
            weight[found] += len(block)
    return total / len(X), np.flatnonzero(weight > total / 2)
