"""What all estimators share: parameters of the chains, the fit template, scores."""

import warnings
from numbers import Integral

import numpy as np
from sklearn.base import BaseEstimator, _fit_context
from sklearn.callback import CallbackSupportMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from skbnp.mcmc.diagnostics import convergence_problems
from skbnp.mcmc.rows import available_threads, for_row_blocks, one_blas_thread
from skbnp.mcmc.runner import run_chains


class BaseMCMCEstimator(CallbackSupportMixin, BaseEstimator):
    """Fit by Markov chain Monte Carlo, predict from the kept draws.

    A subclass defines ``_prepare(X)``, which checks its own parameters against the validated X
    and returns ``make_sampler(bit_generator, chain)``; ``_summarise(X)``, which computes point
    estimates from ``posterior_``; ``_auto_lengths(X)``; and ``score_samples``.
    """

    _parameter_constraints: dict = {
        "n_chains": [Interval(Integral, 1, None, closed="left")],
        "n_warmup": [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})],
        "n_draws": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "thin": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [
            Interval(Integral, None, -1, closed="right"),
            Interval(Integral, 1, None, closed="left"),
            None,
        ],
        "random_state": ["random_state"],
        "predict_draws": [Interval(Integral, 1, None, closed="left")],
        "verbose": ["verbose"],
    }

    # Names of the traces whose convergence ``fit`` checks.
    _reported_traces = ("log_joint",)

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Sample the posterior given X and summarise it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training data; NaN marks missing cells.
        y : None
            Ignored.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If X or a parameter breaks a rule; before any sampling.

        Warns
        -----
        ConvergenceWarning
            If R-hat or the effective sample size of a reported quantity is poor.
        """
        self._refuse_bools()
        X = self._check_training(X)
        # A fit that does not finish must not leave old draws beside new units.
        self.__dict__.pop("posterior_", None)
        with one_blas_thread:
            make_sampler = self._prepare(X)
        n_warmup, n_draws = self._auto_lengths(X)
        self.n_warmup_ = n_warmup if self.n_warmup == "auto" else self.n_warmup
        self.n_draws_ = n_draws if self.n_draws == "auto" else self.n_draws
        self.seed_ = int(check_random_state(self.random_state).randint(2**62, dtype=np.int64))

        context = self._init_callback_context(max_subtasks=self.n_chains)
        context.call_on_fit_task_begin(estimator=self, X=X)
        self.posterior_ = run_chains(
            make_sampler,
            n_chains=self.n_chains,
            n_warmup=self.n_warmup_,
            n_draws=self.n_draws_,
            thin=self.thin,
            seed=self.seed_,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
            callbacks=(self, context),
        )
        self._summarise(X)
        self._warn_if_not_converged()
        context.call_on_fit_task_end(estimator=self, X=X)
        return self

    def score(self, X, y=None):
        """Mean log posterior predictive density of the rows of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows not used in `fit`, for an honest figure; NaN marks missing cells.
        y : None
            Ignored.

        Returns
        -------
        score : float
            In nats per row, for X in its own units. Larger is better.
        """
        return float(np.mean(self.score_samples(X)))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    # -- checks

    def _refuse_bools(self):
        """True is an integer to Python, hence to the constraints on single parameters."""
        for name, value in self.get_params(deep=False).items():
            if isinstance(value, bool) and name != "verbose":
                raise ValueError(f"{name} must not be a bool, got {value!r}")

    def _check_training(self, X):
        """X as a float64 array; sets the number and the names of the features."""
        X = self._as_floats(X)
        missing = np.isnan(X)
        empty = np.flatnonzero(missing.all(axis=0))
        if empty.size:
            raise ValueError(
                "X must have an observed value in every column, got only NaN in "
                + self._named(empty)
            )
        empty = np.flatnonzero(missing.all(axis=1))
        if empty.size:
            shown = ", ".join(map(str, empty[:10])) + (", ..." if empty.size > 10 else "")
            warnings.warn(
                f"X has {empty.size} row(s) with no observed value, row(s) {shown}; "
                "their labels follow the prior",
                UserWarning,
                stacklevel=4,  # past scikit-learn's wrapper of fit, to its caller
            )
        return X

    def _check_new(self, X):
        """X to predict for, as a float64 array with the features of `fit`."""
        check_is_fitted(self, "posterior_")
        self._validate_params()
        return self._as_floats(X, reset=False)

    def _as_floats(self, X, reset=True):
        """X as a C-ordered float64 array; not a copy if it is one already."""
        try:
            return validate_data(
                self, X, reset=reset, dtype=np.float64, order="C", ensure_all_finite="allow-nan"
            )
        except (TypeError, ValueError) as error:
            if "X" in str(error):
                raise
            kind = TypeError if isinstance(error, TypeError) else ValueError
            rule = " must hold numbers, NaN where missing" if "convert" in str(error) else ""
            raise kind(f"X{rule}: {error}") from error

    def _named(self, columns):
        """Columns in words, by name where there are names."""
        names = getattr(self, "feature_names_in_", None)
        labels = [str(j) if names is None else repr(str(names[j])) for j in columns[:10]]
        return "column(s) " + ", ".join(labels) + (", ..." if len(columns) > 10 else "")

    def _warn_if_not_converged(self):
        problems = convergence_problems(self.posterior_.traces, self._reported_traces)
        if problems:
            warnings.warn(
                "The chains may not have converged: " + "; ".join(problems) + ". Raise n_warmup "
                "and n_draws, or look at posterior_.summary() and skbnp.plot.TraceDisplay.",
                ConvergenceWarning,
                stacklevel=4,
            )

    # -- prediction

    def _prediction_draws(self):
        return self.posterior_.evenly_spaced(self.predict_draws)

    def _by_row_blocks(self, function, n_rows):
        """Results of ``function(start, stop)`` over fixed row blocks, stacked."""
        n_threads = available_threads(self.n_jobs)
        return np.concatenate(for_row_blocks(function, n_rows, n_threads=n_threads))
