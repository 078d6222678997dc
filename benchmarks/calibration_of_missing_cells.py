"""Share of removed cells inside the 90 % intervals of the mixture, by training and new rows.

A fifth of the cells of a table is removed at random, columns standardised. The mixture learns from
three quarters of the rows; intervals of the removed cells are the quantiles .05 and .95 of 400
tables of `sample_missing` ("draws"), and the mean with 1.645 standard deviations of `impute`
("deviations"), of these rows and of the others. Prints a Markdown table. Tables and splits for
choices unless --reported.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from _report import markdown
from _tables import CHOICE_SEED, REAL_FOR_CHOICES, loaded, standardised

from skbnp import DirichletProcessMixture

SHARE, N_TABLES, WIDTH = 0.2, 400, 1.645
REPORTED = ("wine", "redwine with quality", "gaussian14", "abalone", "cloud")


def holed(X, seed, n_rows):
    """At most so many standardised rows, and which of their cells are removed."""
    rng = np.random.default_rng(seed)
    X = standardised(X[rng.permutation(len(X))[:n_rows]])
    holes = rng.random(X.shape) < SHARE
    holes[holes.all(axis=1), 0] = False
    return X, holes


def figures(model, given, truth, holes):
    """Shares of removed cells inside both intervals."""
    drawn = np.array(model.sample_missing(given, N_TABLES, random_state=0))[:, holes]
    low, high = np.quantile(drawn, [0.05, 0.95], axis=0)
    mean, std = (one[holes] for one in model.impute(given, return_std=True))
    return {
        "draws": np.mean((truth[holes] >= low) & (truth[holes] <= high)),
        "deviations": np.mean(np.abs(truth[holes] - mean) <= WIDTH * std),
        "rmse": np.sqrt(np.mean((truth[holes] - mean) ** 2)),
    }


def main():
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--reported", action="store_true", help="the tables that are reported")
    parser.add_argument("--tables", nargs="+", help="these alone")
    parser.add_argument("--rows", type=int, default=800, help="at most so many, training and new")
    parser.add_argument("--warmup", type=int, default=200)
    parser.add_argument("--draws", type=int, default=200)
    arguments = parser.parse_args()
    names = arguments.tables or (REPORTED if arguments.reported else REAL_FOR_CHOICES)
    seed = 0 if arguments.reported else CHOICE_SEED
    warnings.simplefilter("ignore")
    rows = []
    for name, X, _ in loaded(names, arguments.data):
        truth, holes = holed(X, seed, arguments.rows)
        given, n = np.where(holes, np.nan, truth), len(truth) * 3 // 4
        start = time.process_time()
        model = DirichletProcessMixture(
            n_warmup=arguments.warmup, n_draws=arguments.draws, random_state=seed
        ).fit(given[:n])
        rhat = max(model.posterior_.rhat()[name] for name in ("log_joint", "n_clusters"))
        shown = {"seconds": time.process_time() - start, "R-hat": rhat}
        for part, which in (("training", slice(n)), ("new", slice(n, None))):
            found = figures(model, given[which], truth[which], holes[which])
            rows.append({"table": name, "rows": part} | found | shown)
            print(rows[-1], flush=True)
    print(markdown(rows))


if __name__ == "__main__":
    main()
