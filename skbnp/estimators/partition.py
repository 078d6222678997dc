"""What follows from draws that are partitions of the training rows."""

from numbers import Real

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from skbnp.estimators.arguments import refuses_by_name
from skbnp.estimators.draws import MOST_SUMMARY_DRAWS
from skbnp.markup import listed
from skbnp.mcmc.caller import warn
from skbnp.numerics.log_sums import add_shares, log_totals
from skbnp.summaries.consensus import LEAST_SUPPORT
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
    # Whether a draw counts by its density of the row, as Bayes' rule has it, or all draws alike.
    _weighs_draws = True

    @staticmethod
    def _labels_of(draw):
        """Labels of a draw, (n_samples,)."""
        return draw["label"]

    def _label_draws(self):
        """Labels of at most 300 evenly spaced draws, each (n_samples,)."""
        return [self._labels_of(draw) for draw in self._summary_draws()]

    def _joined_label_draws(self):
        """The same of some draws, after the joins that ``labels_`` rests on, if on any."""
        return self._label_draws()

    def _draws_of_clusters(self):
        """Labels of draws that say which rows share a cluster, and the clusters of their blocks.

        These are the shares that clusters of ``labels_`` have of the blocks of each draw, arrays of
        shape (n_blocks, n_clusters), or None where blocks are clusters.
        """
        return self._joined_label_draws(), None

    def _unsupported(self):
        """Clusters of ``labels_`` that fewer than half of the draws have, a list.

        Where labels have been pruned of such there are none, unless no others would be left.
        """
        found = self.partition_info_.get("support", ())
        return [k for k, of_cluster in enumerate(found) if of_cluster < LEAST_SUPPORT]

    def _warn_if_unsupported(self):
        """Name clusters that few draws have, where such have been looked for."""
        found = self._unsupported()
        if found:
            least = min(self.partition_info_["support"])
            warn(
                f"Fewer than half of the draws have clusters like {listed(found)} of labels_, "
                f"{least:.0%} have one like the least of them, and had their rows gone to others "
                "no clusters would be left. Look at predict_proba or coclustering, or run longer "
                "chains",
                ConvergenceWarning,
            )

    def _membership_draws(self, new):
        """The draws that say where rows belong, or whether they open a block if ``new``."""
        return self._prediction_draws()

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
        given that the row's block is not a new one. Where the user guide says that clusters are
        those of a reference draw, only that one is asked.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows, NaN where missing. A row with no observed cell gets the cluster sizes.

        Returns
        -------
        proba : ndarray of shape (n_samples, `n_clusters_`)
            Rows sum to one.
        """
        return self._companion_shares(self._check_new(X), new=False)[:, :-1]

    @refuses_by_name
    def novelty_proba(self, X):
        """Probability that each row opens a cluster of its own, given the training data and it.

        It answers whether a row belongs with any cluster. To rank rows by how unusual they are take
        `score_samples`: a row on the edge of a cluster is unlikely, and still of that cluster.

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
    def coclustering(self, rows=None, columns=None, *, joined=True):
        """Posterior probability that chosen training rows share a cluster, O(cells) per draw.

        Parameters
        ----------
        rows : array-like of int or bool, default=None
            Training rows, by position or as a mask of shape (n_samples,); None means all.
        columns : array-like of int or bool, or "all", default=None
            The rows to pair them with; "all" means all, None the same as `rows`.
        joined : bool, default=True
            Whether the probability is that rows share a cluster, where the model joins components
            to clusters. False is the probability that they share a component, of which a draw may
            have several in one cluster.

        Returns
        -------
        proba : ndarray of shape (n_rows, n_columns)
            Over at most 300 evenly spaced draws. Of clusters of `labels_` that are joined from
            components it is, as in `predict_proba`, the probability that two training rows, one
            drawn from the component of each, have the same label.

        Raises
        ------
        ValueError
            If the result would have more than 4e8 cells.
        """
        check_is_fitted(self, "posterior_")
        if not _as_bool(joined):
            return coclustering(self._label_draws(), rows, columns)
        draws, tables = self._draws_of_clusters()
        return coclustering(draws, rows, columns, tables=tables)

    @refuses_by_name
    def credible_ball(self, level=0.95, *, joined=True):
        """Partitions around the consensus that hold most of the posterior, and its extremes.

        Parameters
        ----------
        level : float in (0, 1], default=0.95
            Posterior probability that the ball holds at least.
        joined : bool, default=True
            Whether blocks of a draw that overlap are joined first, as they are for `labels_`, where
            the model does so; `labels_` are the centre then. False is about the consensus of the
            draws as they are, `component_labels_` where there are such.

        Returns
        -------
        ball : skbnp.summaries.partitions.CredibleBall
            Its radius, and its bounds with the fewest clusters (``upper``), the most
            (``lower``) and the farthest (``horizontal``), as by Wade and Ghahramani (2018); in
            the loss that the consensus minimises. Over at most 300 evenly spaced draws; fewer where
            `joined`.
        """
        check_is_fitted(self, "posterior_")
        if not isinstance(level, Real):
            raise ValueError(f"level must be a number above 0 and at most 1, got {level!r}")
        if _as_bool(joined):
            centre, draws = self._training_labels, self._joined_label_draws()
        else:
            centre, draws = getattr(self, self._consensus_labels), self._label_draws()
        return credible_ball(centre, draws, self._partition_loss, level=level)

    # -- after sampling

    def _search_work(self, X):
        """Trial moves that the partition search may make: about as long as the sampling."""
        n_sweeps = self.n_warmup_ + self.n_draws_ * self.posterior_.sweeps_per_draw
        mean_k = self.posterior_.traces["n_clusters"].mean()
        return int(max(1e8, self.n_chains_ * n_sweeps * X.size * mean_k))

    # -- new rows

    def _log_density_of(self, law, t, rows):
        return log_totals(self._log_joint_of(law, t, rows, new=True))

    def _companion_table(self, draw):
        """|c and r_k| / |c| for blocks c of the draw and clusters r_k: (n_blocks, n_clusters)."""
        labels = self._labels_of(draw).astype(np.intp)
        labels_found = self._training_labels
        return companion_table(labels, int(labels.max()) + 1, labels_found, self.n_clusters_)

    def _laws_and_tables(self, new):
        """Laws of the draws that say where rows belong, and their companion tables."""

        def make():
            draws = self._membership_draws(new)
            return self._laws_of_blocks(draws, new), [self._companion_table(d) for d in draws]

        if self._parameters_of_laws is None:
            return make()
        return self._kept(f"companions, new: {new}", make, self._training_labels)

    def _companion_shares(self, X, new):
        """Shares of the clusters and, last, of a new one if that counts: rows sum to one."""
        laws, tables = self._laws_and_tables(new)

        def of_draw(law, t, rows):
            log_p, table = self._log_joint_of(law, t, rows, new), tables[t]
            # Without new blocks before any sum: far out they would drown the others in rounding.
            n_blocks = len(table)
            whole = np.zeros((log_p.shape[1] if new else n_blocks, table.shape[1] + 1))
            whole[:n_blocks, :-1] = table
            whole[n_blocks:, -1] = 1.0
            return log_p, whole

        def combine(found):
            return _summed(found, not self._weighs_draws)

        shares, A = np.empty((len(X), self.n_clusters_ + 1)), self._conditioned(X)
        for rows, parts in self._over_draws(A, of_draw, combine, self._prepared, laws):
            sums = _added(parts)
            shares[rows] = sums / sums.sum(axis=1, keepdims=True)
        return shares


def _as_bool(joined):
    if not isinstance(joined, (bool, np.bool_)):
        raise ValueError(f"joined must be a bool, got {joined!r}")
    return bool(joined)


def _summed(found, alike):
    """Sums over draws of p(row, block) table[block], as (level, sums): e^level sums.

    With ``alike`` each draw's shares are normalised first, so that all draws count the same.
    """
    level = total = None
    for log_p, table in found:
        if total is None:
            level, total = np.full(len(log_p), -np.inf), np.zeros((len(log_p), table.shape[1]))
        if alike:
            own, sums = np.full(len(log_p), -np.inf), np.zeros_like(total)
            add_shares(log_p, table, own, sums)
            total += sums / sums.sum(axis=1, keepdims=True)
        else:
            add_shares(log_p, table, level, total)
    return np.zeros_like(level) if alike else level, total


def _added(groups):
    """The sum of e^level sums over groups of draws, up to a factor of each row."""
    top = total = None
    for level, sums in groups:
        level = level[:, np.newaxis]
        highest = level if top is None else np.maximum(top, level)
        finite = np.where(np.isfinite(highest), highest, 0.0)
        sums = sums * np.exp(level - finite)
        total = sums if top is None else total * np.exp(top - finite) + sums
        top = highest
    return total
