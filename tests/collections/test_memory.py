"""A file larger than what the process may take is fitted, predicted and scored."""

import os
import subprocess
import sys

import numpy as np
import pytest

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of Linux")

SCRIPT = """
import resource, sys, warnings
import numpy as np
from skbnp import DirichletProcessMixture
from skbnp.dirichlet_process_mixture import _collections

warnings.simplefilter("ignore")
_collections.MOST_KEPT = 10_000
path, n_jobs, spare = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
DirichletProcessMixture(n_chains=1, n_warmup=1, n_draws=1).fit(np.random.rand(100, 2)).predict(
    np.random.rand(5, 2)
)
X = np.load(path, mmap_mode="r")
taken = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + spare, taken + spare))
try:
    np.array(X)
    raise SystemExit("the limit is none")
except MemoryError:
    pass
model = DirichletProcessMixture(
    n_chains=1, n_warmup=1, n_draws=2, n_jobs=n_jobs, covariance_type="diag", random_state=0
).fit(X)
assert model.posterior_[0, 0]["n_members"].sum() == len(X)
assert model.predict(X).shape == model.labels_.shape == (len(X),)
print("fitted", model.n_clusters_)
"""


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_file_beyond_the_limit_of_the_process(tmp_path, n_jobs):
    path = tmp_path / "rows.npy"
    X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(3_000_000, 16))
    rng = np.random.default_rng(0)
    for start in range(0, len(X), 100_000):
        X[start : start + 100_000] = rng.normal(size=(100_000, 16))
    X.flush()
    # Of 192 MB; labels of all rows twice are 48.
    spare = 130 * 2**20 + n_jobs * 16 * 2**20
    assert spare < X.nbytes
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(path), str(n_jobs), str(spare)],
        capture_output=True,
        text=True,
        timeout=600,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "fitted" in done.stdout
