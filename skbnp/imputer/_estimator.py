"""BNPImputer: holes filled by a model, where scikit-learn's imputers fit."""

from copy import copy
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.stats import norm
from sklearn.base import BaseEstimator, TransformerMixin, _fit_context
from sklearn.impute import MissingIndicator
from sklearn.utils._param_validation import Interval, MissingValues, StrOptions
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from skbnp.estimators.arguments import check_count
from skbnp.estimators.callbacks import CallbackSupportMixin, with_callbacks
from skbnp.estimators.density import DensityMixin
from skbnp.estimators.parameters import Declared, parameter
from skbnp.imputer._default import holds_names
from skbnp.imputer._layout import Layout
from skbnp.imputer._model import ModelMixin, rows_where
from skbnp.imputer._reading import ReadingMixin, columns_in_words
from skbnp.imputer._reporting import ImputerReportMixin, said_by_model
from skbnp.mcmc.caller import judging, warn
from skbnp.tables.columns import columns_of, is_frame
from skbnp.tables.forms import floats_like
from skbnp.tables.marks import mark_in_words, remedy_of_mark
from skbnp.tables.parts import beside, own_copy, take


class BNPImputer(
    ModelMixin,
    ReadingMixin,
    ImputerReportMixin,
    TransformerMixin,
    Declared,
    CallbackSupportMixin,
    BaseEstimator,
):
    """Fill missing cells by a Bayesian nonparametric model of the whole table.

    It takes the place of `sklearn.impute.KNNImputer`. Beside the filled table it has standard
    deviations and intervals of what was filled in, and completed tables for multiple imputation.

    Attributes
    ----------
    estimator_ : estimator
        The model, fitted to the columns that vary and the rows that have a value; None where no
        column varies.
    indicator_ : sklearn.impute.MissingIndicator or None
        Where cells are missing; None unless `add_indicator`.
    r_hat_ : float
        How far the chains differ in what they fill in, averaged over the missing cells of the
        training table, those that are then looked up in another column too: R-hat by their means
        and standard deviations. NaN without such cells.
    common_values_ : dict of int to list of float
        The one or two values that many cells of each semicontinuous column have, by its place.
    looked_up_ : dict of int to list of int
        The columns of names, of 0 and 1 or of few numbers whose cells are filled from another
        column, and the places of these, the best one first.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, where X had them.

    See Also
    --------
    sklearn.impute.KNNImputer : Means of the nearest rows.
    sklearn.impute.IterativeImputer : Regressions of each column on the others, in turns.
    skbnp.summaries.pool : Estimates from several completed tables as one, by Rubin's rules.

    Notes
    -----
    A column of one value is filled with it, without a model. A column without any is dropped, with
    a warning, or kept with 0 in its holes, as `keep_empty_features` says. A row without any value
    is no part of the training, and is filled with predictive means.

    Missing cells may depend on what is observed, not on what is missing (missing at random).
    `fit_transform` answers from the moments that the chains have kept of the missing cells of the
    training table, where the model has them. `sample_weight` and `partial_fit` are not available.

    References
    ----------
    .. [1] D. B. Rubin (1987). Multiple Imputation for Nonresponse in Surveys. Wiley.

    Examples
    --------
    >>> import numpy as np
    >>> from skbnp import BNPImputer
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(30, 1)) * [1.0, 2.0] + 0.1 * rng.normal(size=(30, 2))
    >>> X[0] = 1.0, np.nan
    >>> imputer = BNPImputer(random_state=0)
    >>> bool(abs(imputer.fit_transform(X)[0, 1] - 2.0) < 0.2)
    True
    >>> low, high = imputer.intervals(level=0.9)
    >>> bool(low[0, 1] < 2.0 < high[0, 1])
    True
    """

    estimator: str | DensityMixin = parameter(
        default="auto",
        kind='"auto" or estimator',
        rules=[StrOptions({"auto"}), DensityMixin],
        text="""
        The model: any estimator of this package that predicts no target. "auto" is a
        `DirichletProcessMixture` for tables of at most 4 columns that vary, those of 0 and 1 as two
        values, a `TreeFactorModel` for wider ones, which fills these as well in less time; tables
        of 0 and 1 alone go to a mixture. A table in which a column holds names, categories or bools
        goes to a mixture whatever its width, its few different numbers taken as levels (as
        `DirichletProcessMixture` has it) unless they rise or fall with a real column (rank
        correlation above .5, six values or more, none in more than half of the cells), 0 and 1 as
        two values, counts of which more than .55 have one of two values as counts, and other
        numbers as real, with diagonal covariances if more than 20 columns are real, or more than
        half of the cells of one have a value that is not set apart. A mixture has ``max_work=6``.
        """,
    )
    missing_values: Any = parameter(
        default=np.nan,
        kind="number, str, list of these, dict, NaN or None",
        rules=[MissingValues(), Real, list, tuple, dict],
        text="""
        What stands for a missing cell, such as -1 or "?", a list of such, or a dict with those of
        some columns, by name in a frame and by place in an array. NaN, None, pandas' NA and masked
        cells are missing in any case. What it was in `fit` holds for all later tables. A column of
        text that is all numbers without such cells is one of numbers, as is one of numbers that are
        not all whole; names that look like numbers need the dtype of categories.
        """,
    )
    sample_posterior: bool = parameter(
        default=False,
        kind="bool",
        rules=["boolean"],
        text="""
        Whether cells are filled with a draw from the posterior instead of its mean, as one of
        `multiple` is. For a model with `sample_missing`.
        """,
    )
    add_indicator: bool = parameter(
        default=False,
        kind="bool",
        rules=["boolean"],
        text="""
        Whether the answer has columns on its right that say which cells were missing, for each
        column of the training table with holes.
        """,
    )
    keep_empty_features: bool = parameter(
        default=False,
        kind="bool",
        rules=["boolean"],
        text="""
        Whether columns without any value in `fit` are kept, with 0 in their holes.
        """,
    )
    semicontinuous: bool = parameter(
        default=True,
        kind="bool",
        rules=["boolean"],
        text="""
        Whether a mixture sees a real column many of whose cells have one value, as a debt that most
        people do not have, as two columns: whether a cell has that value, and what it is otherwise.
        Such are columns with one value in more than half of the cells, or in a tenth of them, at
        least ten, and any other one in at most a quarter as many; or with two such values, as both
        ends of a scale. What fills a cell is drawn in steps then, and may be that value. A tree,
        which fills tables of numbers alone of more than 4 columns, sees columns whole.
        """,
    )
    lookup: bool = parameter(
        default=True,
        kind="bool",
        rules=["boolean"],
        text="""
        Whether a cell in a column of names, of 0 and 1 or of few numbers is filled from another
        such column, where one nearly determines it, as a code does its words. It is if that column
        alone, by how often the two go together, is more often right than the most frequent value
        (at most half as many errors, at least five fewer), and as often as the model, on up to 500
        observed cells, which the model has seen. A model has such columns independent within a
        cluster, and may see little of what one says of the other. Where both cells are missing, the
        model fills them; of more than 100 such columns it fills all.
        """,
    )
    n_jobs: int | None = parameter(
        default=None,
        kind="int or None",
        rules=[
            Interval(Integral, None, -1, closed="right"),
            Interval(Integral, 1, None, closed="left"),
            None,
        ],
        text="""
        That of the model; None leaves it as it is.
        """,
    )
    random_state: int | np.random.RandomState | None = parameter(
        default=None,
        kind="int, RandomState instance or None",
        rules=["random_state"],
        text="""
        Seed of the model's chains and of cells that are drawn. None leaves that of the model as it
        is.
        """,
    )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def set_params(self, **params):
        """Set parameters of the imputer, those of its model as ``estimator__parameter``.

        Parameters
        ----------
        **params : dict

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If there is no such parameter, or a parameter of the model is set where that is "auto".
        """
        nested = [name for name in params if name.startswith("estimator__")]
        if nested and isinstance(params.get("estimator", self.estimator), str):
            raise ValueError(
                f"{nested[0]} cannot be set where estimator is 'auto': give an estimator, such as "
                "estimator=skbnp.imputer.default_model(X), which 'auto' is"
            )
        return super().set_params(**params)

    # The model has parameters of its own to validate.
    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y=None):
        """Fit the model to a table.

        A fit that fails leaves the imputer as it was before.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Array or frame; columns of a frame, or of an array of objects, may hold names.
        y : None
            Ignored.

        Returns
        -------
        self : object

        Warns
        -----
        UserWarning
            If a column without any value is dropped, and whatever the model warns of.
        ConvergenceWarning
            If the chains differ in the cells that they fill in: `r_hat_` is above 1.05. Where the
            training table has no missing cells, draws are few, chains are an ensemble that is meant
            to differ, or a model does not say what each fills in: whatever the model warns of.
        """
        self._refuse_bools()
        attempt = copy(self)
        attempt._fit(X)
        # One assignment: never a new layout of columns beside an old model.
        self.__dict__ = vars(attempt)
        return self

    @with_callbacks
    def _fit(self, X):
        """All of `fit`, on its copy."""
        X = self._read(X, reset=True)
        context = self._init_callback_context(max_subtasks=1)
        context.call_on_fit_task_begin(estimator=self, X=X)
        columns = columns_of(X)
        layout = Layout.of(columns, self.keep_empty_features)
        if not layout.is_kept.all():
            warn(
                "X has no observed value in "
                + ", ".join(columns_in_words(X, np.flatnonzero(~layout.is_kept)))
                + ", dropped; keep_empty_features=True keeps such columns, with 0 in their holes"
            )
        holes = _holes(columns)
        modelled = layout.modelled
        has_values = ~holes[:, modelled].all(axis=1) if modelled.size else np.ones(len(holes), bool)
        self._layout, self._has_values = layout, has_values
        self._training = own_copy(X)  # what the caller does to the table is not to be seen here
        self.indicator_ = None
        if self.add_indicator:
            self.indicator_ = MissingIndicator(error_on_new=False).fit(_as_nan(holes))
            self._refuse_names_of_flags()
        self.estimator_, self.r_hat_, self.common_values_, self.looked_up_ = None, np.nan, {}, {}
        if modelled.size:
            seen = take(X, modelled, rows_where(has_values))
            model, self._parts = self._make(seen, X, modelled)
            common = self._parts.common_values.items()
            self.common_values_ = {int(modelled[place]): values for place, values in common}
            for value, found in self._common_marks().items():
                named = ", ".join(columns_in_words(X, found))
                warn(mark_in_words(value, named, remedy_of_mark(value)))
            task = context.subcontext(task_name="model")
            with task.propagate_callback_context(model):
                task.call_on_fit_task_begin(estimator=self, X=X)
                with said_by_model(model), judging(model, self._cells(holes[has_values])):
                    self.estimator_ = model.fit(self._parts.apart(seen))
                self._judge_chains()
                self._lookups = self._find_lookups(seen)
            self.looked_up_ = {
                int(modelled[j]): [int(modelled[one.by]) for one in tables]
                for j, tables in self._lookups.tables.items()
            }
            task.call_on_fit_task_end(estimator=self, X=X)
        context.call_on_fit_task_end(estimator=self, X=X)

    def transform(self, X):
        """Fill the missing cells of a table.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows or training rows.

        Returns
        -------
        X_filled : ndarray or frame of shape (n_samples, n_features_out)
            Each missing cell with its posterior mean (a name with the most probable one), or a
            draw if `sample_posterior`. A frame of the kind, names and index of X where that is one,
            unless `set_output` says otherwise.

        Warns
        -----
        UserWarning
            If a row has a name or category that `fit` has not seen, another value than 0 and 1 in a
            column of two values, or another number in one of few that were taken for levels: its
            missing cells are filled as if that were missing too.
        """
        check_is_fitted(self, "estimator_")
        self._validate_params()
        X = self._read(X)
        return self._answer(X, is_training=False)

    def fit_transform(self, X, y=None):
        """Fit the model to a table and fill its missing cells.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : None
            Ignored.

        Returns
        -------
        X_filled : ndarray or frame of shape (n_samples, n_features_out)
            As `transform` has it; of equal training rows each has its own answer.
        """
        self.fit(X, y)
        return self._answer(self._training, is_training=True)

    def standard_deviations(self, X=None):
        """Posterior standard deviations of what is filled in.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), default=None
            None means the training table.

        Returns
        -------
        std : ndarray or frame of shape (n_samples, n_kept)
            0 for observed cells and columns of one value, NaN for those without any; for a name
            the root of p (1 - p), p the probability of the one that is filled in. In the columns of
            `transform`, without those of `add_indicator`.
        """
        X, is_training = self._given(X)
        holes = _holes(columns_of(X))
        _, std = self._model_answer(X, holes, is_training)
        return self._floats_like(X, self._layout.put_back_floats(std, holes))

    def intervals(self, X=None, level=0.9, random_state=None):
        """Intervals that hold the missing cells with a given probability, each on its own.

        By quantiles of 400 completed tables where the model has `sample_missing`, otherwise, and
        where it has calibrated its standard deviations, by means and standard deviations as if
        predictions were normal.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), default=None
            None means the training table.
        level : float, default=0.9
        random_state : int, RandomState instance or None, default=None
            None means that of the imputer.

        Returns
        -------
        low, high : ndarray or frame of shape (n_samples, n_kept)
            An observed cell is both ends. NaN in columns of names.
        """
        X, is_training = self._given(X)
        if not isinstance(level, Real) or not 0.0 < level < 1.0:
            raise ValueError(f"level must be between 0 and 1, got {level!r}")
        columns = columns_of(X)
        holes, modelled = _holes(columns), self._layout.modelled
        kept = np.flatnonzero(self._layout.is_kept)
        is_name = np.array([holds_names(column) for column in columns_of(self._training)])
        ends = np.full((2, *holes.shape), np.nan)
        # Of columns of numbers, those without a hole in the filled table included.
        filled = self._layout.put_back(X, self._model_answer(X, holes, is_training)[0])
        for j, column in zip(kept, columns_of(filled), strict=True):
            if not is_name[j] and not (self._layout.is_empty[j] and holes[:, j].any()):
                ends[:, :, j] = column.values.astype(np.float64)
        some = modelled[~is_name[modelled]]
        if holes[:, some].any():
            # Draws are not calibrated.
            if hasattr(self.estimator_, "sample_missing") and not hasattr(
                self.estimator_, "std_scale_"
            ):
                cells = self._drawn_cells(X, holes, is_training, some, random_state)
                found = np.quantile(cells, [0.5 - level / 2, 0.5 + level / 2], axis=0)
            else:
                _, std = self._model_answer(X, holes, is_training)
                half = norm.ppf(0.5 + level / 2) * std[:, np.isin(modelled, some)]
                half = half[holes[:, some]]
                mean = ends[0][:, some][holes[:, some]]
                found = mean - half, mean + half
            for end, values in zip(ends, found, strict=True):
                inner = end[:, some]
                inner[holes[:, some]] = values
                end[:, some] = inner
        return tuple(self._floats_like(X, end[:, kept]) for end in ends)

    def multiple(self, n_tables=20, X=None, random_state=None):
        """Completed tables for multiple imputation, their missing cells drawn from the posterior.

        Analyse each table as if it had been complete, and pool the estimates by Rubin's
        rules: :func:`skbnp.summaries.pool`. For a model with `sample_missing`.

        Parameters
        ----------
        n_tables : int, default=20
            Number of tables.
        X : array-like of shape (n_samples, n_features), default=None
            None means the training table, whose missing cells are drawn jointly.
        random_state : int, RandomState instance or None, default=None
            None means that of the imputer.

        Returns
        -------
        tables : list of n_tables ndarrays or frames of shape (n_samples, n_features_out)
            As `transform` has them.
        """
        if not isinstance(n_tables, Real):
            raise TypeError(
                f"n_tables must be an integer, got a {type(n_tables).__name__}: write X=... for a "
                "table"
            )
        check_count("n_tables", n_tables)
        X, is_training = self._given(X)
        found = self._drawn(X, _holes(columns_of(X)), is_training, n_tables, random_state)
        return [self._finished(X, values) for values in found]

    def get_feature_names_out(self, input_features=None):
        """Names of the columns of the answer.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the columns of X; None means those seen in `fit`, "x0", "x1" and so on where
            there were none.

        Returns
        -------
        names : ndarray of str
        """
        check_is_fitted(self, "estimator_")
        names = _check_feature_names_in(self, input_features)
        kept = names[self._layout.is_kept]
        if self.indicator_ is None:
            return kept
        return np.concatenate([kept, self.indicator_.get_feature_names_out(names)])

    # -- tables

    def _given(self, X):
        """The table that a method is asked about, and whether it is the training table."""
        check_is_fitted(self, "estimator_")
        self._validate_params()
        if isinstance(X, Real):
            raise TypeError(f"X must be a table or None, got {X!r}: write level={X!r} for a level")
        return (self._training, True) if X is None else (self._read(X), False)

    def _floats_like(self, X, numbers):
        return floats_like(take(X, np.flatnonzero(self._layout.is_kept)), numbers)

    # -- answers

    def _answer(self, X, is_training):
        holes = _holes(columns_of(X))
        if self.sample_posterior:
            (found,) = self._drawn(X, holes, is_training, 1)
        else:
            found, _ = self._model_answer(X, holes, is_training)
            self._warn_of_far(found, holes)
        return self._finished(X, found)

    def _finished(self, X, found):
        """The answer: X with its holes filled, and what `add_indicator` adds."""
        filled = self._layout.put_back(X, found)
        if self.indicator_ is None:
            return filled
        flags = self.indicator_.transform(_as_nan(_holes(columns_of(X))))
        if not is_frame(X):
            return np.hstack([filled, flags])
        return beside(filled, dict(zip(self._names_of_flags(), flags.T, strict=True)))

    def _names_of_flags(self):
        return self.indicator_.get_feature_names_out(_check_feature_names_in(self, None))

    def _refuse_names_of_flags(self):
        taken = np.intersect1d(_check_feature_names_in(self, None), self._names_of_flags())
        if taken.size:
            raise ValueError(
                f"X must have no column {str(taken[0])!r} with add_indicator=True, which adds one "
                "of that name"
            )


def _holes(columns):
    """Which cells are missing, (n_samples, n_features)."""
    return np.column_stack([column.missing for column in columns])


def _as_nan(holes):
    return np.where(holes, np.nan, 0.0)
