"""
Faces from few measurements
===========================

A camera that takes random weighted sums of a picture instead of its pixels needs far fewer
numbers than pixels, if one knows what pictures look like. Here the pictures are 698 views of one
head, 1,024 pixels each (Tenenbaum, de Silva and Langford 2000). A tree of low-rank Gaussians
learns from 600 of them what the head looks like and reconstructs the others.

To run this page by hand::

    python plot_face_measurements.py --data DIRECTORY    # holding isomap_faces_32x32.npz
"""

# %%
# The data
# --------
# Noise of one grey level of 256 makes pixels continuous that are black in all pictures.

import argparse
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.fft import idctn
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso

from skbnp import TreeFactorModel
from skbnp.plot import frame_image, style
from skbnp.samplers import TreeSampler

plt.style.use(style())

parser = argparse.ArgumentParser()
parser.add_argument("--data", type=Path, required=True)
with np.load(parser.parse_args().data / "isomap_faces_32x32.npz") as file:
    images = file["images"] / 65535
SHAPE = images.shape[1:]
rng = np.random.default_rng(0)
X = images.reshape(len(images), -1)[rng.permutation(len(images))]
train, test = X[:600] + rng.uniform(-0.5, 0.5, size=(600, X.shape[1])) / 255, X[600:]
print(f"{len(train)} pictures to learn from, {len(test)} to reconstruct, {X.shape[1]} pixels")

# %%
# Three ways
# ----------
# The lasso finds few cosine waves that explain the measurements; this is compressive sensing as
# it is usually done, and needs no other pictures. Probabilistic PCA is one Gaussian. The tree has
# many, which share loadings; its chain starts from k-means and is short.

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always", ConvergenceWarning)
    model = TreeFactorModel(
        max_depth=30,
        branch_levels=(1, 2),
        sampler=TreeSampler(init="kmeans", init_children=5),
        n_chains=1,
        n_warmup=40,
        n_draws=5,
        thin=2,
        random_state=0,
    ).fit(train)
for warning in caught:
    print(warning.message)
print(f"{len(model.tree_['leaf_node'])} branches")
pca = PCA(100).fit(train)
waves = np.array(
    [idctn(wave.reshape(SHAPE), norm="ortho").ravel() for wave in np.eye(X.shape[1])]
)  # one wave a row


def by_lasso(Phi, v):
    """Few waves that explain the measurements, less those of the mean picture."""
    dictionary, mean = Phi @ waves.T, train.mean(axis=0)
    lasso = Lasso(alpha=1e-3, fit_intercept=False, max_iter=2000)
    return mean + lasso.fit(dictionary, (v - Phi @ mean).T).coef_ @ waves


def by_pca(Phi, v):
    """The mean of the Gaussian of probabilistic PCA, given the measurements."""
    covariance = pca.get_covariance()
    gain = np.linalg.solve(Phi @ covariance @ Phi.T, Phi @ covariance)
    return pca.mean_ + (v - Phi @ pca.mean_) @ gain


# %%
# Error
# -----
# Relative to the norm of the pictures, in percent. From five measurements nobody can say which
# branch a picture is on, and the tree is no better than one Gaussian; from ten on it is.

print("measurements  lasso    PCA   tree")
for m in (5, 10, 20, 40, 80):
    Phi = rng.normal(size=(m, X.shape[1])) / np.sqrt(X.shape[1])
    v = test @ Phi.T
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the lasso's
        answers = {"lasso": by_lasso(Phi, v), "PCA": by_pca(Phi, v), "tree": model.invert(Phi, v)}
    errors = [100 * np.linalg.norm(a - test) / np.linalg.norm(test) for a in answers.values()]
    print(f"{m:12d}" + "".join(f"  {error:5.1f}" for error in errors))
    if m == 20:
        from_20 = answers

# %%
# Pictures from 20 measurements each.

shown = test[:: len(test) // 8][:8]
figure, axes = plt.subplots(4, len(shown), figsize=(9, 6))
for row, (name, rows) in zip(axes, {"truth": test, **from_20}.items(), strict=True):
    row[0].set_ylabel(name)
    for ax, image in zip(row, rows[:: len(test) // 8], strict=False):
        ax.imshow(image.reshape(SHAPE), cmap="gray", vmin=0.0, vmax=1.0)
        frame_image(ax)
plt.show()
