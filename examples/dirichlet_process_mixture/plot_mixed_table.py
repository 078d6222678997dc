"""
A table of all kinds
====================

A table as people have it: a real measurement, a yes or no, a name, a count, and holes everywhere.
Nothing is encoded, scaled or filled beforehand, and the number of groups is not given.
"""

# %%
# The table
# ---------
# 400 made-up visitors of three kinds, so that the answer can be graded. A tenth of the cells is
# missing.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import cross_val_score

from skbnp import DirichletProcessMixture
from skbnp.plot import CoclusteringDisplay, style

plt.style.use(style())

rng = np.random.default_rng(0)
kind = rng.choice(3, size=400, p=[0.5, 0.3, 0.2])
table = pd.DataFrame(
    {
        "age": rng.normal(np.array([24.0, 41.0, 67.0])[kind], 6.0),
        "hours": np.exp(rng.normal(np.array([1.2, 0.2, 0.9])[kind], 0.3)),
        "member": rng.random(400) < np.array([0.2, 0.9, 0.5])[kind],
        "came by": [rng.choice(["bike", "car", "train"], p=p)
                    for p in np.array([[0.7, 0.1, 0.2], [0.1, 0.8, 0.1], [0.1, 0.3, 0.6]])[kind]],
        "visits": rng.poisson(np.array([2.0, 9.0, 5.0])[kind]),
    }
).astype({"member": "boolean", "came by": "category", "visits": "Int64"})  # fmt: skip
for name in table.columns:
    table.loc[rng.random(400) < 0.1, name] = None
print(table.head())

# %%
# Fit
# ---
# ``family="auto"``, the default, goes by the columns: real ones share a Gaussian per cluster, all
# others are independent given the cluster.

mixture = DirichletProcessMixture(n_jobs=-1, random_state=0).fit(table)
print(dict(zip(table.columns, mixture.families_.tolist(), strict=True)))
print("sizes of the clusters:", np.bincount(mixture.labels_))
print(f"agreement with the truth: {adjusted_rand_score(kind, mixture.labels_):.2f}")

# %%
# Who they are
# ------------
# The filled table is a table of the same form. Averages by cluster say what makes a cluster.

filled = mixture.X_imputed_
filled["cluster"] = mixture.labels_
print(filled.groupby("cluster")[["age", "hours", "member", "visits"]].mean().round(2))
print(pd.crosstab(filled["cluster"], filled["came by"]))

# %%
# How sure
# --------
# Each cell of the picture is the probability that two rows belong together. Sharp blocks are
# certain, blurred ones are not.

CoclusteringDisplay.from_estimator(mixture)
plt.show()

# %%
# What the holes may hold
# -----------------------
# A filling comes with its standard deviation; for a name, that of an indicator of the name filled
# in: 0 is certain, 0.5 is a guess between two.

visitor = table.iloc[:1].assign(visits=None, **{"came by": None})
guess, spread = mixture.impute(visitor, return_std=True)
print(guess.round(2))
print(spread.round(2))

# %%
# Does the mixture describe the table?
# ------------------------------------
# The score is the log density of held-out rows, so it compares models. Columns that know of each
# other make it higher than one cluster does.

short = {"family": "auto", "n_warmup": 100, "n_draws": 100, "random_state": 0}
for n_components in (1, None):
    model = DirichletProcessMixture(n_components=n_components, **short)
    print(n_components, cross_val_score(model, table, cv=3).mean().round(3))
