"""What follows from factors: the same columns in all draws, scores of rows, names of outputs."""

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from skbnp.estimators.arguments import refuses_by_name
from skbnp.summaries.factors import aligned, alignments


class OutputsMixin(TransformerMixin):
    """Names of the columns of ``transform``: ``_output_name`` and a number.

    A subclass sets ``_n_features_out``.
    """

    _output_name = "factor"

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        # scikit-learn has wrapped it by now, and would name the class in which it is written.
        if "transform" in vars(cls):
            cls.transform = refuses_by_name(cls.transform)

    @refuses_by_name
    def get_feature_names_out(self, input_features=None):
        """Names of the columns of `transform`: a word for what they are, and a number from 0.

        Parameters
        ----------
        input_features : None
            Ignored.

        Returns
        -------
        names : ndarray of str
            "cluster0", "factor0" or "unit0" and so on.
        """
        check_is_fitted(self, "posterior_")
        names = [f"{self._output_name}{k}" for k in range(self._n_features_out)]
        return np.array(names, dtype=object)


class FactorsMixin(OutputsMixin):
    """Scores of factors, averaged over draws in which they have other orders and signs.

    ``_reference`` is the draw whose factors are the columns. A subclass says

    - ``_anchor_scores()``: a function of a draw, its scores of the same few rows in all draws,
      (n_rows, n_factors), by whose correlations factors are matched;
    - ``_scores_of(law, t, rows)``: expected scores of rows, (n_rows, n_factors), and
      ``_scores_have_signs`` whether those of a factor turn with it.
    """

    _scores_have_signs = True

    def _alignments(self, draws):
        """Where each column of the reference is in each draw, -1 for nowhere, and its sign."""
        return alignments(self._reference, draws, self._anchor_scores())

    def transform(self, X):
        """Expected scores of the factors given each row, averaged over draws.

        Columns are the factors of one draw, the reference. Factors of other draws are matched to
        them by the correlation of scores, and the largest loading of each is positive. Where a draw
        has no partner for a column, it does not count in this column.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, NaN where missing.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_factors)
            In the scale of the model's scores, not in units of X. There are no columns where the
            reference draw has no factor.
        """
        A = self._conditioned(self._check_new(X))
        draws = [self._reference, *self._prediction_draws()]
        laws = [self._law_of(self._reference, 0), *self._prediction_laws()]
        places = self._kept("alignments", lambda: self._alignments(draws), self._reference)

        def of_draw(t, rows):
            column, sign = places[t]
            scores = self._scores_of(laws[t], t, rows)
            return aligned(scores, column, sign if self._scores_have_signs else np.ones(len(sign)))

        def of_rows(start, stop):
            rows = self._prepared(A[start:stop])
            return sum(of_draw(t, rows) for t in range(len(draws)))

        n_matched = np.sum([column >= 0 for column, _ in places], axis=0)
        return self._by_row_blocks(of_rows, len(A)) / n_matched
