"""
The units of a network of digits
================================

Nobody says how many hidden units there are, in how many layers, and which of them are joined. What
does a deep sparse belief network find in images of handwritten digits, and what does each unit
stand for?
"""

# %%
# Fit
# ---
# 300 images of 8 x 8 pixels, intensities from 0 to 16. Chains start from 20 principal components,
# all joined to all pixels, in one layer. ``fit`` warns that chains as short as these are no account
# of the whole posterior, and of pixels that are black in all images.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from skbnp import CIBPBeliefNet
from skbnp.plot import FeatureDisplay, NetworkDisplay, TraceDisplay, frame_image, style

plt.style.use(style())

SHAPE = (8, 8)
X = load_digits().data[:300]
model = CIBPBeliefNet(
    feature_bounds=(0, 16),
    max_layers=3,
    n_chains=2,
    n_warmup=300,
    n_draws=50,
    thin=4,
    random_state=0,
).fit(X)
print(f"hidden units of each layer: {model.layer_widths_}, {model.n_edges_} edges")

# %%
# The network
# -----------
# The fifty edges with the largest weights, and the units that they join: pixels at the foot, edges
# as wide as their weights are large. It is that of the draw with the highest joint density.

NetworkDisplay.from_estimator(model)

# %%
# What the units of the first layer paint
# ---------------------------------------
# Weights to the pixels, for the 16 units with the most edges. Black pixels have no edge from the
# unit.

FeatureDisplay.from_estimator(model, image_shape=SHAPE)

# %%
# Which kind of units
# -------------------
# A unit's precision says how it behaves: nearly binary below one half, nearly a function of its
# parents above a hundred (see :ref:`sphx_glr_auto_examples_cibp_belief_net_plot_unit_modes.py`).

network = model.network()
precision = network["unit_precision"][network["layer"] > 0]
kinds = np.digitize(precision, [0.5, 100.0])
for kind, name in enumerate(("nearly binary", "between", "nearly deterministic")):
    print(f"{name}: {np.sum(kinds == kind)} of {len(kinds)}")

# %%
# Digits nobody wrote
# -------------------
# Draws from the networks, top down.

fantasies = model.sample(16, random_state=0)
figure, axes = plt.subplots(2, 8, figsize=(8, 2.2))
for ax, image in zip(axes.ravel(), fantasies, strict=True):
    ax.imshow(image.reshape(SHAPE), cmap="gray", vmin=0.0, vmax=16.0)
    frame_image(ax)

# %%
# Have the chains arrived?
# ------------------------
# No: both still grow, by units that serve one pixel or a few, and 500 sweeps are no account of how
# many units there should be.

TraceDisplay.from_estimator(model)
plt.show()
