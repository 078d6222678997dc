"""
A regression whose architecture is unknown
==========================================

How many units should the network of a regression have, in how many layers, and which inputs should
it look at? ``ICPNetworkRegressor`` answers with draws from the posterior of all of that: inputs are
at order 1, the output at order 0, and between them there are as many nodes, at whatever orders, as
the Indian chefs process and the rows agree on.
"""

# %%
# An output that depends on three of six inputs
# ---------------------------------------------

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
from sklearn.metrics import r2_score

from skbnp import ICPNetworkRegressor
from skbnp.plot import NetworkDisplay, TraceDisplay, style

plt.style.use(style())

rng = np.random.default_rng(0)


def draw(n):
    X = rng.uniform(-2.0, 2.0, size=(n, 6))
    signal = np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] * X[:, 2]
    return X, signal, signal + 0.2 * rng.normal(size=n)


X, _, y = draw(300)
X_test, signal_test, y_test = draw(300)
model = ICPNetworkRegressor(n_chains=2, n_warmup=500, n_draws=100, thin=3, random_state=0)
model.fit(X, y)

# %%
# Predictions
# -----------
# Mean and standard deviation of each output, of the noise and of all that is unknown about the
# network. About 90 % should lie within 1.645 standard deviations.

mean, spread = model.predict(X_test, return_std=True)
inside = np.mean(np.abs(y_test - mean) < 1.645 * spread)
print(f"R^2 {r2_score(y_test, mean):.3f}, of the signal {r2_score(signal_test, mean):.3f}")
print(f"within the 90 % interval: {100 * inside:.0f} %; deviations {spread.min():.2f} to", end=" ")
print(f"{spread.max():.2f}, noise 0.2")

figure, ax = plt.subplots(figsize=(4.5, 4))
ax.errorbar(mean, y_test, xerr=1.645 * spread, fmt=".", linewidth=0.5, markersize=3)
ax.plot(ax.get_xlim(), ax.get_xlim(), color="0.6", zorder=0)
ax.set(xlabel="prediction and 90 % interval", ylabel="output")

# %%
# The network
# -----------
# That of the draw with the highest joint density: inputs on top, the output at the foot, and the
# orders between.

NetworkDisplay.from_estimator(model)

# %%
# The posterior of the architecture
# ---------------------------------
# The number of hidden nodes of each draw and its depth, edges of the longest way down; and the
# share of the draws in which there is a way from an input to the output at all. Node 0 is the
# output, 1 to 6 are the inputs.

hidden, depth, used = [], [], np.zeros(6)
for chain in range(model.posterior_.n_chains):
    for t in range(0, model.posterior_.n_draws, 2):
        graph = model.structure_graph(model.posterior_[chain, t])
        ancestors = nx.ancestors(graph, 0)
        hidden.append(len(graph) - 7)
        depth.append(nx.dag_longest_path_length(graph, weight=None))
        used += [1 + feature in ancestors for feature in range(6)]

figure, axes = plt.subplots(1, 3, figsize=(10, 3))
for ax, values, name in zip(axes, (hidden, depth), ("hidden nodes", "depth"), strict=False):
    number, count = np.unique(values, return_counts=True)
    ax.bar(number, count / len(values), width=0.8)
    ax.set(xlabel=name, ylabel="share of the draws", xticks=number)
axes[2].bar([f"x{i}" for i in range(6)], used / len(hidden))
axes[2].set(xlabel="input", ylabel="share of draws with a way to y")

# %%
# Have the chains arrived?

TraceDisplay.from_estimator(model)
plt.show()
