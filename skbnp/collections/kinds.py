"""What counts as a collection: a table of which nobody needs to hold all rows in memory."""

import sys

import numpy as np

DASK_ARRAY, DASK_FRAME, SLICED = "dask array", "dask frame", "sliced"
# Types that hand out rows as slices, by the package that they are of.
_SLICED = {"zarr": "Array", "h5py": "Dataset"}


def kind_of(X):
    """The kind of a collection, None for all other tables.

    No library is imported for it: whose object X is tells which has been.

    Parameters
    ----------
    X : object

    Returns
    -------
    kind : {DASK_ARRAY, DASK_FRAME, SLICED} or None
    """
    if isinstance(X, np.memmap):
        return SLICED
    for one in type(X).__mro__:
        package = one.__module__.partition(".")[0]
        if _SLICED.get(package) == one.__name__:
            return SLICED
        if package == "dask" and one.__name__ == "Array":
            return DASK_ARRAY
        if package in ("dask", "dask_expr") and one.__name__ in ("DataFrame", "FrameBase"):
            return DASK_FRAME
    return None


def is_collection(X):
    """Whether X is a Dask array or frame, a memory map, a Zarr array or an HDF5 dataset."""
    return kind_of(X) is not None


def active_client():
    """The client of `distributed` that Dask would use now, None where there is none."""
    # Nobody has made one without importing the library.
    if "distributed" not in sys.modules:
        return None
    import distributed

    try:
        client = distributed.default_client()
    except ValueError:
        return None
    if client.asynchronous:
        raise ValueError(
            "the active client of distributed must not be asynchronous: fit waits for its answers"
        )
    return client
