"""
Galaxies: how many groups?
==========================

82 velocities of galaxies in the Corona Borealis region (Roeder 1990), the classic question of how
many groups a sample shows. The honest answer is a distribution, and it depends on the prior.

Not run when the documentation is built, because the data are not part of the package::

    python cluster_galaxies.py --data DIRECTORY    # holding classic_mixtures_1d.npz
"""

# %%
# The data
# --------

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from skbnp import DirichletProcessMixture
from skbnp.laws import Gamma
from skbnp.plot import save_figure, style
from skbnp.processes import crp

plt.style.use(style())

parser = argparse.ArgumentParser()
parser.add_argument("--data", type=Path, default=Path(__file__).parents[3] / "shared" / "data")
velocity = np.load(parser.parse_args().data / "classic_mixtures_1d.npz")["galaxy"]
X = velocity[:, None] / 1000  # thousands of km/s

# %%
# One density, averaged over all partitions
# -----------------------------------------

mixture = DirichletProcessMixture(n_jobs=-1, random_state=0).fit(X)
grid = np.linspace(5, 40, 500)
figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4))
left.hist(X[:, 0], bins=40, density=True, color="0.85")
left.plot(grid, np.exp(mixture.score_samples(grid[:, None])))
left.set(xlabel="velocity, 1000 km/s", ylabel="density")
print("sizes of the consensus clusters:", np.bincount(mixture.labels_))
print({name: round(value, 3) for name, value in mixture.posterior_.rhat().items()})

# %%
# How many groups, before and after the data
# ------------------------------------------
# The posterior of the number of clusters beside its prior, for a concentration that is sampled
# and for two that are fixed. What is left of the question depends on the prior: say which one
# was used.

numbers = np.arange(1, 16)
for concentration, color in ((Gamma(1, 1), "C0"), (0.5, "C1"), (3.0, "C2")):
    fit = DirichletProcessMixture(concentration=concentration, n_jobs=-1, random_state=0).fit(X)
    found = fit.posterior_.traces["n_clusters"].ravel()
    share = np.array([np.mean(found == k) for k in numbers])
    right.plot(numbers, share, "o-", color=color, label=f"concentration {concentration}")
    if isinstance(concentration, float):
        prior = crp.pmf_blocks(len(X), concentration)[:15]
        right.plot(numbers, prior, ":", color=color, label="its prior")
    print(
        concentration,
        "clusters:",
        dict(zip(numbers.tolist(), share.round(3).tolist(), strict=True)),
    )
right.set(xlabel="number of clusters", ylabel="probability")
figure.legend(loc="outside right upper")
save_figure(figure, "galaxies.png")
