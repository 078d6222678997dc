"""
Flow cytometry: cells into populations
======================================

8,183 cells of a lymphoma patient, three markers each, gated by hand into four populations
(Aghaeepour et al. 2013). Populations are skewed, so a mixture of Gaussians covers one gate by
several components; what matters is that components do not straddle gates.

Not run when the documentation is built, because the data are not part of the package::

    python cluster_flow_cytometry.py --data DIRECTORY    # holding dlbcl_flow_gated.npz
"""

# %%
# The data
# --------

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import BayesianGaussianMixture

from skbnp import DirichletProcessMixture
from skbnp.plot import ClusterDisplay, save_figure, style

plt.style.use(style())

parser = argparse.ArgumentParser()
parser.add_argument("--data", type=Path, default=Path(__file__).parents[3] / "shared" / "data")
file = np.load(parser.parse_args().data / "dlbcl_flow_gated.npz")
X, gate = file["X"].astype(float), file["gate"]
rng = np.random.default_rng(0)
test = rng.random(len(X)) < 0.2

# %%
# Fit
# ---
# No number of populations is given. The chains of a table like this one settle in slightly
# different partitions: fit warns, and the density averages over them.

mixture = DirichletProcessMixture(n_jobs=-1, random_state=0).fit(X[~test])
variational = BayesianGaussianMixture(n_components=20, n_init=3, random_state=0).fit(X[~test])

# %%
# Compare with the gates
# ----------------------
# Purity: the share of cells that are in the most frequent gate of their cluster. The adjusted Rand
# index punishes a gate that is covered by several clusters, the density does not.

gated = gate[~test] > 0
for name, labels, model in (
    ("skbnp", mixture.labels_, mixture),
    ("variational", variational.predict(X[~test]), variational),
):
    purity = sum(
        np.bincount(gate[~test][gated & (labels == k)], minlength=1).max(initial=0)
        for k in np.unique(labels)
    ) / np.sum(gated)
    print(
        f"{name}: {len(np.unique(labels))} clusters, purity {purity:.3f}, "
        f"ARI {adjusted_rand_score(gate[~test][gated], labels[gated]):.3f}, "
        f"held-out log density {model.score(X[test]):.3f}"
    )

# %%
# See
# ---

figure, axes = plt.subplots(1, 2, figsize=(11, 4.5))
gates = [f"gate {k}" for k in gate[~test]]
ClusterDisplay(X[~test][:, :2], gates, names=("CD3", "CD5")).plot(ax=axes[0], s=4)
axes[0].set_title("by hand")
ClusterDisplay.from_estimator(mixture, X[~test], ax=axes[1], s=4)
axes[1].set(title="skbnp", xlabel="CD3", ylabel="CD5")
save_figure(figure, "flow_cytometry.png")
