"""``report()`` of every estimator: which sections it has, and what data they are made of."""

from dataclasses import replace

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skbnp.estimators.arguments import refuses_by_name
from skbnp.markup import counted
from skbnp.reports import association, cells, convergence, partition, table
from skbnp.reports.page import Report

# Draws that correlations of columns are worked out from.
_DRAWS_OF_CORRELATIONS = 40
# Rounding errors of a number that has been standardised and put back.
_ROUNDING = 8 * np.finfo(np.float64).eps


class ReportMixin:
    """Puts the report together.

    A subclass says in ``_found(training)`` the sections on what it found, given the
    `skbnp.reports.table.TrainingTable`. Its training rows are those of ``_training_rows``, as
    `posterior_` knows them; a report of an estimator that keeps none is one of its chains.
    """

    @refuses_by_name
    def report(self):
        """What was found, how sure that is, and what to do next, in words, tables and pictures.

        Returns
        -------
        report : skbnp.reports.Report
            Text by ``print(report)``; HTML in a notebook; ``report.to_html()``, a page of its own;
            ``report.to_frame()`` and ``report.sections``, the data.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `fit`.
        """
        check_is_fitted(self, "posterior_")
        X = self._observed_rows()
        size = counted(self.n_features_in_, "column")
        if X is not None:
            size = f"{table.rows_in_words(len(X), self._n_rows_of_fit(len(X)))}, {size}"
        return Report(f"{type(self).__name__}: report on {size}", self._report_sections())

    def _report_sections(self, names=None, rows=None, whole=None):
        """The sections, in which columns and rows go by these labels instead of their own.

        Whoever gives the model columns in parts gives two functions in ``whole``: of the training
        table as the user has it, from that of the model; and of means and deviations of cells, as
        two lists of columns.
        """
        if self._observed_rows() is None:
            return [table.unknown(), self._chains_section()]
        training = self._training_table(names, rows)
        of_table, of_moments = whole or (lambda training: training, None)
        found = [
            table.section(of_table(training)),
            *self._found(training),
            self._cells_section(of_table(training), of_moments),
            self._chains_section(),
        ]
        return [section for section in found if section is not None]

    def _found(self, training):
        """Sections on what the model found."""
        return []

    # -- the table

    def _training_table(self, names=None, rows=None):
        """The training rows with the names that the user gave them, or other ones."""
        X = self._observed_rows()
        n, d = X.shape
        if names is None:
            names = map(str, self._column_labels())
        rows = self._labels_of_rows(n) if rows is None else rows
        known = self._at_limit(X)
        constant = np.flatnonzero(np.fmin.reduce(known, axis=0) == np.fmax.reduce(known, axis=0))
        return table.TrainingTable(
            X=known,
            holes=np.isnan(X),
            names=list(names),
            rows=rows,
            families=list(getattr(self, "families_", ["gaussian"] * d)),
            levels=getattr(self, "levels_", [None] * d),
            constant=constant.tolist(),
            advice=self._advice_on_columns(X, not self._form.is_array),
            n_below=int(np.sum(self._is_below(X))),
            n_rows_of_fit=self._n_rows_of_fit(n),
            is_described=not self._predicts_targets(),
        )

    def _labels_of_rows(self, n):
        """Of the n training rows that are kept: those of an index, or numbers."""
        labels = self._form.row_labels()
        # With max_rows there are fewer rows than the index has.
        return range(n) if labels is None or len(labels) != n else labels

    def _n_rows_of_fit(self, n):
        """Rows that `fit` has seen, of which n are kept."""
        return n

    def _is_below(self, X):
        """Which cells are below a detection limit."""
        return np.zeros(X.shape, dtype=bool)

    def _at_limit(self, X):
        """X with such cells at the limit."""
        return X

    def _observed_rows(self):
        """The training rows of the features, (n_samples, n_features), levels as codes.

        None where they are not kept.
        """
        if self._training_cells is not None:
            return self._training_cells.X
        if self._training_rows is None:
            return None
        return _whole_again(self._training_rows.observed_data())

    # -- sections that several estimators have

    def _partition_section(self, training, **options):
        """Clusters and what follows from them."""
        draws, tables = self._draws_of_clusters()
        found = partition.Partition(
            labels=np.asarray(self._training_labels),
            draws=draws,
            tables=tables,
            expected_loss=float(self.expected_loss_),
            **options,
        )
        return partition.sections(found, training)

    def _association_section(self, training, of_sizes=False):
        """Which columns hang together under the draws."""
        places = self._units.columns
        step = -(-len(places) // association.MOST_COLUMNS)
        places = places[::step]
        correlations = association.correlations(
            lambda draw, rng: self._sampled_in_units(
                self._sample_of(draw, association.N_ROWS, rng)
            ),
            self.posterior_.evenly_spaced(_DRAWS_OF_CORRELATIONS),
            places,
            self.seed_,
            of_sizes,
        )
        names = [training.names[j] for j in places]
        noun = "correlation of sizes" if of_sizes else "correlation"
        return association.section(correlations, names, len(self._units.columns), noun)

    def _cells_section(self, training, of_moments=None):
        """Missing cells, for an estimator that fills them."""
        if not training.holes.any():
            return None
        filled = std = None
        if self._training_cells is not None:
            filled, std = self._filled_training()
            filled = self._as_numbers(filled)
            if of_moments is not None:
                moments = of_moments(list(filled.T), list(std.T))
                filled, std = (np.column_stack(columns) for columns in moments)
        guessed = set(self._guessed_columns())
        levels = [None if j in guessed else one for j, one in enumerate(training.levels)]
        return cells.section(
            replace(training, X=self._as_numbers(training.X), levels=levels),
            filled,
            std,
            scale=getattr(self, "std_scale_", None),
            n_hidden=getattr(self, "n_hidden_cells_", 0),
            can_calibrate="interval_calibration" in self._declared,
        )

    def _chains_section(self):
        """Whether the chains agree."""
        posterior = self.posterior_
        names = [name for name in self._reported_traces if name in posterior.traces]
        is_ensemble = self._is_ensemble(self.n_features_in_)
        found = self._lacks_of_ensemble() if is_ensemble else self._lacks_of_chains()
        return convergence.section(posterior, names, found, is_ensemble)


def _whole_again(X):
    """Columns of whole numbers as such, which standardising has moved by rounding errors."""
    nearest = np.rint(X)
    with np.errstate(invalid="ignore"):
        error = np.fmax.reduce(np.abs(X - nearest), axis=0)
        size = np.fmax.reduce(np.where(np.isfinite(X), np.abs(X), 0.0), axis=0)
    return np.where(error <= _ROUNDING * size, nearest, X)
