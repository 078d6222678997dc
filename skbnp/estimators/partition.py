"""What follows from draws that are partitions of the training rows."""

from sklearn.utils.validation import check_is_fitted

from skbnp.estimators.arguments import refuses_by_name
from skbnp.summaries.partitions import coclustering, credible_ball

# Draws that summaries of partitions look at, at most.
_MOST_DRAWS = 300


class PartitionMixin:
    """Which rows are together, and partitions around the consensus.

    ``_labels_of(draw)`` are the labels of a draw, ``_consensus_labels`` the name of the attribute
    with the consensus partition, without joins, and ``_partition_loss`` the loss it minimises.
    """

    _consensus_labels = "labels_"
    _partition_loss = "vi"

    def _labels_of(self, draw):
        """Labels of a draw, (n_samples,)."""
        return draw["label"]

    def _label_draws(self):
        """Labels of at most 300 evenly spaced draws, each (n_samples,)."""
        return [self._labels_of(draw) for draw in self.posterior_.evenly_spaced(_MOST_DRAWS)]

    def __getattr__(self, name):
        if name == "coclustering_":
            raise AttributeError("coclustering_ is computed, not stored: call coclustering()")
        # Not found, or a property without a value: the usual words, or those of the property.
        return object.__getattribute__(self, name)

    @refuses_by_name
    def coclustering(self, rows=None, columns=None):
        """Posterior probability that chosen training rows share a cluster, O(cells) per draw.

        Of the blocks of the draws as they are, without joins.

        Parameters
        ----------
        rows : array-like of int or bool, default=None
            Training rows, by position or as a mask of shape (n_samples,); None means all.
        columns : array-like of int or bool, or "all", default=None
            The rows to pair them with; "all" means all, None the same as `rows`.

        Returns
        -------
        proba : ndarray of shape (n_rows, n_columns)
            Over at most 300 evenly spaced draws.

        Raises
        ------
        ValueError
            If the result would have more than 4e8 cells.
        """
        check_is_fitted(self, "posterior_")
        return coclustering(self._label_draws(), rows, columns)

    @refuses_by_name
    def credible_ball(self, level=0.95):
        """Partitions around the consensus that hold most of the posterior, and its extremes.

        Of draws as they are, without joins.

        Parameters
        ----------
        level : float in (0, 1], default=0.95
            Posterior probability that the ball holds at least.

        Returns
        -------
        ball : skbnp.summaries.partitions.CredibleBall
            Its radius, and its bounds with the fewest clusters (``upper``), the most
            (``lower``) and the farthest (``horizontal``), as by Wade and Ghahramani (2018); in
            the loss that the consensus minimises. Over at most 300 evenly spaced draws.
        """
        check_is_fitted(self, "posterior_")
        return credible_ball(
            getattr(self, self._consensus_labels),
            self._label_draws(),
            self._partition_loss,
            level=level,
        )
