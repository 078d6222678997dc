"""
A tree of people from all over the world
========================================

971 people of 54 populations, 678 microsatellites of each (Rosenberg et al. 2002; Zhang, Dunson and
Carin 2011 put them on a tree). Nobody tells the model where anyone comes from. Its branches turn
out to be parts of the world.

To run this page by hand::

    python plot_populations.py --data DIRECTORY    # holding hgdp_microsatellites.npz
"""

# %%
# The data
# --------
# A microsatellite is a short word of DNA that is repeated, more often in some people than in
# others. A column is a place where there is one: how long it is, on average over the two copies a
# person has. 3.6 % of the entries are missing.

import argparse
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.metrics import adjusted_rand_score, v_measure_score
from sklearn.preprocessing import StandardScaler

from skbnp import TreeFactorModel
from skbnp.plot import ClusterDisplay, TreeDisplay, class_look, style
from skbnp.samplers import TreeSampler

plt.style.use(style())

parser = argparse.ArgumentParser()
parser.add_argument("--data", type=Path, required=True)
with np.load(parser.parse_args().data / "hgdp_microsatellites.npz") as file:
    panel = file["in_hgdp_panel"]
    alleles, population = file["alleles"][panel].astype(float), file["population"][panel]
    X = np.where((alleles == 0).any(axis=2), np.nan, alleles.mean(axis=2))
    name, region_of = file["population_name"], file["population_region"]
    latitude, longitude = file["population_latitude"], file["population_longitude"]
region = region_of[population]
print(f"{len(X)} people, {X.shape[1]} columns, {np.isnan(X).mean():.1%} missing")

# %%
# Fit
# ---
# Populations differ in their means, so chains start from k-means. Half of the ten loadings are
# common to all people, half to those of a group of branches.

model = TreeFactorModel(
    max_depth=10,
    branch_levels=(5, 10),
    scaling="each",
    sampler=TreeSampler(init="kmeans"),
    n_chains=1,
    n_warmup=40,
    n_draws=8,
    random_state=0,
)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always", ConvergenceWarning)
    model.fit(X)
for warning in caught:
    print(warning.message)
branch = model.component_labels_
n_branches = len(model.tree_["leaf_node"])

# %%
# Beside k-means
# --------------
# The usual way: fill by the means of the columns, take principal components, and cluster those. It
# is told the number of branches. Both are graded by the 7 parts of the world and the populations.

standard = StandardScaler().fit_transform(SimpleImputer().fit_transform(X))
scores = PCA(10, random_state=0).fit_transform(standard)
k_means = KMeans(n_branches, n_init=10, random_state=0).fit_predict(scores)
for method, label in (("tree", branch), ("PCA and k-means", k_means)):
    for what, truth in (("regions", region), ("populations", population)):
        print(
            f"{method:16s} {len(np.unique(label))} groups,"
            f" {len(np.unique(truth)):2d} {what:12s}"
            f" adjusted Rand index {adjusted_rand_score(truth, label):.2f},"
            f" V-measure {v_measure_score(truth, label):.2f}"
        )

figure, axes = plt.subplots(1, 3, figsize=(12, 4), sharex=True, sharey=True)
regions = [r.replace("_", " ").title() for r in region]
for ax, (title, label) in zip(
    axes,
    {"where they live": regions, "tree": branch, "PCA and k-means": k_means}.items(),
    strict=True,
):
    ClusterDisplay(scores[:, :2], label).plot(ax=ax, s=8)
    if ax is not axes[0]:
        ax.get_legend().remove()
    ax.set(title=title, xlabel="first principal component", ylabel="")
axes[0].set_ylabel("second principal component")

# %%
# The tree
# --------
# Below each branch: where its people come from.

figure, (above, below) = plt.subplots(2, 1, figsize=(11, 7), height_ratios=[3, 2])
display = TreeDisplay.from_estimator(model, max_branches=n_branches, ax=above)
shown = display.branches_


def commonest(b):
    """The three populations that most people of a branch are from."""
    count = np.bincount(population[branch == b], minlength=len(name))
    return [name[k] for k in np.argsort(-count, kind="stable")[:3] if count[k]]


foot = np.zeros(len(shown))
for place, r in enumerate(np.unique(region)):
    count = np.array([np.sum(region[branch == b] == r) for b in shown])
    look, label = class_look(place), r.replace("_", " ").title()
    fill = {"color": look.color, "hatch": look.hatch, "edgecolor": "white", "linewidth": 0.0}
    below.bar(np.arange(len(shown)), count, 0.7, bottom=foot, label=label, **fill)
    foot += count
below.set(xlim=above.get_xlim(), xticks=np.arange(len(shown)), ylabel="people")
below.set_xticklabels(["\n".join(commonest(b)) for b in shown], fontsize=6)
below.legend(fontsize=8, ncols=4)

# %%
# The map
# -------
# Each population stands where it lives, or beside others that live there too, in the look of the
# branch that most of its people are on; the larger the dot, the larger their share.

# sphinx_gallery_thumbnail_number = 3
figure, ax = plt.subplots(figsize=(11, 5))
taken = []
for k in np.unique(population):
    place = np.array([longitude[k], latitude[k]])
    while any(np.linalg.norm(place - other) < 3.0 for other in taken):
        place[0] += 3.0
    taken.append(place)
    count = np.bincount(branch[population == k], minlength=n_branches)
    look = class_look(np.flatnonzero(shown == count.argmax())[0])
    size = 150 * count.max() / count.sum()
    ax.scatter(*place, s=size, color=look.color, marker=look.marker)
for t, b in enumerate(shown):
    look, label = class_look(t), ", ".join(commonest(b))
    ax.scatter([], [], s=80, color=look.color, marker=look.marker, label=label)
ax.set(xlabel="longitude, degrees east", ylabel="latitude, degrees north")
ax.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
plt.show()
