"""Fits of the mixture to collections: all rows are visited, some of them are kept in memory."""

from dataclasses import dataclass
from functools import partial
from numbers import Integral

import numpy as np
from joblib import parallel_config
from scipy.special import softmax
from sklearn.utils.validation import check_is_fitted

from skbnp.collections.kinds import is_collection
from skbnp.collections.reading import Reading
from skbnp.collections.scan import Summary, combined, summary_of_cell
from skbnp.collections.service import StoredRows
from skbnp.dirichlet_process_mixture._leave_one_out import LeaveOneOutOfRows
from skbnp.dirichlet_process_mixture._predictive import Rows, log_densities, log_weights
from skbnp.dirichlet_process_mixture._record_draws import (
    KeptTable,
    LabelsOfDraw,
    RecordDraw,
    RowsOfFit,
    check_record_of,
    has_record,
    wrapped,
)
from skbnp.dirichlet_process_mixture._stored_rows import make_sampler
from skbnp.dirichlet_process_mixture._sweep import SUBSET
from skbnp.dirichlet_process_mixture._table import is_plainly_real
from skbnp.dirichlet_process_mixture._training_rows import TrainingRows
from skbnp.estimators.arguments import check_count, refuses_by_name
from skbnp.estimators.collections import (
    CollectionsMixin,
    LabelsOfRows,
    by_blocks,
    check_n_rows,
    given_rows,
)
from skbnp.mcmc.diagnostics import check_draws_of_loo, efficiency, loo_of_rows
from skbnp.mcmc.rows import available_threads, for_row_blocks
from skbnp.summaries.partitions import companion_table

# Rows that are kept in memory, at most: a collection of no more is taken there as a whole.
MOST_KEPT = 100_000
# Seeds the choice of these rows, beside the number of all rows.
_KEY_OF_KEPT = 0x6B657074


def kept_rows(n_samples):
    """Numbers of the rows that are kept in memory, ascending."""
    if n_samples <= MOST_KEPT:
        return np.arange(n_samples)
    rng = np.random.default_rng([_KEY_OF_KEPT, n_samples])
    return np.sort(rng.choice(n_samples, MOST_KEPT, replace=False, shuffle=False))


@dataclass(frozen=True)
class Fitting:
    """What is known of a collection while it is fitted."""

    rows: StoredRows
    kept: np.ndarray
    summary: Summary


@dataclass(frozen=True)
class KeptRows(TrainingRows):
    """Rows of a collection that are kept in memory, under draws whose blocks hold all rows."""

    def __call__(self, draw):
        """Log density of each row given all others and the draw without it, in the units of X."""
        return draw.given_others() + self.units.log_jacobian_of_visible(self.X)

    def shares(self, draw):
        """Probability that each row is of each block of the draw: (n_kept, n_blocks).

        Among so many others a row is not left out of what it is compared with.
        """
        rows = Rows(self.X, self.prior)
        log_p = log_densities(rows, draw, self.prior, log_weights(draw, self.prior))
        return rows.unsort(softmax(log_p[:, :-1], axis=1))


class CollectionFitMixin(CollectionsMixin):
    """Fits to collections, for the mixture."""

    # -- before sampling

    def _check_training(self, X, y):
        is_in_memory = self._is_long_array(X)
        if not (is_in_memory or is_collection(X)):
            return super()._check_training(X, y)
        if is_in_memory:
            X = X.view(np.memmap)
        rows = StoredRows(X, available_threads(self.n_jobs))
        kept = kept_rows(rows.n_samples)
        table = rows.take(kept)
        if len(kept) == rows.n_samples:
            self._collection = LabelsOfRows(X, kept, rows.lengths)
            return super()._check_training(table, y)
        found = self._read_training(table)
        rows.prepare(self._reading(table))
        summary = rows.run(summary_of_cell, None, combined)
        if summary.n_empty:
            self._warn_of_empty_rows(summary.empty, summary.n_empty)
        self._advise_on_columns(found, is_named=not self._form.is_array)
        self._fitting = Fitting(rows, kept, summary)
        self._collection = LabelsOfRows(X, kept, rows.lengths)
        return found

    def _reading(self, like):
        """How blocks of a collection become numbers; ``like`` one of them, or what describes it."""
        marks = self._form.marks
        encode = None if self._table is None else partial(self._table.encode, marks=marks)
        return Reading.of(like, marks, encode)

    def _is_long_array(self, X):
        """Whether an array of real columns is visited as a map of it would be, cell by cell.

        So that draws are the same wherever rows are; and no copy of them is made.
        """
        return (
            type(X) is np.ndarray
            and X.ndim == 2
            and len(X) > MOST_KEPT
            and X.dtype.kind in "biuf"
            and is_plainly_real(X, self.family)
            and self._sampler_settings().algorithm in ("auto", "parallel")
        )

    def _is_fitting_collection(self):
        """Whether `fit` is at work on rows that are not all in memory."""
        return "_fitting" in vars(self)

    def _keeps_some_rows(self):
        """Whether those in memory are not all that draws rest on."""
        return isinstance(self._training_rows, KeptRows)

    def _labels_of_rows(self, n):
        return self.kept_rows_ if self._keeps_some_rows() else super()._labels_of_rows(n)

    def _n_rows_of_fit(self, n):
        return self._n_of_draws() if self._keeps_some_rows() else n

    def _n_training(self, X):
        """Rows that are sampled."""
        return self._fitting.rows.n_samples if self._is_fitting_collection() else len(X)

    def _fitted_units(self, X):
        if not self._is_fitting_collection():
            return super()._fitted_units(X)
        summary, real = self._fitting.summary, self._columns_of("gaussian")
        self._judge_constant(np.intersect1d(real, summary.constant()), summary.n_samples)
        return summary.standard_units(real, self._has_common_scale(), self._named)

    def _prepare_collection(self, X):
        """As `_prepare`, for the kept rows X of a collection."""
        self._check_parameters(X)
        settings = self._sampler_settings()
        if settings.algorithm not in ("auto", "parallel"):
            raise ValueError(
                "algorithm must be 'auto' or 'parallel' for a collection of more than "
                f"{MOST_KEPT} rows, got {settings.algorithm!r}"
            )
        fitting, self.algorithm_ = self._fitting, "parallel"
        fitting.rows.expect(self.n_chains_)
        self._units = self._fitted_units(X)
        standard = self._units.to_visible(X)
        self._prior = self._standard_prior(standard)
        self._training_rows = KeptRows(standard, self._prior, self._units)
        fitting.rows.use_units(self._units)
        return partial(
            make_sampler,
            rows=fitting.rows,
            kept=self._kept_table(),
            X=standard,
            prior=self._prior,
            n_split_merge=settings.n_split_merge,
            split_merge=settings.split_merge,
            log_jacobian=-float(fitting.summary.count @ np.log(self._units.scale)),
        )

    def _where_chains_run(self):
        if not self._is_fitting_collection():
            return super()._where_chains_run()
        # In threads, all at once: what they ask of the rows is answered in one pass for all.
        return self.n_chains_, parallel_config("threading")

    def _about_collection(self):
        """What tells collections apart whose kept rows are the same."""
        if not self._is_fitting_collection():
            return []
        return [self._fitting.kept, self._fitting.summary.to_data()]

    # -- after sampling

    def _n_of_draws(self):
        """Rows that the blocks of the draws hold."""
        if self._is_fitting_collection():
            return self._fitting.rows.n_samples
        return self.partition_info_["n_samples"]

    def _kept_table(self):
        n, rows = self._n_of_draws(), self._training_rows
        n_threads = partial(for_row_blocks, n_threads=available_threads(self.n_jobs))
        return KeptTable(rows.X, rows.prior, kept_rows(n), n, min(SUBSET, n), n_threads)

    def _attach_kept_rows(self):
        """Let draws with a record say the labels of the rows in memory."""
        if self._keeps_some_rows():
            self.posterior_.replace_draws(wrapped(self.posterior_.all_draws(), self._kept_table()))

    def _check_record_of(self, draw):
        if self._keeps_some_rows() and has_record(draw):
            n = self._n_of_draws()
            check_record_of(draw, n, min(SUBSET, n))

    def _leave_collection(self, X):
        """Drop what the sampling alone has needed; X are the kept rows."""
        fitting = vars(self).pop("_fitting", None)
        if "_collection" not in vars(self):
            return
        if fitting is None and not self._collection.travels:
            del self._collection  # all of a file is in memory
            return
        # Of the rows that are kept; those of all follow from them when they are asked for.
        self._kept_labels = vars(self).pop("labels_")
        n_samples = len(X) if fitting is None else fitting.rows.n_samples
        self.partition_info_ |= {"n_rows": len(X), "n_samples": n_samples}
        self._collection.settle(self, self._kept_labels)

    @property
    def kept_rows_(self):
        """Numbers of the training rows that are in memory, ascending."""
        if self._training_rows is None:
            raise AttributeError("kept_rows_ is there once fit has seen X")
        if self._keeps_some_rows():
            return kept_rows(self._n_of_draws())
        return np.arange(len(self._training_rows.X))

    @property
    def _training_labels(self):
        """Clusters of the training rows that are in memory."""
        if "_kept_labels" in vars(self):
            return self._kept_labels
        return self.labels_

    def __getattr__(self, name):
        if name == "labels_" and "_kept_labels" in vars(self):
            return self._labels_of_collection()
        return super().__getattr__(name)

    def _labels_of_collection(self):
        if "_collection" not in vars(self) and not self._keeps_some_rows():
            return self._kept_labels
        if "_collection" not in vars(self):
            raise AttributeError(
                "labels_ of the rows of a collection are there as long as the estimator has the "
                "collection that fit saw, which no file holds: call predict(X)"
            )
        return self._collection.of(self, self._kept_labels)

    @refuses_by_name
    def draw_labels(self, chain, draw, X=None):
        """Component of every row of the collection that `fit` saw under one stored draw.

        Draws of a collection of more than 100,000 rows hold no labels but what these follow from.
        They are the labels that the chain had, to the last bit; for the rows in memory they are
        ``posterior_[chain, draw]["label"]``.

        Parameters
        ----------
        chain, draw : int
            As in ``posterior_[chain, draw]``.
        X : collection or array-like of shape (n_samples, n_features), default=None
            All rows that `fit` has seen, in their order, held in any way and in blocks of any
            size. None: the collection that `fit` was given, which an estimator from a file has
            not. A table that is in memory as a whole need not be given.

        Returns
        -------
        labels : dask.array.Array or ndarray of int of shape (n_samples,)
            Lazy, with the blocks of X, for a collection of Dask of more than 100,000 rows; else in
            memory.

        Raises
        ------
        ValueError
            If X has another number of rows or columns, other rows (seen where they are read, of
            those that are in memory too), or is an array of Dask with blocks of unknown length.
        """
        check_is_fitted(self, "posterior_")
        found = self.posterior_[chain, draw]
        if not self._keeps_some_rows():
            self._check_rows_of_table(X)
            return np.array(found["label"], dtype=np.intp)
        X, lengths, rows = self._rows_of_fit(X)
        n = self._n_of_draws()
        return by_blocks(X, LabelsOfDraw(found, rows, n, min(SUBSET, n)), n, lengths)

    @refuses_by_name
    def leave_one_out(self, X=None, max_draws=None, return_pareto_k=False):
        """Log density of every training row given all others, without refitting: PSIS-LOO.

        Of a table in memory it is ``posterior_.loo(max_draws).elpd_i``. Of a collection of more
        than 100,000 rows ``posterior_.loo()`` looks at the rows in memory, and this at all of them:
        the labels of each follow from the records of the draws, as in `draw_labels`, and blocks
        without the row from their statistics. It takes one to a few milliseconds a row, most of
        which is the fit of a Pareto law to the largest weights. A lazy answer is worked out block
        by block: for few rows give X in small blocks, ``X.rechunk((2_000, -1))``.

        Parameters
        ----------
        X : collection or array-like of shape (n_samples, n_features), default=None
            As in `draw_labels`.
        max_draws : int, default=None
            Evenly spaced stored draws to use, at most. Default: all that are stored.
        return_pareto_k : bool, default=False
            Also return Pareto's k of each row. With S draws, a k above min(0.7, 1 - 1/log10(S))
            says that the density is too optimistic where the draws differ about the row; where
            they agree, as of most rows of a long table, k says nothing.

        Returns
        -------
        log_density : dask.array.Array or ndarray of shape (n_samples,)
            In nats, in the units of X. Lazy, with the blocks of X, for a collection of Dask of
            more than 100,000 rows; else in memory. NaN for a row of a collection whose block loses
            its digits without it: that is a thousand standard deviations and more from all other
            rows of its block.
        pareto_k : dask.array.Array or ndarray of shape (n_samples,)
            Only if `return_pareto_k`.

        Raises
        ------
        ValueError
            If there are fewer than 25 draws or four per chain, and for X as `draw_labels` does.

        Warns
        -----
        UserWarning
            If Pareto's k is too high for some rows of a table in memory about which draws differ.
        """
        check_is_fitted(self, "posterior_")
        if max_draws is not None:
            check_count("max_draws", max_draws)
        if self._keeps_some_rows():
            found = self._leave_rows_out(X, max_draws)
            elpd_i, pareto_k = found[:, 0], found[:, 1]
        else:
            self._check_rows_of_table(X)
            loo = self.posterior_.loo(max_draws)
            elpd_i, pareto_k = loo.elpd_i, loo.pareto_k
        return (elpd_i, pareto_k) if return_pareto_k else elpd_i

    def _leave_rows_out(self, X, max_draws):
        """Density and Pareto k of all rows of a collection, (n_samples, 2)."""
        posterior = self.posterior_
        chosen = posterior.evenly_in_chains(max_draws)
        check_draws_of_loo(posterior.n_chains, len(chosen))
        draws = [[posterior[c, t] for t in chosen] for c in range(posterior.n_chains)]
        # Blocks are answered for one by one: what all rows say of the draws is not known there.
        trace = posterior.traces["log_density"][:, posterior.stored[chosen]]
        smooth = partial(loo_of_rows, efficiency=efficiency(trace))
        X, lengths, rows = self._rows_of_fit(X)
        n = self._n_of_draws()
        left_out = LeaveOneOutOfRows(draws, smooth, rows, self._prior, n, min(SUBSET, n))
        return by_blocks(X, left_out, n, lengths, like=np.empty((0, 2)))

    def _rows_of_fit(self, X):
        """All rows that `fit` has seen, the lengths of their blocks if known, how to read them."""
        lengths = None
        if X is None:
            if "_collection" not in vars(self):
                raise ValueError(
                    "X must be given: the estimator has no longer the collection that fit saw"
                )
            X, lengths = self._collection.rows()
        X = given_rows(self, X)
        reading = self._reading(getattr(X, "_meta", X)).with_units(self._units)
        known = kept_rows(self._n_of_draws())
        return X, lengths, RowsOfFit(reading, self._prior, known, self._training_rows.X)

    def _check_rows_of_table(self, X):
        """Refuse what cannot be the rows of a table in memory, of which nothing is read."""
        if X is not None:
            X = given_rows(self, X)
            if isinstance(X.shape[0], Integral):
                check_n_rows(X.shape[0], len(self._training_rows.X))

    def _ready_for_workers(self):
        """Work out what every block would otherwise be asked for again."""
        if self._keeps_some_rows():
            for draw in self._prediction_draws():
                self._companion_table(draw)

    def _companion_table(self, draw):
        """As of rows in memory; a block none of whose rows are kept counts as any row does."""
        if not self._keeps_some_rows():
            return super()._companion_table(draw)
        if getattr(draw, "companions", None) is not None:
            return draw.companions
        labels = draw["label"].astype(np.intp)
        n_blocks = len(draw["n_members"]) - 1
        table = companion_table(labels, n_blocks, self._training_labels, self.n_clusters_)
        sizes = np.bincount(self._training_labels, minlength=self.n_clusters_)
        table[table.sum(axis=1) == 0.0] = sizes / sizes.sum()
        if isinstance(draw, RecordDraw):
            draw.companions = table
        return table

    def _keep_training_cells(self, X):
        if not self._keeps_some_rows():
            super()._keep_training_cells(X)

    def _check_knows_training_cells(self, name):
        if self._keeps_some_rows() and self._training_cells is None:
            raise AttributeError(f"{name} is not kept for the rows of a collection: call impute(X)")
        super()._check_knows_training_cells(name)

    def __getstate__(self):
        state = super().__getstate__()
        if "_collection" in state and not state["_collection"].travels:
            # Its rows would: all of a file.
            state = {name: value for name, value in state.items() if name != "_collection"}
        return state
