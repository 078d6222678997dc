"""Tables in and out: how X is read, what is refused or warned of, in which form answers go."""

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from skbnp.mcmc.caller import warn
from skbnp.tables.columns import (
    as_numbers,
    infinite_columns,
    is_frame,
    is_missing,
    labels_or_numbers,
    refuse_inexact,
)
from skbnp.tables.forms import TableForm, fill_table, floats_like
from skbnp.tables.identifiers import identifier_columns
from skbnp.tables.marks import (
    as_plain,
    check_marks,
    few_valued_columns,
    has_infinity,
    mark_in_words,
    remedy_of_mark,
    suspicious_marks,
    unmarked,
)
from skbnp.tables.outlying import n_far_targets, outlying_columns

# Standard deviations of the training data up to which every kernel stays finite: squares of such
# distances, times any precision that a prior allows, are far within the range of floats.
FARTHEST = 1e50


class TablesMixin:
    """Reads tables of numbers, NaN where missing, and answers in the form of the training table."""

    # What scikit-learn calls ensure_all_finite, of X.
    _finite = "allow-nan"
    # Different whole numbers of a column that may be codes: 0 and 1 cannot be coded any better.
    _fewest_values = 3
    # Rows that `fit` takes, at least.
    _fewest_rows = 1

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._finite == "allow-nan"
        return tags

    def _check_training(self, X, y):
        """X as a float64 array, all that the rest of `fit` knows of the data.

        Sets the number and the names of the features. y is ignored; a subclass with a target
        returns a table of both.
        """
        is_named = is_frame(X)
        X = self._read_training(X)
        self._warn_of_empty_rows(np.flatnonzero(np.isnan(X).all(axis=1)))
        self._advise_on_columns(X, is_named)
        return X

    def _read_training(self, X):
        """The same without warnings: what cannot be fitted is refused."""
        self._form = TableForm.of(X, self.missing_values)
        X = self._as_floats(X)
        if len(X) < self._fewest_rows:
            raise ValueError(
                f"X must have at least {self._fewest_rows} samples, got n_samples = {len(X)}"
            )
        check_marks(self._form.marks, X.shape[1])
        empty = np.flatnonzero(np.isnan(X).all(axis=0))
        if empty.size:
            raise ValueError(
                "X must have an observed value in every column, got only NaN in "
                + self._named(empty)
            )
        return X

    def _warn_of_empty_rows(self, rows, n_rows=None):
        """Warn of rows without a value, of which ``rows`` are the first, or all."""
        n_rows = len(rows) if n_rows is None else n_rows
        if n_rows:
            shown = ", ".join(map(str, rows[:10])) + (", ..." if n_rows > 10 else "")
            warn(
                f"X has {n_rows} row(s) with no observed value, row(s) {shown}; "
                "what is drawn for them follows from the other rows and the prior alone",
            )

    def _advise_on_columns(self, X, is_named):
        for message in self._advice_on_columns(X, is_named):
            warn(message)

    def _advice_on_columns(self, X, is_named):
        """Which columns are not what a model takes them for, and what to do: a list of str.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
        is_named : bool
            Whether it came as a frame, each of whose columns may mean something else.
        """
        advice = []
        found = identifier_columns(X, self._nominal_columns())
        if found:
            advice.append(
                f"X has another value in nearly every row of {self._named(found)}, as numbers or "
                "names of rows have, and the model would explain them like all others: drop such "
                "columns, or set one as the index"
            )
        found = outlying_columns(X, self._nominal_columns())
        if found:
            advice.append(
                f"X has cells so far out in {self._named(found)} that most other rows differ by "
                "less than 1e-4 of its standard deviation, and the model would take them as equal: "
                "check those cells, set them to NaN, or transform the column, by its logarithm say"
            )
        names = np.setdiff1d(self._nominal_columns(), self._guessed_columns())
        found = suspicious_marks(self._as_numbers(X), names)
        for value, columns in found.items():
            remedy = self._advice_on_marks(value)
            advice.append(mark_in_words(value, self._named(columns), remedy))
        marked = {j for columns in found.values() for j in columns}
        columns = [j for j in self._lattice_columns(X) if j not in marked]
        if not is_named:
            return advice
        found = few_valued_columns(X, columns, self._fewest_values)
        if found:
            advice.append(
                f"X has ten different whole numbers or fewer in {self._named(found)}, which the "
                f"model takes for measurements or counts: {self._advice_on_lattices(found)}"
            )
        found = [] if self._has_law_of_pairs() else few_valued_columns(X, columns, most=2)
        if found:
            advice.append(
                f"X has two values in {self._named(found)}, which the model takes for "
                "measurements: where rows alike have the same, the other one is given hardly any "
                "density, and intervals leave it out. DirichletProcessMixture has a law for such "
                "columns"
            )
        return advice

    def _advice_on_marks(self, value):
        """What to do with a number that looks like a mark."""
        if self._predicts_targets():
            return "check those cells, or fill them before, as by " + self._filled_by(
                f"BNPImputer(missing_values={value:g})"
            )
        return remedy_of_mark(value)

    def _lattice_columns(self, X):
        """Columns that are taken as real, or as counts, though they may be codes of groups."""
        return range(X.shape[1])

    def _advice_on_lattices(self, columns):
        """What to do with such columns."""
        if self._predicts_targets():
            others = "by OneHotEncoder say; ordinal scores may stay as they are"
        elif self._has_law_of_pairs():
            # An encoder would make a missing cell a group of its own.
            others = (
                "missing where the code is; scores and counts may stay as they are, and "
                "DirichletProcessMixture has laws for codes, with the dtype category, and counts"
            )
        else:
            return (
                "scores and counts may stay as they are; for codes of groups, with the dtype "
                "category, and for counts DirichletProcessMixture has laws of their own"
            )
        return f"turn codes of groups into columns of 0 and 1, {others}"

    def _has_law_of_pairs(self):
        """Whether columns of two values need none, or have another than measurements."""
        # A model that names them with all other codes, from two values on, has laws for codes.
        return self._predicts_targets() or self._fewest_values == 2

    def _predicts_targets(self):
        """Whether columns of X are given, and neither drawn nor filled in."""
        return is_classifier(self) or is_regressor(self)

    def _label(self, column):
        """The name of a column, its place where there are none."""
        names = self._form.labels()
        return column if names is None else names[column]

    def _column_labels(self):
        """The names of all columns; x0, x1, ... where there are none."""
        return labels_or_numbers(self._form.labels(), self.n_features_in_)

    def _nominal_columns(self):
        """Columns of the validated X whose numbers are codes of levels."""
        return ()

    def _check_new(self, X):
        """X to predict for, as a float64 array with the features of `fit`."""
        check_is_fitted(self, "posterior_")
        self._validate_params()
        self._form.check_names(X)
        X = self._as_floats(X, reset=False)
        units = self._feature_units()
        if units.visible == "gaussian":
            self._refuse_far(self._distances(X), units.columns)
        return X

    def _feature_units(self):
        """The `Units` of the columns of X."""
        return self._units

    def _distances(self, X):
        """How far cells of the modelled columns are from their centers, in their scales."""
        return self._feature_units().scaled(X)

    def _warn_of_constant(self, units, what="X", named=None):
        """Say which columns are set aside because they do not vary."""
        constant = units.set_aside()
        if constant.size:
            named = self._named if named is None else named
            restored = "" if what == "X" and self._predicts_targets() else " and restored as it is"
            warn(f"{what} is constant in {named(constant)}, set aside{restored}")

    def _as_floats(self, X, reset=True, finite=None):
        """X as a C-ordered float64 array; not a copy if it is one already.

        ``finite`` is what scikit-learn calls ensure_all_finite, by default that of the class.
        """
        finite = self._finite if finite is None else finite
        refuses_missing = finite is True
        # Those are looked for at the end: scikit-learn's own advice would leave this library.
        finite = "allow-nan" if refuses_missing else finite
        marks = self._form.marks
        # Infinity may be a mark: then it is looked for when marks are gone.
        options = {"dtype": np.float64, "order": "C"}
        options["ensure_all_finite"] = False if has_infinity(marks) else finite
        try:
            # scikit-learn looks at the sum of all cells, which may overflow, before at each.
            with np.errstate(over="ignore", invalid="ignore"):
                if is_frame(X):
                    validate_data(self, X, reset=reset, skip_check_array=True)
                    numbers = as_numbers(X, marks)
                    found = check_array(numbers, input_name="X", estimator=self, **options)
                else:
                    found = validate_data(self, as_numbers(X, marks), reset=reset, **options)
            found = refuse_inexact(X, found)
            if not is_frame(X):
                found = unmarked(found, marks, getattr(X, "dtype", None))
            if has_infinity(marks):
                check_array(found, ensure_all_finite=finite, input_name="X", estimator=self)
        except OverflowError as error:
            raise ValueError(f"X must hold numbers that floats hold: {error}") from error
        except (TypeError, ValueError) as error:
            if "infinity" in str(error):
                self._refuse_infinite(as_numbers(X, marks))
            if "X" in str(error):
                raise
            kind = TypeError if isinstance(error, TypeError) else ValueError
            missing = "" if refuses_missing else ", NaN where missing"
            rule = f" must hold numbers{missing}" if "convert" in str(error) else ""
            raise kind(f"X{rule}: {error}") from error
        if refuses_missing:
            self._refuse_missing(found)
        return found

    def _refuse_infinite(self, X):
        """Say where infinite cells are."""
        found = infinite_columns(X)
        if found.size:
            raise ValueError(f"X must not hold infinity, got some in {self._named(found)}")

    def _refuse_missing(self, X):
        """Refuse missing cells, however they were marked, and say what helps."""
        columns = np.flatnonzero(np.isnan(X).any(axis=0))
        if columns.size:
            marks = as_plain(self.missing_values)
            # The imputer must know them too, or it takes them for numbers. None is NaN.
            marks = "" if marks is None else f"missing_values={marks!r}"
            raise ValueError(
                "X must not hold missing cells, got some (NaN, masked, or as missing_values says) "
                f"in {self._named(columns)}: fill them before, as by "
                + self._filled_by(f"BNPImputer({marks})")
            )

    def _filled_by(self, imputer):
        """A pipeline whose first step fills the missing cells, in words."""
        return f"make_pipeline({imputer}, {type(self).__name__}())"

    def _refuse_far(self, standard, columns, name="X", farthest=FARTHEST):
        """Refuse values so far out that densities and distances would leave the range of floats.

        ``standard`` (..., len(columns)) are values of these columns of X in standard deviations of
        the training data, NaN where missing.
        """
        far = np.max(
            np.abs(standard), axis=tuple(range(np.ndim(standard) - 1)), initial=0.0,
            where=~np.isnan(standard),
        )  # fmt: skip
        if len(far) and far.max() > farthest:
            j = int(far.argmax())
            raise ValueError(
                f"{name} must be within {farthest:g} standard deviations of the training data in "
                f"every column, got a value at {far[j]:.3g} in {self._named([columns[j]])}"
            )

    def _named(self, columns):
        """Columns in words, by name where there are names."""
        names = self._form.labels()
        labels = [str(j) if names is None else repr(names[j]) for j in columns[:10]]
        return "column(s) " + ", ".join(labels) + (", ..." if len(columns) > 10 else "")

    def _columns(self, X):
        """The values of each column of rows of numbers, levels by their names."""
        return X.T

    def _guessed_columns(self):
        """Columns of numbers that are read as levels."""
        return ()

    def _as_numbers(self, X):
        """Rows of the features as they are read, such columns as the numbers that they hold."""
        return X

    def _cells_that_stay(self, X):
        """Cells that are read as missing, or as another number: column, rows and values of each."""
        return ()

    def _whole_columns(self):
        """Columns of which samples are whole numbers."""
        return ()

    def _filled_as(self, given, X, filled, std=None, whole=()):
        """What `impute` answers: in the form of the table that it was given.

        Parameters
        ----------
        given : array-like or frame
        X : ndarray of shape (n_samples, n_features)
            The numbers that it was read as, NaN where missing.
        filled : ndarray of shape (n_samples, n_features)
        std : ndarray of shape (n_samples, n_features) or None
            To return as well.
        whole : collection of int
            Columns that were filled with whole numbers.
        """
        holes, columns = np.isnan(X), list(self._columns(filled))
        for j, rows, values in self._cells_that_stay(given):
            columns[j] = columns[j].astype(np.result_type(columns[j], values))
            columns[j][rows], holes[rows, j] = values, False
            if std is not None:
                std[rows, j] = 0.0
        table = fill_table(given, columns, holes.any(axis=0), whole)
        return table if std is None else (table, floats_like(given, std))

    def _as_trained(self, X, **options):
        """Rows of numbers in the form of the training table."""
        return self._form.build(self._columns(X), **options)

    def _as_sampled(self, X):
        """New rows in the form of the training table, with an index of their own."""
        return self._as_trained(X, whole=self._whole_columns(), with_index=False)


class TargetMixin:
    """Has a target beside X, which a subclass reads in ``_target(y)``."""

    def _with_target(self, X, y):
        """X and the target side by side."""
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        if np.ma.is_masked(y):
            raise ValueError("y must not hold masked cells: every row needs its target")
        # Missing numbers are found with infinite ones; labels may be of any type.
        labels = np.asarray(y, dtype=object if isinstance(y, (list, tuple)) else None)
        if labels.dtype.kind == "O" and any(map(is_missing, labels.ravel())):
            raise ValueError("y must not hold missing cells, got some: every row needs its target")
        target = self._target(y)
        check_consistent_length(X, target)
        return np.column_stack([X, target])

    @staticmethod
    def _warn_of_far_targets(y):
        """Say how many of these numbers, (n_samples,) or (n_samples, n_targets), are far out."""
        n_far = sum(map(n_far_targets, y.reshape(len(y), -1).T)) if y.size else 0
        if n_far:
            warn(
                f"y has {n_far} value(s) farther from the middle nine tenths than ten times the "
                "range of these, and predictions for all rows follow them: check them, leave "
                "these rows out, or transform y, as TransformedTargetRegressor does, by its "
                "logarithm say"
            )
