"""
Handwritten digits by a network that sizes itself
=================================================

``ICPNetworkClassifier`` gives probabilities that average over networks: over how many hidden nodes
there are, what feeds them, and all weights. Here it reads digits of 8 by 8 pixels, next to logistic
regression.

Pixels are columns in one unit. Dividing each by its own standard deviation would make a pixel at
the border, which is white in all but a few images, as loud as one in the middle, so
``scaling="common"`` divides all by one number. The chains are short, to keep this page
quick; longer ones read some more digits right.
"""

# %%
# 400 digits to learn from
# ------------------------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import train_test_split

from skbnp import ICPNetworkClassifier
from skbnp.plot import frame_image, style

plt.style.use(style())

X, y = load_digits(return_X_y=True)
X, X_new, y, y_new = train_test_split(X, y, train_size=400, stratify=y, random_state=0)
network = ICPNetworkClassifier(
    scaling="common", n_chains=2, n_warmup=150, n_draws=40, thin=2, n_jobs=-1, random_state=0
)
probability = network.fit(X, y).predict_proba(X_new)
answer = network.classes_[probability.argmax(axis=1)]
linear = LogisticRegressionCV(
    l1_ratios=(0,), scoring="accuracy", use_legacy_attributes=False, max_iter=5000
).fit(X / 16, y)
print(f"right: {100 * np.mean(answer == y_new):.1f} %, ", end="")
print(f"logistic regression {100 * linear.score(X_new / 16, y_new):.1f} %")

# %%
# How sure it is
# --------------
# Of the digits that it is least sure of, many are read wrongly; of those that it is sure of, hardly
# any. Above one half its probabilities err on the careful side: it is right more often than they
# say.

sure = probability.max(axis=1)
for low, high in ((0.0, 0.5), (0.5, 0.7), (0.7, 0.9), (0.9, 1.0)):
    these = (low < sure) & (sure <= high)
    right = 100 * np.mean(answer[these] == y_new[these])
    print(f"probability {low} to {high}: {these.sum():4d} digits, {right:.0f} % right")

figure, axes = plt.subplots(4, 6, figsize=(9, 6))
for pair, i in zip(axes.reshape(12, 2), np.argsort(sure)[:12], strict=True):
    pair[0].imshow(X_new[i].reshape(8, 8), cmap="gray_r")
    pair[0].set(title=f"{y_new[i]}")
    frame_image(pair[0])
    color = np.where(np.arange(10) == y_new[i], "C1", "C0")
    pair[1].bar(range(10), probability[i], color=color)
    pair[1].set(ylim=(0, 1), xticks=range(10), yticks=(0, 1))
    pair[1].tick_params(labelsize=6)
for ax in axes[:, 1]:
    ax.set_ylabel("probability", fontsize=6)
figure.suptitle("The twelve digits that the network is least sure of, and its probabilities")

# %%
# What the networks look like
# ---------------------------
# Hidden nodes and edges of every draw, of both chains.

traces = network.posterior_.traces
figure, axes = plt.subplots(1, 2, figsize=(8, 3))
for ax, name in zip(axes, ("n_hidden", "n_edges"), strict=True):
    for trace in traces[name]:
        ax.plot(trace)
    ax.set(xlabel="draw", title={"n_hidden": "hidden nodes", "n_edges": "edges"}[name])
    ax.yaxis.get_major_locator().set_params(integer=True)
plt.show()
