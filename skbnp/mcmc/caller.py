"""Warnings that name the line of the user's code that led to them."""

import sys
import warnings
from contextlib import contextmanager
from contextvars import ContextVar

# Whose frames stand between a warning and the user: our own, and who calls us for the user.
_BETWEEN = {"skbnp", "sklearn", "joblib"}
_SAID_BY = ContextVar("said_by", default="")
_JUDGED_BY_CALLER = ContextVar("judged_by_caller", default=((), None))


@contextmanager
def said_by(who):
    """Warnings within end with who says so, where that is not whom the user has called."""
    token = _SAID_BY.set(f" ({who}, says so.)")
    try:
        yield
    finally:
        _SAID_BY.reset(token)


@contextmanager
def judging(model, cells=None):
    """The caller of this model judges what it takes of it: a fit does not warn of its chains.

    Parameters
    ----------
    model : estimator
    cells : ndarray of bool of shape (n_samples, n_features), default=None
        The missing cells of a table that the caller takes; all of them by default.
    """
    token = _JUDGED_BY_CALLER.set(([model], cells))
    try:
        yield
    finally:
        _JUDGED_BY_CALLER.reset(token)


def is_judged_by_caller(model):
    """Whether a fit of this model leaves it to its caller to judge its chains."""
    return any(one is model for one in _JUDGED_BY_CALLER.get()[0])


def stands_in(attempt, model):
    """A copy is fitted in place of a model, and judged as that is."""
    if is_judged_by_caller(model):
        _JUDGED_BY_CALLER.get()[0].append(attempt)


def cells_for_caller(model):
    """The missing cells of a table that the caller of this model takes, None for all."""
    return _JUDGED_BY_CALLER.get()[1] if is_judged_by_caller(model) else None


def warn(message, category=UserWarning):
    """Warn, with the line that called the library as the place.

    Parameters
    ----------
    message : str
    category : type or callable, default=UserWarning
        Makes the warning of the message.
    """
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and _package(frame) in _BETWEEN:
        level, frame = level + 1, frame.f_back
    warnings.warn(category(message + _SAID_BY.get()), stacklevel=level)


def _package(frame):
    return frame.f_globals.get("__name__", "").partition(".")[0]
