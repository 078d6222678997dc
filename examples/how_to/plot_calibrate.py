"""
Check calibration
=================

An interval of 90 % should hold nine of ten true values. Whether it does on your table can be tried:
hide cells that you know, fill them, and count.
"""

# %%
# Hide, fill, count
# -----------------
# Nine measurements of 442 patients, a tenth of the cells hidden. The intervals are those of
# :class:`~skbnp.BNPImputer`, quantiles of many completed tables. Its chains find different trees
# and agree on what they fill in: ``fit`` does not warn (:doc:`/user_guide/tree_factor_model`).

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes, load_digits
from sklearn.exceptions import ConvergenceWarning

from skbnp import BNPImputer, TreeFactorModel
from skbnp.plot import style

plt.style.use(style())
X = load_diabetes(scaled=False).data
X = np.delete(X, 1, axis=1)  # without the column of sex, which is no real number
hidden = np.random.default_rng(0).random(X.shape) < 0.1
imputer = BNPImputer(n_jobs=-1, random_state=0).fit(np.where(hidden, np.nan, X))


def shares_held(intervals):
    """Shares of the hidden cells within intervals of each level."""
    shares = []
    for level in LEVELS:
        low, high = intervals(level)
        shares.append(np.mean((low <= X)[hidden] & (X <= high)[hidden]))
    return shares


LEVELS = np.array([0.5, 0.6, 0.7, 0.8, 0.9, 0.95])
held = shares_held(lambda level: imputer.intervals(level=level))
for level, share in zip(LEVELS, held, strict=True):
    print(f"intervals of {level:.0%} hold {share:.1%}")

# %%
# The share has an error of its own, from the number of cells hidden: about two standard errors are
# shaded. A curve within the shade gives no reason for doubt; one above it belongs to intervals that
# are too long, one below it to intervals that are too short. Here intervals of 50 to 80 % are
# longer than need be, and those of 95 % hold what they say.

figure, ax = plt.subplots(figsize=(4.5, 4.2))
error = 2 * np.sqrt(LEVELS * (1 - LEVELS) / hidden.sum())
ax.fill_between(LEVELS, LEVELS - error, LEVELS + error, color="0.85", label="expected")
ax.plot(LEVELS, held, "o-", label="BNPImputer")
ax.set(xlabel="level of the interval", ylabel="share of hidden cells within")
ax.legend()

# %%
# Deviations of an image model
# ----------------------------
# Models without ``multiple`` and ``intervals`` give a mean and a standard deviation. Of normal
# errors .683 are within one deviation and .954 within two. Here 120 digits, three of ten pixels
# hidden:

digits = load_digits().data[:120]
digits = digits[:, digits.std(axis=0) > 1]
holes = np.random.default_rng(0).random(digits.shape) < 0.3
holed = np.where(holes, np.nan, digits)
short = {"n_chains": 2, "n_warmup": 60, "n_draws": 20}
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)  # short chains, to keep this page quick
    tree = TreeFactorModel(n_jobs=-1, random_state=0, **short).fit(holed)
filled, std = tree.impute(holed, return_std=True)
z = np.abs((digits - filled)[holes] / std[holes])
print(f"within one deviation {np.mean(z < 1):.3f}, within two {np.mean(z < 2):.3f}")

# %%
# If they are too short
# ---------------------
# With few rows for many columns that happens. ``interval_calibration="holes"``, a parameter of
# ``TreeFactorModel`` and ``CIBPBeliefNet``, repeats the experiment within ``fit``: a second fit
# with further cells hidden, whose errors say by what factor to widen all deviations. It takes
# twice the time.
#
# Densities and probabilities of clusters
# ---------------------------------------
# A density is checked by rows that ``fit`` has not seen: compare ``score`` with that of another
# model on the same rows. Probabilities of clusters can only be checked where the truth is known;
# :ref:`sure-in-reports` does so on simulated tables.

plt.show()
