"""
Make it faster
==============

Where the time goes, and what to change. The seconds are those of one core (CPU seconds) on the
machine that built this page; look at the ratios.
"""

# %%
# How the time is spent
# ---------------------
# A fit takes (chains) x (sweeps) x (time of a sweep), and the time of a sweep grows with rows,
# parts of the model, and columns. The guide page of each model has the formula in its section on
# cost.

import time
import warnings

import numpy as np
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning

from skbnp import DirichletProcessMixture

X, _ = make_blobs(1000, 10, centers=6, cluster_std=2.0, random_state=0)
X_new, _ = make_blobs(2000, 10, centers=6, cluster_std=2.0, random_state=0)
warnings.simplefilter("ignore", ConvergenceWarning)  # of the short runs below


def timed(name, work):
    start = time.process_time()
    result = work()
    print(f"{time.process_time() - start:6.2f} s  {name}")
    return result


def fit(**parameters):
    return DirichletProcessMixture(n_draws=100, random_state=0, **parameters).fit(X)


# %%
# Chains side by side
# -------------------
# ``n_jobs=-1`` runs the chains on all cores. Work and draws are the same; with an idle core for
# each chain, the wait is shorter by nearly their number.

kinds = {"n_warmup": 200, "n_chains": 2}
one = timed("one core", lambda: fit(n_jobs=1, **kinds))
two = timed("n_jobs=-1", lambda: fit(n_jobs=-1, **kinds))
print("same draws:", np.array_equal(one.labels_, two.labels_))

# %%
# A first look, and searches
# --------------------------
# By default a warm-up goes on until chains agree or ``max_work`` seconds of one core are spent. For
# a first look, and in a grid search, give a number: every point then takes the same time.

quick = timed("n_warmup=50, one chain", lambda: fit(n_warmup=50, n_chains=1))
print("held-out log density:", *(round(m.score(X_new), 3) for m in (quick, one)))

# %%
# Fewer parameters
# ----------------
# With full covariances a sweep costs the square of the number of columns, with diagonal ones the
# number itself, which makes a difference where columns are many. Whether diagonal ones describe the
# rows as well is told by held-out rows. The same table with 80 columns:

rows, _ = make_blobs(2000, 80, centers=6, cluster_std=4.0, random_state=0)
for covariance_type in ("full", "diag"):
    wide = DirichletProcessMixture(
        covariance_type=covariance_type,
        n_chains=2,
        n_warmup=30,
        n_draws=20,
        n_jobs=-1,
        random_state=0,
    )
    timed(f'covariance_type="{covariance_type}"', lambda wide=wide: wide.fit(rows[:1000]))
    print(f"          held-out log density {wide.score(rows[1000:]):.2f}")

# %%
# Many rows
# ---------
# Above 20,000 rows the mixture changes to a sampler that uses all cores within a chain. Labels of a
# million rows do not need a million rows in ``fit``: fit some thousand of them, and let ``predict``
# do the rest.

part = np.random.default_rng(0).choice(len(X), 300, replace=False)
small = timed(
    "300 rows", lambda: DirichletProcessMixture(n_warmup=200, random_state=0).fit(X[part])
)
print("held-out log density:", *(round(m.score(X_new), 3) for m in (small, one)))

# %%
# Predictions
# -----------
# Predict-type methods average over at most ``predict_draws`` draws, 100 by default, and cost as
# much for each. The parameter may be changed after ``fit``.

for predict_draws in (100, 20, 5):
    one.set_params(predict_draws=predict_draws)
    score = timed(f"predict_draws={predict_draws}", lambda: one.score(X_new))
    print(f"          log density {score:.3f}")

# %%
# What does not help
# ------------------
# - More BLAS threads: chains already use the cores.
# - ``n_jobs`` above the number of chains, except where the guide of a model says that its threads
#   share the work of a chain.
# - ``thin``: the run is longer, for no more memory.
#
# Long fits that may be interrupted, and clusters of machines: :doc:`/user_guide/long_runs`.
