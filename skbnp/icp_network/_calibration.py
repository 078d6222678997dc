"""One power on class probabilities, chosen by leave-one-out of the training rows.

Each draw may be overconfident while different draws disagree, and then their mean, the posterior
predictive distribution, is too even. A power above 1 makes it sharper. How well it does that for
new rows is judged by importance sampling, without a refit: draws with weights 1 / p(y_i | x_i,
draw) are draws from the posterior given all rows but row i (Gelfand, Dey and Chang 1992).
"""

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import softmax

from skbnp.numerics.log_sums import log_totals

# Standard deviation of the logarithm of the power under the law that holds it back near 1.
_SPREAD = 0.5
_MOST_POWER = 100.0


def leave_one_out(probability, labels):
    """Predictive probabilities of each row given all other rows.

    Parameters
    ----------
    probability : ndarray of shape (n_draws, n_rows, n_classes)
        Under draws from the posterior given all rows.
    labels : ndarray of int, shape (n_rows,)

    Returns
    -------
    left_out : ndarray of shape (n_rows, n_classes)
    """
    of_label = probability[:, np.arange(len(labels)), labels]
    weight = 1.0 / np.maximum(of_label, np.finfo(np.float64).tiny)
    weight /= weight.max(axis=0)
    weight /= weight.sum(axis=0)
    return np.einsum("ti,tic->ic", weight, probability)


def best_power(probability, labels):
    """The power with which probabilities predict labels best, at least 1.

    It maximises the log likelihood with half a normal density for its logarithm, so that few rows
    change little. Below 1 it would make probabilities more even, which averages over draws need
    not be: where labels are noisy that follows the noise.

    Parameters
    ----------
    probability : ndarray of shape (n_rows, n_classes)
        As `leave_one_out` has them.
    labels : ndarray of int, shape (n_rows,)

    Returns
    -------
    power : float
    """
    log_p = _logs(probability)

    def loss(log_power):
        raised_log_p = np.exp(log_power) * log_p
        of_label = raised_log_p[np.arange(len(labels)), labels]
        return np.sum(log_totals(raised_log_p) - of_label) + 0.5 * (log_power / _SPREAD) ** 2

    found = minimize_scalar(loss, bounds=(0.0, np.log(_MOST_POWER)), method="bounded")
    return float(np.exp(found.x)) if found.fun < loss(0.0) else 1.0


def raised(probability, power):
    """Probabilities (n_rows, n_classes) to a power, and their rows made to sum to one again."""
    if power == 1.0:
        return probability / probability.sum(axis=1, keepdims=True)
    return softmax(power * _logs(probability), axis=1)


def _logs(probability):
    return np.log(np.maximum(probability, np.finfo(np.float64).tiny))
