"""Values that the parameters of an estimator allow, as its constraints say."""

from dataclasses import fields
from numbers import Integral

import numpy as np
from sklearn.utils._param_validation import Interval, Options, StrOptions

from skbnp.estimators.settings import SamplerSettings
from skbnp.laws import Grid, Law, Uniform

# What an open end of an interval stands for: the first number beyond it, or one that is as large
# as anybody would try.
_BEYOND = 1e300


def intervals(kind, name):
    """The intervals of numbers that a parameter may be from."""
    return [rule for rule in kind._parameter_constraints[name] if isinstance(rule, Interval)]


def ends(kind, name):
    """The least and the largest number that each interval of a parameter holds."""
    found = []
    for interval in intervals(kind, name):
        whole = interval.type is Integral
        low, high = interval.left, interval.right
        if low is None:
            low = -(2**40) if whole else -_BEYOND
        elif interval.closed in ("right", "neither"):
            low = low + 1 if whole else np.nextafter(low, np.inf)
        if high is None:
            high = 2**40 if whole else _BEYOND
        elif interval.closed in ("left", "neither"):
            high = high - 1 if whole else np.nextafter(high, -np.inf)
        found += [int(low), int(high)] if whole else [float(low), float(high)]
    return found


def some_law(kind):
    """A law of a kind."""
    return {Uniform: Uniform(1.0, 2.0), Grid: Grid((1.0, 2.0))}.get(kind) or kind(
        *(2.0 for _ in fields(kind))
    )


def other_values(kind, name, value):
    """Values of a parameter beside the one it has, of each kind that its constraints name."""
    found = []
    for rule in kind._parameter_constraints[name]:
        if isinstance(rule, (StrOptions, Options)):
            found += sorted(rule.options, key=str)
        elif rule == "boolean":
            found += [False, True]
        elif rule is None:
            found.append(None)
        elif isinstance(rule, type) and issubclass(rule, SamplerSettings):
            found.append(rule())
        elif isinstance(rule, type) and issubclass(rule, Law):
            found.append(some_law(rule))
    found += ends(kind, name)
    return [one for one in found if type(one) is not type(value) or one != value]
