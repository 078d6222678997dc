"""The six sets of the clusterer: bursts and locations drawn from a known truth, and radio signals.

Rows to learn from and others, standardised by the first, with the labels of both. Synthetic sets
have 600 rows of either kind, 12 features and four clusters:

- disjoint bursts: zero-mean clusters, each with three features of its own that are loud;
- overlapping bursts: the same with a random half of the features loud in each;
- location: spherical clusters around random centres.

How loud a loud feature is, and how far centres lie apart, was chosen once so that Gaussian mixtures
told the true K agree with the truth as well as on sets published without these numbers (adjusted
Rand index .98, .88, 1.00).

Readings of signal strength are integers: half a decibel of uniform noise is added before anything
else, as densities at point masses mean nothing.
"""

import numpy as np
from _tables import load as load_table
from sklearn.cluster import KMeans

N_ROWS, N_FEATURES, N_CLUSTERS = 600, 12, 4
LOUD = {"disjoint bursts": 7.0, "overlapping bursts": 5.0}  # standard deviations of a quiet one
APART = 2.0  # standard deviation of the centres
NOT_HEARD = {"uw_floor_wifi": -92, "uji_indoor_loc": -105}
SYNTHETIC = ("disjoint bursts", "overlapping bursts", "location")
RADIO = ("wifi_localization", "uw_floor_wifi", "uji_indoor_loc")


def bursts(name, seed, n):
    """Zero-mean clusters with loud and quiet features; rows and labels."""
    rng = np.random.default_rng(seed)
    size = np.ones((N_CLUSTERS, N_FEATURES))
    for g in range(N_CLUSTERS):
        own = np.arange(3 * g, 3 * g + 3)
        if name == "overlapping bursts":
            own = rng.permutation(N_FEATURES)[: N_FEATURES // 2]
        size[g, own] = LOUD[name]
    label = rng.integers(N_CLUSTERS, size=n)
    return size[label] * rng.normal(size=(n, N_FEATURES)), label


def locations(seed, n):
    """Spherical clusters; rows and labels."""
    rng = np.random.default_rng(seed)
    center = APART * rng.normal(size=(N_CLUSTERS, N_FEATURES))
    label = rng.integers(N_CLUSTERS, size=n)
    return center[label] + rng.normal(size=(n, N_FEATURES)), label


def radio(name, data):
    """Readings and labels of a set of signal strengths; access points hardly heard are left out."""
    if name == "wifi_localization":
        return load_table("wifi", data)
    with np.load(data / f"{name}.npz") as file:
        rssi = file["rssi"].astype(float)
        if name == "uw_floor_wifi":
            # No rooms are known: six parts of the floor.
            place = np.column_stack([file["x"], file["y"]])
            label = KMeans(6, n_init=10, random_state=0).fit_predict(place)
            heard, least = rssi > NOT_HEARD[name], 0.05
        else:
            label = np.unique(file["building"] * 10 + file["floor"], return_inverse=True)[1]
            heard, least = rssi > -128, 0.1
            rssi = np.where(heard, rssi, NOT_HEARD[name])
    return rssi[:, heard.mean(axis=0) > least], label


def load(name, data, seed):
    """Rows to learn from, their labels, other rows, their labels; standardised by the first."""
    if name in SYNTHETIC:
        draw = locations if name == "location" else lambda s, n: bursts(name, s, n)
        X, label = draw(seed, 2 * N_ROWS)
        n = N_ROWS
    else:
        X, label = radio(name, data)
        rng = np.random.default_rng(seed)
        X = X + rng.uniform(-0.5, 0.5, size=X.shape)
        order = rng.permutation(len(X))
        X, label = X[order], label[order]
        n = round((0.7 if name == "uw_floor_wifi" else 0.5) * len(X))
    center, scale = X[:n].mean(axis=0), X[:n].std(axis=0)
    X = (X - center) / np.where(scale > 0, scale, 1.0)
    return X[:n], label[:n], X[n:], label[n:]
