"""
Digits from a few random measurements
=====================================

Each measurement is a random weighted sum of the 64 pixels of a digit. With fewer measurements than
pixels the digit can only be told from what one knows of digits: here a tree of low-rank Gaussians,
beside a single Gaussian by principal components.
"""

# %%
# Digits
# ------
# Grey levels are whole numbers from 0 to 16; uniform noise of one level makes training digits
# continuous, so that no pixel is constant.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

from skbnp import TreeFactorModel
from skbnp.plot import TreeDisplay, frame_image, style
from skbnp.samplers import TreeSampler

plt.style.use(style())

rng = np.random.default_rng(0)
train, test = train_test_split(load_digits().data, test_size=300, random_state=0)
train = (train + rng.uniform(-0.5, 0.5, size=train.shape)) / 16.0
test = test / 16.0

# %%
# Two priors
# ----------
# The tree branches early, below its first and its fourth loading: digits of different shape share
# little. ``fit`` warns that so short a chain is no account of the whole posterior.

model = TreeFactorModel(
    max_depth=40,
    branch_levels=(1, 4),
    sampler=TreeSampler(init="em", init_children=4),
    n_chains=1,
    n_warmup=60,
    n_draws=10,
    thin=3,
    random_state=0,
)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always", ConvergenceWarning)
    model.fit(train)
for warning in caught:
    print(warning.message)
pca = PCA(48).fit(train)


def invert_pca(Phi, v):
    """Mean of a Gaussian with the covariance of probabilistic PCA, given the measurements."""
    covariance = pca.get_covariance()
    gain = np.linalg.solve(Phi @ covariance @ Phi.T, Phi @ covariance)
    return pca.mean_ + (v - Phi @ pca.mean_) @ gain


# %%
# Inversion
# ---------
# Error relative to the norm of the digits, in percent, on 300 new digits. A mixture of ten full
# Gaussians, inverted in the same way, does about as well as the tree on these small images; what
# helps is that there are several Gaussians.

print("measurements   PCA   tree")
for m in (4, 8, 16, 24, 32, 48):
    Phi = rng.normal(size=(m, 64))
    v = test @ Phi.T
    pictures = {"PCA": invert_pca(Phi, v), "tree": model.invert(Phi, v)}
    errors = [
        100.0 * np.linalg.norm(picture - test) / np.linalg.norm(test)
        for picture in pictures.values()
    ]
    print(f"{m:12d}  {errors[0]:4.1f}   {errors[1]:4.1f}")
    if m == 16:
        from_16 = pictures

# %%
# Ten digits from 16 measurements each.

figure, axes = plt.subplots(3, 10, figsize=(9, 3))
for row, (name, images) in zip(axes, {"truth": test, **from_16}.items(), strict=True):
    row[0].set_ylabel(name)
    for ax, image in zip(row, images[:10], strict=True):
        ax.imshow(image.reshape(8, 8), cmap="gray", vmin=0.0, vmax=1.0)
        frame_image(ax)

# %%
# The tree
# --------
# Means of the branches. Nobody told the model that there are ten kinds of digits.

TreeDisplay.from_estimator(model, image_shape=(8, 8))
plt.show()
