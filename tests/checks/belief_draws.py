"""Draws of small belief networks, and copies of a row for estimates that are to be independent."""

import numpy as np

from skbnp.cibp_belief_net import _predictive_laws as laws


def random_draw(widths, seed, skip=False, n_clusters=0, size=1.5, share=0.8):
    """A network with random edges, of the next layer or of any higher one."""
    rng = np.random.default_rng(seed)
    offset = np.concatenate([[0], np.cumsum(widths)])
    edges = []
    for c in range(len(widths) - 1):
        for child in range(offset[c], offset[c + 1]):
            for p in range(c + 1, len(widths) if skip else c + 2):
                edges += [
                    [parent, child]
                    for parent in range(offset[p], offset[p + 1])
                    if rng.random() < share
                ]
    n_units = offset[-1]
    top = slice(offset[-2], n_units)
    draw = {
        "widths": np.array(widths, dtype=np.intp),
        "edges": np.array(edges, dtype=np.int32).reshape(-1, 2),
        "weights": size * rng.standard_normal(len(edges)),
        "biases": 0.5 * rng.standard_normal(n_units),
        "unit_precision": rng.gamma(4.0, 0.5, n_units),
    }
    if n_clusters:
        draw["biases"][top], draw["unit_precision"][top] = 0.0, 1.0
        draw |= {
            "cluster_count": rng.integers(1, 20, n_clusters),
            "cluster_mean": 2.0 * rng.standard_normal((n_clusters, widths[-1])),
            "cluster_precision": rng.gamma(4.0, 0.5, (n_clusters, widths[-1])),
            "cluster_rate": rng.gamma(2.0, 0.5, widths[-1]),
        }
    draw["activations"] = hidden_sample(draw, 40, rng)
    for array in draw.values():
        array.flags.writeable = False  # nothing of a draw may be changed
    return draw


def components_of(draw):
    if not laws.has_row_clusters(draw):
        return None
    return laws.cluster_components(draw, 5.0, 0.2, 2.0, seed=3)


def dense(draw):
    n_units = draw["widths"].sum()
    W = np.zeros((n_units, n_units))
    W[draw["edges"][:, 0], draw["edges"][:, 1]] = draw["weights"]
    return W


def hidden_sample(draw, n, rng):
    """Hidden pre-activations from the network's prior, (n, n_hidden), plainly."""
    D, W = draw["widths"][0], dense(draw)
    a = np.zeros((n, len(W)))
    top = len(W)
    if "cluster_count" in draw:
        weight = draw["cluster_count"] / draw["cluster_count"].sum()
        label = rng.choice(len(weight), size=n, p=weight)
        top -= draw["widths"][-1]
        a[:, top:] = draw["cluster_mean"][label]
        a[:, top:] += rng.standard_normal((n, len(W) - top)) / np.sqrt(
            draw["cluster_precision"][label]
        )
    for j in range(top - 1, D - 1, -1):
        a[:, j] = draw["biases"][j] + np.tanh(a / 2) @ W[:, j]
        a[:, j] += rng.standard_normal(n) / np.sqrt(draw["unit_precision"][j])
    return a[:, D:]


def copies(x, n):
    """Rows like x to 1e-8, no two alike."""
    return np.tile(x, (n, 1)) + 1e-12 * np.arange(n)[:, np.newaxis]


def z_score(estimates, expected):
    error = estimates.std(axis=0, ddof=1) / np.sqrt(len(estimates))
    return np.abs(estimates.mean(axis=0) - expected) / error
