"""Install a wheel with each extra alone, in an environment of its own, and use what it is for.

    python .ci/extras.py WHEEL [EXTRA...]

A dependency that nobody declared is found here and not by a user.
"""

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

FIT = """
import sys, warnings
import numpy as np
warnings.simplefilter("ignore")
from skbnp import DirichletProcessMixture
X = np.random.default_rng(0).normal(size=(30, 2)) + 6 * (np.arange(30) % 2)[:, None]
mixture = DirichletProcessMixture(n_chains=2, n_warmup=20, n_draws=20, random_state=0)
"""
# Extra -> what a user of it does. "" is the wheel with nothing beside it.
USES = {
    "": FIT
    + """
assert mixture.fit(X).n_clusters_ == 2
assert len(mixture.posterior_.rhat()) and "clusters" in str(mixture.report())
# These come with extras alone.
for name in ("matplotlib", "networkx", "rich", "arviz", "dask", "pandas", "pyarrow", "PIL"):
    try:
        __import__(name)
    except ImportError:
        pass
    else:
        sys.exit(f"{name} is required, and nobody said so")
""",
    "plot": FIT
    + """
import networkx
from skbnp import plot
plot.TraceDisplay.from_estimator(mixture.fit(X)).figure_.savefig("traces.png")
plot.ClusterDisplay.from_estimator(mixture, X).figure_.savefig("clusters.png")
""",
    "progress": FIT
    + """
from skbnp.progress import ProgressBar
mixture.set_callbacks(ProgressBar()).fit(X)
""",
    "arviz": FIT
    + """
data = mixture.fit(X).posterior_.to_arviz()
data.to_netcdf("posterior.nc")
""",
    "dask": FIT
    + """
import joblib
from distributed import Client
if __name__ == "__main__":
    with Client(processes=False, n_workers=1, dashboard_address=None):
        with joblib.parallel_config("dask"):
            assert mixture.fit(X).n_clusters_ == 2
""",
    "cli": FIT
    + """
import pandas as pd
from skbnp.command_line import main
pd.DataFrame(X, columns=["a", "b"]).to_csv("table.csv")
code = main(["cluster", "table.csv", "--report", "table.html"])
sys.exit(code)
""",
}


def run(*command, **options):
    subprocess.run([os.fspath(part) for part in command], check=True, **options)


def use(wheel, extra):
    """Install, and run what stands above."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        venv.create(folder / "venv", with_pip=True, upgrade_deps=True)
        python = folder / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
        pip = (python, "-m", "pip", "--quiet", "--disable-pip-version-check")
        run(*pip, "install", f"{wheel}[{extra}]" if extra else wheel)
        run(*pip, "check")
        script = folder / "use.py"
        script.write_text(USES[extra], encoding="utf-8")
        run(python, script, cwd=folder, env={**os.environ, "MPLBACKEND": "Agg", "PYTHONPATH": ""})


def use_all(wheel, extras):
    """Each after the other; how many failed."""
    n_failed = 0
    for extra in extras:
        try:
            use(Path(wheel).resolve(), extra)
        except subprocess.CalledProcessError as error:
            n_failed += 1
            print(f"[{extra}]: FAILED, {error}", flush=True)
        else:
            print(f"[{extra}]: passed", flush=True)
    return n_failed


if __name__ == "__main__":
    sys.exit(use_all(sys.argv[1], sys.argv[2:] or list(USES)) > 0)
