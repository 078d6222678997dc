"""
How many clusters, and how sure
===============================

"How many clusters are there?" has a distribution for an answer, and the partition behind it has
one too. Four views: the number of Gaussian components before and after the data, the ball of
partitions that holds 95 % of the posterior, which components are one cluster, and the pairs of rows
that belong together.
"""

# %%
# Data and fit
# ------------
# Wines of three growers and 13 measurements of each, standardised. All settings are the defaults.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from skbnp import DirichletProcessMixture
from skbnp.plot import ClusterCountDisplay, CoclusteringDisplay, MergeTreeDisplay, style
from skbnp.processes import crp

plt.style.use(style())

wine = load_wine()
X = StandardScaler().fit_transform(wine.data)
mixture = DirichletProcessMixture(n_jobs=-1, random_state=0).fit(X)
print({name: round(value, 2) for name, value in mixture.posterior_.rhat().items()})

# %%
# The number of components
# ------------------------
# Its prior, with the concentration at its prior mean of 1, and its posterior. A dash is the share
# of one chain: where dashes lie apart, the chains do not agree yet how probable a number is, and
# ``fit`` has said so. A cluster that is no Gaussian takes several.

ClusterCountDisplay.from_estimator(mixture, prior=crp.pmf_blocks(len(X), concentration=1.0))

# %%
# A ball of partitions
# --------------------
# ``component_labels_`` is the centre: the partition of least expected distance to all draws. The
# ball around it holds 95 % of the posterior; its bounds are the partitions at its rim with the
# fewest and the most components and the farthest ones (Wade and Ghahramani 2018).

ball = mixture.credible_ball(0.95, joined=False)
print(f"centre: {len(mixture.merge_tree_.sizes)} components, radius {ball.radius:.2f} nats")
for name, bounds in (
    ("fewest components", ball.upper),
    ("most components", ball.lower),
    ("farthest", ball.horizontal),
):
    print(f"{name}: sizes {[np.bincount(labels).tolist() for labels in bounds]}")

# %%
# Which components are one cluster
# --------------------------------
# ``labels_`` joins components whose overlap, averaged over draws, is at least ``merge_overlap``.
# ``merged_n_clusters_`` does so for each of 40 draws: how sure the rule is of the number. It is no
# calibrated posterior of the number of growers, and the joins are not always theirs.

MergeTreeDisplay.from_estimator(mixture)
number, count = np.unique(mixture.merged_n_clusters_, return_counts=True)
print("clusters, and of how many draws:", dict(zip(number.tolist(), count.tolist(), strict=True)))
for name, labels in (("components", mixture.component_labels_), ("clusters", mixture.labels_)):
    print(f"agreement of {name} with the growers: {adjusted_rand_score(wine.target, labels):.2f}")

# %%
# Pairs of rows
# -------------

CoclusteringDisplay.from_estimator(mixture)
plt.show()
