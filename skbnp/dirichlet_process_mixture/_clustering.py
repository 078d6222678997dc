"""From draws to clusters: consensus, joining of components, where new rows belong."""

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from skbnp.dirichlet_process_mixture._predictive import accumulate_shares
from skbnp.estimators.arguments import refuses_by_name
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


class ClustersMixin(PartitionMixin):
    """``labels_`` of the training rows, and the clusters of new rows."""

    _consensus_labels = "component_labels_"

    @refuses_by_name
    def predict(self, X):
        """Most probable cluster of each row, among those of `labels_`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows, NaN where missing. Training rows count as new rows; their own clusters are
            in `labels_`.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        return np.argmax(self.predict_proba(X), axis=1)

    @refuses_by_name
    def predict_proba(self, X):
        """Probability that each row belongs with each cluster of `labels_`.

        Averaged over draws by companions, so no draw is relabelled: the probability, given the
        training data and the row, that a training row drawn from the row's block has label k,
        given that the row's block is not a new one.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows, NaN where missing. A row with no observed cell gets the cluster sizes.

        Returns
        -------
        proba : ndarray of shape (n_samples, `n_clusters_`)
            Rows sum to one. Cost O(predict_draws n_clusters d^2) per row for full covariance.
        """
        return self._companion_shares(self._check_new(X), new=False)[:, :-1]

    @refuses_by_name
    def novelty_proba(self, X):
        """Probability that each row opens a cluster of its own, given the training data and it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows, NaN where missing.

        Returns
        -------
        proba : ndarray of shape (n_samples,)
        """
        return self._companion_shares(self._check_new(X), new=True)[:, -1]

    @refuses_by_name
    def get_feature_names_out(self, input_features=None):
        """Names of the columns of `transform`: "cluster0", "cluster1", ...

        Parameters
        ----------
        input_features : None
            Ignored.

        Returns
        -------
        names : ndarray of str
        """
        check_is_fitted(self, "posterior_")
        return np.array([f"cluster{k}" for k in range(self.n_clusters_)], dtype=object)

    # -- after sampling

    @property
    def _partition_loss(self):
        return "binder" if self.point_estimate == "binder" else "vi"

    def _find_clusters(self, X):
        """Set the consensus of the draws, its joins and the clusters these make."""
        labels, seed = self._label_draws(), self.seed_ % 2**32
        if self.point_estimate == "map":
            components = relabel_by_size(self.posterior_.highest()["label"])
            self.expected_loss_ = expected_loss(components, labels)
            info = {"n_draws": len(labels), "dropped": []}
            info["support"] = support(components, labels).tolist()
        else:
            components, self.expected_loss_, info = stable_consensus(
                labels, self.point_estimate, max_work=self._search_work(X), random_state=seed
            )
        self.component_labels_, self.partition_info_ = components, info
        self._join_components(seed)
        self.n_clusters_ = int(self.labels_.max()) + 1
        self._n_features_out = self.n_clusters_

    def _join_components(self, seed):
        """The tree of components, and clusters: those that overlap as one."""
        components, info = self.component_labels_, self.partition_info_
        draws = self.posterior_.evenly_spaced(LEAST_DRAWS)
        n, rows, rng = len(components), None, np.random.RandomState(seed)
        if n > _MANY_ROWS:
            # As good to .01 by labels alone and by a part of the rows, and then no matter of time.
            rows = np.random.default_rng(seed).choice(n, _MANY_ROWS, replace=False)
        completed = self._training_rows.completed(draws, rng, rows)
        labels, reference = [draw["label"] for draw in draws], components
        if completed.rows.size:
            labels = [
                move_rows(draw["label"], completed.rows, completed.labels(draw, rng))
                for draw in draws
            ]
            found = cluster_shares(components, labels, map(completed.shares, draws))
            reference = move_rows(components, completed.rows, np.argmax(found, axis=1))
        if rows is None:
            left_out = map(self._training_rows.shares, draws)
            shares = cluster_shares(reference, labels, left_out)
            if completed.rows.size:
                found = cluster_shares(reference, labels, map(completed.shares, draws))
                shares[completed.rows] = found
        else:
            shares = cluster_shares(reference, labels, rows=rows)
        self.merge_tree_ = merge_tree(shares.T @ shares, np.bincount(components), _OVERLAP)
        joined, self.labels_ = labels, components.copy()
        if self._can_join():
            joined = joined_draws(labels, self.merge_overlap, _OVERLAP, rows=rows)
            self.labels_, dropped = drop_unsupported(
                self.merge_tree_.cut(self.merge_overlap)[components],
                labels,
                joined,
                random_state=seed,
            )
            info["dropped"] += dropped
            info["support"] = support(self.labels_, labels, joined).tolist()
        self.merged_n_clusters_ = np.array([int(draw.max()) + 1 for draw in joined])

    def _can_join(self):
        """Whether components are to be joined, and there are draws enough to say which."""
        return self.merge_overlap is not None and self.posterior_.n_stored >= LEAST_DRAWS

    def _warn_if_not_converged(self):
        super()._warn_if_not_converged()
        if self.merge_overlap is not None and not self._can_join():
            warn(
                f"components that overlap are joined from {LEAST_DRAWS} draws on, got "
                f"{self.posterior_.n_stored}: labels_ are component_labels_. Raise n_draws, or set "
                "merge_overlap=None",
                ConvergenceWarning,
            )

    def _search_work(self, X):
        """Trial moves that the partition search may make: about as long as the sampling."""
        n_sweeps = self.n_warmup_ + self.n_draws_ * self.posterior_.sweeps_per_draw
        mean_k = self.posterior_.traces["n_clusters"].mean()
        return int(max(1e8, self.n_chains * n_sweeps * X.size * mean_k))

    def _companion_table(self, draw):
        """|c and r_k| / |c| for the draw's blocks c and the clusters r_k, and a column for new."""
        n_blocks = len(draw["n_members"]) - 1
        table = np.zeros((n_blocks + 1, self.n_clusters_ + 1))
        table[:-1, :-1] = companion_table(
            draw["label"].astype(np.int32), n_blocks, self.labels_, self.n_clusters_
        )
        table[-1, -1] = 1.0
        return table

    def _companion_shares(self, X, new):
        """Shares of the clusters and, last, of a new one if that counts: rows sum to one."""
        draws = self._prediction_draws()
        tables = [self._companion_table(draw) for draw in draws]

        def shares(start, stop):
            rows = self._rows(X[start:stop])
            level = np.full(stop - start, -np.inf)
            sums = np.zeros((stop - start, self.n_clusters_ + 1))
            # Summed over draws before they are normalised: draws that explain the row count more.
            for draw, table in zip(draws, tables, strict=True):
                log_p = self._log_densities(rows, draw)
                if not new:
                    # Before the sums: far out a new block would drown the others in rounding.
                    log_p[:, -1] = -np.inf
                accumulate_shares(log_p, table, level, sums)
            return rows.unsort(sums / sums.sum(axis=1, keepdims=True))

        return self._by_row_blocks(shares, len(X))
