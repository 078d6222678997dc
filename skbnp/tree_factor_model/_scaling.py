"""Whether one number or one of each column scales a table."""

import numpy as np

from skbnp.numerics.scaling import column_scaling
from skbnp.units import ends_of_scale

# Standard deviations of columns that one number scales: the greatest over the least. Chosen on
# simulated factors with three small columns: `benchmarks/README.md`, "One scale or many".
_MOST_APART = 10.0
# Columns from which those of one unit, as pixels, may be further apart, and what share of the range
# of all then half of them have at least: of images .67, of measurements and expressions below .1.
_MANY_COLUMNS, _SHARE_OF_RANGE = 40, 0.25


def scaling_of(X):
    """What `scaling="auto"` is for X (n_samples, n_features): "common" or "each"."""
    low, high = np.fmin.reduce(X), np.fmax.reduce(X)
    varies = low < high
    if not varies.any() or ends_of_scale(X) is not None:
        return "common"
    with np.errstate(over="ignore", invalid="ignore"):
        scale = column_scaling(X)[1][varies]
        if scale.max() <= _MOST_APART * scale.min():
            return "common"
        width, whole = (high - low)[varies], high[varies].max() - low[varies].min()
    is_one_unit = len(width) >= _MANY_COLUMNS and np.median(width) >= _SHARE_OF_RANGE * whole
    return "common" if is_one_unit else "each"
