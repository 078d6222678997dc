"""
Factors that are loud together
==============================

One layer of factors says which columns move together. A second layer says which *factors* do: its
scores set the variances of the factors below, so that a whole group of them is loud in some rows
and quiet in others. Correlations do not show it; energies do.
"""

# %%
# The data
# --------
# 24 columns of six factors, four columns each. In one table the scores are independent normal
# numbers. In the other two factors of a second layer, of three factors each, set their variances:
# y ~ N(0, 1 + a^2).

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skbnp import InfiniteFactorClusterer
from skbnp.plot import frame_image, style
from skbnp.samplers import FactorClustererSampler

plt.style.use(style())

N_ROWS, N_FACTORS = 400, 6
rng = np.random.default_rng(0)
loadings = np.kron(np.eye(N_FACTORS), np.ones((4, 1))) * rng.uniform(0.7, 1.3, size=(24, 1))
upper = np.kron(np.eye(2), np.ones((3, 1))) * 2.5


def rows(deep, rng):
    """A table, its factors tied by a second layer or not."""
    spread = np.ones((N_ROWS, N_FACTORS))
    if deep:
        spread = np.sqrt(1 + (rng.normal(size=(N_ROWS, 2)) @ upper.T) ** 2)
    scores = spread * rng.normal(size=spread.shape)
    return scores @ loadings.T + 0.3 * rng.normal(size=(N_ROWS, 24))


tables = {"one layer": rows(False, rng), "two layers": rows(True, rng)}

# %%
# What a table shows at once
# --------------------------
# Correlations of the columns, and of the logarithms of their squares. In both tables the
# correlations are six blocks. Only the energies tell them apart.

figure, axes = plt.subplots(2, 2, figsize=(6.5, 6))
for row, (name, X) in zip(axes, tables.items(), strict=True):
    row[0].imshow(np.corrcoef(X.T), vmin=-1, vmax=1, cmap="RdBu_r")
    energy = np.log(X**2 + 1e-6)
    picture = row[1].imshow(np.corrcoef(energy.T), vmin=-1, vmax=1, cmap="RdBu_r")
    row[0].set(ylabel=name)
    frame_image(row[0])
    frame_image(row[1])
axes[0, 0].set(title="columns")
axes[0, 1].set(title="log squares")
figure.colorbar(picture, ax=axes, shrink=0.6, label="correlation")

# %%
# Fit
# ---
# Up to three layers are allowed. A layer counts as there (``n_layers_``) if in at least half of the
# draws it has a factor with two links and a share of the energy. Rows are of one cluster here: a
# small concentration says so.

fitted = {}
for name, X in tables.items():
    clusterer = InfiniteFactorClusterer(
        max_layers=3,
        concentration=0.01,
        sampler=FactorClustererSampler(n_init_clusters=1),
        n_chains=2,
        n_warmup=80,
        n_draws=40,
        n_jobs=-1,
        random_state=0,
    )
    with warnings.catch_warnings():
        # Two short chains: that they agree on the layers is seen below.
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted[name] = clusterer.fit(X)
    mean_layers = np.mean(clusterer.posterior_.traces["n_layers"], axis=1)
    print(
        f"{name}: {clusterer.n_layers_} found, {clusterer.n_shared_factors_:.1f} shared factors in "
        f"the first; mean over the draws of each chain, faint layers too, {mean_layers}"
    )

# %%
# The second layer
# ----------------
# Factors have no order that all draws share, columns have. Left: the squared correlation that the
# second layer gives to the amplitudes of two columns' factors, averaged over the draws. Columns 0
# to 11 are of one group and the others of another. Right: the same where there is no second layer.


def ties(clusterer):
    """Mean over draws of the squared correlation of amplitudes from above, of pairs of columns."""
    total = np.zeros((24, 24))
    for draw in clusterer.posterior_:
        if "loadings2" in draw:
            W = draw["loadings2"][np.abs(draw["loadings1"]).argmax(axis=1)]
            size = np.linalg.norm(W, axis=1, keepdims=True)
            W = W / np.where(size > 0, size, 1.0)
            total += (W @ W.T) ** 2
    return total / len(clusterer.posterior_)


figure, axes = plt.subplots(1, 2, figsize=(8, 3.6))
for ax, name in zip(axes, ("two layers", "one layer"), strict=True):
    picture = ax.imshow(ties(fitted[name]), vmin=0, vmax=1)
    ax.set(title=name, xlabel="column", ylabel="column")
figure.colorbar(picture, ax=axes, label="squared correlation")
