"""What a report of a problem needs: ``python -m skbnp.show_versions``."""

import platform
import sys
from importlib.metadata import PackageNotFoundError, version

import scipy.linalg  # noqa: F401  loads the BLAS library that is reported
from joblib import cpu_count
from threadpoolctl import threadpool_info

from skbnp._version import __version__

REQUIRED = (
    *("numpy", "scipy", "scikit-learn", "joblib", "narwhals", "threadpoolctl", "arviz-stats"),
)
OPTIONAL = (
    *("pandas", "polars", "pyarrow", "Pillow", "matplotlib", "networkx", "rich", "arviz"),
    *("h5netcdf", "h5py", "zarr", "dask", "distributed", "torch", "Cython"),
)


def show_versions():
    """Print the versions of skbnp and of what it stands on, the BLAS libraries and the cores.

    Examples
    --------
    >>> from skbnp.show_versions import show_versions
    >>> show_versions()  # doctest: +SKIP
    """
    rows = [("skbnp", __version__), ("python", sys.version.split()[0])]
    rows += [("platform", platform.platform()), ("cores", cpu_count())]
    rows += [(name, _version(name)) for name in (*REQUIRED, *OPTIONAL)]
    for library in threadpool_info():
        what = f"{library['internal_api']} {library['version'] or ''}".strip()
        what += f", {library['num_threads']} threads"
        rows.append((library["user_api"], what))
    for name, value in rows:
        print(f"{name + ':':<15} {value}")


def _version(name):
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


if __name__ == "__main__":
    show_versions()
