"""What follows from the density of rows: scores, and missing cells filled with their moments."""

from functools import partial

import numpy as np

from skbnp.estimators.arguments import refuses_by_name
from skbnp.mcmc.rows import BLOCK_SIZE, available_threads, for_row_blocks, row_blocks
from skbnp.numerics.moments import merged

# Numbers that the moments of one block of rows may take, and groups of draws that are summed.
_BLOCK_NUMBERS, _DRAW_GROUPS = 2_000_000, 8


class DensityMixin:
    """Averages over draws of what each says of rows, block by block and the same for any threads.

    A subclass defines ``score_samples``; where it fills missing cells, ``_in_units(mean,
    variance)``. ``_training_cells``, if it is there, knows those of the training rows.
    """

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

    @property
    def X_imputed_(self):
        """The training table with its holes filled, in the form it was given in."""
        # Kept as numbers: a file holds no DataFrame.
        if not self._knows_training_cells():
            raise AttributeError("X_imputed_ is there once fit has seen an X with missing cells")
        whole = np.flatnonzero(~np.isnan(self._training_cells.X).any(axis=0))
        return self._as_trained(self._filled_training()[0], whole=whole)

    @property
    def X_imputed_std_(self):
        """Standard deviations of what `X_imputed_` fills in, 0 for observed cells."""
        if not self._knows_training_cells():
            raise AttributeError(
                "X_imputed_std_ is there once fit has seen an X with missing cells"
            )
        return self._form.build_floats(self._filled_training()[1])

    def _given_draw(self, draw):
        """The draw that the user names: the reference draw for None."""
        if draw is None:
            return self._reference
        rule = "draw must be None or a draw of posterior_, such as posterior_[0, 0]"
        if not isinstance(draw, dict):
            raise TypeError(f"{rule}, got a {type(draw).__name__}")
        try:
            self._check_draw(draw)
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise ValueError(f"{rule} of this estimator: {error}") from error
        return draw

    def _prediction_draws(self):
        return self.posterior_.evenly_spaced(self.predict_draws)

    def _row_threads(self):
        """``for_rows`` of each chain's sampler: together they use as many threads as `n_jobs`."""
        n_threads = available_threads(self.n_jobs)
        return partial(for_row_blocks, n_threads=max(1, n_threads // min(self.n_chains, n_threads)))

    def _by_row_blocks(self, function, n_rows):
        """Results of ``function(start, stop)`` over fixed row blocks, stacked."""
        return np.concatenate(self._by_blocks(function, n_rows))

    def _by_blocks(self, function, n, size=BLOCK_SIZE):
        """Results of ``function(start, stop)`` over fixed blocks of so many rows, or draws."""
        return for_row_blocks(function, n, size, n_threads=available_threads(self.n_jobs))

    def _over_draws(self, A, of_draw, combine=None, prepare=None):
        """Results of ``of_draw(draw, t, rows of A)`` for blocks of rows: yields (rows, parts).

        A part is what ``combine`` makes of the results of one group of draws, by default a stack
        of them; groups and blocks do not depend on the number of threads. What
        ``prepare(rows of A)`` makes of a block goes to all draws in its place.
        """
        combine = combine or _stacked
        draws = self._prediction_draws()
        size = max(1, min(BLOCK_SIZE, _BLOCK_NUMBERS // max(1, A.shape[1])))
        for start in range(0, len(A), size):
            rows = slice(start, min(start + size, len(A)))
            block = A[rows] if prepare is None else prepare(A[rows])

            def part(first, last, block=block):
                return combine(of_draw(draws[t], t, block) for t in range(first, last))

            yield rows, self._by_blocks(part, len(draws), -(-len(draws) // _DRAW_GROUPS))

    def _moments(self, A, of_draw, prepare=None):
        """Mean and variance of what the draws say of the rows of A, all draws alike.

        Yields (rows, mean, variance) block by block. ``of_draw(draw, t, rows of A)`` gives those
        of one draw; by the law of total variance, inf where a draw's is.

        All draws weigh the same, although Bayes' rule lets each count by its density of what is
        observed of the row. Of a row that the draws were fitted to they know that already, and in
        many columns such weights leave one draw of a hundred in effect: intervals too short, and
        larger errors for new rows as well.
        """

        def combine(results):
            return merged((1.0, mean, variance) for mean, variance in results)

        for rows, parts in self._over_draws(A, of_draw, combine, prepare):
            n_draws, mean, square = merged(parts)
            yield rows, mean, square / n_draws

    def _impute(self, X, return_std, to_model, of_draw, prepare=None, whole=()):
        """X with its missing cells filled, and with ``return_std`` their standard deviations too.

        ``to_model(rows of X)`` are rows as the draws know them, of whose missing cells
        ``of_draw`` gives mean and variance as `_moments` wants them; `_in_units` makes of these
        mean and standard deviation of all columns in the units of X. The columns ``whole`` are
        filled with whole numbers. Training rows, where an estimator keeps what its chains say of
        their missing cells, are answered with that.
        """
        given, X = X, self._check_new(X)
        incomplete = np.flatnonzero(np.isnan(X).any(axis=1))
        filled, std = X.copy(), np.zeros_like(X)
        if incomplete.size and self._knows_training_cells():
            found = self._training_cells.matches(X[incomplete])
            known = np.flatnonzero([len(places) > 0 for places in found])
            self._fill_known(filled, std, incomplete[known], [found[t] for t in known])
            incomplete = np.delete(incomplete, known)
        if incomplete.size:
            for rows, *moments in self._moments(to_model(X[incomplete]), of_draw, prepare):
                self._fill(filled, std, incomplete[rows], *moments)
        filled[:, whole] = np.rint(filled[:, whole])
        return self._filled_as(given, X, filled, std if return_std else None, whole)

    def _fill(self, filled, std, rows, mean, variance):
        """Fill missing cells of some rows from their moments, and set their deviations."""
        holes = np.isnan(filled[rows])
        mean, spread = self._in_units(mean, variance)
        filled[rows] = np.where(holes, mean, filled[rows])
        std[rows] = np.where(holes, spread, 0.0)

    def _knows_training_cells(self):
        return "_training_cells" in vars(self)

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


def _stacked(results):
    return np.stack(list(results))
