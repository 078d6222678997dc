"""
Networks from the Indian chefs process
======================================

A prior over directed acyclic networks without layers: every node has an order between 0 and 1,
its parents are above it, and nothing else is forbidden (Dallaire et al., "The Indian chefs
process"). To be seen: what its networks look like; what its two parameters do to their size and
density, figure 1 of the paper, here from the exact law and not from simulations; and how
unsettled the size is that they give on average.
"""

# %%
# Networks
# --------
# Two outputs of order 0, two inputs of order 1 and a node of free order, under three pairs of
# parameters. The mass is the expected number of hidden parents of a node of order 0; the
# concentration says how little they are shared. Of 51 draws for each pair that with the median
# number of hidden nodes is shown, each node at its order; hidden nodes are black, and each has a
# descendant among the observed ones.

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import brentq

from skbnp.plot import NetworkDisplay, style
from skbnp.processes import icp

plt.style.use(style())

observed, names = [0.0, 0.0, np.nan, 1.0, 1.0], ["y1", "y2", "z", "x1", "x2"]
rng = np.random.default_rng(1)
figure, axes = plt.subplots(1, 3, figsize=(10, 4.2))
for ax, (mass, concentration) in zip(axes, ((1.0, 1.0), (3.0, 0.5), (1.5, 8.0)), strict=True):
    draws = [icp.sample(observed, mass, concentration, random_state=rng) for _ in range(51)]
    order, Z = sorted(draws, key=lambda draw: len(draw[0]))[25]
    edges = np.argwhere(Z)[:, ::-1]
    NetworkDisplay(order, edges, np.ones(len(edges)), n_visible=5, names=names).plot(
        ax=ax, linewidths=1.0
    )
    ax.set(title=f"mass {mass}, concentration {concentration}")
    if ax.get_legend():
        ax.get_legend().remove()

# %%
# How many nodes, how many edges, and how they grow
# --------------------------------------------------
# Left: the pairs of parameters under which one observed node of order 0 has so many active nodes,
# itself included, in the mean. Middle: along these lines, the mean number of edges; the larger the
# concentration the sparser the network. Right: the mean number of hidden nodes over many observed
# ones, for a mass of 1. It grows with the logarithm of their number.

figure, (levels, density, growth) = plt.subplots(1, 3, figsize=(12, 3.8))
concentrations = np.geomspace(0.1, 20.0, 12)
for n_active in (2, 4, 7, 10):
    masses = [
        brentq(
            lambda mass, c=c, n=n_active: icp.expected_hidden([0.0], mass, c) + 1 - n,
            0.1,
            9.0,
            xtol=1e-4,
        )
        for c in concentrations
    ]
    edges = [icp.expected_edges([0.0], *law)[0] for law in zip(masses, concentrations, strict=True)]
    levels.semilogx(concentrations, masses, label=n_active)
    density.semilogx(concentrations, edges, label=n_active)
levels.set(xlabel="concentration", ylabel="mass", title="same expected number of nodes")
levels.legend(title="active nodes", fontsize="small")
density.set(xlabel="concentration", ylabel="expected edges", title="same nodes, fewer edges")

n_observed = np.unique(np.geomspace(1, 200, 12).astype(int))
for concentration in (0.25, 1.0, 4.0, 16.0):
    mean = [icp.expected_hidden([0.0] * n, 1.0, concentration) for n in n_observed]
    growth.semilogx(n_observed, mean, label=concentration)
growth.set(xlabel="observed nodes", ylabel="expected hidden nodes", title="growth")
growth.legend(title="concentration", fontsize="small")

# %%
# The law of the number of hidden nodes
# -------------------------------------
# Two parameters that expect the same number of hidden nodes agree on little else: a large
# concentration makes it geometric rather than bell-shaped, so that none at all is the likeliest.
# Bars are 2,000 draws of the chefs' process, dots the exact law.

figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), sharey=True)
for ax, concentration in zip(axes, (0.25, 16.0), strict=True):
    mass = brentq(
        lambda mass, c=concentration: icp.expected_hidden([0.0], mass, c) - 6, 0.1, 9.0, xtol=1e-4
    )
    process = [0.0], mass, concentration
    n_hidden = [
        len(icp.sample(*process, method="chefs", random_state=rng)[0]) - 1 for _ in range(2000)
    ]
    pmf = icp.hidden_pmf(*process)[:31]
    share = np.bincount(np.minimum(n_hidden, 31), minlength=32)[:31] / len(n_hidden)
    ax.bar(np.arange(31), share, color="lightgrey", label="draws")
    ax.plot(np.arange(31), pmf, ".", color="black", label="exact")
    ax.set(xlabel="hidden nodes", title=f"concentration {concentration}, mass {mass:.2f}")
    spread = icp.var_hidden(*process) ** 0.5
    print(f"concentration {concentration}: mean 6, standard deviation {spread:.1f}")
    print(f"  none {pmf[0]:.3f}; more than 20 {1 - pmf[:21].sum():.3f}")
axes[0].set(ylabel="probability")
axes[0].legend()

# %%
# Beside the exact means, those of 2,000 draws by either sampler, in brackets.

print("mass  conc.  hidden nodes                  edges of hidden nodes         of observed")
for mass, concentration in ((1.0, 1.0), (3.0, 0.5), (1.5, 8.0)):
    law = observed, mass, concentration
    exact = icp.expected_hidden(*law), *icp.expected_edges(*law)
    drawn = []
    for method in ("sweep", "chefs"):
        networks = [icp.sample(*law, method=method, random_state=rng) for _ in range(2000)]
        seen = [(len(order) - 5, Z[:, 5:].sum(), Z[:, :5].sum()) for order, Z in networks]
        drawn.append(np.mean(seen, axis=0))
    cells = [f"{e:6.2f} ({a:6.2f}, {b:6.2f})" for e, a, b in zip(exact, *drawn, strict=True)]
    print(f"{mass:4.1f}  {concentration:5.1f}  " + "  ".join(cells))
plt.show()
