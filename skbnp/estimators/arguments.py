"""What methods are called with."""

import inspect
from dataclasses import fields
from functools import wraps
from numbers import Integral, Real

import numpy as np

from skbnp.laws import Law


def refuses_by_name(method):
    """Let a method that classes inherit refuse arguments in the name of the class it is called on.

    Python's own message names the class in which the method is written.
    """
    signature = inspect.signature(method)

    @wraps(method)
    def checked(self, *args, **kwargs):
        try:
            signature.bind(self, *args, **kwargs)
        except TypeError as error:
            hint = "; rows have no weights" if "sample_weight" in kwargs else ""
            kind = self if isinstance(self, type) else type(self)
            raise TypeError(f"{kind.__name__}.{method.__name__}(): {error}{hint}") from None
        return method(self, *args, **kwargs)

    return checked


def check_count(name, value):
    """Refuse what is no integer >= 1."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be an integer >= 1, got {value!r}")


def check_numbers_of_law(name, law, low, high):
    """Refuse a law of a hyperparameter unless all of its fields are numbers from low to high."""
    for field in fields(law):
        value = getattr(law, field.name)
        if not isinstance(value, Real) or not low <= value <= high:
            raise ValueError(
                f"{field.name} of {name} must be a number from {low:g} to {high:g}, got {law!r}"
            )


def number_or_law(value):
    """A hyperparameter as a prior takes it."""
    return value if isinstance(value, Law) else float(value)


def finite_by_column(name, value, n_features):
    """A finite number, or one for each feature, as an array (n_features,)."""
    try:
        array = np.broadcast_to(np.asarray(value, dtype=np.float64), n_features).copy()
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must be a number or {n_features} numbers, got {value!r}"
        ) from error
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {value!r}")
    return array
