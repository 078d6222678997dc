"""Clusters of the tree factor model: branches of the reference draw, joined where they overlap."""

import numpy as np

from skbnp.estimators.joined_components import JoinedComponentsMixin
from skbnp.summaries.consensus import relabel_by_size
from skbnp.summaries.partitions import expected_loss
from skbnp.summaries.reference import reference_draw
from skbnp.tree_factor_model._predictive import branch_probabilities, prepared


class ClustersMixin(JoinedComponentsMixin):
    """Clusters of rows, from branches that may describe the same rows.

    Chains start from many branches, and in many rows two of the same law go on side by side for
    long: densities ask for no more, but they are one cluster.
    """

    _trace_of_number = "n_branches"
    _basis_of_labels = "labels_ are of a draw in the middle of all"

    @staticmethod
    def _labels_of(draw):
        return draw["branch"]

    @staticmethod
    def _sizes_of(draw):
        return draw["leaf_count"]

    @staticmethod
    def _shares_of(draw, rows):
        return branch_probabilities(rows, prepared(draw))

    # -- after sampling

    def _summarise_partition(self):
        """The reference draw, and clusters from its branches."""
        draws, labels = self._summary_draws(), self._label_draws()
        merge_overlap, merged = self.merge_overlap, labels
        if merge_overlap is not None:
            merged = self._merged_labels(draws, merge_overlap)
        draw = self._reference = reference_draw(self.posterior_, draws, merged)
        self.component_labels_ = partition = draw["branch"].astype(np.intp)
        self.expected_loss_ = expected_loss(self.component_labels_, labels)
        if merge_overlap is not None:
            partition = relabel_by_size(*self._merged_labels([draw], merge_overlap))
        self._set_clusters(partition, labels, merged, {"dropped": []}, draws)

    def _judge_chains(self):
        super()._judge_chains()
        if not self._is_ensemble(self.n_features_in_):  # whose chains are meant to differ
            self._warn_of_numbers()

    # -- files

    @classmethod
    def _fitted_of_file(cls, fitted):
        fitted = dict(fitted)
        if "labels_" in fitted and not {"component_labels_", "partition_info_"} & fitted.keys():
            # Clusters were the branches of the reference draw.
            fitted["component_labels_"] = fitted["labels_"]
            fitted["partition_info_"] = {
                "dropped": [], "merge_overlap": None, "n_clusters_of_chains": []
            }  # fmt: skip
        return super()._fitted_of_file(fitted)

    def _check_clusters(self):
        """Raise a ValueError unless labels of a file are those of its reference draw."""
        labels, n_clusters = self.labels_, self.n_clusters_
        if not np.array_equal(self.component_labels_, self._reference["branch"]):
            raise ValueError("component_labels_ must be the branches of the reference draw")
        if labels.shape != self.component_labels_.shape or not np.array_equal(
            np.unique(labels), np.arange(n_clusters)
        ):
            raise ValueError(f"labels_ must be 0 to n_clusters_ - 1 = {n_clusters - 1}")
