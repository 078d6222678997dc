"""Fits and predictions of every estimator by two builds, by turns: CPU seconds and their ratio.

    python benchmarks/_compare_builds.py OLD NEW

OLD and NEW are checkouts whose extension modules are built in place. One chain with a long warm-up,
so that nearly all of it is sweeps; parameters that both have had. Then the densities of a thousand
rows, or their predicted targets, and of single ones, after a call that prepares the draws. Each
round is a process of its own for each build, in changing order; the shortest of the rounds counts.
Prints Markdown, and ends with an error if a row is slower by more than a tenth.
"""

import argparse
import json
import os
import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from _report import cpu_seconds, markdown
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

N_ROWS = 1000
SLOWER = 1.1

# Of a case: estimator, table, sweeps of warm-up, other parameters.
CASES = {
    "mixture": ("DirichletProcessMixture", "iris", 25_000, {}),
    "mixture, diagonal": (
        "DirichletProcessMixture", "wine", 3000, {"covariance_type": "diag"},
    ),
    "mixture, ten columns": ("DirichletProcessMixture", "cancer", 1200, {}),
    "mixture, all rows at once": ("DirichletProcessMixture", "long", 60, {}),
    "mixture, all rows at once, diagonal": (
        "DirichletProcessMixture", "long", 60, {"covariance_type": "diag"},
    ),
    "tree": ("TreeFactorModel", "cancer", 1200, {}),
    "CIBP": ("CIBPBeliefNet", "digits", 250, {}),
    "ICP": ("ICPNetwork", "iris", 250, {}),
    "regressor": ("ICPNetworkRegressor", "digits", 250, {}),
    "classifier": ("ICPNetworkClassifier", "digits", 60, {}),
    "clusterer": ("InfiniteFactorClusterer", "wine", 600, {}),
    "scale model": ("DeepScaleModel", "wine", 600, {}),
}  # fmt: skip


def tables():
    """The tables with a target of each row, by name; the long one is sampled all rows at once."""
    rng = np.random.default_rng(0)
    noise = 0.01 * rng.normal(size=(300, 20))
    digits = load_digits()
    centers = rng.normal(0.0, 6.0, (10, 8))
    long = rng.normal(centers[rng.integers(10, size=25_000)])
    long[rng.random(long.shape) < 0.01] = np.nan
    return {
        "iris": (load_iris().data, None),
        "wine": (load_wine().data, None),
        "cancer": (load_breast_cancer().data[:, :10], None),
        "digits": (digits.data[:300, 10:30] + noise, digits.target[:300]),
        "long": (long, None),
    }


def times(cases, shorter):
    """CPU seconds of each case by the library that can be imported here."""
    import skbnp

    warnings.simplefilter("ignore")
    data = tables()
    found = {}
    for name in cases:
        kind, table, n_warmup, options = CASES[name]
        lengths = dict(n_chains=1, n_warmup=max(1, n_warmup // shorter), n_draws=20)
        model = getattr(skbnp, kind)(random_state=0, **lengths, **options)
        X, target = data[table]
        found[name] = cpu_seconds(model.fit, X, target)[1]
        found |= {f"{name}, {what}": spent for what, spent in predictions(model, X)}
    return found


def predictions(model, X):
    """CPU seconds of the densities of a thousand rows, or of their targets, and of one."""
    rows = np.resize(X, (N_ROWS, X.shape[1]))
    names = ("score_samples", "predict_proba", "predict")
    answer = next(getattr(model, name) for name in names if hasattr(model, name))
    answer(rows[:1])
    yield "rows", cpu_seconds(answer, rows)[1]
    yield "one row", min(cpu_seconds(answer, rows[i : i + 1])[1] for i in range(9))


def times_of(build, cases, shorter):
    """Those of a build, found in a process of its own."""
    environment = os.environ | {"PYTHONPATH": str(Path(build).resolve())}
    environment |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
    command = [sys.executable, __file__, "--here", "--shorter", str(shorter), "--cases", *cases]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{build}: {done.stderr}")
    return json.loads(done.stdout)


def compared(run, n_rounds):
    """Rows of the shortest times of two builds and their ratio; ``run(which)`` times all cases."""
    rounds = {0: [], 1: []}
    for i in range(n_rounds):
        for which in (0, 1) if i % 2 == 0 else (1, 0):
            rounds[which].append(run(which))
    rows = []
    for name in rounds[0][0]:
        old, new = (min(found[name] for found in rounds[which]) for which in (0, 1))
        rows.append({"case": name, "old, CPU s": old, "new, CPU s": new, "new / old": new / old})
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("builds", nargs="*", help="two checkouts, OLD and NEW")
    parser.add_argument("--rounds", type=int, default=6, help="processes of each build")
    parser.add_argument("--shorter", type=int, default=1, help="divide all lengths by this")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.here:
        print(json.dumps(times(arguments.cases, arguments.shorter)))
        return
    if len(arguments.builds) != 2:
        parser.error(f"two checkouts are compared, got {len(arguments.builds)}")
    of_build = partial(times_of, cases=arguments.cases, shorter=arguments.shorter)
    rows = compared(lambda which: of_build(arguments.builds[which]), arguments.rounds)
    print(markdown(rows))
    slower = [row["case"] for row in rows if row["new / old"] > SLOWER]
    if slower:
        raise SystemExit(f"slower by more than a tenth: {'; '.join(slower)}")


if __name__ == "__main__":
    main()
