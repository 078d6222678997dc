"""What several sections say in the same words."""

import numpy as np

from skbnp.markup import number


def spread(trace):
    """The middle nine tenths of a count over draws: "3", or "3 to 5"."""
    return span(*np.quantile(trace, [0.05, 0.95], method="inverted_cdf"))


def span(low, high):
    """From one count to another: "3", or "3 to 5"."""
    return number(int(low)) if low == high else f"{number(int(low))} to {number(int(high))}"
