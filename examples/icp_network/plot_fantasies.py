"""
Shapes learnt by a network that finds its own structure
=======================================================

A ring, two moons and a pinwheel: no Gaussian looks like these, and no sum of a few. A Bayesian
network makes them out of Gaussian noise at its top by sending it through squashing units. How many
units there are, in what order and with which edges, is unknown, with the Indian chefs process as
its prior (Dallaire et al., *The Indian chefs process*). To be seen: fantasies, rows drawn
from the networks, beside rows which they have not seen; the paper's Table 1 is about these.
"""

# %%
# Three sets
# ----------
# 300 rows of each to learn from. Two chains are far too short to find all networks that explain
# them, and ``fit`` says so; they are long enough to see the shapes.

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import multivariate_normal
from sklearn.datasets import make_moons

from skbnp import ICPNetwork
from skbnp.plot import NetworkDisplay, frame_image, style

plt.style.use(style())

rng = np.random.default_rng(0)


def ring(n):
    angle, radius = rng.uniform(0.0, 2.0 * np.pi, n), 1.0 + 0.1 * rng.normal(size=n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


def moons(n):
    return make_moons(n, noise=0.1, random_state=rng.integers(1000))[0]


def pinwheel(n):
    """Five arms, each turned the further the farther out it is (Johnson et al. 2016)."""
    along, across = np.array([1.0, 0.0])[:, np.newaxis] + rng.normal(size=(2, n)) * [[0.3], [0.1]]
    angle = 2.0 * np.pi / 5 * rng.integers(5, size=n) + 0.25 * np.exp(along)
    x = along * np.cos(angle) + across * np.sin(angle)
    return 10.0 * np.column_stack([x, across * np.cos(angle) - along * np.sin(angle)])


models = {}
for shape in (ring, moons, pinwheel):
    model = ICPNetwork(n_chains=2, n_warmup=250, n_draws=50, thin=3, n_jobs=-1, random_state=0)
    models[shape] = model.fit(shape(300))

# %%
# Fantasies
# ---------
# Above, 1,000 rows that were not learnt from; below, as many that the networks of all draws make
# up, top down. Between the moons and in the middle of the ring there should be few; the arms of the
# pinwheel are blurred in chains as short as these.

figure, axes = plt.subplots(2, 3, figsize=(9, 6))
for (unseen, dreamt), (shape, model) in zip(axes.T, models.items(), strict=True):
    rows, fantasies = shape(1000), model.sample(1000, random_state=0)
    unseen.plot(*rows.T, ".", markersize=2, color="0.4")
    dreamt.plot(*fantasies.T, ".", markersize=2)
    unseen.set_title(shape.__name__)
    limits = dict(xlim=unseen.get_xlim(), ylim=unseen.get_ylim())
    for ax in (unseen, dreamt):
        ax.set(aspect="equal", **limits)
        frame_image(ax)
    outside = np.mean(np.any(np.abs(fantasies) > 1.2 * np.abs(rows).max(axis=0), axis=1))
    print(f"{shape.__name__}: {100 * outside:.1f} % of the fantasies are far outside")
axes[0, 0].set_ylabel("rows not seen")
axes[1, 0].set_ylabel("fantasies")

# %%
# What a network is
# -----------------
# That of the draw with the highest joint density, for each set: the columns are at the foot and
# parents above their children. Of more than fifty edges the strongest are shown.

figure, axes = plt.subplots(1, 3, figsize=(11, 4))
for ax, (shape, model) in zip(axes, models.items(), strict=True):
    NetworkDisplay.from_estimator(model, ax=ax)
    ax.set_title(
        f"{shape.__name__}: {model.n_hidden_} hidden nodes,\n{model.n_edges_} edges,"
        f" depth {model.depth_}",
        loc="left",
        fontsize="medium",
    )
    ax.get_legend().remove()

# %%
# How dense
# ---------
# A fitted network has a density, too: the mean over its draws. Log densities of rows that were not
# learnt from, and those of a single Gaussian.

for shape, model in models.items():
    train, test = shape(300), shape(300)
    gaussian = multivariate_normal(train.mean(axis=0), np.cov(train.T)).logpdf(test).mean()
    print(f"{shape.__name__}: {model.score(test):.2f}, of one Gaussian {gaussian:.2f}")
plt.show()
