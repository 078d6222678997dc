"""Deviations of filled cells that hold: scaled by what a second fit misses in hidden cells."""

from numbers import Integral, Real
from typing import ClassVar

import numpy as np
from scipy.special import erf
from sklearn.base import clone
from sklearn.utils._param_validation import StrOptions

from skbnp.estimators.chains import BaseMCMCEstimator
from skbnp.estimators.parameters import parameter
from skbnp.mcmc.caller import warn

# Rows that the second fit does not see, of so many one; the share of cells that are hidden where
# the table has no holes; hidden cells below which nothing is scaled.
_KEPT_BACK, _SHARE_OF_CELLS, _FEW_CELLS = 5, 0.1, 30
# In the second fit rows lack more cells, and deviations then fall short by more: so much of the log
# scale is too much where all that a row lacks is hidden beside as much again, and in proportion.
# Chosen on three splits of faces (10 to 12) that no benchmark reports.
_OF_WIDER_HOLES = 0.5
# What the second fit is called in callbacks.
_TASK = "interval-calibration"


def interval_calibration():
    """The parameter of that name, for a class that declares its parameters."""
    return parameter(
        default=None,
        of_chains=False,
        kind='{"holes"} or None',
        rules=[StrOptions({"holes"}), None],
        text="""
        How standard deviations of filled cells are calibrated. None: not at all, they are those of
        the posterior. "holes": the model is fitted once more, to four fifths of the rows with
        further cells hidden like those that are missing, and the deviations of `impute` and
        `X_imputed_std_` are multiplied by `std_scale_`, or for rows that `fit` has not seen by
        `new_std_scale_`, so that intervals hold as many of the hidden cells as they say. They are
        widened where they held fewer, and stay where they held more. Draws, as of `sample_missing`,
        stay as they are. It doubles the time of `fit`.
        """,
    )


class CalibratedCellsMixin:
    """Scales of the deviations of filled cells, from cells that are hidden from a second fit."""

    _scales_of_cells: ClassVar[dict] = {
        "std_scale_": Real, "new_std_scale_": Real, "n_hidden_cells_": Integral,
    }  # fmt: skip
    _not_always_fitted = (*BaseMCMCEstimator._not_always_fitted, *_scales_of_cells)

    def _n_tasks_after_chains(self):
        return int(self.interval_calibration is not None)

    def _calibrate_cells(self, X):
        """Set the scales where the parameter asks for them; X are the rows of `fit`."""
        if self.interval_calibration is None:
            return
        self.std_scale_ = self.new_std_scale_ = 1.0
        self.n_hidden_cells_ = 0
        try:
            scales = None if self.posterior_.interrupted else self._scales_by_holes(X)
        except KeyboardInterrupt:
            # The draws of the first fit are whole. `fit` raises it again when they are attached.
            scales = None
        if scales is None:
            warn("the deviations of filled cells are not calibrated: Ctrl-C came before that")
        else:
            self.std_scale_, self.new_std_scale_, self.n_hidden_cells_ = scales

    def _scales_by_holes(self, X):
        rng = np.random.default_rng([self.seed_, len(X)])
        seen = np.ones(len(X), dtype=bool)
        seen[rng.permutation(len(X))[: len(X) // _KEPT_BACK]] = False
        hidden = second_holes(X, rng, seen)
        for_second_fit = {"interval_calibration": None, "random_state": int(rng.integers(2**31))}
        for_second_fit |= {"checkpoint": None, "warm_start": False, "missing_values": None}
        second = clone(self).set_params(**for_second_fit)
        holed = np.where(hidden, np.nan, X)
        for j in np.flatnonzero(np.isnan(holed[seen]).all(axis=0)):
            seen[np.flatnonzero(~np.isnan(holed[:, j]))[0]] = True
        task = self._callback_fit_ctx.subcontext(task_name=_TASK)
        # Callbacks that follow fits within fits see a task; others see the first fit alone.
        with task.propagate_callback_context(second.set_callbacks()):
            task.call_on_fit_task_begin(estimator=self)
            second._sample(holed[seen], None)
        task.call_on_fit_task_end(estimator=self)
        trained, new = (
            _scale(X[at], holed[at], hidden[at], second, rows)
            for rows, at in (("training rows", seen), ("new rows", ~seen))
        )
        n_hidden = 0 if trained is None else int(hidden[seen].sum())
        damped = 1.0 - _OF_WIDER_HOLES * _share_of_first_holes(X[seen], hidden[seen])
        # A second fit to fewer cells may be wider than it need be where the first is not: in small
        # tables of Gaussian factors intervals would be too short by that.
        return max(1.0, (trained or 1.0) ** damped), max(1.0, new or 1.0), n_hidden

    def _deviation_scales(self, X):
        if not hasattr(self, "std_scale_"):
            return super()._deviation_scales(X)
        scales = np.full(len(X), self.new_std_scale_)
        if self._training_cells is not None:
            found = self._training_cells.matches(X)
            scales[[len(places) > 0 for places in found]] = self.std_scale_
        return scales

    def _check_scales(self):
        """Raise a ValueError unless what a file has of them is of use."""
        for name in ("std_scale_", "new_std_scale_"):
            scale = getattr(self, name, 1.0)
            if not 0.0 < scale < np.inf:
                raise ValueError(f"{name} must be positive and finite, got {scale!r}")


def second_holes(X, rng, seen=True):
    """Cells to hide beside the missing ones, and in the same places.

    In each row those that are missing in another row, drawn from the rows with missing cells; in a
    table without any a tenth of all. A row keeps one cell at least. In the rows that the second fit
    sees a column keeps two values: where one would lose more than half of its cells, nothing is
    hidden in every second of these rows.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    rng : numpy.random.Generator
    seen : ndarray of bool of shape (n_samples,), or True
        Rows that the second fit sees.

    Returns
    -------
    hidden : ndarray of bool of shape (n_samples, n_features)
    """
    missing = np.isnan(X)
    incomplete = np.flatnonzero(missing.any(axis=1))
    if incomplete.size:
        hidden = missing[rng.choice(incomplete, size=len(X))] & ~missing
        rows = np.flatnonzero(np.broadcast_to(seen, len(X)))
        if (hidden[rows].sum(axis=0) > (~missing)[rows].sum(axis=0) / 2).any():
            hidden[rng.permutation(rows)[: len(rows) // 2]] = False
    else:
        hidden = rng.random(X.shape) < _SHARE_OF_CELLS
    hidden[(missing | hidden).all(axis=1)] = False
    for j in range(X.shape[1]):
        if len(np.unique(X[~(missing | hidden)[:, j] & seen, j])) < 2:
            hidden[:, j] = False
    return hidden


def _share_of_first_holes(X, hidden):
    """Of the cells that a row lacks in the second fit those that it lacks at all, on average."""
    first, second = np.isnan(X).sum(axis=1), hidden.sum(axis=1)
    widened = second > 0
    return np.mean(first[widened] / (first + second)[widened]) if widened.any() else 0.0


def _scale(X, holed, hidden, second, rows):
    """By what deviations of hidden cells are too small: of the 68 % and 95 % quantiles of z.

    None where the cells are too few to say so.
    """
    z = np.empty(0)
    if hidden.any():
        filled, std = second.impute(holed, return_std=True)
        # 0 in a column that did not vary in the second fit, inf where a law has no second moment.
        cells = hidden & (std > 0.0) & (std < np.inf)
        z = np.abs(X - filled)[cells] / std[cells]
    if len(z) < _FEW_CELLS:
        warn(
            f"the deviations of filled cells of {rows} are not calibrated: {len(z)} hidden cells "
            f"are too few, {_FEW_CELLS} are needed"
        )
        return None
    shares = erf(np.array([1.0, 2.0]) / np.sqrt(2.0))
    ratios = np.quantile(z, shares) / [1.0, 2.0]
    # Nothing is said by a quantile of 0: so many cells are filled without any error.
    ratios = ratios[ratios > 0.0]
    return float(np.exp(np.mean(np.log(ratios)))) if ratios.size else 1.0
