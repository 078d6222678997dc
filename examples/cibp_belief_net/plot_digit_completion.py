"""
The lower halves of digits
==========================

The lower half of an image is missing, and whole images of the same kind are there to learn from.
Adams, Wallach and Ghahramani (2010) showed what their belief network of unbounded width and depth
makes of faces and digits. Here are handwritten digits of 8 x 8 pixels, and what the network fills
in, beside simple alternatives and the truth.
"""

# %%
# The data
# --------
# 200 whole images to learn from, 100 with the upper half alone.

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.impute import KNNImputer

from skbnp import CIBPBeliefNet
from skbnp.plot import CompletionDisplay, frame_image, style

plt.style.use(style())

SHAPE = (8, 8)
images = load_digits().data
order = np.random.default_rng(0).permutation(len(images))
train, truth = images[order[:200]], images[order[200:300]]
missing = np.arange(64) >= 32
given = np.where(missing, np.nan, truth)

# %%
# Fit
# ---
# Nothing is set. In so many columns the network has one hidden layer, and because images come in
# kinds, a Dirichlet process mixture above it in place of the independent units of the paper. Many
# pixels are as black or as white as they can be, so intensities are taken to be between 0 and 16.
# There are 16 short chains: filling needs some good networks, not all of them. ``fit`` warns of
# pixels that are black in all images.

model = CIBPBeliefNet(n_jobs=-1, random_state=0)
start = time.process_time()
model.fit(train)
filled, std = model.impute(given, return_std=True)
print(f"{model.layer_widths_[0]} hidden units, {time.process_time() - start:.0f} s of one core")

# %%
# Beside alternatives
# -------------------
# The mean of the five images with the nearest upper halves, and what 20 principal components and
# noise, a Gaussian, expect given the upper half.

gaussian = PCA(20).fit(train)
covariance, mean = gaussian.get_covariance(), gaussian.mean_
slopes = np.linalg.solve(covariance[np.ix_(~missing, ~missing)], covariance[~missing][:, missing])
linear = given.copy()
linear[:, missing] = mean[missing] + (given[:, ~missing] - mean[~missing]) @ slopes
fillings = {
    "mean": np.where(missing, train.mean(axis=0), truth),
    "20 components": linear,
    "5 neighbours": KNNImputer(n_neighbors=5, keep_empty_features=True).fit(train).transform(given),
    "network": filled,
}
for name, image in fillings.items():
    error = np.sqrt(np.mean((image - truth)[:, missing] ** 2))
    print(f"{name:14s} root mean square error {error:.2f} of 16")

shown = np.arange(6)
CompletionDisplay(
    given[shown],
    {name: image[shown] for name, image in fillings.items()},
    truth[shown],
    image_shape=SHAPE,
).plot(vmin=0.0, vmax=16.0)

# %%
# How sure
# --------
# Each filled pixel comes with a standard deviation, large where different digits share an upper
# half. If they are right, and errors were normal, 68 and 95 of a hundred truths were within one and
# two of them.

figure, axes = plt.subplots(2, len(shown), figsize=(8, 3))
for row, ax in zip(shown, axes.T, strict=True):
    ax[0].imshow(filled[row].reshape(SHAPE), cmap="gray", vmin=0.0, vmax=16.0)
    picture = ax[1].imshow(std[row].reshape(SHAPE), vmin=0.0, vmax=std[shown].max())
for ax in axes.ravel():
    frame_image(ax)
axes[0, 0].set_ylabel("filled")
axes[1, 0].set_ylabel("give or take")
figure.colorbar(picture, ax=axes[1], label="of 16 grey levels")
doubted = std > 0.0  # given pixels and those that are always black are not
distance = np.abs(filled - truth)[doubted] / std[doubted]
print(f"within one: {np.mean(distance < 1):.0%}, within two: {np.mean(distance < 2):.0%}")
plt.show()
