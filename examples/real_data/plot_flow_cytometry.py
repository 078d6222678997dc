"""
Flow cytometry with holes: cells into populations
=================================================

8,183 cells of a lymphoma patient, three markers each, gated by hand into four populations
(Aghaeepour et al. 2013). Here a fifth of the readings is lost. A mixture without a given number of
components clusters the table as it is. The usual way is to fill the table first and then to choose
the number of components of a Gaussian mixture by BIC.

To run this page by hand::

    python plot_flow_cytometry.py --data DIRECTORY    # holding dlbcl_flow_gated.npz
"""

# %%
# The data
# --------
# Every second cell is kept back to grade the density. A cell that has lost all three readings is
# left out.

import argparse
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from skbnp import DirichletProcessMixture
from skbnp.plot import ClusterDisplay, style

plt.style.use(style())

parser = argparse.ArgumentParser()
parser.add_argument("--data", type=Path, required=True)
with np.load(parser.parse_args().data / "dlbcl_flow_gated.npz") as file:
    X, gate = file["X"].astype(float), file["gate"]
rng = np.random.default_rng(0)
train = rng.random(len(X)) < 0.5
test, whole, gate = X[~train], X[train], gate[train]
lost = rng.random(whole.shape) < 0.2
kept = ~lost.all(axis=1)
whole, gate, lost = whole[kept], gate[kept], lost[kept]
given = np.where(lost, np.nan, whole)
print(f"{len(given)} cells, {lost.mean():.1%} of their readings lost")

# %%
# Fit
# ---
# Populations are skewed, so that a mixture of Gaussians covers one of them by several components.
# ``fit`` joins components that overlap. If chains differ on how to divide a population, it warns.

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always", ConvergenceWarning)
    mixture = DirichletProcessMixture(n_warmup=200, n_draws=100, n_jobs=-1, random_state=0).fit(
        given
    )
for warning in caught:
    print(warning.message)

filled = KNNImputer().fit_transform(given)
candidates = [GaussianMixture(k, n_init=2, random_state=0).fit(filled) for k in range(1, 16)]
by_bic = min(candidates, key=lambda candidate: candidate.bic(filled))

# %%
# Compare with the gates
# ----------------------
# Purity is the share of cells that are in the most frequent gate of their cluster. The adjusted
# Rand index also counts a gate that is covered by several clusters as an error. The density is that
# of the cells that were kept back. Where gates touch, their components overlap and are joined:
# ``labels_`` has fewer clusters than there are gates, ``component_labels_`` has more.

gated = gate > 0
print("                     clusters  purity   ARI   log density of other cells")
labels = {
    "skbnp": mixture.labels_,
    "skbnp, components": mixture.component_labels_,
    "filled, mixture by BIC": by_bic.predict(filled),
}
for (name, label), model in zip(labels.items(), (mixture, mixture, by_bic), strict=True):
    most = sum(np.bincount(gate[gated & (label == k)], minlength=1).max() for k in set(label))
    index = adjusted_rand_score(gate[gated], label[gated])
    print(
        f"{name:22s} {len(set(label)):6d}  {most / gated.sum():6.3f}  {index:.3f}"
        f"  {model.score(test):8.3f}"
    )

# %%
# The lost readings
# -----------------
# Root mean square error over the lost cells, in the units of the table, and how many of the truths
# lie within one and within two of the standard deviations that come with the filled cells.

fillings = {
    "mean of the column": np.broadcast_to(np.nanmean(given, axis=0), given.shape),
    "KNNImputer": filled,
    "IterativeImputer": IterativeImputer(max_iter=50, random_state=0).fit_transform(given),
    "skbnp": mixture.X_imputed_,
}
for name, answer in fillings.items():
    print(f"{name:20s} {np.sqrt(np.mean((answer - whole)[lost] ** 2)):5.1f}")
distance = np.abs(mixture.X_imputed_ - whole)[lost] / mixture.X_imputed_std_[lost]
print(f"within one: {np.mean(distance < 1):.1%}, within two: {np.mean(distance < 2):.1%}")

# %%
# See
# ---
# CD3 and CD5 of the same cells, before any reading was lost.

figure, axes = plt.subplots(1, 4, figsize=(12, 3.6), sharex=True, sharey=True)
gates = [f"gate {k}" if k else "in no gate" for k in gate]
panels = {"gated by hand": gates, **labels}
for ax, (name, label) in zip(axes, panels.items(), strict=True):
    ClusterDisplay(whole[:, :2], label, names=("CD3", "CD5")).plot(ax=ax, s=4)
    ax.get_legend().remove()
    ax.set_title(name)
    ax.label_outer()
plt.show()
