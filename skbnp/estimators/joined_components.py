"""Clusters from components that may overlap: those of each draw are joined before they are counted.

The mixture joins the components of its consensus instead, by what all draws together say of them.
"""

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skbnp.estimators.partition import PartitionMixin
from skbnp.mcmc.caller import warn
from skbnp.summaries.consensus import drop_unsupported, support
from skbnp.summaries.factors import some_rows
from skbnp.summaries.joining import merge_tree

# Rows that the overlap of components is judged by, at most.
_MOST_MERGE_ROWS = 1000
# Share of rows that equal another one above which it is worth a word.
_MOST_COPIES = 0.1


class JoinedComponentsMixin(PartitionMixin):
    """``labels_`` of joined components, and ``component_labels_`` of the components as they are.

    A subclass has the parameter ``merge_overlap`` and says

    - ``_shares_of(draw, rows)``: probabilities of the components of a draw for rows as `_prepared`
      has them, (n_rows, n_components);
    - ``_sizes_of(draw)``: how many training rows each has;
    - ``_trace_of_number``: the trace of their number.
    """

    _consensus_labels = "component_labels_"
    _trace_of_number = "n_clusters"

    # -- before sampling

    @staticmethod
    def _warn_of_copies(X):
        """Warn of rows that repeat: a component of equal rows has a density without a bound."""
        # Missing cells are equal too.
        seen = np.where(np.isnan(X), np.inf, X)
        counts = np.unique(seen, axis=0, return_counts=True)[1]
        n_copies = int(counts[counts > 1].sum())
        if n_copies > _MOST_COPIES * len(X):
            warn(
                f"{n_copies} of {len(X)} rows of X equal another one in all columns. Clusters may "
                "be of equal rows alone then, densities are too high and intervals too short. "
                "Leave copies out, as by np.unique(X, axis=0), unless rows do repeat"
            )

    # -- after sampling

    def _set_clusters(self, partition, labels, merged, info, chain_draws):
        """``labels_`` from a partition of joined components, and what is known of it.

        ``labels`` and ``merged`` are those of the draws before and after joining.
        """
        self.labels_ = partition
        if self.merge_overlap is not None:
            self.labels_, unsupported = drop_unsupported(
                partition, labels, merged, random_state=self.seed_ % 2**32
            )
            info["dropped"] += unsupported
            info["support"] = support(self.labels_, labels, merged).tolist()
        self.n_clusters_ = int(self.labels_.max()) + 1
        info["merge_overlap"] = self.merge_overlap
        info["n_clusters_of_chains"] = self._usual_numbers(chain_draws, merged)
        self.partition_info_ = info

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
                sizes, label = self._sizes_of(draw), self._labels_of(draw)
                if len(sizes) > 1:
                    r = self._shares_of(draw, rows)
                    label = merge_tree(r.T @ r, sizes).cut(merge_overlap)[label]
                found.append(label)
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

    def _warn_of_numbers(self):
        """Warn where chains have different numbers of clusters, or clusters little support."""
        # Chains have starts of their own; with many features each may keep to its own.
        usual = self.partition_info_["n_clusters_of_chains"]
        if len(set(usual)) > 1:
            warn(
                f"the chains have {', '.join(map(str, usual))} clusters; {self._basis_of_labels}",
                ConvergenceWarning,
            )
        if self.merge_overlap is not None:
            self._warn_if_unsupported()

    def _clusters_section(self, training):
        """The section of a report on clusters and the components that they are made of."""
        n_joined = np.array([len(np.unique(draw)) for draw in self._joined_label_draws()])
        n_blocks = [len(np.unique(draw)) for draw in self._label_draws()]
        # By what was found, as parameters may have changed since.
        is_plain = np.array_equal(n_joined, n_blocks)
        is_plain = is_plain and np.array_equal(self.labels_, self.component_labels_)
        return self._partition_section(
            training,
            n_blocks=self.posterior_.traces[self._trace_of_number],
            pieces=None if is_plain else self.component_labels_,
            n_joined=None if is_plain else n_joined,
            has_tree=False,
            dropped=self.partition_info_["dropped"],
            unsupported=() if is_plain else self._unsupported(),
        )
