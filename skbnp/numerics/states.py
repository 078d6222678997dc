"""Parts of a sampler's state that come from outside, checked: what kernels may read unseen."""

from dataclasses import astuple, fields, is_dataclass
from numbers import Real

import numpy as np


def entry(state, name):
    """A part of the state; a ValueError if there is none."""
    try:
        return state[name]
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError(f"state has no {name}") from error


def checked_count(state, name):
    """A whole number >= 0."""
    value = entry(state, name)
    if not isinstance(value, (int, np.integer)) or not 0 <= value < 2**62:
        raise ValueError(f"{name} of the state must be an integer >= 0, got {value!r}")
    return int(value)


def checked_array(state, name, shape, kinds, dtype):
    """A contiguous array, -1 in ``shape`` stands for any length; ``kinds`` are those of dtypes."""
    value = np.asarray(entry(state, name))
    if value.dtype.kind not in kinds:
        raise ValueError(f"{name} of the state must not have dtype {value.dtype}")
    if value.ndim != len(shape) or any(
        want not in (-1, got) for want, got in zip(shape, value.shape, strict=True)
    ):
        raise ValueError(f"{name} of the state must have shape {shape}, got {value.shape}")
    return np.array(value, dtype=dtype, order="C")


def checked_floats(state, name, shape, positive=False, largest=np.inf):
    """Finite numbers, positive if asked; ``largest`` is what kernels can take squares of."""
    value = checked_array(state, name, shape, "f", np.float64)
    if not (np.abs(value) < largest).all() or (positive and not (value > 0.0).all()):
        raise ValueError(f"{name} of the state must be finite" + " and > 0" * positive)
    return value


def checked_indices(state, name, shape, least, below):
    """Whole numbers from ``least`` to ``below``."""
    value = checked_array(state, name, shape, "iu", np.intp)
    if not ((value >= least) & (value < below)).all():
        raise ValueError(f"{name} of the state is out of range")
    return value


def check_positive(prior, *names):
    """Raise a ValueError unless hyperparameters are positive numbers, or None.

    Or tuples or laws of positive numbers. ``prior`` has them as attributes.
    """
    for name in names:
        value = getattr(prior, name)
        numbers = astuple(value) if is_dataclass(value) else value
        for number in numbers if isinstance(numbers, tuple) else (numbers,):
            if number is not None and not (isinstance(number, Real) and 0.0 < number < np.inf):
                raise ValueError(f"{name} of the prior must be positive, got {value!r}")


def is_same(one, other):
    """Whether two trees of plain data, arrays and dataclasses are equal, every NaN the same."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(
            one, other, equal_nan=one.dtype.kind == "f"
        )
    if is_dataclass(one):
        names = [field.name for field in fields(one)]
        return all(is_same(getattr(one, name), getattr(other, name)) for name in names)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(is_same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(is_same, one, other))
    return one == other


def put_bit_generator(bit_generator, state):
    """Take the state that a sampler's has; a ValueError, and the old one back, for a wrong one."""
    before = bit_generator.state
    try:
        bit_generator.state = entry(state, "bit_generator")
    except (TypeError, KeyError, ValueError, OverflowError) as error:
        bit_generator.state = before
        raise ValueError(f"state of the bit generator does not fit: {error}") from error
