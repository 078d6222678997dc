"""The nine sets of Table 1 of the Indian chefs paper, each as rows to learn from and others.

The paper gives neither the parameters of its generators nor its splits: these are ours. Real tables
are halved at random, columns standardised by the rows to learn from.
"""

import _tables
import numpy as np
from sklearn.datasets import make_moons

MOST = 2000  # rows on either side
NAMES = ("ring", "moons", "pinwheel", "geyser", "iris", "yeast", "abalone", "cloud", "wine")


def ring(n, seed):
    """A circle of radius 1, radii with standard deviation 0.1."""
    rng = np.random.default_rng(seed)
    angle, radius = rng.uniform(0.0, 2.0 * np.pi, n), 1.0 + 0.1 * rng.normal(size=n)
    return radius[:, np.newaxis] * np.column_stack([np.cos(angle), np.sin(angle)])


def moons(n, seed):
    """scikit-learn's, with noise of 0.1."""
    return make_moons(n, noise=0.1, random_state=seed)[0]


def pinwheel(n, seed, n_arms=5, radial=0.3, tangential=0.1, rate=0.25):
    """Arms of Gaussians, each turned the further the farther out it is (Johnson et al. 2016)."""
    rng = np.random.default_rng(seed)
    u, v = (np.array([1.0, 0.0]) + rng.normal(size=(n, 2)) * [radial, tangential]).T
    angle = 2.0 * np.pi * rng.integers(n_arms, size=n) / n_arms + rate * np.exp(u)
    cos, sin = np.cos(angle), np.sin(angle)
    return 10.0 * np.column_stack([u * cos + v * sin, v * cos - u * sin])


GENERATORS = {"ring": ring, "moons": moons, "pinwheel": pinwheel}
# Names in the registry: the paper's tables have all their columns.
REAL = {
    "geyser": "old_faithful",
    "iris": "iris",
    "yeast": "yeast, all columns",
    "abalone": "abalone",
    "cloud": "cloud",
    "wine": "redwine with quality",
}


def load(name, data, seed, n=MOST):
    """Rows to learn from and as many others, standardised by the first."""
    if name in GENERATORS:
        train, test = (GENERATORS[name](n, 2 * seed + side) for side in (0, 1))
    else:
        rows = np.random.default_rng(seed).permutation(_tables.load(REAL[name], data)[0])
        n = min(n, len(rows) // 2)
        train, test = rows[:n], rows[n : 2 * n]
    center, scale = train.mean(axis=0), train.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    return (train - center) / scale, (test - center) / scale
