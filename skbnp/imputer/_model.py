"""The model of an imputer: made for a table, fitted to its part of it, and asked about holes."""

import numpy as np
from sklearn.base import clone

from skbnp.dirichlet_process_mixture import DirichletProcessMixture
from skbnp.imputer._default import default_estimator
from skbnp.imputer._lookups import Lookups, with_cells
from skbnp.imputer._reading import without_unseen
from skbnp.imputer._semicontinuous import TwoParts
from skbnp.mcmc.caller import judging
from skbnp.tables.columns import columns_of, is_missing, names_of
from skbnp.tables.parts import take, with_column, without_cells

# Tables that quantiles of missing cells are taken from.
_TABLES_FOR_QUANTILES = 400


class ModelMixin:
    """Asks the model of an imputer about the columns that vary."""

    def _make(self, X, whole=None, places=None):
        """The model for a table of the columns that vary, not fitted, and how it sees these.

        ``whole`` is the table with those that do not, where it has them at ``places``.
        """
        if isinstance(self.estimator, str):
            model = default_estimator(columns_of(X), self.semicontinuous)
        else:
            model = clone(self.estimator)
        marks = getattr(model, "missing_values", None)
        if isinstance(marks, dict | list | tuple) or not is_missing(marks):
            raise ValueError(
                "missing_values must be said to the imputer, whose holes are what the model fills, "
                f"got {marks!r} in its estimator"
            )
        for name in ("n_jobs", "random_state"):
            if getattr(self, name) is not None:
                model.set_params(**{name: getattr(self, name)})
        parts = TwoParts(X.shape[1])
        if isinstance(model, DirichletProcessMixture):
            if whole is None:
                whole, places = X, range(X.shape[1])
            families = families_of(model.family, names_of(whole), places, whole.shape[1])
            if families is None:
                return model, parts  # the model says what is wrong
            if self.semicontinuous:
                parts = TwoParts.of(X, families)
            if parts.steps or not isinstance(model.family, str):
                model.set_params(family=parts.families(families))
        return model, parts

    def _find_lookups(self, X):
        """Which columns are filled from others: those that these say as much of as the model.

        ``X`` is the training table of the columns that vary, without rows that have no value.
        """
        levels = self._levels()
        if not self.lookup or not any(known is not None for known in levels):
            return Lookups(levels, [False] * len(levels))
        families, guessed = self.estimator_.families_, self.estimator_._guessed_columns()
        are_numbers = [j in guessed or families[j] == "bernoulli" for j in range(len(levels))]
        columns = columns_of(X)
        return (
            Lookups(levels, are_numbers)
            .worth_a_try(columns)
            .as_good_as(lambda j, rows: self._model_fills(X, j, rows), columns)
        )

    def _model_fills(self, X, j, rows):
        """What the model has for cells of one column, were they missing."""
        X = take(X, np.arange(X.shape[1]), rows)
        hidden = np.zeros(X.shape, dtype=bool)
        hidden[:, j] = True
        with judging(self.estimator_, self._parts.cells(np.zeros_like(hidden))):
            filled = self.estimator_.impute(self._parts.apart(without_cells(X, hidden)))
        return _values(filled)[j]

    def _levels(self):
        """The values that the model knows of each column that varies, None of measurements."""
        model, d = self.estimator_, len(self._layout.modelled)
        levels = getattr(model, "levels_", None)
        if levels is None:
            return [None] * d
        return [
            np.array([0.0, 1.0]) if family == "bernoulli" else known
            for family, known in zip(model.families_, levels, strict=True)
        ][:d]

    def _seen(self, X, rows=None):
        """The columns that vary as the model sees them, of some rows; None for all of them."""
        return self._parts.apart(take(X, self._layout.modelled, rows))

    def model_table(self, X=None):
        """The table as `estimator_` sees it, to ask the model itself.

        Its columns are those that vary, and for each common value of a semicontinuous column one
        that says whether cells have it: such cells are missing in the column itself.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), default=None
            None means the training table, without rows that have no value.

        Returns
        -------
        X_seen : ndarray or frame of shape (n_samples, n_columns)

        Examples
        --------
        >>> import numpy as np
        >>> from skbnp import BNPImputer
        >>> rng = np.random.default_rng(0)
        >>> rain = np.where(np.arange(40) < 25, 0.0, rng.random(40))
        >>> X = np.column_stack([rng.normal(size=40), rain])
        >>> imputer = BNPImputer(random_state=0).fit(X)
        >>> imputer.model_table(X[[0, 30]]).shape
        (2, 3)
        >>> imputer.estimator_.score_samples(imputer.model_table(X)).shape
        (40,)
        """
        X, is_training = self._given(X)
        if self.estimator_ is None:
            raise ValueError("no column of the training table varies, so that there is no model")
        rows = rows_where(self._has_values) if is_training else None
        return self._seen(self._as_seen(X, is_training), rows)

    def _cells(self, holes):
        """The missing cells of a table, as the model sees it."""
        return self._parts.cells(holes[:, self._layout.modelled])

    def _model_answer(self, X, holes, is_training):
        """What the model fills in: values of the columns that vary, None where nothing is missing.

        And their standard deviations (n_samples, n_modelled).
        """
        modelled = self._layout.modelled
        if not holes[:, modelled].any():
            return None, np.zeros((len(holes), len(modelled)))
        model, X = self.estimator_, self._as_seen(X, is_training)
        answers = []
        for rows, known in self._row_groups(is_training):
            trained = getattr(model, "X_imputed_", None) if known else None
            if trained is not None:
                answer = trained, model.X_imputed_std_
            else:
                asked = self._parts.whole_cells(holes[:, modelled])
                with judging(model, asked if rows is None else asked[rows]):
                    answer = model.impute(self._seen(X, rows), return_std=True)
            answers.append((rows, *answer))
        values = _by_rows([(rows, _values(table)) for rows, table, _ in answers], len(holes))
        std = _by_rows([(rows, _values(table)) for rows, _, table in answers], len(holes))
        self._put_together(X, holes[:, modelled], values, std)
        d = len(modelled)
        for j, found, looked_up, deviation in self._lookups.fill(
            columns_of(take(X, modelled)), holes[:, modelled]
        ):
            values[j] = with_cells(values[j], found, looked_up)
            std[j] = with_cells(std[j], found, deviation)
        # What the model has not seen is missing to it, and stays as it is.
        return values[:d], np.where(holes[:, modelled], np.column_stack(std[:d]), 0.0)

    def _put_together(self, X, holes, values, std):
        """Set what fills semicontinuous columns, from what fills the columns that the model sees.

        The number that a cell holds if it has no common value is asked for as such: rows in which
        it has none are of other clusters than rows in which it has.
        """
        for j in self._parts.reach:
            rows = np.flatnonzero(holes[:, j])
            if not rows.size:
                continue
            seen, chances = self._seen(X, rows), []
            filled = [column[rows] for column in values]
            for place in self._parts.places(j):
                chances.append(filled[place].astype(np.float64))
                seen = with_column(seen, place, np.zeros(len(rows)))
                with judging(self.estimator_, np.zeros((len(rows), len(values)), dtype=bool)):
                    answer = self.estimator_.impute(seen, return_std=True)
                filled, deviations = map(_values, answer)
            mean, deviation = (column[j].astype(np.float64) for column in (filled, deviations))
            values[j], std[j] = values[j].astype(np.float64), std[j].astype(np.float64)
            values[j][rows], std[j][rows] = self._parts.moments(j, chances, mean, deviation)

    def _as_seen(self, X, is_training):
        """The table, without names that the model has not seen."""
        if is_training:
            return X
        return without_unseen(X, dict(zip(self._layout.modelled, self._levels(), strict=True)))

    def _drawn(self, X, holes, is_training, m, random_state=None):
        """Values of the columns that vary in m completed tables; None where nothing is missing."""
        modelled = self._layout.modelled
        if not holes[:, modelled].any():
            return [None] * m
        model = self.estimator_
        if not hasattr(model, "sample_missing"):
            raise ValueError(
                "estimator must have the method sample_missing to draw missing cells, as "
                f"DirichletProcessMixture and TreeFactorModel have, got {type(model).__name__}"
            )
        seed = self.random_state if random_state is None else random_state
        drawn, X = [], self._as_seen(X, is_training)
        for rows, known in self._row_groups(is_training):
            whole = known and holes[self._has_values][:, modelled].any()
            table = None if whole else self._seen(X, rows)
            tables = model.sample_missing(table, n_tables=m, random_state=seed)
            drawn.append((rows, [self._parts.together(_values(one)) for one in tables]))
        tables = [_by_rows([(rows, some[t]) for rows, some in drawn], len(holes)) for t in range(m)]
        columns = columns_of(take(X, modelled))
        self._lookups.draw(columns, tables, holes[:, modelled], seed)
        return tables

    def _drawn_cells(self, X, holes, is_training, which, random_state):
        """Draws of the missing cells in some columns of numbers, (n_tables, n_cells)."""
        tables = self._drawn(X, holes, is_training, _TABLES_FOR_QUANTILES, random_state)
        places = np.flatnonzero(np.isin(self._layout.modelled, which))
        return np.array(
            [
                np.column_stack([values[place] for place in places])[holes[:, which]]
                for values in tables
            ],
            dtype=np.float64,
        )

    def _row_groups(self, is_training):
        """Rows to ask the model about together: yields (rows, whether they are all it has seen)."""
        if not is_training:
            yield None, False
            return
        for which, known in ((self._has_values, True), (~self._has_values, False)):
            if which.any():
                yield rows_where(which), known


def families_of(family, names, places, n_columns):
    """What `DirichletProcessMixture` has as ``family`` for some columns, None where it is wrong.

    Parameters
    ----------
    family : str, sequence or dict
        A sequence is of all columns of the table, or of these alone.
    names : list or None
        Of all columns of a frame.
    places : sequence of int
        Which columns these are.
    n_columns : int
        Of the table.
    """
    if isinstance(family, str):
        return [family] * len(places)
    if isinstance(family, dict):
        is_right = names is not None and set(family) <= set(names)
        return [family.get(names[j], "auto") for j in places] if is_right else None
    if not isinstance(family, list | tuple) or len(family) not in (len(places), n_columns):
        return None
    return list(family) if len(family) == len(places) else [family[j] for j in places]


def rows_where(which):
    """The rows where it is true, None for all of them."""
    return None if which.all() else np.flatnonzero(which)


def _values(table):
    """Values of each column of a table without holes."""
    return [column.values for column in columns_of(table)]


def _by_rows(parts, n_rows):
    """Columns put together from parts: each some rows, None for all, and their values."""
    if len(parts) == 1 and parts[0][0] is None:
        return parts[0][1]
    columns = []
    for some in zip(*(values for _, values in parts), strict=True):
        dtypes = {one.dtype for one in some}
        numbers = all(dtype.kind in "biuf" for dtype in dtypes)
        dtype = np.result_type(*dtypes) if numbers or len(dtypes) == 1 else object
        out = np.empty(n_rows, dtype=dtype)
        for (rows, _), values in zip(parts, some, strict=True):
            out[rows] = values
        columns.append(out)
    return columns
