"""
Clusters without K
==================

A table of flower measurements, a fifth of its cells missing, and nobody says how many kinds of
flower there are. One fit answers with a partition and its uncertainty, fills the holes, and keeps
what is needed to doubt it: the traces of its chains.
"""

# %%
# The data
# --------
# 150 irises, four measurements each. We remove 120 of the 600 cells at random; the three species
# are kept aside to grade the answer.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from skbnp import DirichletProcessMixture
from skbnp.plot import ClusterDisplay, MergeTreeDisplay, TraceDisplay, style

plt.style.use(style())

iris = load_iris()
rng = np.random.default_rng(1)
hole = rng.permutation(iris.data.size).reshape(iris.data.shape) < 120
X = np.where(hole, np.nan, iris.data)

# %%
# Fit
# ---
# No number of clusters, no length of the chains and no imputation beforehand: missing cells are
# drawn along with the labels. Four chains start from different partitions and go on until they
# agree; ``fit`` warns if they still differ when their work is spent.

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always", ConvergenceWarning)
    mixture = DirichletProcessMixture(n_jobs=-1, random_state=0).fit(X)
for warning in caught:
    print(warning.message)
print(f"{len(caught)} warnings, {mixture.posterior_.n_stored} draws")

# %%
# Look at the chains
# ------------------
# If the chains disagree, nothing below deserves to be read. They should wander over the same
# values, R-hat should be near one and the effective number of draws in the hundreds. (The
# discount was not sampled: a constant has nothing to converge.)

TraceDisplay.from_estimator(mixture)
rhat, ess = mixture.posterior_.rhat(), mixture.posterior_.ess()
for name in rhat:
    print(f"{name:>22}: R-hat {rhat[name]:.3f}, effective draws {ess[name]:.0f}")

# %%
# Look at the answer
# ------------------
# ``component_labels_`` is the partition with the least posterior expected distance (variation of
# information) from all draws. ``labels_`` joins those of its components that overlap. *Setosa*
# stands apart; *versicolor* and *virginica* overlap, and with a fifth of the cells missing so much
# that they just stay two, with some flowers of the one among the other: a small component of the
# largest *virginica* is joined to *versicolor*. The adjusted Rand index says how near a partition
# comes to the species: 1 is equal, 0 is chance.

print(f"expected distance from a draw, in nats: {mixture.expected_loss_:.3f}")
for name, labels in (
    ("components", mixture.component_labels_),
    ("clusters", mixture.labels_),
    ("two clusters", mixture.merge_tree_.cut(n_clusters=2)[mixture.component_labels_]),
):
    index = adjusted_rand_score(iris.target, labels)
    print(f"{name:>15}: {labels.max() + 1}, adjusted Rand index against the species {index:.3f}")

# %%
# The tree shows what overlaps how far, and what another threshold than ``merge_overlap`` would
# join: with one a little lower *versicolor* and *virginica* are one. Whoever knows how many species
# there are cuts it there.

MergeTreeDisplay.from_estimator(mixture)

# %%
# The clusters, and how sure each flower is of its own:

display = ClusterDisplay.from_estimator(mixture, X, columns=(2, 3))
display.ax_.set(xlabel=iris.feature_names[2], ylabel=iris.feature_names[3])

# %%
# The fainter a point, the less certain its cluster; hollow points have a filled coordinate.

# %%
# Doubt is part of the answer: the posterior of the number of components, draw by draw.

n_clusters = np.ravel(mixture.posterior_.traces["n_clusters"]).astype(int)
value, count = np.unique(n_clusters, return_counts=True)

fig, ax = plt.subplots(figsize=(5, 3))
ax.bar(value, count / count.sum())
ax.set(xlabel="number of components", ylabel="posterior probability", xticks=value)

# %%
# Fill the holes
# --------------
# ``X_imputed_`` holds the posterior mean of each missing cell; the cells that were there are
# untouched. Points on the diagonal are filled perfectly; a column mean would put all of its
# column's points on one horizontal line.

truth, filled = iris.data[hole], mixture.X_imputed_[hole]
column = np.nonzero(hole)[1]

fig, ax = plt.subplots(figsize=(5, 5))
for j, name in enumerate(iris.feature_names):
    cells = truth[column == j], filled[column == j]
    ax.scatter(*cells, s=14, label=name.removesuffix(" (cm)"))
ax.axline((0, 0), slope=1, color="0.7", linewidth=1, zorder=0)
ax.set(xlabel="removed value, cm", ylabel="filled value, cm", aspect="equal")
ax.legend()

spread = iris.data.std(axis=0)[column]
print(f"error in standard deviations: {np.sqrt(np.mean(((filled - truth) / spread) ** 2)):.3f}")
print(
    f"with column means:            "
    f"{np.sqrt(np.mean(((np.nanmean(X, axis=0)[column] - truth) / spread) ** 2)):.3f}"
)
