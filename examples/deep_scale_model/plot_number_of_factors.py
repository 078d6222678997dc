"""
How many factors?
=================

A model with an unbounded number of factors is worth as much as the moves that change it. Pan and
Han ("Non-parametric Bayesian learning with deep learning structure and its applications in wireless
networks") add and delete *empty* factors, which are then linked by chance; their Figure 2 shows the
number found against the true one, and blames what is too much on small probabilities. We repeat the
experiment with their moves, as printed, and with the default ones: to be seen is that the printed
answer is mostly its starting value.
"""

# %%
# The experiment
# --------------
# 16 features, 150 rows, drawn from the paper's prior with K = 3 to 10 columns. Not every column
# gets a link: with K = 10 only six are expected to, and no method can report ten. Beside these
# *active* factors we count the *shared* ones, with two links or more: a factor of a single feature
# is hardly more than a change of its noise.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skbnp import DeepScaleModel
from skbnp.plot import style
from skbnp.samplers import DeepScaleSampler

plt.style.use(style())

N_FEATURES, N_ROWS, MASS, NOISE = 16, 150, 3.0, 0.05


def simulate(n_columns, rng):
    """Rows whose variances are set by factors, and the links of each factor."""
    links = rng.random((N_FEATURES, n_columns)) < rng.beta(MASS / n_columns, 1, size=n_columns)
    scale = np.sqrt(1 / rng.gamma(2.0, size=n_columns))
    loadings = np.where(links, scale * rng.normal(size=links.shape), 0.0)
    amplitude = rng.normal(size=(N_ROWS, n_columns)) @ loadings.T
    spread = np.sqrt(amplitude**2 + NOISE**2)
    return spread * rng.normal(size=spread.shape), np.sum(links, axis=0)


# %%
# A data set for each of four K; chains of 300 sweeps from 2 and from 10 factors, of which the last
# hundred count. The noise is known to both: without it a feature that has lost its last link would
# have no density. Default chains bring it down from all that varies in the first 40 % of the
# warm-up, so that no factor owes its place to a feature's having none yet.


def found(X, moves, n_start):
    """Trace of the number of factors of one chain: all, and those with two links or more."""
    model = DeepScaleModel(
        birth_move=moves,
        mass=MASS,
        noise_variance=NOISE**2,
        center=False,
        scaling="none",
        sampler=DeepScaleSampler(n_init_factors=n_start),
        n_chains=1,
        n_warmup=200,
        n_draws=100,
        random_state=0,
    )
    with warnings.catch_warnings():
        # One chain has nothing to be compared with.
        warnings.simplefilter("ignore", ConvergenceWarning)
        traces = model.fit(X).posterior_.traces
    return np.array([traces["n_factors"][0], traces["n_shared_factors"][0]])


MOVES = {"printed": "pan-han", "default": "singleton"}
rng = np.random.default_rng(4)
answers = {(name, start): [] for name in MOVES for start in (2, 10)}
truth = []
for n_columns in (3, 5, 7, 10):
    X, n_links = simulate(n_columns, rng)
    truth.append((np.sum(n_links > 0), np.sum(n_links > 1)))
    for (name, start), traces in answers.items():
        traces.append(found(X, MOVES[name], start))
truth = np.array(truth)

# %%
# Found against true
# ------------------
# Factors with a link on the left, shared ones on the right; the line is where they are right.

figure, axes = plt.subplots(1, 2, figsize=(9, 4.2))
styles = {"printed": "s", "default": "o"}
colors = {2: "C0", 10: "C1"}
for ax, kind, title in zip(axes, (0, 1), ("active factors", "shared factors"), strict=True):
    for (name, start), traces in answers.items():
        ax.scatter(
            truth[:, kind] + (0.1 if start == 10 else -0.1),
            np.mean(traces, axis=2)[:, kind],
            marker=styles[name],
            facecolor=colors[start] if name == "default" else "none",
            edgecolor=colors[start],
            label=f"{name} moves, from {start}",
        )
    ax.axline((4, 4), slope=1, color="0.7", linewidth=1)
    ax.set(xlabel="true", ylabel="found", title=title, xticks=np.unique(truth[:, kind]))
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
for (name, start), traces in answers.items():
    off = np.mean(traces, axis=2)[:, 1] - truth[:, 1]
    print(
        f"shared factors, {name:8s} moves from {start:2d}: bias {np.mean(off):+.1f}, "
        f"root mean square error {np.sqrt(np.mean(off**2)):.1f}"
    )

# %%
# Along the chains
# ----------------
# Shared factors in the last data set. No printed move takes away a factor that has links, so that
# the chain from ten stays above, and links are found one by one, so that the one from two stays
# below. By default factors are born and die with their scores, split and merge: wherever chains
# start, they go to the same place.

figure, ax = plt.subplots(figsize=(7, 3.2))
for (name, start), traces in answers.items():
    ax.plot(
        traces[-1][1],
        color=colors[start],
        linestyle=":" if name == "printed" else "-",
        label=f"{name} moves, from {start}",
    )
ax.axhline(truth[-1, 1], color="0.7", linewidth=1)
ax.set(xlabel="sweep after warm-up", ylabel="shared factors")
figure.legend(loc="outside upper center", ncols=2, fontsize="small")
