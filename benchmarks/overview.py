"""One screen: every kernel beside its floor, every estimator beside a peer, as ratios.

- *sweep*: a sweep beside the operations that it cannot do without, measured by turns: matrix
  products, exponentials, copies of rows;
- *rows*: `score_samples` of many rows under 100 draws, per row, beside a hundred calls of
  scikit-learn's GaussianMixture with as many components: the same densities without draws;
- *one row*: milliseconds of `score_samples` of a single row, after a call that prepares the draws;
- *fit*: all defaults, and one chain, beside GaussianMixture with 1 to 20 components, one start
  each, chosen by BIC: clusters far apart, and those of the published setting (a);
- *import*: beside that of scikit-learn's mixtures.

CPU seconds, one BLAS thread. --record appends a line of all ratios, with version and date, to
history/ratios.jsonl. Prints Markdown.
"""

import json
import os
import subprocess
import sys
import tempfile
import warnings
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from _command import command_line
from _report import cpu_seconds, markdown, shortest
from _tree_factor_model_cost import chain as tree_chain
from _tree_factor_model_cost import flops, gemm_rate, planted
from dirichlet_process_mixture import blobs, start_chain
from dirichlet_process_mixture_quality import SETTINGS
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

import skbnp

HISTORY = Path(__file__).parent / "history" / "ratios.jsonl"
N_DRAWS, K = 100, 10
# Of estimators that give densities: sweeps of warm-up, for the draws of the predictions.
ESTIMATORS = {
    "DirichletProcessMixture": 30,
    "TreeFactorModel": 30,
    "InfiniteFactorClusterer": 30,
    "CIBPBeliefNet": 60,
    "ICPNetwork": 30,
    "DeepScaleModel": 30,
}


def by_turns(functions, repeats):
    """The shortest of a few of each, all in turn: a machine that slows down slows all of them."""
    rounds = [[cpu_seconds(function)[1] for function in functions] for _ in range(repeats)]
    return [min(times) for times in zip(*rounds, strict=True)]


def ratio(what, which, here, beside, unit=1.0, of="s"):
    """A line: a time and the one that it is measured against, both in ``of``."""
    return {
        "what": what, "of": which, "time": unit * here, "beside": unit * beside, "unit": of,
        "ratio": here / beside,
    }  # fmt: skip


def mixture_sweeps(quick):
    """The parallel pass over all rows: its products, exponentials and a copy of the rows."""
    n = 1_000 if quick else 50_000
    for d in (8, 32):
        X, label = blobs(n, d, K)
        sampler = start_chain(X, label, "full", n_warmup=2, algorithm="parallel")
        weights = np.random.default_rng(0).normal(size=(d, K * d))
        small = np.full((n, K), -1.0)
        one, *floors = by_turns(
            (
                lambda s=sampler: s.sweep_only("all_rows"),
                lambda X=X, w=weights: X @ w,
                lambda x=small: np.exp(x),
                X.copy,
            ),
            3,
        )
        yield ratio("sweep", f"mixture, all rows, D = {d}", one, sum(floors), 1e6 / n, "us a row")


def tree_sweep(quick):
    """Of the tree, beside its matrix products."""
    n = 2_000 if quick else 20_000
    sampler = tree_chain(planted(n, 64, 8, 6), 32, (16, 32), 3)
    rounds = [(gemm_rate(), cpu_seconds(sampler.sweep)[1]) for _ in range(5)]
    rate, one = max(rate for rate, _ in rounds), min(time for _, time in rounds)
    products = sum(flops(sampler)) / rate
    yield ratio("sweep", "tree, D = 64", one, products, 1e6 / n, "us a row")


def predictions(quick, estimators):
    """Densities of many rows and of one."""
    n = 300 if quick else 3_000
    X, _ = blobs(200 if quick else 1_000, 8, K)
    new, _ = blobs(n, 8, K)
    peer = GaussianMixture(K, random_state=0).fit(X)
    of_peer = N_DRAWS * shortest(peer.score_samples, new, repeats=5)
    one_of_peer = shortest(peer.score_samples, new[:1], repeats=9)
    lines = []
    for name in estimators:
        lengths = {"n_warmup": ESTIMATORS[name], "n_draws": N_DRAWS // 2}
        model = getattr(skbnp, name)(n_chains=2, n_jobs=1, random_state=0, **lengths).fit(X)
        model.score_samples(new[:1])
        here = shortest(model.score_samples, new, repeats=1)
        one = float(np.median([cpu_seconds(model.score_samples, row[np.newaxis])[1]
                               for row in new[:11]]))  # fmt: skip
        lines.append(ratio("rows", name, here, of_peer, 1e6 / n, "us a row"))
        lines.append(ratio("one row", name, one, one_of_peer, 1e3, "ms"))
    return sorted(lines, key=lambda line: line["what"] != "rows")


def fits(quick):
    """Defaults beside a search."""
    n = 200 if quick else 10_000
    apart, _ = blobs(n, 8, K)
    near, _ = SETTINGS["a1: 10 clusters"].population.draw(n, 10)

    def search(X):
        found = [GaussianMixture(k, random_state=0).fit(X) for k in range(1, 6 if quick else 21)]
        return min(found, key=lambda one: one.bic(X))

    options = {"n_warmup": 20, "n_draws": 10} if quick else {}
    for name, X in {"far apart": apart, "(a)": near}.items():
        four, one = (
            skbnp.DirichletProcessMixture(random_state=0, **options, **more)
            for more in ({}, {"n_chains": 1})
        )
        of_peer, of_four, of_one = by_turns(
            [
                lambda X=X: search(X),
                lambda m=four, X=X: m.fit(X),
                lambda m=one, X=X: m.fit(X),
            ],
            1 if quick else 3,
        )
        for chains, here in {"four chains": of_four, "one chain": of_one}.items():
            yield ratio("fit", f"mixture, {n} x 8, {name}, {chains}", here, of_peer)


def imports():
    """In processes of their own, all modules compiled as an installer leaves them."""
    with tempfile.TemporaryDirectory() as compiled:
        environment = os.environ | {"PYTHONPYCACHEPREFIX": compiled, "PYTHONDONTWRITEBYTECODE": ""}

        def seconds(module):
            code = f"import time; {module}; print(time.process_time())"
            done = subprocess.run(
                [sys.executable, "-c", code],
                capture_output=True, text=True, check=True, env=environment,
            )  # fmt: skip
            return float(done.stdout)

        modules = ("from skbnp import DirichletProcessMixture", "import sklearn.mixture")
        for module in modules:
            seconds(module)  # compiles
        rounds = [list(map(seconds, modules)) for _ in range(5)]
        here, peer = (min(times) for times in zip(*rounds, strict=True))
    yield ratio("import", "mixture", here, peer)


def measured(quick, estimators):
    """All lines."""
    yield from mixture_sweeps(quick)
    yield from tree_sweep(quick)
    yield from predictions(quick, estimators)
    yield from fits(quick)
    yield from imports()


def record(lines, path):
    """Append the ratios to the history."""
    found = {f"{line['what']}: {line['of']}": round(line["ratio"], 3) for line in lines}
    entry = {"version": skbnp.__version__, "date": f"{datetime.now(UTC):%Y-%m-%d}", "ratios": found}
    path.parent.mkdir(exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(entry) + "\n")


def main():
    """Measure, print, and record where that is asked for."""
    parser = command_line(__doc__, "fewer rows, short chains", reads_data=False)
    parser.add_argument("--estimators", nargs="*", choices=ESTIMATORS, default=list(ESTIMATORS))
    parser.add_argument("--record", action="store_true", help=f"append to {HISTORY.name}")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        lines = list(measured(arguments.quick, arguments.estimators))
    print(markdown(lines))
    if arguments.record:
        record(lines, HISTORY)


if __name__ == "__main__":
    main()
