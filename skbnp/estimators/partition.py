"""What follows from draws that are partitions of the training rows."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skbnp.estimators.arguments import refuses_by_name
from skbnp.estimators.draws import MOST_SUMMARY_DRAWS
from skbnp.summaries.partitions import (
    coclustering,
    companion_table,
    credible_ball,
    expected_loss,
)


class PartitionMixin:
    """Which rows are together, partitions around the consensus, and where new rows belong.

    A subclass sets ``labels_`` (n_samples,), 0 to ``n_clusters_`` - 1, and ``expected_loss_``. It
    says

    - ``_labels_of(draw)``: the labels of the training rows in a draw, numbered without a gap;
    - ``_log_joint_of(law, t, rows, new)``: log p(block) p(row | block) of the blocks of a draw and,
      with ``new``, of those that a row would open behind them, (n_rows, at least n_blocks);
    - ``_consensus_labels``: the attribute with the consensus partition, without joins, and
      ``_partition_loss`` the loss that it minimises.

    Draws whose blocks have a density for rows have one themselves: ``_log_density_of``.
    """

    _consensus_labels = "labels_"
    _partition_loss = "vi"

    @staticmethod
    def _labels_of(draw):
        """Labels of a draw, (n_samples,)."""
        return draw["label"]

    def _label_draws(self):
        """Labels of at most 300 evenly spaced draws, each (n_samples,)."""
        return [self._labels_of(draw) for draw in self._summary_draws()]

    def _laws_of_blocks(self, draws, new):
        """Laws of the draws of a prediction, with blocks that rows would open if ``new``."""
        return [self._law_of(draw, t) for t, draw in enumerate(draws)]

    @classmethod
    def _fitted_of_file(cls, fitted):
        fitted = dict(super()._fitted_of_file(fitted))
        if "expected_loss_" not in fitted and cls._consensus_labels in fitted:
            # A file of 0.1, of a model that did not say it.
            draws = fitted["posterior_"].evenly_spaced(MOST_SUMMARY_DRAWS)
            labels = [cls._labels_of(draw) for draw in draws]
            fitted["expected_loss_"] = expected_loss(fitted[cls._consensus_labels], labels)
        return fitted

    def __getattr__(self, name):
        if name == "coclustering_":
            raise AttributeError("coclustering_ is computed, not stored: call coclustering()")
        # Not found, or a property without a value: the usual words, or those of the property.
        return object.__getattribute__(self, name)

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
            Rows sum to one. Cost `predict_draws` times that of a density for each row.
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
            Where the law of a new cluster has no closed form a few of them, drawn from the prior,
            stand for it: rows that are far out are ranked by `score_samples` then.
        """
        return self._companion_shares(self._check_new(X), new=True)[:, -1]

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

    # -- after sampling

    def _search_work(self, X):
        """Trial moves that the partition search may make: about as long as the sampling."""
        n_sweeps = self.n_warmup_ + self.n_draws_ * self.posterior_.sweeps_per_draw
        mean_k = self.posterior_.traces["n_clusters"].mean()
        return int(max(1e8, self.n_chains * n_sweeps * X.size * mean_k))

    # -- new rows

    def _log_density_of(self, law, t, rows):
        return _log_total(self._log_joint_of(law, t, rows, new=True))

    def _companion_table(self, draw):
        """|c and r_k| / |c| for blocks c of the draw and clusters r_k: (n_blocks, n_clusters)."""
        labels = self._labels_of(draw).astype(np.intp)
        return companion_table(labels, int(labels.max()) + 1, self.labels_, self.n_clusters_)

    def _companion_shares(self, X, new):
        """Shares of the clusters and, last, of a new one if that counts: rows sum to one."""
        draws = self._prediction_draws()
        tables = [self._companion_table(draw) for draw in draws]

        def of_draw(law, t, rows):
            n_blocks = len(tables[t])
            log_p = self._log_joint_of(law, t, rows, new)
            # Before any sum: far out a new block would drown the others in rounding.
            log_p = log_p if new else log_p[:, :n_blocks]
            level = log_p.max(axis=1)
            p = np.exp(log_p - np.where(np.isfinite(level), level, 0.0)[:, np.newaxis])
            found = np.zeros((len(p), self.n_clusters_ + 1))
            found[:, :-1] = p[:, :n_blocks] @ tables[t]
            found[:, -1] = p[:, n_blocks:].sum(axis=1)
            return level, found

        laws, shares = self._laws_of_blocks(draws, new), np.empty((len(X), self.n_clusters_ + 1))
        A = self._conditioned(X)
        # Summed over draws before they are normalised: draws that explain the row count more.
        for rows, parts in self._over_draws(A, of_draw, _summed, self._prepared, laws):
            _, sums = _summed(parts)
            shares[rows] = sums / sums.sum(axis=1, keepdims=True)
        return shares


def _log_total(log_p):
    """log sum of e^log_p over columns, -inf where all are."""
    level = log_p.max(axis=1)
    finite = np.where(np.isfinite(level), level, 0.0)
    with np.errstate(divide="ignore"):
        return finite + np.log(np.exp(log_p - finite[:, np.newaxis]).sum(axis=1))


def _summed(parts):
    """The sum of e^level times sums over draws, in units of the largest level: (level, sums)."""
    total = None
    for level, sums in parts:
        if total is None:
            top, total = level, sums
            continue
        highest = np.maximum(top, level)
        finite = np.where(np.isfinite(highest), highest, 0.0)
        total = (
            total * np.exp(top - finite)[:, np.newaxis]
            + sums * np.exp(level - finite)[:, np.newaxis]
        )
        top = highest
    return top, total
