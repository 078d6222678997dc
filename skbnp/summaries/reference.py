"""One draw to show: the same rule for all models."""

import numpy as np

from skbnp.summaries.partitions import central_draw

# Pairs of labels, of one row in two draws, that the choice looks at, at most.
_MOST_PAIRS = 2e9


def reference_draw(posterior, draws=None, labels=None):
    """The draw of least expected loss where draws are partitions, else of the highest log joint.

    Parameters
    ----------
    posterior : skbnp.mcmc.posterior.Posterior
    draws : list of dict, default=None
        Those to choose among by their partitions; of very many rows evenly spaced ones of them.
    labels : list of ndarray of shape (n_samples,), default=None
        The partition of each draw. Where none of them divides the rows, they decide nothing.

    Returns
    -------
    draw : dict
    """
    if labels is None or all(np.ptp(one) == 0 for one in labels):
        return posterior.highest()
    most = max(16, int((_MOST_PAIRS / len(labels[0])) ** 0.5))
    step = -(-len(draws) // most)
    return draws[::step][central_draw(labels[::step])]
