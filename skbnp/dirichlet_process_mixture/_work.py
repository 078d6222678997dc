"""How much work a sweep of the mixture is, by which the length of its chains is bounded."""

import numpy as np

from skbnp.dirichlet_process_mixture._sweep import SUBSET
from skbnp.likelihoods.conjugate.learned_covariance import rounds_in_a_sweep


def work_of_sweep(n_clusters, X, prior, algorithm, n=None):
    """Nominal seconds of one core for a sweep of one chain with so many clusters.

    Fitted to what sweeps of tables of 60 to 30,000 rows and 1 to 30 columns take.
    """
    n, d = X.shape if n is None else (n, X.shape[1])
    per_row_and_cluster, per_row_divided, per_cluster = 20.0 + 2.0 * d, 300.0 + 2.0 * d, 1_000.0
    gaussian = prior.gaussian
    if gaussian is not None:
        real = len(gaussian.columns)
        full = gaussian.covariance_type == "full"
        n_rounds = rounds_in_a_sweep(n, real, real if full else 1) if prior.learned else 1
        if full:
            holes = np.isnan(X[:, gaussian.columns]).any(axis=1).mean()
            per_row_and_cluster += 0.08 * real**2 + holes * (100.0 + 0.27 * real**3)
            per_row_divided += 1.2 * real**2
            per_cluster += n_rounds * (1_500.0 + 20.0 * real**2 + 0.2 * real**3)
        else:
            per_cluster += n_rounds * 250.0 * real
    per_row = 250.0 + n_clusters * per_row_and_cluster
    # A pass over all rows at once takes a third of one over rows one by one.
    n_rows = {"collapsed": n, "parallel": n / 3 + min(n, SUBSET), "gibbs": n / 3}[algorithm]
    # As many splits and merges as half the clusters, or four, divide about half of the rows; of one
    # cluster or two nearly all proposals are splits, of large blocks.
    n_divided = n * max(0.5, 6.0 - 2.0 * n_clusters)
    # In nanoseconds; every sweep costs some whatever its rows do.
    return 1e-9 * (
        20_000.0 + n_rows * per_row + n_divided * per_row_divided + n_clusters * per_cluster
    )
