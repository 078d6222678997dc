"""Tables completed several times over, their missing cells drawn from the posterior."""

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from skbnp.estimators.arguments import check_count, refuses_by_name


class CompletionMixin:
    """Completes tables, for an estimator that is a `DensityMixin` as well.

    A subclass defines ``_completer(are_training, X, holes)``: a function of a draw and a generator
    that returns all numbers of X in the units of the model, its missing cells drawn.
    """

    @refuses_by_name
    def sample_missing(self, X=None, n_tables=5, random_state=None):
        """Complete a table several times, its missing cells drawn from the posterior.

        For multiple imputation: analyse each table and pool the estimates, by
        `skbnp.summaries.pool` say, whose spread between tables says what the missing cells add to
        the doubt. Each table rests on a draw of its own as long as there are enough, among all
        stored draws. Missing cells of the training table are drawn jointly; new rows are drawn each
        on its own, training rows among them (as `impute` knows them) as in the training table.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), default=None
            New rows or training rows, NaN where missing. None means the training table.
        n_tables : int, default=5
        random_state : int, RandomState instance or None, default=None

        Returns
        -------
        tables : list of n_tables ndarrays or frames of shape (n_samples, n_features)
            In the form of X. Observed cells are those of X, bit for bit; counts are integers and
            levels are drawn by their probabilities.

        Raises
        ------
        ValueError
            If X is None and `fit` has seen no missing cells, or if a prior that was given is so
            wide that cells leave the range of floats.
        """
        check_is_fitted(self, "posterior_")
        check_count("n_tables", n_tables)
        given, cells = X, self._training_cells
        if given is None and cells is None:
            raise ValueError("X must be given, for fit has seen no missing cells; got None")
        X = cells.X if given is None else self._check_new(X)
        holes = np.isnan(X)
        whole = np.union1d(self._whole_columns(), np.flatnonzero(~holes.any(axis=0)))
        rng = check_random_state(random_state)
        n_stored = self.posterior_.n_stored
        chosen = rng.choice(n_stored, size=n_tables, replace=n_tables > n_stored)
        complete = self._completer(given is None, X, holes)
        tables = []
        for t in chosen:
            drawn = self._drawn_in_units(complete(self.posterior_.in_order(t), rng), holes)
            filled = np.where(holes, drawn, X)
            if given is None:
                tables.append(self._as_trained(filled, whole=whole))
            else:
                tables.append(self._filled_as(given, X, filled, None, whole))
        return tables

    def _drawn_in_units(self, A, drawn):
        """All numbers in the units of X, of which some were ``drawn``."""
        return self._units.from_visible(A)
