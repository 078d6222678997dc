"""``report()`` of the imputer: what it did itself, and the report of its model."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skbnp.markup import counted
from skbnp.reports import cells
from skbnp.reports.page import Report
from skbnp.tables.columns import columns_of, is_pandas, names_of


class ReportMixin:
    """What fills the missing cells."""

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
        names = names_of(X)
        names = np.array([f"x{j}" for j in range(d)] if names is None else list(map(str, names)))
        missing = np.array([column.missing.sum() for column in columns])
        constant = [j for j in layout.constants if missing[j]]
        sections = [
            cells.of_imputer(
                None if model is None else type(model).__name__,
                filled={names[j]: (layout.constants[j], int(missing[j])) for j in constant},
                zero=names[layout.is_empty & layout.is_kept].tolist(),
                dropped=names[~layout.is_kept].tolist(),
                n_missing=int(missing.sum()),
                n_empty_rows=int(np.sum(~self._has_values)),
                can_draw=hasattr(model, "sample_missing"),
            )
        ]
        if model is not None:
            rows = X.index if is_pandas(X) else np.arange(n)
            sections += model._report_sections(
                names[layout.modelled].tolist(), rows[self._has_values].tolist()
            )
        title = f"BNPImputer: report on {counted(n, 'row')}, {counted(d, 'column')}"
        return Report(title, sections)
