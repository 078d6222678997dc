"""
A photograph with most pixels gone
==================================

Sixty of a hundred pixels are missing, and there is no other photograph to learn from. Small
overlapping patches are rows of a table with holes; a model of that table, fitted to the holed
rows themselves, knows what patches of this photograph look like and fills them.
"""

# %%
# What is given
# -------------
# A pagoda: roof edges, rails and leaves, 128 x 128 pixels.

import time
import warnings

import matplotlib.pyplot as plt
import numpy as np
from scipy.interpolate import griddata
from sklearn.datasets import load_sample_image
from sklearn.exceptions import ConvergenceWarning

from skbnp import TreeFactorModel
from skbnp.plot import CompletionDisplay, TreeDisplay, frame_image, style
from skbnp.samplers import TreeSampler

plt.style.use(style())

photo = load_sample_image("china.jpg").mean(axis=2)[160:288, 100:228] / 255.0
rng = np.random.default_rng(0)
given = np.where(rng.random(photo.shape) < 0.6, np.nan, photo)
missing = np.isnan(given)
print(f"{missing.mean():.1%} of {missing.size} pixels are missing")

# %%
# Patches as rows
# ---------------
# All 8 x 8 patches whose corner has even coordinates, so each pixel is in about 16 of them.

SIDE, STEP = 8, 2
windows = np.lib.stride_tricks.sliding_window_view(given, (SIDE, SIDE))[::STEP, ::STEP]
X = windows.reshape(-1, SIDE * SIDE)
print(f"{len(X)} rows of {X.shape[1]} columns, {np.sum(~np.isnan(X).any(axis=1))} of them whole")

# %%
# Fit
# ---
# One short chain: filling needs a good place of the posterior, not all of it. ``fit`` warns that
# so few draws are no account of the whole. ``init="em"`` starts from a Gaussian mixture; sixteen
# loadings on each path are a quarter of the columns.

model = TreeFactorModel(
    max_depth=16,
    noise="isotropic",
    sampler=TreeSampler(init="em", init_children=3),
    n_chains=1,
    n_warmup=40,
    n_draws=8,
    random_state=0,
)
start = time.process_time()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always", ConvergenceWarning)
    model.fit(X)
for warning in caught:
    print(warning.message)
filled, std = model.impute(X, return_std=True)
print(f"{len(model.tree_['leaf_node'])} branches, {time.process_time() - start:.0f} s of one core")

# %%
# Back to a photograph
# --------------------
# A pixel is the mean of what the patches around it say.

total, spread, times = np.zeros((3, *photo.shape))
for patch, patch_std, (top, left) in zip(
    filled.reshape(-1, SIDE, SIDE),
    std.reshape(-1, SIDE, SIDE),
    np.ndindex(windows.shape[:2]),
    strict=True,
):
    at = np.s_[STEP * top : STEP * top + SIDE, STEP * left : STEP * left + SIDE]
    total[at] += patch
    spread[at] += patch_std
    times[at] += 1
tree = np.where(missing, total / times, photo)

# %%
# Beside simple alternatives
# --------------------------
# Interpolation between the given pixels: the nearest one, and linear on triangles of them (at
# the border, where there is none, again the nearest).

known, grid = np.nonzero(~missing), tuple(np.indices(photo.shape))
nearest = griddata(known, photo[known], grid, method="nearest")
linear = griddata(known, photo[known], grid, method="linear")
linear = np.where(np.isnan(linear), nearest, linear)


def psnr(image):
    """Peak signal to noise ratio over the missing pixels, in decibels."""
    return -10.0 * np.log10(np.mean((image - photo)[missing] ** 2))


fillings = {"nearest": nearest, "linear": linear, "tree factor model": tree}
for name, image in fillings.items():
    print(f"{name:18s} {psnr(image):5.2f} dB")

# %%
# Missing pixels are orange. Titles give the root mean square error over them, on a scale on which
# white is 1.

fillings = {name: image.reshape(1, -1) for name, image in fillings.items()}
CompletionDisplay(
    given.reshape(1, -1), fillings, photo.reshape(1, -1), image_shape=photo.shape
).plot()

# %%
# What the branches are
# ---------------------
# Branches differ in the directions in which their patches scatter: blue against red is light
# against dark, or the reverse. The loadings at the top are common to all.

TreeDisplay.from_estimator(model, image_shape=(SIDE, SIDE), images="loadings")

# %%
# How sure
# --------
# Each filled pixel of a patch comes with a standard deviation. If these are right, and errors are
# normal, 68 and 95 of a hundred truths are within one and two of them.

truth = np.lib.stride_tricks.sliding_window_view(photo, (SIDE, SIDE))[::STEP, ::STEP]
holes = np.isnan(X)
distance = np.abs(filled - truth.reshape(X.shape))[holes] / std[holes]
print(f"within one: {np.mean(distance < 1):.1%}, within two: {np.mean(distance < 2):.1%}")

# %%
# As pictures, the mean of the deviations that the patches around a pixel give, and the errors that
# were made: large where there are edges and leaves, small in the sky. The mean of many patches errs
# less than one of them.

figure, axes = plt.subplots(1, 3, figsize=(10, 3.4))
axes[0].imshow(tree, cmap="gray", vmin=0.0, vmax=1.0)
shown = {"standard deviation": spread / times, "error": np.where(missing, np.abs(tree - photo), 0)}
for ax, (name, image) in zip(axes[1:], shown.items(), strict=True):
    picture = ax.imshow(image, vmin=0.0, vmax=0.2)
    ax.set_title(name)
axes[0].set_title("filled")
for ax in axes:
    frame_image(ax)
figure.colorbar(picture, ax=axes[1:], label="of the range from black to white")
plt.show()
