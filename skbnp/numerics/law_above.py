"""A Gamma law above a bound: what is left of it, and draws, in plain NumPy.

`truncated.gamma_above` has its draws for kernels.
"""

import numpy as np
from scipy.special import gammaincc


def share_above(law, low):
    """Probability that a Gamma law has above ``low``."""
    return gammaincc(law.shape, law.rate * low)


def log_density_above(x, law, low):
    """Log density of the part of a Gamma law that is above ``low``, for such x."""
    return law.log_density(x) - np.log(share_above(law, low))


def sample_above(law, low, size, rng):
    """An array of that size of draws from the part of a law that is above ``low``."""
    x = np.asarray(law.sample(size, rng))
    while (x < low).any():
        is_low = x < low
        x[is_low] = law.sample(is_low.sum(), rng)
    return x
