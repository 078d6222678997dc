"""
Quickstart
==========

From a table with holes to clusters, filled cells and a report, in ten minutes. All you need to
know is some scikit-learn; :doc:`/get_started/install` comes first.
"""

# %%
# A table
# -------
# Flowers of three kinds, 60 of each, made up so that the answer can be graded. The kinds differ in
# four measurements. Every tenth cell or so is missing. The kind of a flower is kept aside.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score

from skbnp import DirichletProcessMixture
from skbnp.plot import ClusterDisplay, TraceDisplay, style

plt.style.use(style())
rng = np.random.default_rng(0)
columns = ["sepal length (cm)", "sepal width (cm)", "petal length (cm)", "petal width (cm)"]
means = np.array([[5.0, 3.4, 1.5, 0.3], [5.9, 2.8, 4.2, 1.3], [6.6, 3.0, 5.5, 2.0]])
kind = np.repeat([0, 1, 2], 60)
size = rng.normal(size=(180, 1))  # large flowers are large in all measurements
whole = means[kind] * (1 + 0.05 * size) + rng.normal(size=(180, 4)) * [0.3, 0.25, 0.35, 0.15]
whole = np.maximum(whole, 0.1)

table = pd.DataFrame(whole.round(1), columns=columns)
table = table.mask(rng.random(table.shape) < 0.1)
print(table.head(), f"\n\n{table.isna().sum().sum()} of {table.size} cells are missing")

# %%
# One fit
# -------
# The table goes in as it is. Nobody says how many clusters there are.
# :class:`~skbnp.DirichletProcessMixture` is the estimator to begin with;
# :doc:`/get_started/which_estimator` has the others.

mixture = DirichletProcessMixture(n_jobs=-1, random_state=0).fit(table)
print("sizes of the clusters:", np.bincount(mixture.labels_))
print(f"agreement with the kinds: {adjusted_rand_score(kind, mixture.labels_):.2f} (1 is perfect)")

# %%
# The report
# ----------
# It says in words what was found, how sure that is and what to do next. In a notebook
# ``mixture.report()`` has pictures too, and ``mixture.report().to_html()`` is a page to pass on.
# Here is the beginning of the text; :doc:`/user_guide/reports` explains every section.

report = str(mixture.report())
print(report[: report.index("\n\n", 2500)])

# %%
# A picture
# ---------
# The fainter a point, the less sure its cluster. A hollow point lacked a coordinate and stands
# where the mixture puts it.

ClusterDisplay.from_estimator(mixture, table, columns=columns[2:])

# %%
# Holes filled
# ------------
# ``X_imputed_`` is the table without holes: a frame again, with the observed cells as they were.
# ``X_imputed_std_`` says how far a filled cell may be off. The true values, which we have, are
# within two standard deviations for most of the cells.

holes = table.isna().to_numpy()
filled, std = mixture.X_imputed_.to_numpy(), mixture.X_imputed_std_.to_numpy()
error = (filled - whole)[holes]
print(mixture.X_imputed_.head().round(2), "\n")
by_means = (table.fillna(table.mean()).to_numpy() - whole)[holes]
print(f"root mean square error: {np.sqrt((error**2).mean()):.2f} cm")
print(f"filled with the means of the columns: {np.sqrt((by_means**2).mean()):.2f} cm")
print(f"within two standard deviations: {np.mean(np.abs(error) < 2 * std[holes]):.0%}")

# %%
# New rows
# --------
# A fitted mixture answers for rows that it has not seen, with holes too: the cluster, its
# probability, the log density, and the missing cells.

new = pd.DataFrame([[5.1, 3.5, 1.4, np.nan], [6.3, np.nan, 5.0, 1.7]], columns=columns)
print("cluster:", mixture.predict(new))
print("probabilities:", *mixture.predict_proba(new).round(2))
print("log density:", mixture.score_samples(new).round(2))
print(mixture.impute(new).round(2))

# %%
# May it be trusted?
# ------------------
# The answer is an average over draws of several Markov chains. If they agree, R-hat is near 1; the
# report has said so already, and ``fit`` warns where they do not.

judged = ["log_density", "n_clusters", "concentration", "largest_cluster"]
print(mixture.posterior_.summary().loc[judged, ["mean", "sd", "ess_bulk", "rhat"]].round(2))
TraceDisplay.from_estimator(mixture)

# %%
# Where to go from here
# ---------------------
# - :doc:`/get_started/which_estimator`: images, networks, wide tables, regression.
# - :doc:`/tutorials/index`: one topic after the other, in an order for learning.
# - :doc:`/how_to/index`: priors, diagnostics, speed, calibration, deployment.
# - :doc:`/user_guide/index`: every model in full.

plt.show()
