"""
Read the diagnostics
====================

A posterior is explored by several chains. Two questions decide whether to believe the answer: do
the chains agree, and are there enough draws? ``fit`` asks both and warns; this page shows how to
ask yourself.
"""

# %%
# A fit that is too short
# -----------------------
# Wines and 13 measurements of each. With a warm-up of ten sweeps the chains have not left their
# starts. ``fit`` says what is wrong, of which quantity, and what to do.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.metrics import adjusted_rand_score

from skbnp import DirichletProcessMixture
from skbnp.plot import TraceDisplay, style

plt.style.use(style())
X = load_wine().data
short = DirichletProcessMixture(n_warmup=10, n_draws=60, n_jobs=-1, random_state=0).fit(X)

# %%
# What to look at
# ---------------
# ``log_density``, the mean log density of training rows under a draw, comes first: it does not
# depend on how clusters are numbered, nor on how many there are where that makes no difference.
# Then come the quantities that you report.
#
# - *R-hat* compares the spread between chains with that within them. Up to 1.05 is good.
# - *ESS*, the effective sample size, is the number of independent draws that these are worth. A
#   hundred is enough for a mean; tails and rare events need more.

judged = ["log_density", "n_clusters", "concentration", "largest_cluster"]
figures = ["mean", "sd", "ess_bulk", "rhat"]
print(short.posterior_.summary().loc[judged, figures].round(2))

# %%
# In the traces the chains should look alike, without a trend, and cross each other all the time.
# These do not.

TraceDisplay.from_estimator(short)

# %%
# The same model with time to warm up
# -----------------------------------
# By default the warm-up goes on until the chains agree or ``max_work`` is spent.

mixture = DirichletProcessMixture(n_jobs=-1, random_state=0).fit(X)
print(mixture.posterior_.summary().loc[judged, figures].round(2))
print("sweeps of warm-up:", mixture.n_warmup_)

# %%

TraceDisplay.from_estimator(mixture)

# %%
# What the answer is worth
# ------------------------
# Convergence makes the draws a fair account of the posterior. How sure the posterior is of an
# answer is another matter: how far are draws from the estimated partition, and how many clusters do
# they have? ``labels_`` may have fewer clusters than most draws: one that fewer than half of the
# draws support is joined to its neighbour.

print(f"labels_ has {mixture.n_clusters_} clusters")
for number, count in zip(*np.unique(mixture.merged_n_clusters_, return_counts=True), strict=True):
    print(f"{number} clusters in {count / len(mixture.merged_n_clusters_):.0%} of the draws")
print(f"expected distance of a draw to the partition: {mixture.expected_loss_:.2f} nats")
print(f"agreement with the growers: {adjusted_rand_score(load_wine().target, mixture.labels_):.2f}")

# %%
# If ``fit`` still warns
# ----------------------
# .. list-table::
#    :header-rows: 1
#    :widths: 35 40 25
#
#    * - The warning says
#      - It means
#      - Do
#    * - at least 4 draws are needed; draws cannot be 100 effective ones
#      - there are too few draws to tell anything
#      - ``n_draws``: a hundred or more a chain
#    * - still improving, still falling
#      - kept draws are from before the arrival
#      - twice ``n_warmup``
#    * - differs between the chains, and averaged hardly better than one
#      - some chains have arrived, others not yet
#      - twice ``n_warmup``
#    * - few effective draws
#      - the chains have arrived and move slowly
#      - twice ``n_draws``
#    * - raise n_warmup and n_draws
#      - the chains differ in what no row notices, or move slowly
#      - twice both
#    * - found different partitions
#      - each chain sits in an answer of its own
#      - twice ``n_chains``, and twice the ``max_work`` that they share
#    * - which is little; the chains agree on log_density
#      - chains describe rows alike, by different partitions
#      - nothing for densities and fillings; twice ``n_warmup`` if clusters are counted
#    * - an ensemble of short chains is too small
#      - more chains, or longer ones, would describe rows noticeably better
#      - what it names; ``n_chains``, ``n_warmup`` and ``n_draws`` together
#    * - never changed, none of so many proposals was accepted
#      - this trace is where the chains began: do not report it; the rest may be fine
#      - another ``random_state``
#
# Where ``n_warmup`` is "auto" and the warning says that ``max_work`` was spent, twice ``max_work``
# is a longer warm-up. Where the warm-up ended by itself, give a number, twice ``n_warmup_``, and
# the ``thin`` that the warning names.
# More draws need no new warm-up: with ``warm_start`` the chains go on where they ended. If nothing
# helps, take fewer columns or a simpler model.

more = mixture.set_params(warm_start=True, n_draws=400).fit(X)
print(more.posterior_.summary().loc[judged, figures].round(2))

# %%
# ``pool()`` says what averaging over chains gains: ``pool_gain`` is in nats a row, the unit of
# ``log_density``. In the short fit, whose chains differ:

print({name: round(float(value), 3) for name, value in short.posterior_.pool().items()})

# %%
# ``mixture.report()`` says all this in words. :doc:`/user_guide/posterior` has the tools of ArviZ,
# and the guide of each model says which disagreements are usual with it.

plt.show()
