"""Warnings that name the line of the user's code that led to them."""

import sys
import warnings
from contextlib import contextmanager
from contextvars import ContextVar

# Whose frames stand between a warning and the user: our own, and who calls us for the user.
_BETWEEN = {"skbnp", "sklearn", "joblib"}
_SAID_BY = ContextVar("said_by", default="")
_JUDGED_BY_CALLER = ContextVar("judged_by_caller", default=None)


@contextmanager
def said_by(who):
    """Warnings within end with who says so, where that is not whom the user has called."""
    token = _SAID_BY.set(f" ({who}, says so.)")
    try:
        yield
    finally:
        _SAID_BY.reset(token)


@contextmanager
def judging_chains(model):
    """A fit of this model does not warn of its chains: its caller judges what it takes of them."""
    token = _JUDGED_BY_CALLER.set(model)
    try:
        yield
    finally:
        _JUDGED_BY_CALLER.reset(token)


def is_judged_by_caller(model):
    """Whether a fit of this model leaves it to its caller to judge its chains."""
    return _JUDGED_BY_CALLER.get() is model


def warn(message, category=UserWarning):
    """Warn, with the line that called the library as the place.

    Parameters
    ----------
    message : str
    category : type, default=UserWarning
    """
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and _package(frame) in _BETWEEN:
        level, frame = level + 1, frame.f_back
    warnings.warn(message + _SAID_BY.get(), category, stacklevel=level)


def _package(frame):
    return frame.f_globals.get("__name__", "").partition(".")[0]
