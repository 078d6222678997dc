"""
Networks from the cascading Indian buffet process
=================================================

A prior over layered networks: the units of each layer choose their parents as the customers of an
Indian buffet choose dishes, and the parents are the next layer, until a layer is empty (Adams,
Wallach and Ghahramani 2010). To be seen: why that ends, figure 2 of the paper; how the two
parameters shape the network, figure 3; and that "it ends" is no statement about when. At the
parameters of figure 2 about 900 layers are expected.
"""

# %%
# Widths
# ------
# The widths of the layers are a Markov chain: given K units, the next layer has a Poisson number of
# them with mean :math:`\lambda(K)`, which grows like the logarithm of K and so comes to lie below
# K. Left: widths of the layers of three networks. Right: the mean of the next width and the drift,
# its difference to the present one, negative above 8.

import matplotlib.pyplot as plt
import numpy as np

from skbnp.plot import NetworkDisplay, style
from skbnp.processes import cibp, ibp

plt.style.use(style())

mass, concentration = 3.0, 1.0
rng = np.random.default_rng(0)
figure, (traces, drift) = plt.subplots(1, 2, figsize=(9, 3.2))
for n_visible in (5, 20, 50):
    Zs = cibp.sample(n_visible, mass, concentration, max_depth=100, random_state=rng)
    widths = [n_visible] + [Z.shape[1] for Z in Zs]
    traces.plot(widths, label=f"{n_visible} visible units")
traces.set(xlabel="layer", ylabel="units", title="first 100 layers of three networks")
traces.legend()

width = np.arange(1, 21)
following = np.array([ibp.expected_features(k, mass, concentration) for k in width])
drift.plot(width, following, label="expected width of the next layer")
drift.plot(width, width, "--", color="grey", label="no change")
drift.plot(width, following - width, label="drift")
drift.axhline(0.0, color="black", linewidth=0.8)
drift.set(xlabel="width of a layer", xticks=range(0, 21, 4), ylim=(-10, 30))
drift.set_title("the next layer")
drift.legend(loc="upper left")

# %%
# Networks
# --------
# Five visible units under six pairs of parameters. The mass is the expected number of parents of a
# unit. The concentration says how little they are shared: the larger it is the wider the layers and
# the fewer the children of each unit. Of 51 draws for each pair that with the median number of
# units is shown: grey dots are visible units, black ones hidden, parents above their children.


def layers_and_edges(Zs):
    """Layer of each unit, and the (parent, child) pairs, units being numbered layer by layer."""
    widths = [Zs[0].shape[0]] + [Z.shape[1] for Z in Zs]
    start = np.cumsum([0] + widths)
    edges = [np.argwhere(Z)[:, ::-1] + (start[m + 1], start[m]) for m, Z in enumerate(Zs)]
    return np.repeat(np.arange(len(widths)), widths), np.concatenate(edges)


n_visible, masses, concentrations = 5, (0.7, 1.0, 1.3), (0.5, 2.0)
figure, axes = plt.subplots(2, 3, figsize=(10, 8))
for row, concentration in zip(axes, concentrations, strict=True):
    for ax, mass in zip(row, masses, strict=True):
        draws = [cibp.sample(n_visible, mass, concentration, random_state=rng) for _ in range(51)]
        layer, edges = sorted(map(layers_and_edges, draws), key=lambda draw: len(draw[0]))[25]
        NetworkDisplay(layer, edges, np.ones(len(edges)), n_visible=n_visible).plot(
            ax=ax, linewidths=1.0
        )
        ax.set(title=f"mass {mass}, concentration {concentration}", yticks=[])
        ax.get_legend().remove()

# %%
# Degrees, widths and depth
# -------------------------
# What to expect of these networks, exactly, and in brackets the means of 2,000 draws: the parents
# of a visible unit, which are as many as the mass says; the visible children of a unit of the first
# layer, which depend on the concentration alone; the hidden units and layers.

print("mass  conc.  parents        children       hidden units   hidden layers")
for concentration in concentrations:
    for mass in masses:
        process = n_visible, mass, concentration
        edges, units = ibp.expected_edges(*process), ibp.expected_features(*process)
        n_units, depth = cibp.expected_units(*process), cibp.expected_depth(*process)
        exact = mass, edges / units, n_units, depth
        drawn = np.zeros((2000, 4))
        for t in range(len(drawn)):
            Zs = cibp.sample(*process, random_state=rng)
            widths = [Z.shape[1] for Z in Zs]
            drawn[t] = Zs[0].sum(), widths[0], sum(widths), np.count_nonzero(widths)
        n_edges, first, n_units, depth = drawn.mean(axis=0)
        seen = n_edges / n_visible, n_edges / first, n_units, depth
        cells = [f"{e:5.2f} ({s:5.2f})" for e, s in zip(exact, seen, strict=True)]
        print(f"{mass:4.1f}  {concentration:5.1f}  " + "  ".join(cells))

# %%
# How deep is deep
# ----------------
# The expected depth is finite for every mass, but it rises exponentially, the faster the larger the
# concentration. A prior for a model that is to be fitted keeps the masses of the hidden layers
# below about 1.5, or closes all restaurants above some layer: ``max_depth``.

grid = np.linspace(0.1, 4.0, 40)
figure, ax = plt.subplots(figsize=(5, 3.5))
for concentration in (0.5, 1.0, 3.0):
    depth = [cibp.expected_depth(n_visible, mass, concentration) for mass in grid]
    ax.semilogy(grid, depth, label=f"concentration {concentration}")
ax.plot(3.0, cibp.expected_depth(n_visible, 3.0), "o", color="black")
ax.annotate("figure 2 of the paper", (3.0, 912), (2.4, 2.0), arrowprops={"arrowstyle": "->"})
ax.set(xlabel="mass", ylabel="expected number of hidden layers", ylim=(0.1, 1e7))
ax.legend(loc="upper left")
plt.show()
