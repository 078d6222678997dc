"""
Which architecture do digits want?
==================================

``ICPConvClassifier`` is a convolutional network that finds its own architecture: how many maps it
has, of which sides, and which of them see which. Here it reads digits of 8 by 8 pixels, next to a
support vector machine. The chains are short, to keep this page quick.
"""

# %%
# 500 digits to learn from
# ------------------------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from skbnp import ICPConvClassifier
from skbnp.plot import ArchitectureDisplay, frame_image, style
from skbnp.samplers import ICPConvSampler

plt.style.use(style())

X, y = load_digits(return_X_y=True)
X, X_new, y, y_new = train_test_split(X, y, train_size=500, stratify=y, random_state=0)
clf = ICPConvClassifier(
    n_warmup=100,
    n_draws=200,
    n_architectures=4,
    sampler=ICPConvSampler(n_weight_steps=1000),
    random_state=0,
).fit(X, y)
probability = clf.predict_proba(X_new)
print(f"right: {100 * np.mean(clf.predict(X_new) == y_new):.1f} %, ", end="")
print(f"log loss {log_loss(y_new, probability):.3f}")
print(f"support vectors: {100 * SVC(C=10).fit(X, y).score(X_new, y_new):.1f} %")

# %%
# How large the networks are
# --------------------------
# One chain of the search starts from two maps in a row, the other from a draw of the prior, and
# they move seldom. The log likelihood of the digits that are kept apart decides, with a noise of
# some nats: these are architectures that work, and the shares of draws are not how probable they
# are. ``fit`` warns that the chains differ.

for what, found in clf.architecture_summary_.items():
    print(f"{what:10} {found['mean']:7.1f}, from {found['5%']:.0f} to {found['95%']:.0f}")

traces = clf.posterior_.traces
figure, axes = plt.subplots(1, 3, figsize=(10, 3))
titles = {"n_live": "live nodes", "n_edges": "live edges", "log_kept": "log likelihood, kept apart"}
for ax, (name, title) in zip(axes, titles.items(), strict=True):
    for trace, start in zip(traces[name], ("two maps", "the prior"), strict=True):
        ax.plot(trace, label=f"from {start}")
    ax.set(xlabel="draw", title=title)
    if name != "log_kept":
        ax.yaxis.get_major_locator().set_params(integer=True)
axes[0].legend(loc="center left")

# %%
# One of each chain
# -----------------
# The image is on top, the output below; every map shows the mean of its channels for one digit.
# Maps that no path leads to from the image are grey and take no part.

figure, axes = plt.subplots(1, 2, figsize=(11, 5))
for chain, ax in enumerate(axes):
    ArchitectureDisplay.from_estimator(clf, draw=clf.posterior_[chain, -1], image=X_new[0], ax=ax)

# %%
# Which digits it is unsure of
# ----------------------------
# ``predict_std`` says how far the draws disagree on each probability.

std = clf.predict_std(X_new).max(axis=1)
figure, axes = plt.subplots(1, 8, figsize=(9, 1.6))
for ax, i in zip(axes, np.argsort(-std), strict=False):
    ax.imshow(X_new[i].reshape(8, 8), cmap="gray_r")
    ax.set_title(f"{y_new[i]}: {probability[i, y_new[i]]:.2f}", fontsize="small")
    frame_image(ax)
figure.suptitle("Where draws disagree most, and the probability of what is right", y=1.1)
plt.show()
