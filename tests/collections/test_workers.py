"""What the processes of a cluster take: few libraries, and memory that they keep."""

import ctypes
import os
import pickle
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

from checks.collections_rows import table
from checks.mixture_priors import mixed_prior
from skbnp import DirichletProcessMixture
from skbnp.collections.reading import Reading
from skbnp.collections.work import Batch, Request, Where, part_on_worker
from skbnp.dirichlet_process_mixture.records._elsewhere import run_on_cell
from skbnp.dirichlet_process_mixture.records._kernels import Kernels
from skbnp.dirichlet_process_mixture.records._service import RowsInMemory
from skbnp.samplers import MixtureSampler

ALONE = """
import pickle, sys
task, block, where, batch = pickle.load(open(sys.argv[1], "rb"))
part = task(block, where, batch)
assert len(part.nodes) == 1, part
print(*sorted({"sklearn", "scipy.stats", "pandas", "narwhals"} & sys.modules.keys()))
"""


def in_a_process(script, *arguments, **env):
    """What a script prints in a process of its own."""
    known = {name: value for name, value in os.environ.items() if "MALLOC" not in name}
    path = os.pathsep.join(filter(None, sys.path))
    found = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        capture_output=True,
        text=True,
        check=True,
        env=known | {"PYTHONPATH": path} | env,
    )
    return found.stdout.split()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_pass_needs_neither_estimators_nor_laws(tmp_path, monkeypatch):
    asked = []
    run = RowsInMemory.run

    def seen(self, task, request, combine):
        asked.append((task, request, combine))
        return run(self, task, request, combine)

    monkeypatch.setattr(RowsInMemory, "run", seen)
    X = table(500)
    model = DirichletProcessMixture(
        sampler=MixtureSampler(algorithm="parallel"), n_chains=1, n_warmup=2, n_draws=2
    ).fit(X)
    task, request, combine = next(one for one in asked if one[0] == "pass_rows")
    prior = model._prior
    of_cell = partial(run_on_cell, name=task, kernels=Kernels(prior, prior.start()))
    batch = Batch([Request(of_cell, request, combine)], Reading().with_units(model._units))
    work = part_on_worker, X, Where(0, 0, len(X)), batch
    path = tmp_path / "work"
    path.write_bytes(pickle.dumps(work))
    assert in_a_process(ALONE, str(path)) == []


def test_kernels_of_mixed_columns_pickle():
    prior = mixed_prior("full", concentration=1.0, prior_scale=1.0)
    X = np.zeros((3, prior.n_features))
    kernels = pickle.loads(pickle.dumps(Kernels(prior, prior.start())))
    assert kernels.family(X).n_samples == 3


KEEPS = "from skbnp.collections.allocator import keep_freed_memory; print(int(keep_freed_memory()))"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="an allocator of Linux")
@pytest.mark.parametrize(
    ("env", "is_changed"),
    [
        ({"MALLOC_TRIM_THRESHOLD_": "65536"}, True),
        ({"MALLOC_TRIM_THRESHOLD_": "65536", "MALLOC_MMAP_THRESHOLD_": "1000000"}, False),
        ({}, False),
    ],
    ids=["as Dask has it", "as somebody wants it", "nothing said"],
)
def test_freed_memory_is_kept_where_dask_would_give_it_back(env, is_changed):
    if not hasattr(ctypes.CDLL(None), "mallopt"):
        pytest.skip("another C library")
    assert in_a_process(KEEPS, **env) == [str(int(is_changed))]
