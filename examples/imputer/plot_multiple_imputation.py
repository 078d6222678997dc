"""
Missing cells and a regression
==============================

A regression on a table with holes. Filling them once and going on as if the table had been complete
gives coefficients that look more certain than they are. Several completed tables, each analysed
as if it were complete, show what the missing cells add to the doubt, and Rubin's rules put it into
the intervals.
"""

# %%
# The table
# ---------
# Weight is missing the likelier the larger the target, as where heavy cases are measured elsewhere:
# rows without holes are no fair sample of all rows.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy import stats

from skbnp import BNPImputer, DirichletProcessMixture
from skbnp.plot import style
from skbnp.summaries import pool

plt.style.use(style())

rng = np.random.default_rng(0)
n, truth = 150, np.array([1.0, 1.0, -1.0])
x = rng.multivariate_normal([0.0, 0.0], [[1.0, 0.6], [0.6, 1.0]], size=n)
target = truth[0] + x @ truth[1:] + rng.normal(size=n)
table = pd.DataFrame({"height": x[:, 0], "weight": x[:, 1], "target": target})
table.loc[rng.random(n) < 1 / (1 + np.exp(1.5 - target)), "weight"] = None
print(table.isna().mean().round(2))

# %%
# Filled once
# -----------
# In a pipeline the imputer stands where ``KNNImputer`` would. It also says how sure it is of each
# cell.

model = DirichletProcessMixture(n_chains=2, n_warmup=200, n_draws=200)
imputer = BNPImputer(estimator=model, random_state=0)
filled = imputer.fit_transform(table)
low, high = imputer.intervals(level=0.9)
some = np.flatnonzero(table["weight"].isna())[:5]
print(pd.DataFrame({"low": low["weight"], "filled": filled["weight"], "high": high["weight"],
                    "truth": x[:, 1]}).iloc[some].round(2))  # fmt: skip

# %%
# Filled twenty times
# -------------------
# ``multiple`` draws the missing cells from their posterior, each table from a draw of its own.


def regression(rows):
    """Coefficients of the last column on the others and their variances."""
    rows = rows.to_numpy()
    y, Z = rows[:, -1], np.column_stack([np.ones(len(rows)), rows[:, :-1]])
    inverse = np.linalg.inv(Z.T @ Z)
    coefficient = inverse @ Z.T @ y
    variance = np.sum((y - Z @ coefficient) ** 2) / (len(y) - 3)
    return coefficient, variance * np.diag(inverse)


tables = imputer.multiple(20)
pooled = pool(*zip(*map(regression, tables), strict=True), df_complete=n - 3)
print("share of the information that is missing:", np.round(pooled.fraction_missing, 2))


# %%
# The intervals
# -------------
# Complete rows alone are biased here; the table filled with means has intervals that are too short.


def single(rows):
    """Estimates of one table and their intervals."""
    center, variance = regression(rows)
    half = stats.t.ppf(0.975, len(rows) - 3) * np.sqrt(variance)
    return center, center - half, center + half


found = {
    "complete rows": single(table.dropna()),
    "filled once": single(filled),
    "pooled": (pooled.estimate, *pooled.interval()),
}
figure, axes = plt.subplots(1, 3, figsize=(9, 2.6), sharey=True)
names = ("intercept", "height", "weight")
for axis, name, k in zip(axes, names, range(3), strict=True):
    for place, (center, lowest, highest) in enumerate(found.values()):
        axis.plot([lowest[k], highest[k]], [place, place], color="C0", linewidth=2)
        axis.plot(center[k], place, "o", color="C0")
    axis.axvline(truth[k], color="0.6", zorder=0)
    axis.set(
        title=name, xlabel="estimate and 95 % interval", yticks=range(3), yticklabels=list(found)
    )
plt.show()
