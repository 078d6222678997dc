"""What both lines of ArviZ have under different names: 0.23, and 1.x from Python 3.12 on."""

import arviz
import xarray

IS_OLD = int(arviz.__version__.split(".")[0]) == 0


def groups_of(data):
    """Name -> Dataset of each group."""
    if IS_OLD:
        return dict(data.items())
    return {name: child.to_dataset() for name, child in data.children.items()}


def elpd_of(data):
    """ArviZ's own figure of leave-one-out cross-validation."""
    found = arviz.loo(data)
    return float(found.elpd_loo if IS_OLD else found.elpd)


def plot_ppc(data, group="posterior"):
    """Densities of what was observed and of what was drawn, one picture a feature."""
    observed = next(iter(groups_of(data)["observed_data"].data_vars.values()))
    if IS_OLD:
        return arviz.plot_ppc(data, group=group, flatten=["row"], num_pp_samples=4)
    facets = {"cols": ["__variable__", *observed.dims[1:]]}
    return arviz.plot_ppc_dist(data, group=f"{group}_predictive", num_samples=4, **facets)


def through_netcdf(data, path):
    """The data written to a file and read from it."""
    data.to_netcdf(path)
    return arviz.from_netcdf(path)


def through_zarr(data, path):
    """The data written to a directory and read from it; ArviZ 0.23 knows zarr 2 alone itself."""
    tree = data.to_datatree() if IS_OLD else data
    tree.to_zarr(path)
    found = xarray.open_datatree(path, engine="zarr")
    return arviz.InferenceData.from_datatree(found) if IS_OLD else found


def assert_same(data, other):
    """Both have the same groups, in these the same arrays, names and attributes."""
    one, two = groups_of(data), groups_of(other)
    assert one.keys() == two.keys()
    for name, group in one.items():
        xarray.testing.assert_identical(group, two[name])
