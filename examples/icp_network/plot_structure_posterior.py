"""
What comes before what, with hidden nodes between
=================================================

Five columns whose order in time is known, and nothing else: which of them act on which? Rows are
drawn from a small network that the model does not see, with a node that is not among the columns.
``ICPNetwork`` is told the order of the columns and draws whole networks, hidden nodes included.
What is asked for is a mean over the draws: with what probability is there a way from one column to
another, directly or through others, and with what probability an edge.
"""

# %%
# Rows from a known network
# -------------------------
# The first column acts on b and c, both act on d, and nothing comes from e. The black node, which
# nobody sees, moves c and d together. Nodes are squashed on their way to their children, as in the
# model.

import matplotlib.pyplot as plt
import numpy as np

from skbnp import ICPNetwork
from skbnp.plot import NetworkDisplay, TraceDisplay, style
from skbnp.samplers import ICPSampler

plt.style.use(style())

rng = np.random.default_rng(0)
n = 300


def node(noise, *terms):
    """The sum of squashed parents, each with its weight, and noise."""
    total = sum(weight * np.tanh(parent / 2) for weight, parent in terms)
    return total + noise * rng.normal(size=n)


hidden, a, e = node(2.0), node(2.0), node(2.0)
b = node(0.8, (3.0, a))
c = node(0.8, (-2.0, a), (2.0, hidden))
d = node(0.8, (2.0, b), (2.0, c), (1.5, hidden))
X, names, order = np.column_stack([a, e, b, c, d]), list("aebcd"), [0.9, 0.8, 0.6, 0.5, 0.1]

NetworkDisplay(
    [*order, 0.7],
    [[0, 2], [0, 3], [2, 4], [3, 4], [5, 3], [5, 4]],
    [3.0, -2.0, 2.0, 2.0, 2.0, 1.5],
    n_visible=5,
    names=names,
).plot()

# %%
# Fit
# ---
# Chains start without hidden nodes, for a small network is what is looked for.

model = ICPNetwork(
    observed_order=order,
    sampler=ICPSampler(init="empty"),
    n_chains=4,
    n_warmup=500,
    n_draws=100,
    thin=3,
    random_state=0,
).fit(X)
TraceDisplay.from_estimator(model)

# %%
# The chains do not agree on the number of hidden nodes: a column that bends another may do so
# through one node or through three. What they say about the columns is surer.
#
# Ways and edges
# --------------
# From rows to columns. Black dots mark what is so in truth.

edges = np.zeros((5, 5), dtype=bool)
edges[[0, 0, 2, 3], [2, 3, 4, 4]] = True
ways = edges | (edges @ edges)
found = model.ancestor_probabilities(), model.edge_probabilities()
figure, axes = plt.subplots(1, 2, figsize=(8, 3.6))
for ax, probability, true, what in zip(axes, found, (ways, edges), ("way", "edge"), strict=True):
    image = ax.imshow(probability, vmin=0.0, vmax=1.0, cmap="Blues")
    ax.set(xticks=range(5), xticklabels=names, yticks=range(5), yticklabels=names)
    ax.set(xlabel="to", ylabel="from", title=f"probability of a{'n' * (what == 'edge')} {what}")
    for i, j in np.argwhere(true):
        ax.plot(j, i, "o", color="black", markersize=4)
figure.colorbar(image, ax=axes, shrink=0.8)

# %%
# Every true way is found, and none from e; of the others that from b to c, which have a parent in
# common, is left open. Edges are another matter: between a and b there is nearly always a hidden
# node, which bends the line in its own way, and then there is no edge although there is a way.

for probability, what in zip(found, ("way", "edge"), strict=True):
    pairs = [(i, j) for i in range(5) for j in range(i + 1, 5)]
    said = [f"{names[i]} -> {names[j]} {probability[i, j]:.2f}" for i, j in pairs]
    print(f"{what}: " + ", ".join(said))

# %%
# A network
# ---------
# That of the draw with the highest joint density, columns at their orders.

network = model.network()
NetworkDisplay(
    network["order"], network["edges"], network["weights"], n_visible=5, names=names
).plot()
plt.show()
