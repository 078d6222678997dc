"""
A table on disk
===============

A memory map is a file that looks like an array. The mixture reads it cell by cell, pass by pass,
and keeps a hundred thousand of its rows: the table may be as large as the disk. The same lines take
a Zarr array, an HDF5 dataset or a Dask array.
"""

# %%
# Data and fit
# ------------
# Two hundred thousand rows of four clusters, the smallest of two in a hundred rows, written to a
# file in parts. Two chains of 65 sweeps: an honest run has more, and says so.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from skbnp import DirichletProcessMixture
from skbnp.plot import TraceDisplay, style

plt.style.use(style())

n_samples, centers = 200_000, np.array([[0, 0], [5, 0], [0, 5], [6, 6]])
rng = np.random.default_rng(0)
directory = tempfile.TemporaryDirectory()
path = Path(directory.name) / "rows.npy"
X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n_samples, 2))
truth = np.empty(n_samples, dtype=np.int8)
for start in range(0, n_samples, 50_000):
    group = rng.choice(4, p=[0.5, 0.3, 0.18, 0.02], size=50_000)
    truth[start : start + 50_000] = group
    X[start : start + 50_000] = rng.normal(centers[group], 1.0)
X.flush()

X = np.load(path, mmap_mode="r")
mixture = DirichletProcessMixture(n_chains=2, n_warmup=40, n_draws=25, n_jobs=2, random_state=0)
mixture.fit(X)
print(type(X).__name__, f"of {X.nbytes / 1e6:.1f} MB:", mixture.n_clusters_, "clusters")
info = mixture.partition_info_
print(f"blocks hold {info['n_samples']} rows, the consensus rests on {info['n_rows']} of them")

# %%
# Traces
# ------
# Those of any fit.

TraceDisplay.from_estimator(mixture, names=["n_clusters", "log_density"])

# %%
# Any rows
# --------
# Answers come by blocks, too. Here for every hundredth row: the two most probable clusters of rows
# between two clusters are nearly alike.

some = np.asarray(X[::100])
proba = mixture.predict_proba(some)
_, ax = plt.subplots(figsize=(5, 4))
points = ax.scatter(*some.T, c=proba.argmax(axis=1), s=20 * proba.max(axis=1) ** 8, cmap="tab10")
ax.set(xlabel="first column", ylabel="second column", title="certain rows are large")

# %%
# The clusters are those that made the data: rows of each, by the cluster that they are put in.

table = np.zeros((4, mixture.n_clusters_), dtype=int)
np.add.at(table, (truth[::100], proba.argmax(axis=1)), 1)
print(table)
plt.show()

# %%
# One draw
# --------
# Draws hold no labels. Those of all rows follow from a draw and the file; here how many rows each
# component of the last draw has.

labels = mixture.draw_labels(0, -1)
print(np.bincount(labels))
print(mixture.posterior_[0, -1]["n_members"][:-1])

del X
directory.cleanup()
