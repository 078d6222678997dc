"""
Wine in ArviZ
=============

A mixture of 178 wines goes to ArviZ with its names: means of the clusters with their uncertainty,
tables drawn from the posterior beside the observed one, leave-one-out cross-validation, and files
that any language reads. The same lines run under ArviZ 0.23 and 1.x; where a function has another
name there, both stand below.
"""

# %%
# The fit
# -------
# Two cells are missing. ``to_arviz`` costs nothing until it is asked for what must be computed or
# drawn: here log densities of the rows, 40 tables from the posterior and 40 draws from the prior.

import tempfile
import warnings
from pathlib import Path

import arviz
import matplotlib.pyplot as plt
import numpy as np
import xarray
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning

from skbnp import DirichletProcessMixture

warnings.simplefilter("ignore", ConvergenceWarning)
IS_OLD = arviz.__version__.startswith("0.")
X = load_wine(as_frame=True).data[["alcohol", "flavanoids", "color_intensity", "hue"]]
X.index = [f"wine {i}" for i in X.index]
X.loc["wine 3", "hue"] = X.loc["wine 70", "alcohol"] = np.nan

mixture = DirichletProcessMixture(n_warmup=200, n_draws=200, random_state=0).fit(X)
data = mixture.posterior_.to_arviz(
    log_likelihood=True, posterior_predictive=40, prior=40, warmup=True, random_state=0
)
groups = list(data.groups()) if IS_OLD else list(data.children)
print("groups:", ", ".join(groups))
print(data["posterior"]["cluster_mean"].sel(feature="alcohol").mean(("chain", "draw")).values)

# %%
# Have the chains converged?
# --------------------------

print(arviz.summary(data, var_names=["n_clusters", "concentration", "log_density"]))

# %%
# Means of the clusters
# ---------------------
# Draws number their blocks as they like, so a mean of "block 2" would be a mean of different
# things. ``cluster_mean`` is of the clusters of ``labels_``: over the rows of each, of what their
# blocks have in a draw. It does not depend on any numbering.

arviz.plot_forest(data, var_names=["cluster_mean"], coords={"feature": "alcohol"}, combined=True)
plt.show()

# %%
# Would the mixture make such wines?
# ----------------------------------
# The observed wines beside tables that were drawn, feature by feature: what the mixture misses
# would show as a dark line outside the pale ones.

if IS_OLD:
    arviz.plot_ppc(data, flatten=["row"], num_pp_samples=40)
else:
    arviz.plot_ppc_dist(data, num_samples=40, cols=["__variable__", "feature"])
plt.show()

# %%
# Labels and cells
# ----------------
# What has a name is found by it: the cluster that two wines share, and the cells that were missing.

label = data["posterior"]["label"]
together = (label.sel(row="wine 0") == label.sel(row="wine 1")).mean()
print(f"wine 0 and wine 1 share a component in {float(together):.0%} of the draws")
for cell in data["posterior"]["imputed"].transpose("cell", ...):
    row, feature = cell["cell_row"].item(), cell["cell_feature"].item()
    true = load_wine(as_frame=True).data[feature].iloc[X.index.get_loc(row)]
    print(f"{feature} of {row}: {float(cell.mean()):.2f} +- {float(cell.std()):.2f}, was {true}")

# %%
# Leave-one-out cross-validation
# ------------------------------
# ``scalars_only`` leaves out the labels, which ``loo`` would look through for its efficiency.

diag = DirichletProcessMixture(
    covariance_type="diag", n_warmup=200, n_draws=200, random_state=0
).fit(X)
both = {
    name: model.posterior_.to_arviz(log_likelihood=True, scalars_only=True)
    for name, model in [("full", mixture), ("diag", diag)]
}
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of single rows
    print(arviz.loo(both["full"]))
    print(arviz.compare(both))

# %%
# Files
# -----
# netCDF is one file, zarr a directory. ArviZ 0.23 writes zarr by itself only up to zarr 2; its data
# goes there as a tree of xarray.

directory = Path(tempfile.mkdtemp())
data.to_netcdf(directory / "wine.nc")
again = arviz.from_netcdf(directory / "wine.nc")
print("netCDF, the same:", data["posterior"].equals(again["posterior"]))

tree = data.to_datatree() if IS_OLD else data
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # zarr's of its format
    tree.to_zarr(directory / "wine.zarr")
again = xarray.open_datatree(directory / "wine.zarr", engine="zarr")
print("zarr, the same:", tree["posterior"].equals(again["posterior"]))
