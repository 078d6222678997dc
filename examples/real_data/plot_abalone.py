"""
A table of all kinds: abalone
=============================

4,177 sea snails (Nash et al. 1994): their sex is a name, the rings of their shells are a count, and
lengths and weights are real numbers. A fifth of all cells is deleted. One estimator fills them,
names, counts and numbers alike. The usual way has a step for each kind of column.

To run this page by hand::

    python plot_abalone.py --data DIRECTORY    # holding abalone.csv.gz
"""

# %%
# The data
# --------
# 1,000 of the snails.

import argparse
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer

from skbnp import DirichletProcessMixture
from skbnp.plot import class_look, style

plt.style.use(style())

parser = argparse.ArgumentParser()
parser.add_argument("--data", type=Path, required=True)
whole = pd.read_csv(parser.parse_args().data / "abalone.csv.gz")
whole = whole.sample(1000, random_state=0, ignore_index=True)
rng = np.random.default_rng(0)
lost = rng.random(whole.shape) < 0.2
table = whole.convert_dtypes().mask(lost)  # counts stay whole numbers beside missing cells
print(table.head())

# %%
# Fit
# ---
# The name of the sex is seen as such. Whole numbers with many values, as those of the rings, are
# taken for real numbers unless ``family`` says that they are counts. What each column was taken
# for is in ``families_``.

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always", ConvergenceWarning)
    mixture = DirichletProcessMixture(
        family={"rings": "poisson"},
        n_chains=2,
        n_warmup=200,
        n_draws=100,
        n_jobs=-1,
        random_state=0,
    ).fit(table)
for warning in caught:
    print(warning.message)
print(dict(zip(table.columns, mixture.families_.tolist(), strict=True)))
filled, std = mixture.X_imputed_, mixture.X_imputed_std_

# %%
# The usual ways
# --------------
# The commonest name and the mean of the column; or names as columns of zeros and ones and
# regressions of each column on the others, linear or by trees. Two columns are enough for three
# names: with the third one each could be told from the other two.

numbers = table.columns.drop("sex")
codes = pd.get_dummies(table["sex"], dtype=float)[["F", "I"]]
codes.loc[table["sex"].isna()] = np.nan
encoded = pd.concat([codes, table[numbers].astype(float)], axis=1)


def decode(array):
    """A table like the one that was given: the name with the largest column."""
    frame = pd.DataFrame(array, columns=encoded.columns)
    share = frame[["F", "I"]].assign(M=1 - frame["F"] - frame["I"])
    return frame[numbers].assign(sex=share.idxmax(axis=1))[table.columns]


trees = ExtraTreesRegressor(30, min_samples_leaf=3, random_state=0)
fillings = {
    "mean and commonest": decode(SimpleImputer().fit_transform(encoded)),
    "IterativeImputer": decode(
        IterativeImputer(max_iter=50, random_state=0).fit_transform(encoded)
    ),
    "IterativeImputer, trees": decode(
        IterativeImputer(trees, max_iter=5, tol=0, random_state=0).fit_transform(encoded)
    ),
    "skbnp": filled,
}

# %%
# Errors
# ------
# Of the lost cells: the share of names that are right, and root mean square errors of the other
# columns in their standard deviations. Trees are a little better at the rings, the mixture is
# better at lengths and weights, and nobody tells the sex of a snail from its size much better
# than this.

scale, errors = whole[numbers].std(), {}
print("                         sex right   rings   lengths and weights")
for name, answer in fillings.items():
    right = (answer["sex"] == whole["sex"])[lost[:, 0]].mean()
    error = ((answer[numbers].astype(float) - whole[numbers]) / scale).where(lost[:, 1:])
    errors[name] = np.sqrt((error**2).mean())
    print(
        f"{name:24s} {right:9.1%} {errors[name]['rings']:7.2f}"
        f" {np.sqrt((errors[name].drop('rings') ** 2).mean()):15.3f}"
    )

figure, ax = plt.subplots(figsize=(9, 4))
for place, (name, error) in enumerate(errors.items()):
    look = class_look(place)
    ax.plot(error, np.arange(len(error)), look.marker, color=look.color, label=name)
ax.set(
    yticks=np.arange(len(numbers)),
    yticklabels=[name.replace("_", " ") for name in numbers],
    xlabel="error of filled cells, standard deviations of the column",
    xlim=(0, None),
)
ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))

# %%
# How sure
# --------
# Filled cells come with their standard deviations. For a name it is that of an indicator of the
# name filled in: 0 is certain, 0.5 is a guess between two.

distance = ((filled[numbers] - whole[numbers]).abs() / std[numbers]).to_numpy()[lost[:, 1:]]
print(f"within one: {np.mean(distance < 1):.1%}, within two: {np.mean(distance < 2):.1%}")
print(pd.concat([table["sex"], filled["sex"], std["sex"]], axis=1)[lost[:, 0]].head())
plt.show()
