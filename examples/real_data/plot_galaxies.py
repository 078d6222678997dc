"""
Galaxies: how many groups?
==========================

82 velocities of galaxies in the Corona Borealis region (Roeder 1990) are the classic example for
the question how many groups a sample shows. The answer is a distribution, and it depends on the
prior.

To run this page by hand::

    python plot_galaxies.py --data DIRECTORY    # holding classic_mixtures_1d.npz
"""

# %%
# The data
# --------

import argparse
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import KFold

from skbnp import DirichletProcessMixture
from skbnp.laws import Gamma
from skbnp.plot import class_look, style
from skbnp.processes import crp

plt.style.use(style())

parser = argparse.ArgumentParser()
parser.add_argument("--data", type=Path, required=True)
velocity = np.load(parser.parse_args().data / "classic_mixtures_1d.npz")["galaxy"]
X = velocity[:, None] / 1000  # thousands of km/s

# %%
# One density, averaged over all partitions
# -----------------------------------------
# The usual tool takes one number of groups, the one with the lowest BIC, and one estimate of their
# parameters.


def fit_by_bic(X):
    """The Gaussian mixture with the lowest BIC."""
    candidates = [GaussianMixture(k, n_init=5, random_state=0).fit(X) for k in range(1, 11)]
    return min(candidates, key=lambda candidate: candidate.bic(X))


mixture = DirichletProcessMixture(n_jobs=-1, random_state=0).fit(X)
by_bic = fit_by_bic(X)
print("sizes of the clusters:", np.bincount(mixture.labels_))
print("sizes by BIC:         ", np.bincount(by_bic.predict(X)))
print("R-hat:", {name: round(value, 3) for name, value in mixture.posterior_.rhat().items()})

grid = np.linspace(5, 40, 500)[:, None]
figure, ax = plt.subplots(figsize=(8, 4))
ax.hist(X[:, 0], bins=40, density=True, color="0.85", label="galaxies")
ax.plot(grid, np.exp(mixture.score_samples(grid)), label="skbnp")
ax.plot(grid, np.exp(by_bic.score_samples(grid)), "--", label=f"{by_bic.n_components} groups, BIC")
ax.set(xlabel="velocity, 1000 km/s", ylabel="density")
ax.legend()

# %%
# Which density foretells galaxies that it has not seen? The mean log density over five folds, with
# the number of groups chosen by BIC in each fold:

scores = []
for train, test in KFold(5, shuffle=True, random_state=0).split(X):
    fold = DirichletProcessMixture(n_chains=2, n_warmup=200, n_draws=400, n_jobs=-1, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # half as many chains as by default
        fold.fit(X[train])
    scores.append((fold.score(X[test]), fit_by_bic(X[train]).score(X[test])))
print("skbnp {:.3f}, BIC {:.3f}".format(*np.mean(scores, axis=0)))

# %%
# How many groups, before and after the data
# ------------------------------------------
# The posterior of the number of components beside its prior, for a concentration that is sampled
# and for two that are fixed. What remains of the question depends on the prior: say which one
# was used.

figure, ax = plt.subplots(figsize=(8, 4))
numbers = np.arange(1, 16)
for place, concentration in enumerate((Gamma(1, 1), 0.5, 3.0)):
    fit = mixture  # the first is the default
    if place > 0:
        fit = DirichletProcessMixture(concentration=concentration, n_jobs=-1, random_state=0).fit(X)
    found = fit.posterior_.traces["n_clusters"].ravel()
    share = np.array([np.mean(found == k) for k in numbers])
    look = class_look(place)
    ax.plot(numbers, share, look.marker + "-", color=look.color, label=f"{concentration}")
    if isinstance(concentration, float):
        prior = crp.pmf_blocks(len(X), concentration)[:15]
        ax.plot(numbers, prior, ":", color=look.color, label="its prior")
    print(concentration, "most probable:", numbers[share.argmax()], f"({share.max():.0%})")
ax.set(xlabel="number of components", ylabel="probability")
ax.legend(title="concentration")
plt.show()
