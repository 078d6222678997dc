"""Clusters of the clusterer: of new rows, and of the draws together."""

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skbnp.estimators.arguments import refuses_by_name
from skbnp.estimators.partition import PartitionMixin
from skbnp.infinite_factor_clusterer._predictive import (
    cluster_probabilities,
    components,
    log_densities,
    responsibilities,
)
from skbnp.mcmc.caller import warn
from skbnp.summaries.consensus import drop_unsupported, stable_consensus, support
from skbnp.summaries.factors import aligned, some_rows
from skbnp.summaries.joining import merge_tree
from skbnp.summaries.partitions import central_draw, companion_table

# Rows that the overlap of components is judged by, at most.
_MOST_MERGE_ROWS = 1000


class ClustersMixin(PartitionMixin):
    """Clusters of rows, and the consensus partition of the draws."""

    _consensus_labels = "component_labels_"

    @refuses_by_name
    def predict(self, X):
        """Most probable cluster of each row, among those of `labels_`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, NaN where missing. Training rows count as new rows; their own clusters are in
            `labels_`.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        return np.argmax(self.predict_proba(X), axis=1)

    @refuses_by_name
    def predict_proba(self, X):
        """Probability that each row belongs with each cluster of `labels_`.

        Column j is the average over draws of this probability: a training row, picked at random
        from the row's component, has the label j. So no draw has to be relabelled.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, NaN where missing.

        Returns
        -------
        proba : ndarray of shape (n_samples, `n_clusters_`)
            Rows sum to one.
        """
        A = self._visible(self._check_new(X))
        draws = self._prediction_draws()
        laws = [components(draw, self._prior) for draw in draws]
        tables = [self._companion_table(draw) for draw in draws]

        def of_draw(draw, t, block):
            return cluster_probabilities(self._rows(block), laws[t]) @ tables[t]

        proba = np.empty((len(A), self.n_clusters_))
        for rows, parts in self._over_draws(A, of_draw, sum):
            proba[rows] = np.sum(parts, axis=0) / len(draws)
        return proba / proba.sum(axis=1, keepdims=True)

    @refuses_by_name
    def novelty_score(self, X):
        """Probability that each row belongs to a cluster to which no training row belongs.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, NaN where missing.

        Returns
        -------
        score : ndarray of shape (n_samples,)
            Mean over draws. Ten clusters from the prior stand for the new one. Few of them are
            very far out; rank rows that are so by `score_samples`.
        """
        A = self._visible(self._check_new(X))
        draws = self._prediction_draws()
        laws = [components(draw, self._prior) for draw in draws]

        def of_draw(draw, t, block):
            log_p = log_densities(self._rows(block), laws[t]) + laws[t].log_weight
            return responsibilities(log_p)[:, -1]

        score = np.empty(len(A))
        for rows, parts in self._over_draws(A, of_draw, sum):
            score[rows] = np.sum(parts, axis=0) / len(draws)
        return score

    # -- after sampling

    def _summarise_partition(self, X, draws):
        """The consensus of the draws' partitions, and the draw in their middle."""
        labels = [draw["label"] for draw in draws]
        work = self._search_work(X)

        def consensus(labels):
            return stable_consensus(labels, max_work=work, random_state=self.seed_ % 2**32)

        merged = labels
        self.component_labels_, _, info = consensus(labels)
        self.labels_ = self.component_labels_
        if self.merge_overlap is not None:
            merged = self._merged_labels(draws)
            partition, _, info = consensus(merged)
            self.labels_, unsupported = drop_unsupported(
                partition, labels, merged, random_state=self.seed_ % 2**32
            )
            info["dropped"] += unsupported
            info["support"] = support(self.labels_, labels, merged).tolist()
        self.partition_info_ = info
        self.n_clusters_ = int(self.labels_.max()) + 1
        some = self._comparable(draws)
        self._reference = draws[some][central_draw(merged[some])]
        self._warn_if_chains_disagree(draws, merged)

    def _merged_labels(self, draws):
        """Labels of each draw after its overlapping components are joined."""
        rows = self._rows(some_rows(self._training_rows.X, _MOST_MERGE_ROWS, self.seed_))

        def merge(start, stop):
            found = []
            for draw in draws[start:stop]:
                r = cluster_probabilities(rows, components(draw, self._prior))
                tree = merge_tree(r.T @ r, draw["n_members"])
                found.append(tree.cut(self.merge_overlap)[draw["label"]])
            return found

        return [labels for part in self._by_blocks(merge, len(draws), 8) for labels in part]

    def _warn_if_chains_disagree(self, draws, merged):
        """Chains have starts of their own; with many features each may keep to its own."""
        chain_of = {id(draw): c for c, chain in enumerate(self.posterior_.all_draws())
                    for draw in chain}  # fmt: skip
        counts = [[] for _ in range(self.n_chains)]
        for draw, labels in zip(draws, merged, strict=True):
            counts[chain_of[id(draw)]].append(len(np.unique(labels)))
        usual = [int(np.median(count)) for count in counts if count]
        if len(set(usual)) > 1:
            warn(
                f"the chains have {', '.join(map(str, usual))} clusters; labels_ rest on all of "
                "them alike. Raise n_warmup, or compare chains by their held-out density",
                ConvergenceWarning,
            )

    def _search_work(self, X):
        """Trial moves that the partition search may make: about as long as the sampling."""
        n_sweeps = self.n_chains * (self.n_warmup_ + self.n_draws_ * self.thin)
        return int(max(1e8, n_sweeps * X.size * self.posterior_.traces["n_clusters"].mean()))

    def _cluster_energies(self):
        """Variances of factors and noise of each cluster, over draws by members."""
        draws = self._prediction_draws()
        n_features, n_factors = self.n_features_in_, self._reference["loadings1"].shape[1]
        total = np.zeros((self.n_clusters_, n_factors + n_features))
        counts = np.zeros_like(total)
        for draw, (column, _) in zip(draws, self._alignments(draws), strict=True):
            # Members of each cluster by component.
            share = (self._companion_table(draw) * draw["n_members"][:, np.newaxis]).T
            noise = np.zeros((len(draw["n_members"]), n_features))
            noise[:, self._units.columns] = draw["noise_variance"] * self._units.scale**2
            values = aligned(draw["score_variance"], column, np.ones(n_factors))
            there = np.append(column >= 0, np.ones(n_features, dtype=bool))
            total += share @ np.concatenate([values, noise], axis=1)
            counts += share.sum(axis=1, keepdims=True) * there
        mean = total / np.where(counts > 0, counts, 1.0)
        return {"factors": mean[:, :n_factors], "noise": mean[:, n_factors:]}

    def _companion_table(self, draw):
        """Shares of the clusters of `labels_` among the members of each component."""
        return companion_table(
            draw["label"].astype(np.intp), len(draw["n_members"]), self.labels_, self.n_clusters_
        )
