"""Clusters of the clusterer: of new rows, and of the draws together."""

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skbnp.estimators.partition import PartitionMixin
from skbnp.infinite_factor_clusterer._components import components
from skbnp.infinite_factor_clusterer._predictive import cluster_probabilities
from skbnp.mcmc.caller import warn
from skbnp.summaries.consensus import drop_unsupported, stable_consensus, support
from skbnp.summaries.factors import aligned, some_rows
from skbnp.summaries.joining import merge_tree
from skbnp.summaries.reference import reference_draw

# Rows that the overlap of components is judged by, at most.
_MOST_MERGE_ROWS = 1000


class ClustersMixin(PartitionMixin):
    """Clusters of rows, and the consensus partition of the draws."""

    _consensus_labels = "component_labels_"
    _weighs_draws = False

    # -- after sampling

    def _summarise_partition(self, X, draws):
        """The consensus of the draws' partitions, and the draw in their middle."""
        labels = [draw["label"] for draw in draws]
        work = self._search_work(X)

        def consensus(labels):
            return stable_consensus(labels, max_work=work, random_state=self.seed_ % 2**32)

        merged = labels
        self.component_labels_, self.expected_loss_, info = consensus(labels)
        self.labels_ = self.component_labels_
        if self.merge_overlap is not None:
            merged = self._merged_labels(draws, self.merge_overlap)
            partition, _, info = consensus(merged)
            self.labels_, unsupported = drop_unsupported(
                partition, labels, merged, random_state=self.seed_ % 2**32
            )
            info["dropped"] += unsupported
            info["support"] = support(self.labels_, labels, merged).tolist()
        self.partition_info_ = info
        self.n_clusters_ = int(self.labels_.max()) + 1
        self._reference = reference_draw(self.posterior_, draws, merged)
        info["merge_overlap"] = self.merge_overlap
        info["n_clusters_of_chains"] = self._usual_numbers(draws, merged)

    def _joined_label_draws(self):
        # A file of an older version does not say it.
        merge_overlap = self.partition_info_.get("merge_overlap", self.merge_overlap)
        if merge_overlap is None:
            return super()._joined_label_draws()
        return self._kept(
            f"joined draws, {merge_overlap}",
            lambda: self._merged_labels(self._summary_draws(), merge_overlap),
            self._training_labels,
        )

    def _merged_labels(self, draws, merge_overlap):
        """Labels of each draw after its overlapping components are joined."""
        rows = self._prepared(some_rows(self._training_rows.X, _MOST_MERGE_ROWS, self.seed_))

        def merge(start, stop):
            found = []
            for draw in draws[start:stop]:
                r = cluster_probabilities(rows, components(draw, self._prior))
                tree = merge_tree(r.T @ r, draw["n_members"])
                found.append(tree.cut(merge_overlap)[draw["label"]])
            return found

        return [labels for part in self._by_blocks(merge, len(draws), 8) for labels in part]

    def _usual_numbers(self, draws, merged):
        """Median number of clusters of each chain that has draws among these."""
        chain_of = {id(draw): c for c, chain in enumerate(self.posterior_.all_draws())
                    for draw in chain}  # fmt: skip
        counts = [[] for _ in range(self.n_chains_)]
        for draw, labels in zip(draws, merged, strict=True):
            counts[chain_of[id(draw)]].append(len(np.unique(labels)))
        return [int(np.median(count)) for count in counts if count]

    def _judge_chains(self):
        super()._judge_chains()
        # Chains have starts of their own; with many features each may keep to its own.
        usual = self.partition_info_["n_clusters_of_chains"]
        if len(set(usual)) > 1:
            warn(
                f"the chains have {', '.join(map(str, usual))} clusters; labels_ rest on all of "
                "them alike",
                ConvergenceWarning,
            )
        if self.merge_overlap is not None:
            self._warn_if_unsupported()

    def _found(self, training):
        n_joined = np.array([len(np.unique(draw)) for draw in self._joined_label_draws()])
        n_blocks = [len(np.unique(draw)) for draw in self._label_draws()]
        # By what was found, as parameters may have changed since.
        is_plain = np.array_equal(n_joined, n_blocks)
        is_plain = is_plain and np.array_equal(self.labels_, self.component_labels_)
        found = self._partition_section(
            training,
            n_blocks=self.posterior_.traces["n_clusters"],
            pieces=None if is_plain else self.component_labels_,
            n_joined=None if is_plain else n_joined,
            has_tree=False,
            dropped=self.partition_info_["dropped"],
            unsupported=() if is_plain else self._unsupported(),
        )
        return [*found, self._factors_section(training), self._association_section(training)]

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
