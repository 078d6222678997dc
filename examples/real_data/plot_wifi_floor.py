"""
Signals below a detection limit
===============================

A robot walks through one floor of a building, and hears up to 30 wireless access points at 215
places (Ferris, Fox and Lawrence 2007). More than half of the table is "not heard": no missing
value, but a signal too weak to be noticed. ``detection_limit`` says so. The usual way writes a
small number there.

To run this page by hand::

    python plot_wifi_floor.py --data DIRECTORY    # holding uw_floor_wifi.npz
"""

# %%
# The data
# --------
# Access points that are heard in fewer than one place of twenty are left out. Readings are whole
# decibels; half a decibel of noise takes their steps away.

import argparse
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import silhouette_score
from sklearn.mixture import GaussianMixture

from skbnp import InfiniteFactorClusterer
from skbnp.plot import ClusterDisplay, style

plt.style.use(style())

parser = argparse.ArgumentParser()
parser.add_argument("--data", type=Path, required=True)
with np.load(parser.parse_args().data / "uw_floor_wifi.npz") as file:
    rssi, place = file["rssi"].astype(float), np.column_stack([file["x"], file["y"]])
LIMIT = -92.0
heard = rssi > LIMIT
rng = np.random.default_rng(0)
rssi = np.where(heard, rssi + rng.uniform(-0.5, 0.5, size=rssi.shape), -np.inf)
rssi, heard = rssi[:, heard.mean(axis=0) > 0.05], heard[:, heard.mean(axis=0) > 0.05]
print(f"{rssi.shape[0]} places, {rssi.shape[1]} access points, {heard.mean():.0%} heard")

# %%
# Fit
# ---

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always", ConvergenceWarning)
    clusterer = InfiniteFactorClusterer(
        detection_limit=LIMIT, n_chains=2, n_warmup=200, n_draws=100, n_jobs=-1, random_state=0
    ).fit(rssi)
for warning in caught:
    print(warning.message)
written = np.where(heard, rssi, LIMIT)
candidates = [
    GaussianMixture(k, covariance_type="diag", reg_covar=1.0, n_init=5, random_state=0).fit(written)
    for k in range(1, 16)
]
by_bic = min(candidates, key=lambda candidate: candidate.bic(written))
answers = {
    "skbnp": clusterer.labels_,
    "limit written, mixture by BIC": by_bic.predict(written),
    "limit written, k-means": KMeans(clusterer.n_clusters_, n_init=10, random_state=0).fit_predict(
        written
    ),
}

# %%
# Are clusters of signals parts of the floor?
# -------------------------------------------
# No method has seen where the robot was. Rooms are not recorded, so we ask how much of the
# variance of the places lies between clusters, and how well the clusters are separated on the
# floor (silhouette; larger is better). k-means is told the number of clusters that skbnp found.
# For clusters alone no detection limit is needed: k-means and the mixture, which has more and
# smaller parts, do at least as well here. The difference is in the next section.

print("                               clusters  between clusters  silhouette")
for name, label in answers.items():
    center = np.array([place[label == k].mean(axis=0) for k in range(label.max() + 1)])
    between = 1 - np.sum((place - center[label]) ** 2) / np.sum((place - place.mean(axis=0)) ** 2)
    print(f"{name:30s} {len(center):6d} {between:14.1%} {silhouette_score(place, label):14.2f}")

figure, axes = plt.subplots(1, 3, figsize=(10, 5), sharex=True, sharey=True)
for ax, (name, label) in zip(axes, answers.items(), strict=True):
    ClusterDisplay(place, label).plot(ax=ax, s=14)
    ax.get_legend().remove()
    ax.set(title=name, xlabel="metres", ylabel="", aspect="equal")
axes[0].set_ylabel("metres")

# %%
# Places that the models make up
# ------------------------------
# New rows drawn from each model, for an access point that was heard in every second place. To the
# mixture the limit is a reading like any other, which many places share to the decibel: it has a
# peak there. With ``detection_limit`` the law goes on below it, and whatever is drawn there would
# not be heard.

column = np.argmin(np.abs(heard.mean(axis=0) - 0.5))
drawn = {"skbnp": clusterer.sample(2000, random_state=0), "mixture by BIC": by_bic.sample(2000)[0]}
figure, axes = plt.subplots(1, 3, figsize=(12, 3.5), sharex=True, sharey=True)
bins = np.arange(-140, -20, 4.0)
rows = {"robot": written, **drawn}
for ax, (name, X) in zip(axes, rows.items(), strict=True):
    ax.hist(X[:, column], bins=bins, weights=np.full(len(X), 1 / len(X)))
    ax.axvline(LIMIT, color="0.3", linestyle="--")
    ax.set(title=name, xlabel="signal strength, dBm")
axes[0].set_ylabel("share of places")

# %%
# How often each access point is heard in such rows, beside how often the robot heard it. Readings
# up to three decibels above the limit are not counted as heard, so that the width of the
# mixture's peak is not held against it.

share = (written > LIMIT + 3).mean(axis=0)
for name, X in drawn.items():
    error = np.abs((X > LIMIT + 3).mean(axis=0) - share)
    print(f"{name:14s} wrong by {error.mean():.1%} on average, at most by {error.max():.1%}")
plt.show()
