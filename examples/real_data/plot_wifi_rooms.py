"""
From signal strengths to rooms
==============================

Seven wireless access points, 2,000 readings of their signal strengths by a phone in four rooms
(Rohra et al. 2017). Which rooms there are is not given. Rooms are no Gaussian clusters, and no
method counts exactly four of them. What the clusterer adds is a law of all signals that also holds
when an access point has broken down.

To run this page by hand::

    python plot_wifi_rooms.py --data DIRECTORY    # holding wifi_localization.csv.gz
"""

# %%
# The data
# --------
# Strengths are whole decibels: half a decibel of noise takes their steps away, which would be
# infinitely dense to a method that asks for densities.

import argparse
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler

from skbnp import InfiniteFactorClusterer
from skbnp.plot import ClusterCountDisplay, ClusterDisplay, style

plt.style.use(style())

parser = argparse.ArgumentParser()
parser.add_argument("--data", type=Path, required=True)
file = parser.parse_args().data / "wifi_localization.csv.gz"
table = np.loadtxt(file, delimiter=",", skiprows=1)
rng = np.random.default_rng(0)
rssi = table[:, :-1] + rng.uniform(-0.5, 0.5, size=table[:, :-1].shape)
room = table[:, -1].astype(int)
order = rng.permutation(len(rssi))
train, test = order[:1000], order[1000:]

# %%
# Fit
# ---
# Neither the number of rooms nor that of factors is given. Chains are short here; if they have not
# converged, ``fit`` warns.

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always", ConvergenceWarning)
    clusterer = InfiniteFactorClusterer(
        n_chains=2, n_warmup=150, n_draws=75, n_jobs=-1, random_state=0
    ).fit(rssi[train])
for warning in caught:
    print(warning.message)
print(f"{clusterer.n_clusters_} clusters, of {len(np.unique(clusterer.component_labels_))} parts")

# %%
# Beside alternatives
# -------------------
# Adjusted Rand index against the rooms. The first two below ours are told that there are four.

scaler = StandardScaler().fit(rssi[train])
X, new = scaler.transform(rssi[train]), scaler.transform(rssi[test])
told = GaussianMixture(4, n_init=5, random_state=0).fit(X)
counts = range(1, 16)
mixtures = [GaussianMixture(n, n_init=2, random_state=0).fit(X) for n in counts]
by_bic = min(mixtures, key=lambda mixture: mixture.bic(X))
answers = {
    "InfiniteFactorClusterer": clusterer.labels_,
    "k-means, four rooms": KMeans(4, n_init=10, random_state=0).fit_predict(X),
    "Gaussian mixture, four rooms": told.predict(X),
    f"Gaussian mixture by BIC ({by_bic.n_components})": by_bic.predict(X),
    "HDBSCAN": HDBSCAN(min_cluster_size=15, copy=True).fit_predict(X),
}
for name, label in answers.items():
    print(f"{name:34s} {adjusted_rand_score(room[train], label):.2f}")

# %%
# New readings: the clusters they are put in, and how well the density foresees them.

held_out = adjusted_rand_score(room[test], clusterer.predict(rssi[test]))
shift = np.log(scaler.scale_).sum()
print(f"held-out rows: {held_out:.2f}")
print(
    f"log density, ours {clusterer.score(rssi[test]):.2f}, by BIC {by_bic.score(new) - shift:.2f}"
)

# %%
# One access point broken down: the others know the room.

broken = rssi[test].copy()
broken[:, 0] = np.nan
held_out = adjusted_rand_score(room[test], clusterer.predict(broken))
error = np.sqrt(np.mean((clusterer.impute(broken) - rssi[test])[:, 0] ** 2))
print(f"without the first: {held_out:.2f}, its strength filled in to {error:.1f} dB", end=" ")
print(f"(their standard deviation: {rssi[test, 0].std():.1f} dB)")

# %%
# Look at the answer
# ------------------

figure, axes = plt.subplots(1, 3, figsize=(12, 4), sharex=True, sharey=True)
rooms = [f"room {number}" for number in room[train]]
bic = f"Gaussian mixture by BIC ({by_bic.n_components})"
for ax, (title, label) in zip(
    axes,
    {"rooms": rooms, "skbnp": clusterer.labels_, bic: answers[bic]}.items(),
    strict=True,
):
    ClusterDisplay(rssi[train][:, [0, 4]], label).plot(ax=ax, s=8)
    ax.get_legend().remove()
    ax.set(title=title, xlabel="access point 1, dBm", ylabel="")
axes[0].set_ylabel("access point 5, dBm")

# %%
# How many parts the mixture has, before those that overlap are joined: no one number, and no need
# for it.

display = ClusterCountDisplay.from_estimator(clusterer)
display.ax_.set_xlabel("number of parts")
plt.show()
