"""How far two sets of rows are from each other, by kernel density estimates."""

import numpy as np

BLOCK = 512


def hellinger_kde(A, B):
    """Hellinger distance of the densities that two sets of rows are drawn from, estimated.

    Columns are standardised by the mean and standard deviation of all rows together; both
    densities are estimated by product Gaussian kernels of bandwidth n^(-1/(d+4)), and the integral
    of the squared distance, 1 - int sqrt(p q), is a mean over all rows: each is a draw from
    (p + q) / 2, and sqrt(p q) over that is sech((log p - log q) / 2).

    Both sets should have as many rows: the fewer there are, the larger is the distance of two sets
    that are draws from the same density.
    """
    rows = np.concatenate([A, B])
    scale = rows.std(axis=0)
    rows = (rows - rows.mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    bandwidth = min(len(A), len(B)) ** (-1.0 / (rows.shape[1] + 4))
    rows /= bandwidth
    log_p, log_q = (log_kernel_sum(rows, side) for side in (rows[: len(A)], rows[len(A) :]))
    log_ratio = log_p - np.log(len(A)) - (log_q - np.log(len(B)))
    # 1 - sech(x) = 2 sinh(x / 2)^2 / cosh(x), in a form that keeps small differences and that does
    # not overflow.
    decay = np.exp(-np.abs(log_ratio) / 2)
    return np.sqrt(np.mean((1.0 - decay) ** 2 / (1.0 + decay**2)))


def log_kernel_sum(rows, centres):
    """Log of the sum over centres of exp(-|x - c|^2 / 2) for each row x."""
    out = np.empty(len(rows))
    squares = np.sum(centres**2, axis=1)
    for start in range(0, len(rows), BLOCK):
        block = rows[start : start + BLOCK]
        exponent = block @ centres.T - squares / 2
        top = exponent.max(axis=1)
        exponent -= top[:, np.newaxis]
        out[start : start + BLOCK] = np.log(np.exp(exponent).sum(axis=1)) + top
        out[start : start + BLOCK] -= np.sum(block**2, axis=1) / 2
    return out
