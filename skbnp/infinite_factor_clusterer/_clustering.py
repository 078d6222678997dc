"""Clusters of the clusterer: of new rows, and of the draws together."""

import numpy as np

from skbnp.estimators.joined_components import JoinedComponentsMixin
from skbnp.infinite_factor_clusterer._components import components
from skbnp.infinite_factor_clusterer._predictive import cluster_probabilities
from skbnp.summaries.consensus import stable_consensus
from skbnp.summaries.factors import aligned
from skbnp.summaries.reference import reference_draw


class ClustersMixin(JoinedComponentsMixin):
    """Clusters of rows, and the consensus partition of the draws."""

    _weighs_draws = False
    _basis_of_labels = "labels_ rest on all of them alike"

    @staticmethod
    def _sizes_of(draw):
        return draw["n_members"]

    def _shares_of(self, draw, rows):
        return cluster_probabilities(rows, components(draw, self._prior))

    # -- after sampling

    def _summarise_partition(self, X, draws):
        """The consensus of the draws' partitions, and the draw in their middle."""
        labels = [draw["label"] for draw in draws]
        work = self._search_work(X)

        def consensus(labels):
            return stable_consensus(labels, max_work=work, random_state=self.seed_ % 2**32)

        merged = labels
        self.component_labels_, self.expected_loss_, info = consensus(labels)
        partition = self.component_labels_
        if self.merge_overlap is not None:
            merged = self._merged_labels(draws, self.merge_overlap)
            partition, _, info = consensus(merged)
        self._reference = reference_draw(self.posterior_, draws, merged)
        self._set_clusters(partition, labels, merged, info, draws)

    def _judge_chains(self):
        super()._judge_chains()
        self._warn_of_numbers()

    def _found(self, training):
        return [
            *self._clusters_section(training),
            self._factors_section(training),
            self._association_section(training),
        ]

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
