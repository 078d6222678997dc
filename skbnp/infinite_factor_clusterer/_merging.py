"""Components that overlap are one cluster: the rule by which those of a draw are joined.

A soft version of the misclassification criterion of C. Hennig (2010), "Methods for merging Gaussian
mixture components", Advances in Data Analysis and Classification 4, 3-34. Unlike rules that go by
modes it keeps clusters apart that share their centre and differ in spread.
"""

import numpy as np


def misclassification(joint):
    """q[g, h] = sum_t r_tg r_th / sum_t r_tg, of joint[g, h] = sum_t r_tg r_th; 0 for g = h.

    The chance that a row of component g, its label forgotten, is put in component h.
    """
    q = joint / joint.sum(axis=1, keepdims=True)
    np.fill_diagonal(q, 0.0)
    return q


def merged_components(responsibility, overlap):
    """The cluster of every component, numbered by first component.

    Again and again the two with the largest chance that a row of one is put in the other are
    joined, until that is below ``overlap``.

    Parameters
    ----------
    responsibility : ndarray of shape (n_rows, n_components)
        Rows sum to one.
    overlap : float

    Returns
    -------
    cluster : ndarray of int of shape (n_components,)
    """
    joint = responsibility.T @ responsibility
    cluster = np.arange(len(joint))
    # A component that no row is drawn to has nothing to say: it stays by itself.
    joint += np.diag(np.full(len(joint), np.finfo(float).tiny))
    while len(joint) > 1:
        q = misclassification(joint)
        g, h = sorted(np.unravel_index(np.argmax(q), q.shape))
        if not q[g, h] >= overlap and not q[h, g] >= overlap:
            break
        joint[g] += joint[h]
        joint[:, g] += joint[:, h]
        joint = np.delete(np.delete(joint, h, axis=0), h, axis=1)
        cluster[cluster == h] = g
        cluster[cluster > h] -= 1
    return cluster
