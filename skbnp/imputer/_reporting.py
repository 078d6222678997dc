"""What is said of an imputer: whether its chains agree on cells, and its report."""

from dataclasses import replace

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from skbnp.markup import counted
from skbnp.mcmc.caller import judging, said_by, warn
from skbnp.mcmc.diagnostics import MOST_RHAT, least_ess
from skbnp.reports import cells
from skbnp.reports.page import Report
from skbnp.tables.columns import columns_of, is_pandas, labels_or_numbers, names_of
from skbnp.tables.parts import take


def said_by_model(model):
    """Warnings within are of the model and name its parameters, not those of the imputer."""
    return said_by(f"{type(model).__name__}, the imputer's estimator")


class ImputerReportMixin:
    """What fills the missing cells, and how well chains agree on that."""

    def _judge_chains(self):
        """Set ``r_hat_``, and warn where chains differ in what an imputer takes of them: cells."""
        model = self.estimator_
        cells = model._training_cells
        self.r_hat_ = np.nan if cells is None else cells.r_hat
        is_judged_by_cells = self._are_judged_by_cells()
        with said_by_model(model), judging(model, self._parts.whole_cells(self._training_holes())):
            if not is_judged_by_cells:
                model._judge_chains()
                return
            model._judge_training_cells()
        if self.r_hat_ > MOST_RHAT:
            to_do = model._lacks_of_chains().to_do() or "raise n_warmup"
            warn(
                "The chains may not have converged: they differ in the missing cells that they "
                f"fill in, by R-hat {self.r_hat_:.3g} on average (above {MOST_RHAT}). To do, by "
                "parameters of a model, such as estimator=skbnp.imputer.default_model(X)."
                f"set_params(...): {to_do}",
                ConvergenceWarning,
            )

    def _are_judged_by_cells(self):
        """Whether ``r_hat_`` says enough of the chains: of cells that they fill in.

        Not where none are missing; not of an ensemble, whose chains are meant to differ; and not
        of a few draws, which may be alike because all chains have just begun.
        """
        model, r_hat = self.estimator_, getattr(self, "r_hat_", np.nan)
        if model is None or np.isnan(r_hat):
            return False
        posterior = model.posterior_
        n_draws = posterior.n_chains * posterior.n_draws
        is_ensemble = model._is_ensemble(model.n_features_in_)
        return not is_ensemble and n_draws >= least_ess(posterior.n_chains)

    def _warn_of_far(self, values, holes):
        """Warn where semicontinuous columns are filled with what is far outside all values.

        Of other columns the model does. Of these it sees what they are without a common value.
        """
        if values is not None:
            self.estimator_._warn_of_far(self._parts.far(values, holes[:, self._layout.modelled]))

    def _common_marks(self):
        """Common values that look like marks of missing cells: value -> columns."""
        if not self.common_values_:
            return {}
        modelled = self._layout.modelled
        found = self._parts.marks(take(self._training, modelled))
        return {value: modelled[places] for value, places in found.items()}

    def _training_holes(self):
        """The missing cells of rows of the training table with values, in columns that vary."""
        missing = np.column_stack([column.missing for column in columns_of(self._training)])
        return missing[self._has_values][:, self._layout.modelled]

    def _in_parts(self):
        """What fills the rows of the training table that have values: columns, and deviations.

        Of semicontinuous columns and those that are looked up alone, as a dict of their places;
        names as codes of levels.
        """
        if self.estimator_ is None or not (self._parts.reach or self._lookups.tables):
            return {}
        missing = np.column_stack([column.missing for column in columns_of(self._training)])
        values, std = self._model_answer(self._training, missing, is_training=True)
        if values is None:
            return {}
        known = self._has_values
        found = {j: values[j] for j in self._parts.reach}
        found |= {j: self._lookups.as_codes(j, values[j]) for j in self._lookups.tables}
        return {j: (values[known], std[known, j]) for j, values in found.items()}

    def _n_far(self, in_parts):
        """How many missing cells are filled with what is far outside all values."""
        if self.estimator_ is None:
            return 0
        holes, far = self._training_holes(), self.estimator_._far_training_cells()
        n_far = int(np.sum(far & self._parts.whole_cells(holes))) if len(far) else 0
        if in_parts:
            values = [in_parts[j][0] if j in in_parts else None for j in range(holes.shape[1])]
            n_far += int(self._parts.far(values, holes).sum())
        return n_far

    def report(self):
        """What fills the missing cells, how sure that is, and what the model found.

        Returns
        -------
        report : skbnp.reports.Report
            With the sections of the model's report, on the columns that vary.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `fit`.
        """
        check_is_fitted(self, "estimator_")
        X, layout, model = self._training, self._layout, self.estimator_
        columns = columns_of(X)
        n, d = len(columns[0].missing), len(columns)
        names = np.array(list(map(str, labels_or_numbers(names_of(X), d))))
        missing = np.array([column.missing.sum() for column in columns])
        constant = [j for j in layout.constants if missing[j]]
        in_parts = self._in_parts()
        sections = [
            cells.of_imputer(
                None if model is None else type(model).__name__,
                filled={names[j]: (layout.constants[j], int(missing[j])) for j in constant},
                common={names[j]: values for j, values in self.common_values_.items()},
                looked_up={names[j]: names[by].tolist() for j, by in self.looked_up_.items()},
                zero=names[layout.is_empty & layout.is_kept].tolist(),
                dropped=names[~layout.is_kept].tolist(),
                n_missing=int(missing.sum()),
                n_empty_rows=int(np.sum(~self._has_values)),
                can_draw=hasattr(model, "sample_missing"),
                r_hat=self.r_hat_ if self._are_judged_by_cells() else np.nan,
                n_far=self._n_far(in_parts),
                marks=[
                    (names[j], value)
                    for value, found in self._common_marks().items()
                    for j in found
                ],
            )
        ]
        if model is not None:
            rows = X.index if is_pandas(X) else np.arange(n)
            named, parts = names[layout.modelled], self._parts
            found = model._report_sections(
                parts.names(named, "{}, where it is another number"),
                rows[self._has_values].tolist(),
                (
                    lambda seen: parts.training_table(seen, named),
                    lambda means, stds: _with_parts(means, stds, in_parts, len(named)),
                ),
            )
            if self._are_judged_by_cells() and self.r_hat_ <= MOST_RHAT:
                # Of chains that agree on cells an imputer asks no more.
                found = [replace(one, steps=()) if one.is_urgent else one for one in found]
            sections += found
        title = f"BNPImputer: report on {counted(n, 'row')}, {counted(d, 'column')}"
        return Report(title, sections)


def _with_parts(means, stds, in_parts, n_columns):
    """Columns of means and deviations of the table, those of semicontinuous columns replaced."""
    means, stds = list(means[:n_columns]), list(stds[:n_columns])
    for j, (mean, std) in in_parts.items():
        means[j], stds[j] = mean, std
    return means, stds
