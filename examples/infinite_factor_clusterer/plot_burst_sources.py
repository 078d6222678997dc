"""
Which sources are active?
=========================

Twelve sensors listen to four sources. Only one is active at a time; it shakes the sensors near it
and leaves the others as quiet as they are. Nothing moves in the mean: rows differ by *which sensors
are loud*. Methods that look at distances between rows see a single cloud.
"""

# %%
# The readings
# ------------
# Every source has three sensors of its own, which are seven times as loud while it is active. A
# tenth of the readings was lost. Left: sixty rows as they came in. Right: the same rows in the
# order of their sources, which nobody has told us.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from skbnp import InfiniteFactorClusterer
from skbnp.plot import CoclusteringDisplay, style

plt.style.use(style())

rng = np.random.default_rng(0)
n_rows, n_sensors, n_sources = 600, 12, 4
near = np.kron(np.eye(n_sources), np.ones(n_sensors // n_sources)).astype(bool)
source = rng.integers(n_sources, size=n_rows)
complete = np.where(near[source], 7.0, 1.0) * rng.normal(size=(n_rows, n_sensors))
X = np.where(rng.random(complete.shape) < 0.1, np.nan, complete)

figure, axes = plt.subplots(1, 2, figsize=(8, 4), sharey=True)
sorted_rows = X[:60][np.argsort(source[:60], kind="stable")]
for ax, rows in zip(axes, (X[:60], sorted_rows), strict=True):
    picture = ax.imshow(np.abs(rows), aspect="auto", vmax=14)
    ax.set(xlabel="sensor", xticks=[0, 3, 6, 9])
axes[0].set(ylabel="row", title="as they came in")
axes[1].set(title="by source")
figure.colorbar(picture, ax=axes, label="size of the reading (white: lost)")

# %%
# Fit
# ---
# No number of sources is given, and lost readings need no filling. Four short chains do not agree
# on the number of factors, which sources without a mean hardly need, and ``fit`` would say so; that
# they agree on the rows is seen below.

clusterer = InfiniteFactorClusterer(n_warmup=150, n_draws=150, n_jobs=-1, random_state=0)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)
    clusterer.fit(X)
print(f"clusters: {clusterer.n_clusters_}")

# %%
# The adjusted Rand index is 1 for the true sources and 0 for chance. k-means and the Gaussian
# mixture are told that there are four, and get the readings without the losses. k-means cannot see
# them; a Gaussian mixture can, if the number is known.

kmeans = KMeans(n_sources, n_init=10, random_state=0).fit_predict(complete)
mixture = GaussianMixture(n_sources, n_init=5, random_state=0).fit_predict(complete)
for name, label in {
    "InfiniteFactorClusterer": clusterer.labels_,
    "k-means, four given, nothing lost": kmeans,
    "Gaussian mixture, four given, nothing lost": mixture,
}.items():
    print(f"{name:43s} {adjusted_rand_score(source, label):.2f}")

# %%
# How sure
# --------
# How often two rows were of one cluster, over all draws.

CoclusteringDisplay.from_estimator(clusterer)

# %%
# What each source shakes
# -----------------------
# Root mean square of every sensor in every cluster: four groups of three.

size = np.array(
    [
        np.sqrt(np.nanmean(X[clusterer.labels_ == g] ** 2, axis=0))
        for g in range(clusterer.n_clusters_)
    ]
)
figure, ax = plt.subplots(figsize=(6, 2.4))
picture = ax.imshow(size, vmin=0)
ax.set(xlabel="sensor", ylabel="cluster", yticks=range(len(size)))
figure.colorbar(picture, ax=ax, label="root mean square")

# %%
# New rows
# --------
# Probabilities of the clusters for three new rows: one in which the first source shakes its three
# sensors; one in which only a single sensor was read, and it was loud; and one that is quiet.

new = np.full((3, n_sensors), np.nan)
new[0] = np.where(near[0], 8.0, 0.5)
new[1, 4] = 9.0
new[2] = 0.1
print(np.round(clusterer.predict_proba(new), 2))
print("novelty:", np.round(clusterer.novelty_proba(new), 3))
