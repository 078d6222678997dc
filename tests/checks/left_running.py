"""A test that never ends, in processes of all kinds: for `test_processes`, which kills it."""

import os
from pathlib import Path

import joblib

from checks.processes import Child
from checks.watched import WatchedMixture, fit, table_with_holes


def test_fits_of_hours():
    logs, X = Path(os.environ["SKBNP_TEST_LOGS"]), table_with_holes()
    run = {"n_draws": 10**6, "n_jobs": 2}
    for backend in ("threading", "loky"):
        watch = {"log": logs / f"child-{backend}", "seconds": 0.002}
        Child(fit, "mixture", X, backend=backend, watch=watch, **run)
    with joblib.parallel_config(backend="loky"):
        WatchedMixture(**run).watch(log=logs / "loky", seconds=0.002).fit(X)
