"""From draws to clusters: consensus, joining of components, where new rows belong."""

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skbnp.estimators.factors import OutputsMixin
from skbnp.estimators.partition import PartitionMixin
from skbnp.mcmc.caller import warn
from skbnp.summaries.consensus import drop_unsupported, stable_consensus, support
from skbnp.summaries.joining import (
    LEAST_DRAWS,
    cluster_shares,
    joined_draws,
    merge_tree,
    move_rows,
)
from skbnp.summaries.partitions import companion_table, expected_loss, relabel_by_size

# Beyond so many rows joining goes by the labels of some of them.
_MANY_ROWS = 20_000
# How overlap is measured, see `skbnp.summaries.joining.overlap_of`.
_OVERLAP = "share"
# Rows in components of equal rows that are worth a word.
_FEWEST_COPIES = 5
# Cells of a column, all equal, that make a component one of ties, and the share of all rows in such
# components that is worth a word.
_FEWEST_TIES, _SHARE_OF_TIES = 5, 0.1
# From what probability on a row that lacks cells is surely of its cluster.
_SURE = 0.9


class ClustersMixin(PartitionMixin, OutputsMixin):
    """``labels_`` of the training rows, and the tree of components that they are joined by."""

    _consensus_labels = "component_labels_"
    _output_name = "cluster"
    # Which training rows are surely of their cluster, (n_samples,); None is all of them.
    _sure_rows = None

    # -- after sampling

    @property
    def _partition_loss(self):
        return "binder" if self.point_estimate == "binder" else "vi"

    def _find_clusters(self, X):
        """Set the consensus of the draws, its joins and the clusters these make."""
        seed, rows = self.seed_ % 2**32, None
        if len(X) > _MANY_ROWS:
            # As good to .01 by labels alone and by a part of the rows, and then no matter of time.
            rows = np.random.default_rng(seed).choice(len(X), _MANY_ROWS, replace=False)
        draws, rng = self.posterior_.evenly_spaced(LEAST_DRAWS), np.random.RandomState(seed)
        completed = self._training_rows.completed(draws, rng, rows)
        # A row that lacks cells may waver between clusters that are far apart: it says how many
        # there are as if it were complete, and by its own cells of which of them it is.
        wavering = None
        if completed.rows.size and rows is None and self.point_estimate != "map":
            wavering = completed.rows
        labels = self._label_draws()
        as_complete = labels
        if wavering is not None:
            as_complete = _labels_as_complete(self._summary_draws(), completed, rng)
        components, self.partition_info_ = self._consensus(X, labels, as_complete, seed)
        self._join_components(components, draws, completed, wavering, rows, rng)
        if wavering is not None:
            found = self.component_labels_, labels, self._partition_loss
            self.expected_loss_ = expected_loss(*found)
        self._say_what_is_equal(X[:, self._columns_of("gaussian")])
        self.n_clusters_ = int(self.labels_.max()) + 1
        self._n_features_out = self.n_clusters_

    def _consensus(self, X, labels, as_complete, seed):
        """The partition of least expected loss, and what is said of it."""
        if self.point_estimate == "map":
            components = relabel_by_size(self.posterior_.highest()["label"])
            self.expected_loss_ = expected_loss(components, labels)
            info = {"n_draws": len(labels), "dropped": []}
            return components, info | {"support": support(components, labels).tolist()}
        components, self.expected_loss_, info = stable_consensus(
            as_complete, self.point_estimate, max_work=self._search_work(X), random_state=seed
        )
        return components, info

    def _join_components(self, components, draws, completed, wavering, rows, rng):
        """The tree of components, and clusters: those that overlap as one.

        Overlap is that of ``rows``, None all, those that lack cells as if complete; ``wavering``
        are the rows that ``components`` has as if complete too.
        """
        labels = _labels_as_complete(draws, completed, rng)
        whole = components
        if completed.rows.size:
            found = cluster_shares(components, labels, map(completed.shares, draws))
            whole = move_rows(components, completed.rows, np.argmax(found, axis=1))
        if rows is None:
            shares = cluster_shares(whole, labels, map(self._training_rows.shares, draws))
            if wavering is not None:
                own = shares[wavering]
                components = move_rows(whole, wavering, np.argmax(own, axis=1))
            if completed.rows.size:
                found = cluster_shares(whole, labels, map(completed.shares, draws))
                shares[completed.rows] = found
        else:
            shares = cluster_shares(whole, labels, rows=rows)
        number, components = _by_size(components)
        self.component_labels_, shares = components, shares[:, np.argsort(number)]
        self.merge_tree_ = merge_tree(shares.T @ shares, np.bincount(components), _OVERLAP)
        joined, self.labels_, info = labels, components.copy(), self.partition_info_
        info["support"] = np.array(info["support"])[np.argsort(number)].tolist()
        if self._can_join():
            joined = joined_draws(labels, self.merge_overlap, _OVERLAP, rows=rows)
            pieces = components if wavering is None else number[whole]
            clusters, dropped = drop_unsupported(
                self.merge_tree_.cut(self.merge_overlap)[pieces],
                labels,
                joined,
                random_state=self.seed_ % 2**32,
            )
            info["dropped"] += dropped
            supports = support(clusters, labels, joined)
            if wavering is not None:
                own = own @ companion_table(whole, len(number), clusters, len(supports))
                clusters = move_rows(clusters, wavering, np.argmax(own, axis=1))
            number, self.labels_ = _by_size(clusters)
            info["support"] = supports[np.argsort(number)].tolist()
        self._sure_rows = None
        if wavering is not None:
            self._sure_rows = np.ones(len(components), dtype=bool)
            self._sure_rows[wavering] = own.max(axis=1) >= _SURE
        self.merged_n_clusters_ = np.array([int(draw.max()) + 1 for draw in joined])

    def _companion_table(self, draw):
        """By rows that are surely of their cluster, in blocks that have some.

        Of those that lack the cells which tell clusters apart a block has its share in every draw.
        """
        table, sure = super()._companion_table(draw), self._sure_rows
        if sure is None or sure.all():
            return table
        label, found = self._labels_of(draw)[sure], self._training_labels[sure]
        of_sure = companion_table(label.astype(np.intp), len(table), found, self.n_clusters_)
        has_some = of_sure.any(axis=1)
        table[has_some] = of_sure[has_some]
        return table

    def _say_what_is_equal(self, X):
        """Say which real cells, X, components are made of because they are equal."""
        real, posterior = self._columns_of("gaussian"), self.posterior_
        # Chains may differ in which values they follow: each has its say, by its last draw.
        chains = (posterior[chain, -1]["label"] for chain in range(posterior.n_chains))
        shares = np.array([_shares_of_ties(X, label) for label in chains])
        self.partition_info_["copies"] = _rows_of_copies(X, self.component_labels_)
        self.partition_info_["ties"] = [
            {
                "column": int(real[j]),
                "share": float(shares[:, j].max()),
                "n_chains": int((shares[:, j] >= _SHARE_OF_TIES).sum()),
            }
            for j in np.flatnonzero(shares.max(axis=0) >= _SHARE_OF_TIES)
        ]

    def _found(self, training):
        draws = self.posterior_.evenly_spaced(LEAST_DRAWS)
        n_blocks = [int(draw["label"].max()) + 1 for draw in draws]
        # By what was found, as parameters may have changed since.
        is_joined = not np.array_equal(n_blocks, self.merged_n_clusters_)
        is_joined = is_joined or not np.array_equal(self._training_labels, self.component_labels_)
        return self._partition_section(
            training,
            n_blocks=self.posterior_.traces["n_clusters"],
            loss=self._partition_loss,
            pieces=self.component_labels_ if is_joined else None,
            n_joined=self.merged_n_clusters_ if is_joined else None,
            dropped=self.partition_info_["dropped"],
            # A file of an older version says neither.
            copies=self.partition_info_.get("copies", 0),
            tied=self._tied_columns(),
        )

    def _can_join(self):
        """Whether components are to be joined, and there are draws enough to say which."""
        return self.merge_overlap is not None and self.posterior_.n_stored >= LEAST_DRAWS

    def _tied_columns(self):
        """Real columns of which components have one value each, in words; empty: none."""
        ties = self.partition_info_.get("ties", ())
        return self._named([one["column"] for one in ties]) if ties else ""

    def _said_of_ties(self):
        """How many rows such components have at most, and what to do, in words."""
        ties, n_chains = self.partition_info_["ties"], self.posterior_.n_chains
        most = max(ties, key=lambda one: (one["share"], one["n_chains"]))
        rows = f"of {most['share']:.0%} of the rows"
        if most["n_chains"] < n_chains:
            rows += f", in {most['n_chains']} of {n_chains} chains,"
        return rows, (
            "leave such columns out, split them in two, give them another family or, if they are "
            "rounded, add noise of the width of a step (Ties in the user guide)"
        )

    def _lacks_of_chains(self):
        problems, advice = super()._lacks_of_chains()
        if problems and self._tied_columns():
            rows, remedy = self._said_of_ties()
            advice = [
                f"components {rows} have one value in {self._tied_columns()}, along which "
                f"densities have no bound, and chains follow such values: {remedy}"
            ]
        return problems, advice

    def _warn_if_not_converged(self):
        super()._warn_if_not_converged()
        if self._tied_columns() and not self._lacks_of_chains()[0]:
            rows, remedy = self._said_of_ties()
            warn(
                f"Components {rows} have one value in {self._tied_columns()}, along which "
                "densities have no bound: scores of rows say nothing, and clusters may be of "
                f"single values alone. If these should not tell clusters apart, {remedy}"
            )
        copies = self.partition_info_["copies"]
        if copies:
            warn(
                f"{copies} rows are in components of rows that are equal in all real columns: "
                "densities have no bound where rows repeat. Leave copies out, as by "
                "numpy.unique(X, axis=0), or give columns of few values another family"
            )
        if self.merge_overlap is not None and not self._can_join():
            warn(
                f"components that overlap are joined from {LEAST_DRAWS} draws on, got "
                f"{self.posterior_.n_stored}: labels_ are component_labels_. Raise n_draws, or set "
                "merge_overlap=None",
                ConvergenceWarning,
            )


def _labels_as_complete(draws, completed, rng):
    """Labels of all rows in some draws, those of completed rows drawn anew; each (n_samples,)."""
    labels = [draw["label"] for draw in draws]
    if not completed.rows.size:
        return labels
    return [
        move_rows(label, completed.rows, completed.labels(draw, rng))
        for label, draw in zip(labels, draws, strict=True)
    ]


def _by_size(clusters):
    """New numbers of clusters, by decreasing size, and the clusters with these."""
    found = relabel_by_size(clusters)
    number = np.zeros(int(clusters.max()) + 1, dtype=np.intp)
    number[clusters] = found
    return number, found


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
