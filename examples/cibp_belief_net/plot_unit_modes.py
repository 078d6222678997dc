r"""
One kind of unit, three ways to behave
======================================

Binary, continuous, deterministic: which kind of hidden units a network should have is mostly
decided before it sees data. In a nonlinear Gaussian belief network (Frey 1997) there is one kind,
and a number decides. This is Figure 1 of Adams, Wallach and Ghahramani (2010).

A unit sums what comes from its parents, :math:`y`, adds Gaussian noise of precision :math:`\nu` and
squashes the result, :math:`u = s(a)` with :math:`a \sim N(y, 1/\nu)` and
:math:`s(a) = \tanh(a/2)`, so that its output lies between -1 and 1. The density of the output is

.. math:: p(u \mid y, \nu) = N(s^{-1}(u);\, y, 1/\nu) \,/\, s'(s^{-1}(u)), \qquad
          s^{-1}(u) = 2\,\mathrm{artanh}(u), \quad s'(s^{-1}(u)) = (1 - u^2)/2.
"""

# %%
# The density of the output
# -------------------------

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

from skbnp.plot import style

plt.style.use(style())


def density(u, y, precision):
    """p(u | y, precision)."""
    return norm.pdf(2.0 * np.arctanh(u), y, precision**-0.5) / ((1.0 - u**2) / 2.0)


LOOKS = {0.0: ("black", "-"), 1.0: ("C4", "--"), -1.0: ("C0", "-.")}  # by the mean of a
MODES = {"binary": 0.1, "roughly Gaussian": 5.0, "deterministic": 1000.0}
u = np.tanh(np.linspace(-15.0, 15.0, 20001) / 2.0)
rng = np.random.default_rng(0)

figure, axes = plt.subplots(1, 3, figsize=(10, 3.2))
for ax, (mode, precision) in zip(axes, MODES.items(), strict=True):
    for y, (color, dashes) in LOOKS.items():
        p = density(u, y, precision)
        ax.plot(u, p, dashes, color=color, label=f"y = {y:+.0f}" if y else "y = 0")
    print(f"{mode}: area {np.trapezoid(density(u, 0.0, precision), u):.4f}")
    draws = np.tanh(rng.normal(0.0, precision**-0.5, 20_000) / 2.0)
    ax.hist(draws, 60, density=True, color="0.85", label="20,000 draws, y = 0")
    top = density(np.array([0.0]), 0.0, precision)[0]
    ax.set(title=f"{mode}: precision {precision:g}", xlabel="output", xlim=(-1, 1))
    ax.set_ylim(0.0, 4.0 if mode == "binary" else 1.5 * top)
    ax.set_yticks([])
axes[0].set_ylabel("density")
axes[0].legend(fontsize="small", loc="upper center")

# %%
# With little precision the output is near -1 or near 1, and the sum only says which is more
# probable. With much of it the output is a smooth function of the sum. In between it scatters
# around one value.
#
# Where one bump becomes two
# --------------------------
# At :math:`y = 0` the log density has the second derivative :math:`1/2 - \nu` with respect to
# :math:`a`, at :math:`a = 0`: the output has two modes if the precision is below one half.

for precision in (0.25, 0.49, 0.51, 1.0):
    p = density(u, 0.0, precision)
    n_modes = np.sum((p[1:-1] > p[:-2]) & (p[1:-1] >= p[2:]))
    print(f"precision {precision:g}, number of modes: {n_modes}")

# %%
# What the parents can tell
# -------------------------
# The mean of the output (line) and the middle 80 % of it (band) against the sum. A binary unit
# passes little of the sum on and adds much of its own; from a deterministic one the children get
# what the parents say.

a = norm.ppf((np.arange(4000) + 0.5) / 4000)  # quantiles of the noise
y = np.linspace(-6.0, 6.0, 241)
figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), sharey=True)
for ax, (mode, precision) in zip(axes, MODES.items(), strict=True):
    output = np.tanh((y[:, np.newaxis] + a / np.sqrt(precision)) / 2.0)
    low, high = np.quantile(output, [0.1, 0.9], axis=1)
    ax.fill_between(y, low, high, color="C0", alpha=0.25, linewidth=0.0)
    ax.plot(y, output.mean(axis=1), color="C0")
    ax.set(title=f"{mode}: precision {precision:g}", xlabel="sum of the parents, y")
axes[0].set_ylabel("output")

# %%
# A network need not be told which units to have. With the default prior of the precisions of
# ``CIBPBeliefNet`` (a rate with distribution Gamma(1, 1), given which the precision is exponential)
# the density of a single one is :math:`1/(1 + \nu)^2`: a third lie below one half, one in a
# hundred above 100.

rng = np.random.default_rng(0)
precision = rng.exponential(size=100_000) / rng.gamma(1.0, size=100_000)
print(f"below 1/2: {np.mean(precision < 0.5):.3f}, above 100: {np.mean(precision > 100):.4f}")
plt.show()
