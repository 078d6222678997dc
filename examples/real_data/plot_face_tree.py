"""
A tree of faces
===============

698 pictures of one head, turned to the sides (pan), up and down (tilt) and lit from the left or
right (Tenenbaum, de Silva and Langford 2000). They lie on a surface of three dimensions in a space
of 1,024 pixels. The tree covers it by flat pieces: branches, each with a mean and directions of its
own, neighbouring ones under one node. Zhang, Dunson and Carin (2011) fitted their tree to the same
pictures. Nobody tells the model the three angles.

To run this page by hand::

    python plot_face_tree.py --data DIRECTORY    # holding isomap_faces_32x32.npz
"""

# %%
# The data
# --------

import argparse
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans

from skbnp import TreeFactorModel
from skbnp.plot import TreeDisplay, class_look, style

plt.style.use(style())

parser = argparse.ArgumentParser()
parser.add_argument("--data", type=Path, required=True)
file = np.load(parser.parse_args().data / "isomap_faces_32x32.npz")
shape = file["images"].shape[1:]
X = file["images"].reshape(len(file["images"]), -1) / 65535
angles = {name: file[name] for name in ("pan", "tilt", "light")}

# %%
# Fit
# ---
# There are fewer pictures than pixels, so the tree branches early and its chain starts from
# clusters. ``fit`` warns of pixels that are black in all pictures, and that so short a chain is no
# account of the whole posterior.

model = TreeFactorModel(n_chains=1, n_warmup=60, n_draws=10, thin=3, random_state=0)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    model.fit(X)
for warning in caught:
    print(warning.message)
tree = model.tree_
print(f"branching below levels {model.branch_levels_}, started from {model.init_!r}")

# %%
# The tree
# --------
# Mean faces of the pictures of each branch, and how many there are. The branches' own means, in
# ``tree_``, are of one draw: what they lack or have in excess is made up for by the scores.

branch_of = model.component_labels_  # before branches that overlap are one cluster
n_branches = len(tree["leaf_node"])
mean_of = [X[branch_of == branch].mean(axis=0) for branch in range(n_branches)]
display = TreeDisplay({**tree, "leaf_mean": np.array(mean_of)}, image_shape=shape).plot()

# %%
# Nodes and their branches
# ------------------------
# The mean of an inner node is that of all pictures below it; titles give how many there are, as
# in the tree. How much of the variance of the angles do nodes and branches tell, beside k-means
# with as many clusters as there are branches?

top = tree["leaf_node"]
while np.any(tree["level"][top] > model.branch_levels_[-1]):
    top = np.where(tree["level"][top] > model.branch_levels_[-1], tree["parent"][top], top)
nodes = np.unique(top)


def explained(angle, label):
    """Share of the variance of an angle that lies between groups."""
    within = sum(np.sum((angle[label == k] - angle[label == k].mean()) ** 2) for k in set(label))
    return 1.0 - within / np.sum((angle - angle.mean()) ** 2)


k_means = KMeans(n_branches, n_init=10, random_state=0).fit_predict(X)
for name, angle in angles.items():
    by_node, by_branch = explained(angle, top[branch_of]), explained(angle, branch_of)
    by_k_means = explained(angle, k_means)
    print(
        f"{name:5s}: {by_node:.0%} between nodes, {by_branch:.0%} between branches,"
        f" {by_k_means:.0%} between the clusters of k-means"
    )

most = max(np.sum(top == node) for node in nodes)
figure, axes = plt.subplots(len(nodes), most + 1, figsize=(1.3 * (most + 1), 1.4 * len(nodes)))
for row, node in zip(np.atleast_2d(axes), nodes, strict=True):
    branches = np.flatnonzero(top == node)
    below = np.isin(branch_of, branches)
    mean = X[below].mean(axis=0)
    pictures = [mean, *(mean_of[branch] for branch in branches)]
    for ax, picture in zip(row, pictures, strict=False):
        ax.imshow(picture.reshape(shape), cmap="gray", vmin=0.0, vmax=1.0)
    for ax in row:
        ax.axis("off")
    row[0].set_title(f"node: {np.sum(below)}", fontsize="small")
    for ax, branch in zip(row[1:], branches, strict=False):
        ax.set_title(f"branch {branch}: {np.sum(branch_of == branch)}", fontsize="small")

# %%
# Where the branches lie
# ----------------------
# Colours are nodes, shades and markers their branches, over the angles (standardised) that the
# pictures were taken at. Branches are neighbourhoods in pan and light; tilt changes fewer pixels.

figure, axes = plt.subplots(1, 2, figsize=(9, 4))
for place, node in enumerate(nodes):
    branches = np.flatnonzero(top == node)
    for shade, branch in enumerate(branches):
        rows = branch_of == branch
        shape = class_look(6 * (shade // 2)).marker
        for ax, across in zip(axes, ("tilt", "light"), strict=True):
            ax.scatter(
                angles["pan"][rows],
                angles[across][rows],
                s=14,
                color=class_look(place).color,
                alpha=0.5 if shade % 2 else 1.0,
                marker=shape,
                label=f"{branch}",
            )
for ax, across in zip(axes, ("tilt", "light"), strict=True):
    ax.set(xlabel="pan, standardised", ylabel=f"{across}, standardised")
axes[1].legend(title="branch", loc="center left", bbox_to_anchor=(1.0, 0.5))
plt.show()
