"""
Which column comes before which?
================================

Rows are drawn from a small network that is known here and unknown to the model: four columns, of
which the first drives the second and the third, and both the fourth; and an unseen node that moves
the third and the fourth together. ``ICPNetwork`` with ``observed_order="free"`` draws whole
networks, the order of the columns and hidden nodes included. What is asked for is a mean over the
draws: with what probability is there an edge between two columns, and with what probability a way
from one to the other, directly or through others.
"""

# %%
# Rows from a known network
# -------------------------
# Nodes are squashed on their way to their children, as in the model: one column is seldom
# a line in another.

import matplotlib.pyplot as plt
import numpy as np

from skbnp import ICPNetwork
from skbnp.plot import NetworkDisplay, TraceDisplay

rng = np.random.default_rng(0)
n = 400


def child(noise, *terms):
    """A node: the sum of its squashed parents, each with its weight, and noise."""
    total = sum(weight * np.tanh(parent / 2) for weight, parent in terms)
    return total + noise * rng.normal(size=n)


hidden = 2.0 * rng.normal(size=n)
a = 2.0 * rng.normal(size=n)
b = child(0.4, (3.0, a))
c = child(0.4, (-2.0, a), (2.0, hidden))
d = child(0.4, (2.0, b), (2.0, c), (1.5, hidden))
X, names = np.column_stack([a, b, c, d]), ["a", "b", "c", "d"]
edges = np.array([[0, 1], [0, 2], [1, 3], [2, 3]])
truth = np.zeros((4, 4))
truth[tuple(edges.T)] = 1.0

NetworkDisplay(
    [0.9, 0.5, 0.45, 0.1, 0.7],
    [[0, 1], [0, 2], [1, 3], [2, 3], [4, 2], [4, 3]],
    [3.0, -2.0, 2.0, 2.0, 2.0, 1.5],
    n_visible=4,
    names=names,
).plot()

# %%
# Fit
# ---

model = ICPNetwork(
    observed_order="free", n_chains=4, n_warmup=500, n_draws=100, thin=3, random_state=0
).fit(X)
print(f"hidden nodes in the draw with the highest joint density: {model.n_hidden_}")
TraceDisplay.from_estimator(model)

# %%
# Edges and ancestors
# -------------------
# Rows are parents, columns children. Black dots mark the true edges, and the true ancestors. An
# edge turned round is often as good an explanation of the rows: of the pair, look at the sum.

ancestors = truth + truth @ truth > 0
figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
edge, ancestor = model.edge_probabilities(), model.ancestor_probabilities()
for ax, probability, true, title in (
    (axes[0], edge, truth, "probability of an edge"),
    (axes[1], ancestor, ancestors, "probability of a way"),
):
    image = ax.imshow(probability, vmin=0.0, vmax=1.0, cmap="Blues")
    ax.set(xticks=range(4), xticklabels=names, yticks=range(4), yticklabels=names)
    ax.set(xlabel="to", ylabel="from", title=title)
    for i, j in np.argwhere(true):
        ax.plot(j, i, "o", color="black", markersize=4)
figure.colorbar(image, ax=axes, shrink=0.8)

# %%
# Each pair, in both directions

for i in range(4):
    for j in range(i + 1, 4):
        there, back = edge[i, j], edge[j, i]
        pair = f"{names[i]} -> {names[j]}: {there:.2f}, {names[j]} -> {names[i]}: {back:.2f}"
        print(pair + ("   an edge in truth" if truth[i, j] else ""))

# %%
# A network
# ---------
# That of the draw with the highest joint density. Grey nodes are columns, at their orders; black
# ones are hidden.

NetworkDisplay.from_estimator(model)
plt.show()
