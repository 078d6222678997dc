"""Checks of what the user gives to the functions of this folder."""

import operator

import numpy as np

# What arrays of as many numbers, or loops over them, can be asked for; and the largest integer up
# to which floats hold all.
MOST, MOST_WHOLE = 2**31 - 1, 2**53


def as_count(name, value, least=1, most=MOST):
    """An integer from ``least`` to ``most``."""
    try:
        out = operator.index(value)
    except TypeError:
        out = None
    if out is None or out < least:
        raise ValueError(f"{name} must be an integer >= {least}, got {value!r}")
    if out > most:
        raise ValueError(f"{name} must be an integer <= {most}, got {value!r}")
    return out


def as_numbers(name, value):
    """A finite array of any shape."""
    try:
        out = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        out = np.asarray(np.nan)
    if not np.isfinite(out).all():
        raise ValueError(f"{name} must be finite and a number, got {value!r}")
    return out


def as_number(name, value):
    """A finite float."""
    out = as_numbers(name, value)
    if out.ndim != 0:
        raise ValueError(f"{name} must be a single number, got shape {out.shape}")
    return float(out)


def as_positive(name, value):
    """A finite float > 0."""
    out = as_number(name, value)
    if not out > 0.0:
        raise ValueError(f"{name} must be > 0, got {value!r}")
    return out


def as_whole_array(name, value, least, n_dimensions=1, most=MOST_WHOLE):
    """A contiguous array of integers, each from ``least`` to ``most``."""
    out = np.asarray(value)
    if out.ndim != n_dimensions:
        wanted = "one-dimensional" if n_dimensions == 1 else "two-dimensional"
        raise ValueError(f"{name} must be {wanted}, got shape {out.shape}")
    if out.size and out.dtype.kind not in "iu":
        raise ValueError(f"{name} must hold integers, got dtype {out.dtype}")
    if out.size and out.min() < least:
        raise ValueError(f"{name} must be >= {least}, got {out.min()}")
    if out.size and out.max() > most:
        raise ValueError(f"{name} must be <= {most}, got {out.max()}")
    return np.ascontiguousarray(out, dtype=np.intp)


def as_sizes(name, value, least=0):
    """Sizes of at least so many blocks, each at least 1, whose sum floats hold."""
    out = as_whole_array(name, value, least=1)
    if out.size < least:
        raise ValueError(f"{name} must hold at least one block, got none")
    total = sum(map(int, out)) if out.size and int(out.max()) * out.size > MOST_WHOLE else 0
    if total > MOST_WHOLE:
        raise ValueError(f"{name} must have a sum <= {MOST_WHOLE}, got {total}")
    return out


def sizes_of(labels):
    """Sizes of the blocks that the labels of at least one item name."""
    labels = as_whole_array("labels", labels, least=0, most=2**63 - 1)
    if labels.size == 0:
        raise ValueError("labels must hold at least one item, got none")
    return np.unique(labels, return_counts=True)[1]


def as_strength_and_discount(concentration, discount):
    """An array of concentrations above -d, and the discount d in [0, 1)."""
    strength = as_numbers("concentration", concentration)
    d = as_number("discount", discount)
    if not 0.0 <= d < 1.0:
        raise ValueError(f"discount must be in [0, 1), got {discount!r}")
    if not (strength > -d).all():
        bound = f"> -discount = {-d}" if d > 0.0 else "> 0"
        raise ValueError(f"concentration must be {bound}, got {concentration!r}")
    return strength, d


def as_prior(name, value):
    """Two floats > 0."""
    first, second = (np.nan, np.nan) if np.shape(value) != (2,) else as_numbers(name, value)
    if not (first > 0.0 and second > 0.0):
        raise ValueError(f"{name} must be two numbers > 0, got {value!r}")
    return float(first), float(second)


def as_binary(name, value):
    """A contiguous matrix of 0 and 1, uint8."""
    out = np.asarray(value)
    if out.ndim != 2:
        raise ValueError(f"{name} must be two-dimensional, got shape {out.shape}")
    if not ((out == 0) | (out == 1)).all():
        raise ValueError(f"{name} must hold 0 and 1 only")
    return np.ascontiguousarray(out, dtype=np.uint8)


def as_option(name, value, options):
    """One of several strings."""
    if not isinstance(value, str) or value not in options:
        raise ValueError(f"{name} must be one of {', '.join(options)}, got {value!r}")
    return value
