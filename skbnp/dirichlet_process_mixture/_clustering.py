"""From draws to clusters: consensus, joining of components, where new rows belong."""

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skbnp.dirichlet_process_mixture._unbounded import UnboundedMixin
from skbnp.estimators.factors import OutputsMixin
from skbnp.estimators.partition import PartitionMixin
from skbnp.mcmc.caller import warn
from skbnp.summaries.consensus import drop_unsupported, stable_consensus, support
from skbnp.summaries.joining import (
    LEAST_DRAWS,
    cluster_shares,
    joined_across,
    joined_draws,
    merge_tree,
    move_rows,
)
from skbnp.summaries.partitions import companion_table, expected_loss, relabel_by_size

# Beyond so many rows joining goes by the labels of some of them.
_MANY_ROWS = 20_000
# How overlap is measured, see `skbnp.summaries.joining.merge_tree`: kind and linkage.
_OVERLAP = ("share", "capped")
# Pairs of rows of different clusters that single draws join: a share of them worth a word. And
# up to how many times the limit of joins a join that leaves one cluster alone is a close one.
_MOST_ACROSS, _CLOSE = 0.4, 1.5
# From what probability on a row that lacks cells is surely of its cluster.
_SURE = 0.9


class ClustersMixin(UnboundedMixin, PartitionMixin, OutputsMixin):
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
        seed, rows = self.seed_ % 2**32, self._rows_of_overlap(len(X))
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
        self._find_unbounded(X[:, self._columns_of("gaussian")])
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
        self.merge_tree_ = merge_tree(shares.T @ shares, np.bincount(components), *_OVERLAP)
        joined, self.labels_, info = labels, components.copy(), self.partition_info_
        info["support"] = np.array(info["support"])[np.argsort(number)].tolist()
        if self._can_join():
            joined = joined_draws(labels, self.merge_overlap, *_OVERLAP, rows=rows)
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
        info["joined_across"] = joined_across(self.labels_, joined)
        info["merge_overlap"] = self.merge_overlap

    def _rows_of_overlap(self, n_rows):
        """The training rows by which components overlap, None all: a random part of many.

        That is as good to .01, as are labels alone, and no matter of time.
        """
        if n_rows <= _MANY_ROWS:
            return None
        rng = np.random.default_rng(self.seed_ % 2**32)
        return rng.choice(n_rows, _MANY_ROWS, replace=False)

    def _joined_label_draws(self):
        """Draws whose blocks are joined as for `merged_n_clusters_`.

        Rows that lack cells say as if complete which blocks overlap, and stay in those of the draw.
        """
        if not self._has_joined():
            return super()._joined_label_draws()
        merge_overlap = self._merge_overlap_of_fit()
        rows = self._rows_of_overlap(len(self._training_labels))
        draws = self.posterior_.evenly_spaced(LEAST_DRAWS)
        rng = np.random.RandomState(self.seed_ % 2**32)
        completed = self._training_rows.completed(draws, rng, rows)
        labels = _labels_as_complete(draws, completed, rng)
        joined = joined_draws(labels, merge_overlap, *_OVERLAP, rows=rows)
        if not completed.rows.size:
            return joined
        own = [draw["label"] for draw in draws]
        return [_clusters_of(*found) for found in zip(own, labels, joined, strict=True)]

    def _draws_of_clusters(self):
        """Blocks as they are, with the clusters of ``labels_``: those that `predict_proba` takes.

        What single draws join to may differ from ``labels_`` by much where joins are close.
        """
        if not self._has_joined():
            return super()._draws_of_clusters()
        tables = [self._companion_table(draw) for draw in self._summary_draws()]
        return self._label_draws(), tables

    def _merge_overlap_of_fit(self):
        # A file of an older version does not say it.
        return self.partition_info_.get("merge_overlap", self.merge_overlap)

    def _has_joined(self):
        """Whether ``labels_`` rest on joins, of no two components maybe."""
        return self._merge_overlap_of_fit() is not None and self.posterior_.n_stored >= LEAST_DRAWS

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
            near_copies=self.partition_info_.get("near_copies", 0),
            unbounded=self._unbounded_in_words(),
            unsupported=self._unsupported() if is_joined else (),
        )

    def _can_join(self):
        """Whether components are to be joined, and there are draws enough to say which."""
        return self.merge_overlap is not None and self.posterior_.n_stored >= LEAST_DRAWS

    def _judge_chains(self):
        super()._judge_chains()
        if self._can_join():
            self._warn_if_unsupported()
            self._warn_of_close_joins()
        elif self.merge_overlap is not None:
            warn(
                f"components that overlap are joined from {LEAST_DRAWS} draws on, got "
                f"{self.posterior_.n_stored}: labels_ are component_labels_. Raise n_draws, or set "
                "merge_overlap=None",
                ConvergenceWarning,
            )

    def _warn_of_close_joins(self):
        """Say where draws join what ``labels_`` keeps apart, or where rows only just are one."""
        across = self.partition_info_["joined_across"]
        if across > _MOST_ACROSS:
            usual = int(np.median(self.merged_n_clusters_))
            warn(
                f"labels_ has {self.n_clusters_} clusters, but of the pairs of rows of different "
                f"ones {across:.0%} are together in single draws, whose components are joined in "
                f"the same way, to {usual} as a rule: their number is open. Look at "
                "skbnp.plot.MergeTreeDisplay and coclustering(joined=False)"
            )
        tree, limit = self.merge_tree_, self.merge_overlap
        if self.n_clusters_ == 1 < len(tree.sizes) and not self.partition_info_["dropped"]:
            n_left = int(tree.cut(_CLOSE * limit).max()) + 1
            if n_left > 1:
                warn(
                    "all rows are one cluster because components are joined that overlap by "
                    f"{tree.overlap.min():.2f}, not much more than merge_overlap={limit:g}: "
                    f"merge_tree_.cut(n_clusters={n_left})[component_labels_] keeps {n_left} "
                    "apart. Look at skbnp.plot.MergeTreeDisplay"
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


def _clusters_of(label, as_complete, joined):
    """Clusters of rows by their blocks, where ``as_complete`` are the blocks that have ``joined``.

    Blocks that are not among these are clusters of their own.
    """
    cluster = np.full(int(label.max()) + 1, -1, dtype=np.intp)
    cluster[as_complete] = joined
    alone = np.flatnonzero(cluster < 0)
    cluster[alone] = int(joined.max()) + 1 + np.arange(len(alone))
    return cluster[label]


def _by_size(clusters):
    """New numbers of clusters, by decreasing size, and the clusters with these."""
    found = relabel_by_size(clusters)
    number = np.zeros(int(clusters.max()) + 1, dtype=np.intp)
    number[clusters] = found
    return number, found
