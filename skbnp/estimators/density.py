"""What follows from the density of rows: scores, samples, missing cells and their moments."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skbnp.estimators.arguments import refuses_by_name
from skbnp.mcmc.caller import cells_for_caller, warn
from skbnp.mcmc.rows import row_blocks
from skbnp.numerics.log_sums import log_totals
from skbnp.summaries.training_cells import TrainingCells, places_among


class DensityMixin:
    """Densities, samples and filled cells, from what each draw says of rows.

    A subclass has ``_units`` of the columns, or says itself how rows look to its draws and back:

    - ``_modelled(X)``: rows of numbers (n_rows, n_modelled), NaN where missing;
      ``_conditioned(X)`` the same where rows are given and not scored;
    - ``_log_jacobian(X)``: log |d modelled / d X| of the observed cells of each row;
    - ``_in_units(mean, variance)``: means and standard deviations of all columns in the units of X;
    - ``_sampled_in_units(A)``: rows that were sampled, in the units of X.

    ``_prepared(A)`` is what it works out once of a block of such rows for all draws. Of a draw, as
    ``_law_of`` has it, it says

    - ``_log_density_of(law, t, rows)``: log density of each row, (n_rows,), or (2, n_rows) with a
      figure of how good an estimate it is, which goes to ``_judge``;
    - ``_cell_moments_of(law, t, rows)``: mean and variance of every missing cell;
    - ``_sample_of(draw, n_rows, rng)``: new rows.
    """

    # Whether `fit` fills the training table: where that is quick beside the sampling.
    _fills_training_table = False

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.estimator_type = "density_estimator"
        return tags

    # -- rows

    def _check_rows(self, n_columns):
        """Raise a ValueError unless the rows of a file go with the units and the draws of it."""
        rows = self._training_rows
        if rows.X.ndim != 2 or rows.X.shape[1] != n_columns or rows.X.dtype != np.float64:
            raise ValueError("the training rows must have a number for each feature")
        if not self._units.is_same(rows.units):
            raise ValueError("the units of the training rows must be those of the draws")
        self._check_training_cells(np.isnan(rows.X))
        self._check_draw(self._reference)

    def _modelled(self, X):
        return self._units.to_visible(X)

    def _conditioned(self, X):
        outside = self._units.is_outside(X)
        if outside.any():
            self._warn_outside(outside, "are clipped to the range of the training data")
        return self._modelled(X)

    def _log_jacobian(self, X):
        outside = self._units.is_outside(X)
        if outside.any():
            self._warn_outside(outside, "have density 0")
        return np.where(outside, -np.inf, self._units.log_jacobian(X))

    def _warn_outside(self, outside, what):
        warn(
            f"{outside.sum()} row(s) of X reach beyond the range of the training data or "
            f"feature_bounds and {what}",
        )

    def _in_units(self, mean, variance):
        return self._units.moments(mean, variance)

    def _sampled_in_units(self, A):
        return self._units.from_visible(A)

    def _modelled_columns(self):
        """The column that each number of `_modelled` is about."""
        return self._units.columns

    def _training_places(self, X):
        """The training row that each row of X is, -1 for new ones; equal ones are taken in turn.

        Of a model that keeps its training rows as `_modelled` has them: all with ``labels_`` do.
        """
        return places_among(self._modelled(self._check_new(X)), self._training_rows.X)

    def _prepared(self, A):
        return A

    def _density_laws(self):
        """What the draws say that densities are means over."""
        return self._prediction_laws()

    def _log_p_not_read(self, X):
        """Log probability, by row, of cells with values that are read as missing."""
        return 0.0

    def _judge(self, figures):
        """Warn of poor estimates; ``figures`` (n_draws, n_rows), None where there are none."""

    def _warn_of_constants(self, X):
        """Warn where columns that are set aside, as they were constant in `fit`, are not in X."""
        aside = self._units.set_aside()
        differs = np.abs(X[:, aside] - self._units.constant[aside]) > 0.0  # not where missing
        if differs.any():
            warn(
                f"{differs.any(axis=1).sum()} row(s) of X have another value in "
                f"{self._named(aside[differs.any(axis=0)])}, constant in fit and set aside: "
                "densities do not tell"
            )

    # -- answers

    @refuses_by_name
    def score_samples(self, X):
        """Log posterior predictive density of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows. If cells are missing, the density is that of the observed cells; the log
            density of a row without any is 0. Columns that `fit` has set aside as constant are
            ignored, with a warning where X has other values there.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            Logarithm of the density averaged over draws, in the units of X. It is -inf, with a
            warning, for a row beyond the range of columns that have one. Where it is an estimate,
            it is the same for the same rows.
        """
        given, X = X, self._check_new(X)
        density, figures = np.empty(len(X)), []
        A, laws = self._modelled(X), self._density_laws()
        of_draw, prepare = self._log_density_of, self._prepared
        for rows, parts in self._over_draws(A, of_draw, prepare=prepare, laws=laws):
            found = np.concatenate(parts)
            if found.ndim == 3:
                figures.append(found[:, 1])
                found = found[:, 0]
            density[rows] = log_totals(np.ascontiguousarray(found.T)) - np.log(len(found))
        if figures:
            self._judge(np.concatenate(figures, axis=1))
        self._warn_of_constants(X)
        # Of nothing the density is 1, whatever sums and estimates of it round to.
        density = np.where(np.isnan(A).all(axis=1), 0.0, density + self._log_jacobian(X))
        return density + self._log_p_not_read(given)

    @refuses_by_name
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

    @refuses_by_name
    def sample(self, n_samples=1, random_state=None):
        """Sample rows from the posterior predictive distribution, each from its own random draw.

        All stored draws take part, not only `predict_draws` of them.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState instance or None, default=None

        Returns
        -------
        X : ndarray or frame of shape (n_samples, n_features)
            In the units and the form of the training data, constant columns included.
        """
        rng = self._generator(n_samples, random_state)
        samples = [
            (rows, self._sample_of(draw, len(rows), rng))
            for rows, draw in self._chosen_draws(n_samples, rng)
        ]
        A = np.empty((n_samples, samples[0][1].shape[1]))
        for rows, sample in samples:
            A[rows] = sample
        return self._as_sampled(self._sampled_in_units(A))

    @refuses_by_name
    def impute(self, X, return_std=False):
        """Fill missing cells with their mean given the observed ones, averaged over draws.

        All draws have equal weights. The posterior predictive mean would weight a draw by its
        density of the row's observed cells, as `score_samples` does. For a fitted row that counts
        the row twice, and in many columns it leaves one draw of a hundred in effect: equal weights
        have smaller errors and honest standard deviations.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, NaN where missing. A row without values gets the predictive mean.
        return_std : bool, default=False
            Also return the predictive standard deviation.

        Returns
        -------
        X_filled : ndarray or frame of shape (n_samples, n_features)
            Observed cells are those of X, bit for bit.
            A frame of the kind, names and index of X where that is one.
        std : ndarray or frame of shape (n_samples, n_features)
            Only if `return_std`: by the law of total variance over draws and what the model
            averages over in each, 0 for observed cells, inf where a law has no second moment.
        """
        check_is_fitted(self, "posterior_")
        return self._impute(X, return_std, self._cell_moments_of, known=self._known_cells())

    @property
    def X_imputed_(self):
        """The training table with its holes filled, in the form it was given in."""
        # Kept as numbers: a file holds no DataFrame.
        self._check_knows_training_cells("X_imputed_")
        whole = np.flatnonzero(~np.isnan(self._training_cells.X).any(axis=0))
        return self._as_trained(self._filled_training()[0], whole=whole)

    @property
    def X_imputed_std_(self):
        """Standard deviations of what `X_imputed_` fills in, 0 for observed cells."""
        self._check_knows_training_cells("X_imputed_std_")
        return self._form.build_floats(self._filled_training()[1])

    # -- missing cells

    def _impute(self, X, return_std, of_draw, whole=(), known=None):
        """X with its missing cells filled, and with ``return_std`` their standard deviations too.

        ``of_draw(law, t, rows)`` gives mean and variance as `_cell_moments_of` does. The columns
        ``whole`` are filled with whole numbers. Rows that ``known``, some `TrainingCells`, has are
        answered with that.
        """
        given, X = X, self._check_new(X)
        incomplete = np.flatnonzero(np.isnan(X).any(axis=1))
        filled, std = X.copy(), np.zeros_like(X)
        if incomplete.size and known is not None:
            found = known.matches(X[incomplete])
            here = np.flatnonzero([len(places) > 0 for places in found])
            self._fill_known(filled, std, incomplete[here], [found[t] for t in here])
            incomplete = np.delete(incomplete, here)
        if incomplete.size:
            A = self._conditioned(X[incomplete])
            for rows, *moments in self._moments(A, of_draw, self._prepared):
                self._fill(filled, std, incomplete[rows], *moments)
        filled[:, whole] = np.rint(filled[:, whole])
        self._warn_of_far(self._far_fills(X, filled))
        return self._filled_as(given, X, filled, std if return_std else None, whole)

    def _fill(self, filled, std, rows, mean, variance):
        """Fill missing cells of some rows from their moments, and set their deviations."""
        holes = np.isnan(filled[rows])
        mean, spread = self._in_units(mean, variance)
        spread = spread * self._deviation_scales(filled[rows])[:, np.newaxis]
        filled[rows] = np.where(holes, mean, filled[rows])
        std[rows] = np.where(holes, spread, 0.0)

    def _deviation_scales(self, X):
        """What the deviations of the missing cells of each row are multiplied by."""
        return np.ones(len(X))

    def _known_cells(self):
        """`TrainingCells` that `impute` answers training rows with, None if it asks the draws."""
        return None

    def _judge_chains(self):
        super()._judge_chains()
        self._judge_training_cells()

    def _judge_training_cells(self):
        """Warn where missing cells of the training table are filled with what is far out."""
        self._warn_of_far(self._far_training_cells())

    def _far_training_cells(self):
        """Which of them: (n_samples, n_features) of bool."""
        if self._training_cells is None:
            return np.zeros((0, self.n_features_in_), dtype=bool)
        return self._far_fills(self._training_cells.X, self._filled_training()[0])

    def _far_fills(self, X, filled):
        """Which cells that X lacks were filled far out: (n_samples, n_features) of bool.

        Farther outside all training values than these reach; none where no training rows are kept.
        """
        if self._training_rows is None:
            return np.zeros(X.shape, dtype=bool)
        low, high = self._kept("reach", self._reach)
        with np.errstate(over="ignore", invalid="ignore"):
            outside = np.maximum(filled - high, low - filled)
            return np.isnan(X) & (outside > high - low) & (high > low)

    def _reach(self):
        """The least and the largest value of each column of the training table."""
        seen = self._training_rows.observed_data()
        return np.fmin.reduce(seen, axis=0), np.fmax.reduce(seen, axis=0)

    def _warn_of_far(self, far):
        cells = cells_for_caller(self)
        if cells is not None and far.any():
            far = far & cells
        if far.any():
            warn(
                f"{far.sum()} missing cell(s) of {self._named(np.flatnonzero(far.any(axis=0)))} "
                "were filled with numbers that are farther outside all training values than these "
                f"reach. {self._advice_on_far_cells()}"
            )

    def _advice_on_far_cells(self):
        return "Look at their standard deviations before you use them"

    def _check_knows_training_cells(self, name):
        if self._training_cells is not None:
            return
        if self._fills_training_table:
            raise AttributeError(f"{name} is there once fit has seen an X with missing cells")
        raise AttributeError(f"{name} is not kept, as it would take long: call impute(X)")

    def _keep_training_cells(self, X):
        """Set what the draws of a prediction say of the missing cells of the training rows."""
        rows, columns = np.flatnonzero(np.isnan(X).any(axis=1)), self._modelled_columns()
        if rows.size:
            which = TrainingCells.numbers(X[rows], columns)
            moments = self._moments_of_chains(
                self._modelled(X[rows]), self._cell_moments_of, self._prepared
            )
            blocks = [
                [(n, mean[which[here]], square[which[here]]) for n, mean, square in chains]
                for here, chains in moments
            ]
            chains = [_of_all_rows(parts) for parts in zip(*blocks, strict=True)]
            self._training_cells = TrainingCells.of(X, columns, chains)

    def _check_training_cells(self, missing):
        """Raise a ValueError unless what a file has of them fits a table with these holes."""
        # A file of 0.1 may have none.
        if self._training_cells is not None:
            self._training_cells.check(missing, self._modelled_columns())

    def _filled_training(self):
        """The training rows with their missing cells filled, and the deviations of these."""
        cells = self._training_cells
        filled, std = cells.X.copy(), np.zeros_like(cells.X)
        self._fill_known(filled, std, cells.rows, [[place] for place in range(len(cells.rows))])
        return filled, std

    def _fill_known(self, filled, std, rows, places):
        """The same of training rows, from what the chains say; ``places`` are those of each."""
        for block in row_blocks(len(rows)):
            moments = self._training_cells.moments(places[block])
            self._fill(filled, std, rows[block], *moments)


def _of_all_rows(parts):
    """Moments of some blocks of rows as those of all."""
    counts, means, squares = zip(*parts, strict=True)
    return counts[0], np.concatenate(means), np.concatenate(squares)
