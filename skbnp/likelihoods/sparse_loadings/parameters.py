"""Parameters of estimators with sparse loadings, as their priors take them."""

from numbers import Real

import numpy as np


def fixed(value):
    """None for "sample", else the number."""
    return None if isinstance(value, str) else float(value)


def checked_pair(name, value):
    """Two numbers that leave start values and log densities in the range of floats."""
    numbers = [x for x in value if isinstance(x, Real) and not isinstance(x, bool)]
    if len(value) != 2 or len(numbers) != 2 or not all(1e-6 <= x <= 1e6 for x in numbers):
        raise ValueError(f"{name} must be two positive numbers, 1e-6 to 1e6, got {value!r}")
    return float(value[0]), float(value[1])


def checked_array(name, value, n_features):
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
