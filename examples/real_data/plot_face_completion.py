"""
The lower halves of faces
=========================

350 photographs of faces to learn from, and the upper halves of 50 others (Samaria and Harter 1994,
the Olivetti faces), as in Adams, Wallach and Ghahramani (2010); here they are reduced to 16 x 16
pixels. Every person has ten photographs, so that most of the 50 have been seen before. What is
below the eyes?

To run this page by hand::

    python plot_face_completion.py --data DIRECTORY    # holding olivetti_faces.npz
"""

# %%
# The data
# --------

import argparse
import time
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import KNNImputer
from sklearn.linear_model import RidgeCV

from skbnp import CIBPBeliefNet
from skbnp.plot import CompletionDisplay, FeatureDisplay, frame_image, style
from skbnp.samplers import BeliefNetSampler

plt.style.use(style())

parser = argparse.ArgumentParser()
parser.add_argument("--data", type=Path, required=True)
with np.load(parser.parse_args().data / "olivetti_faces.npz") as file:
    images = file["images"] / 255
SHAPE = (16, 16)
X = images.reshape(-1, 16, 4, 16, 4).mean(axis=(2, 4)).reshape(len(images), -1)
order = np.random.default_rng(0).permutation(len(X))
train, truth = X[order[:350]], X[order[350:]]
missing = np.arange(X.shape[1]) >= X.shape[1] // 2
given = np.where(missing, np.nan, truth)

# %%
# Fit
# ---
# Short chains: filling needs good places of the posterior, not all of it.

model = CIBPBeliefNet(
    feature_bounds=(0, 1),
    max_layers=1,
    row_clusters=True,
    sampler=BeliefNetSampler(n_init_units=40),
    n_chains=6,
    n_warmup=100,
    n_draws=5,
    thin=2,
    n_jobs=-1,
    random_state=0,
)
start = time.process_time()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always", ConvergenceWarning)
    model.fit(train)
for warning in caught:
    print(warning.message)
filled, std = model.impute(given, return_std=True)
print(f"{model.layer_widths_[0]} hidden units, {time.process_time() - start:.0f} s of one core")

# %%
# Beside alternatives
# -------------------
# The three training images with the nearest upper halves, and a linear function of the upper half.

neighbours = KNNImputer(n_neighbors=3).fit(train).transform(given)
ridge = RidgeCV(np.logspace(-3, 3, 13)).fit(train[:, ~missing], train[:, missing])
fillings = {
    "mean": np.where(missing, train.mean(axis=0), truth),
    "3 neighbours": neighbours,
    "ridge": np.column_stack([truth[:, ~missing], ridge.predict(truth[:, ~missing])]),
    "network": filled,
}
for name, rows in fillings.items():
    error = np.sqrt(np.mean((rows - truth)[:, missing] ** 2))
    print(f"{name:13s} root mean square error {error:.1%} of the range of intensities")
shown = np.arange(6)
display = CompletionDisplay(
    given[shown],
    {name: rows[shown] for name, rows in fillings.items()},
    truth[shown],
    image_shape=SHAPE,
).plot()

# %%
# How sure
# --------

figure, axes = plt.subplots(2, len(shown), figsize=(9, 3.2))
for row, ax in zip(shown, axes.T, strict=True):
    ax[0].imshow(filled[row].reshape(SHAPE), cmap="gray", vmin=0.0, vmax=1.0)
    picture = ax[1].imshow(std[row].reshape(SHAPE), vmin=0.0, vmax=std[shown].max())
for ax in axes.ravel():
    frame_image(ax)
figure.colorbar(picture, ax=axes[1], label="standard deviation")

# %%
# If the deviations were right, and errors normal, 68 and 95 of a hundred truths would be within
# one and two of them. So short chains are a little too sure.

distance = np.abs(filled - truth)[:, missing] / std[:, missing]
print(f"within one: {np.mean(distance < 1):.0%}, within two: {np.mean(distance < 2):.0%}")

# %%
# What the hidden units paint
# ---------------------------

features = FeatureDisplay.from_estimator(model, image_shape=SHAPE)
plt.show()
