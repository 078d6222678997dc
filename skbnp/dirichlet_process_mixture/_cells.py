"""Missing cells of the mixture: filled with their means, or drawn."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skbnp.dirichlet_process_mixture._missing_cells import draw_new_cells, draw_training_cells
from skbnp.dirichlet_process_mixture._predictive import Rows, conditional_moments, log_densities
from skbnp.dirichlet_process_mixture.families import KINDS
from skbnp.estimators.arguments import refuses_by_name
from skbnp.estimators.completion import CompletionMixin
from skbnp.estimators.density import DensityMixin
from skbnp.mcmc.caller import cells_for_caller
from skbnp.mcmc.fields import Field
from skbnp.mcmc.rows import row_blocks
from skbnp.summaries.training_cells import TrainingCells


class CellsMixin(CompletionMixin, DensityMixin):
    """Fills missing cells, and completes tables several times over."""

    _fills_training_table = True

    @refuses_by_name
    def impute(self, X, return_std=False, rounding=False):
        """Fill missing cells with their mean given the row's observed ones, over all draws alike.

        The posterior predictive mean would let a draw count for a row by its density of what is
        observed, as `predict_proba` and `score_samples` do. For a fitted row that counts the row
        twice, and in many columns it leaves one draw of a hundred in effect: equal weights have
        smaller errors and honest deviations.

        A training row is answered with its own `X_imputed_` and `X_imputed_std_`: one that lacks
        the same cells and has the same bits in all others. Where several training rows are equal,
        the answer is the mixture of theirs. A complete training row is never looked up: a cell
        that is missing in X is not filled with what was observed there.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows or training rows, NaN where missing.
        return_std : bool, default=False
            Also return the predictive standard deviation.
        rounding : bool, default=False
            Round the means of Bernoulli and Poisson cells to integers, and of numbers that "auto"
            took for levels to one of these.

        Returns
        -------
        X_filled : ndarray or frame of shape (n_samples, n_features)
            Observed cells are those of X, bit for bit; a missing level is the most probable one,
            but the mean where "auto" took numbers for levels. A frame of the kind, names and index
            of X where that is one.
        std : ndarray or frame of shape (n_samples, n_features)
            Only if `return_std`: by the law of total variance over draws and clusters, 0 for
            observed cells, inf where a component has no second moment. For the most probable
            level, the root of p (1 - p) with p its probability.
        """
        check_is_fitted(self, "posterior_")
        whole = np.union1d(self._whole_columns(), self._guessed_columns()) if rounding else []
        whole = np.asarray(whole, dtype=np.intp)
        return self._impute(X, return_std, self._cell_moments_of, whole, self._training_cells)

    def _drawn_in_units(self, A, drawn):
        return self._in_range(A, drawn)

    def _completer(self, are_training, X, holes):
        """A function of a draw and a generator: standardised X with its missing cells drawn."""
        trained = self._training_rows.X
        if are_training:
            return lambda draw, rng: draw_training_cells(trained, draw, self._prior, rng)
        standard = self._units.to_visible(X)
        new = np.flatnonzero(holes.any(axis=1))
        known, equals = new[:0], []
        if self._training_cells is not None:
            found = self._training_cells.matches(X[new])
            is_known = np.array([len(places) > 0 for places in found], dtype=bool)
            equals = [self._training_cells.rows[places] for places in found if places]
            known, new = new[is_known], new[~is_known]
        blocks = [new[rows] for rows in row_blocks(len(new))]
        prepared = [self._prepared(standard[block]) for block in blocks]

        def complete(draw, rng):
            out = standard.copy()
            if known.size:
                # Of several equal training rows, one at random.
                chosen = [rows[rng.randint(len(rows))] for rows in equals]
                out[known] = draw_training_cells(trained, draw, self._prior, rng)[chosen]
            for block, rows in zip(blocks, prepared, strict=True):
                log_p = log_densities(rows, draw, self._prior, self._log_weights(draw))
                out[block] = draw_new_cells(standard[block], rows, draw, self._prior, log_p, rng)
            return out

        return complete

    def _sample_of(self, draw, n_rows, rng):
        # New rows all of whose cells are missing, and drawn.
        unknown = np.full((n_rows, self._prior.n_features), np.nan)
        log_p = np.tile(self._log_weights(draw), (n_rows, 1))
        rng = np.random.RandomState(int(rng.integers(2**32)))
        with np.errstate(over="ignore"):
            rows = self._prepared(unknown)
            return draw_new_cells(unknown, rows, draw, self._prior, log_p, rng)

    def _sampled_in_units(self, A):
        return self._in_range(A)

    def _cell_moments_of(self, law, t, rows):
        log_p = log_densities(rows, law, self._prior, law["log_weight"])
        return [rows.unsort(x) for x in conditional_moments(rows, law, self._prior, log_p)]

    # -- for ArviZ

    @property
    def _draw_fields(self):
        fields, prior = [Field("label", int, ("n_samples",))], self._prior
        if prior.learned:
            words = {"full": ("n_real", "n_real"), "diag": ("n_real",), "spherical": ()}
            fields.append(Field("covariance", float, words[prior.gaussian.covariance_type]))
        return tuple(fields)

    def _axes(self):
        real = self._columns_of("gaussian")
        return super()._axes() | {"n_real": self._columns_axis(real, "real_feature")}

    def _block_means(self, draw):
        """Expected cells of rows of each block; probabilities of the second of two levels."""
        n_blocks = len(draw["n_members"]) - 1
        rows = Rows(np.full((n_blocks, self._prior.n_features), np.nan), self._prior)
        with np.errstate(divide="ignore"):
            log_p = np.log(np.eye(n_blocks, n_blocks + 1)[rows.order])
        moments = [rows.unsort(x) for x in conditional_moments(rows, draw, self._prior, log_p)]
        mean, _ = self._in_units(*moments)
        mean[:, self._nominal_columns()] = np.nan
        return mean

    def _holds_cells(self):
        X, parts = self._training_rows.X, self._prior.parts
        holes = [part.imputes for part in parts if np.isnan(X[:, part.columns]).any()]
        return bool(holes) and all(holes)

    # -- after sampling

    def _keep_training_cells(self, X):
        """Set what the chains say of the missing cells of the training rows."""
        if np.isnan(X).any():
            columns = self._prior.columns_of_values
            places = self._places_of_numbers(X, columns)
            chains = [_said_by(state, places) for state in self.posterior_.final_states]
            judged = cells_for_caller(self)
            self._training_cells = TrainingCells.of(X, columns, chains, judged)

    def _places_of_numbers(self, X, columns):
        """Where a family has its numbers about missing cells among all, for each family.

        `TrainingCells` has them row by row; ``columns`` are those of the numbers that the model
        says of a row.
        """
        rows, values = np.nonzero(TrainingCells.numbers(X, columns))
        places = []
        for part in self._prior.parts:
            # A family has its numbers row by row too, and each row in the order of its columns.
            place = np.full(X.shape[1], -1)
            place[part.columns] = np.arange(len(part.columns))
            own = np.flatnonzero(place[columns[values]] >= 0)
            places.append(own[np.lexsort((values[own], place[columns[values[own]]], rows[own]))])
        return places

    def _log_p_not_read(self, X):
        if self._table is None:
            return 0.0
        return self._table.log_p_of_unseen(X, self.categorical_prior, self._form.marks)

    def _filled_as(self, given, X, filled, std=None, whole=()):
        guessed = self._guessed_columns()
        if len(guessed):
            # Levels that are no whole numbers may be due in a column of integers.
            whole = np.setdiff1d(whole, np.setdiff1d(guessed, self._whole_columns()))
        return super()._filled_as(given, X, filled, std, whole)

    def _in_units(self, mean, variance):
        """What fills missing cells and its deviation, in the units of X; levels come last."""
        d = self.n_features_in_
        mean, levels = np.split(mean, [d], axis=1)
        variance = variance[:, :d].copy()
        for part in [one for one in self._prior.parts if one.has_levels]:
            for c, j in enumerate(part.columns):
                p = levels[:, part.level_start[c] : part.level_start[c + 1]]
                mean[:, j], variance[:, j] = self._level_moments(j, p)
        with np.errstate(over="ignore"):  # inf, as where a component has no second moment
            return self._units.moments(mean, variance)

    def _level_moments(self, column, p):
        """What fills cells of a column of levels, and its variance; p is (n_cells, n_levels)."""
        moments = None if self._table is None else self._table.guessed_moments(column, p)
        if moments is not None:
            return moments
        highest = p.max(axis=1)
        value = p.argmax(axis=1) if KINDS[self.families_[column]].has_levels else p[:, 1]
        return value, highest * (1 - highest)


def _said_by(state, places):
    """What a chain says of all missing cells, as `TrainingCells.of` wants it."""
    mean, square = np.empty((2, sum(map(len, places))))
    for p, own in enumerate(places):
        # A table of several kinds keeps one family for each.
        family = state["family"].get(f"part{p}", state["family"])
        mean[own], square[own] = family["imputed_mean"], family["imputed_square"]
    return float(state["n_imputed"]), mean, square
