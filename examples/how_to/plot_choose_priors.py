"""
Choose priors
=============

The defaults are meant to do without your help. Where you know something, say it: how many clusters
are plausible, how large they are, what a probability is about. Then look at what the prior says,
and at how much the answer depends on it.
"""

# %%
# A number fixes, a law samples
# -----------------------------
# Every hyperparameter takes either. A number is an assertion; a law of :mod:`skbnp.laws` is a prior
# whose parameter is sampled with everything else. By default the concentration of a Dirichlet
# process mixture is sampled.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score

from skbnp import DirichletProcessMixture
from skbnp.laws import Beta, Gamma, ShiftedBetaNegativeBinomial
from skbnp.plot import style
from skbnp.processes import crp

plt.style.use(style())
print(DirichletProcessMixture().concentration)  # the default: a law
DirichletProcessMixture(concentration=0.5)  # fixed
DirichletProcessMixture(concentration=Gamma(2, 4))  # sampled, with this prior
DirichletProcessMixture(discount=Beta(1, 5))  # a Pitman-Yor process: many small clusters
few = ShiftedBetaNegativeBinomial(1, 4, 3)
DirichletProcessMixture(n_components=few)  # a number of components that does not grow for ever

# %%
# From an expected number of clusters to a concentration
# ------------------------------------------------------
# A concentration is hard to guess, a number of clusters is not. Among 150 rows:

for target in (2, 5, 15):
    concentration = crp.concentration_for_expected_blocks(150, target)
    print(f"{target:2} clusters expected at concentration {concentration:.2f}")

# %%
# What the prior says of their number is a distribution, and a wide one. A law for the concentration
# makes it wider still: here 2,000 draws of Gamma(1, 1), the default.

figure, ax = plt.subplots(figsize=(7, 3.2))
k = np.arange(1, 31)
for target in (2, 5, 15):
    concentration = crp.concentration_for_expected_blocks(150, target)
    ax.plot(k, crp.pmf_blocks(150, concentration)[:30], ".-", label=f"{concentration:.2f}")
rng = np.random.default_rng(0)
default = np.mean([crp.pmf_blocks(150, a)[:30] for a in rng.gamma(1.0, 1.0, size=2000)], axis=0)
ax.plot(k, default, color="0.2", linewidth=3, label="Gamma(1, 1)")
ax.set(xlabel="clusters among 150 rows", ylabel="prior probability")
ax.legend(title="concentration")

# %%
# Look at tables from the prior
# -----------------------------
# ``sample_prior`` draws tables as they would be if the prior were all there is, in the units of the
# training table (black below). Clusters far larger, smaller or more numerous than anything
# plausible are a reason to change ``mean_prior``, ``covariance_prior`` or the concentration.

X = load_iris().data
mixture = DirichletProcessMixture(n_jobs=-1, random_state=0).fit(X)
figure, axes = plt.subplots(1, 3, figsize=(9, 3))
for seed, ax in enumerate(axes):
    rows, labels = mixture.sample_prior(150, random_state=seed)
    ax.scatter(*rows[:, 2:].T, s=6, c=labels, cmap="tab10")
    ax.set_title(f"{labels.max() + 1} clusters")
    ax.scatter(*X[:, 2:].T, s=6, color="0.2")
    ax.set_xlabel("petal length (cm)")
axes[0].set_ylabel("petal width (cm)")

# %%
# Does it matter?
# ---------------
# Fit under a few priors that you would accept, and compare what you report. Here the number of
# components moves with the prior, and the clusters do not.

priors = {
    "2 clusters expected": {"concentration": crp.concentration_for_expected_blocks(150, 2)},
    "8 clusters expected": {"concentration": crp.concentration_for_expected_blocks(150, 8)},
    "finite, of any number": {"n_components": few},
}
fits = {"default, Gamma(1, 1)": mixture}
for name, parameters in priors.items():
    fits[name] = DirichletProcessMixture(n_jobs=-1, random_state=0, **parameters).fit(X)
for name, fitted in fits.items():
    components = fitted.posterior_.traces["n_clusters"]
    same = adjusted_rand_score(mixture.labels_, fitted.labels_)
    print(
        f"{name:21}: {components.mean():.1f} components, {fitted.n_clusters_} clusters, "
        f"agreement with the default {same:.2f}"
    )

# %%
# If the clusters had changed, the rows would not say enough: report the range, or find more rows.
# The units and defaults of all priors of the mixture are in :ref:`its guide
# <priors-and-their-units>`; what each parameter of the other models does is on their pages.

plt.show()
