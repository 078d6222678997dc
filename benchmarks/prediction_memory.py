"""What predictions for many rows take of memory, beside the rows and the answers.

Each estimator is fitted to a small table; each of its methods then answers for many new rows in a
process of its own, whose peak is compared with what it held before. Two draws, which memory does
not depend on. Prints Markdown.
"""

import resource
import warnings
from multiprocessing import get_context

import numpy as np
from _command import command_line
from _report import cpu_seconds, markdown

from skbnp import (
    CIBPBeliefNet,
    DirichletProcessMixture,
    ICPNetwork,
    ICPNetworkClassifier,
    ICPNetworkRegressor,
    InfiniteFactorClusterer,
    TreeFactorModel,
)

CHAIN = dict(n_chains=2, n_warmup=20, n_draws=20, random_state=0, predict_draws=2)
ESTIMATORS = {
    "DirichletProcessMixture": DirichletProcessMixture(**CHAIN, merge_overlap=None),
    "TreeFactorModel": TreeFactorModel(**CHAIN),
    "InfiniteFactorClusterer": InfiniteFactorClusterer(**CHAIN),
    "CIBPBeliefNet": CIBPBeliefNet(**CHAIN),
    "ICPNetwork": ICPNetwork(**CHAIN),
    "ICPNetworkRegressor": ICPNetworkRegressor(**CHAIN),
    "ICPNetworkClassifier": ICPNetworkClassifier(**CHAIN),
}
SLOW = ("CIBPBeliefNet", "ICPNetwork")  # a tenth of the rows
METHODS = ("score_samples", "predict", "predict_proba", "transform", "impute")
MEGABYTE = 2.0**20


def table(n, holes=False):
    """Two clusters in four columns, ``holes`` in every tenth row, made without a copy."""
    X = np.random.default_rng(n).normal(size=(n, 4))
    X[n // 2 :] += 4.0
    if holes:
        X[::10, 1] = np.nan
    return X


def peak():
    """Most memory that this process has held, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def growth(model, method, n, answers):
    """Put the growth of the peak, the bytes of the answer and CPU seconds on a queue."""
    X = table(n, holes=method == "impute")
    before = peak()
    answer, seconds = cpu_seconds(getattr(model, method), X)
    answers.put((peak() - before, np.asarray(answer).nbytes, seconds))


def measure(name, model, counts):
    """A line for each method that the estimator has."""
    X = table(200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, (X[:, 0] > 2).astype(float if "Regressor" in name else int))
    context = get_context("fork")
    for method in METHODS:
        if not hasattr(model, method):
            continue
        beside = []
        for n in counts:
            answers = context.Queue()
            process = context.Process(target=growth, args=(model, method, n, answers))
            process.start()
            grown, held, seconds = answers.get()
            process.join()
            beside.append((grown - held) / MEGABYTE)
        yield {
            "estimator": name,
            "method": method,
            "rows": ", ".join(f"{n:,}" for n in counts),
            "MB beside the answer": ", ".join(f"{size:.0f}" for size in beside),
            "CPU s of the most": seconds,
        }


def main():
    """Measure and print."""
    parser = command_line(__doc__, "two thousand rows", reads_data=False)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--only", nargs="+", choices=ESTIMATORS, default=list(ESTIMATORS))
    arguments = parser.parse_args()
    lines = []
    for name in arguments.only:
        counts = [2_000] if arguments.quick else arguments.rows
        counts = [n // 10 for n in counts] if name in SLOW else counts
        for line in measure(name, ESTIMATORS[name], counts):
            lines.append(line)
            print("  " + " | ".join(str(value) for value in line.values()), flush=True)
    print(markdown(lines))


if __name__ == "__main__":
    main()
