"""Share of removed cells inside the 90 % intervals of the mixture, by training and new rows.

A fifth of the cells of a table is removed at random, columns standardised. The mixture learns from
three quarters of the rows; intervals of the removed cells are the quantiles .05 and .95 of 400
tables of `sample_missing` ("draws"), and the mean with 1.645 standard deviations of `impute`
("deviations"), of these rows and of the others. The same again from complete training rows: what
the missing cells cost, in the agreement of chains (the largest R-hat of the kept draws) and in the
intervals of new rows. All defaults unless lengths are given. Prints Markdown tables. Tables and
splits for choices unless --reported.
"""

import warnings

import numpy as np
from _command import SHORT, command_line
from _report import cpu_seconds, markdown
from _tables import CHOICE_SEED, REAL_FOR_CHOICES, loaded, standardised
from threadpoolctl import threadpool_limits

from skbnp import DirichletProcessMixture

SHARE, N_TABLES, WIDTH = 0.2, 400, 1.645
PARTS = ("draws", "deviations", "rmse")
TRACES = ("log_joint", "log_density", "n_clusters")
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


def one_table(truth, holes, options):
    """Lines on training rows, new rows and new rows after complete training rows; and the chains.

    The chains of incomplete rows come first, then those of complete ones.
    """
    given, n = np.where(holes, np.nan, truth), len(truth) * 3 // 4
    training, new = slice(n), slice(n, None)
    lines, chains = [], []
    for rows, parts in ((given, (training, new)), (truth, (new,))):
        model, seconds = cpu_seconds(DirichletProcessMixture(**options).fit, rows[training])
        complete = rows is truth
        for which in parts:
            said = "training" if which is training else "new"
            found = figures(model, given[which], truth[which], holes[which])
            lines.append({"rows": said + ", learned from all cells" * complete} | found)
        rhat = model.posterior_.rhat()
        length = f"{model.n_warmup_} + {model.n_draws_ * model.posterior_.sweeps_per_draw}"
        figure = {"training rows": "complete" if complete else "20 % missing", "sweeps": length}
        figure |= {f"R-hat {name}": rhat[name] for name in TRACES}
        k = float(model.posterior_.traces["n_clusters"].mean())
        chains.append(figure | {"K": k, "CPU s": seconds})
    return lines, chains


def main():
    """Run and print."""
    parser = command_line(__doc__, "100 rows of wine, short chains")
    parser.add_argument("--reported", action="store_true", help="the tables that are reported")
    parser.add_argument("--tables", nargs="+", help="these alone")
    parser.add_argument("--rows", type=int, default=800, help="at most so many, training and new")
    parser.add_argument("--warmup", type=int, help="sweeps, otherwise as many as are needed")
    parser.add_argument("--draws", type=int)
    arguments = parser.parse_args()
    names = arguments.tables or (REPORTED if arguments.reported else REAL_FOR_CHOICES)
    seed = 0 if arguments.reported else CHOICE_SEED
    options, n_rows = {"random_state": seed}, arguments.rows
    if arguments.quick:
        names, n_rows = arguments.tables or ["wine"], min(n_rows, 100)
        options |= SHORT
    if arguments.warmup is not None:
        options["n_warmup"] = arguments.warmup
    if arguments.draws is not None:
        options["n_draws"] = arguments.draws
    warnings.simplefilter("ignore")
    cells, chains = [], []
    for name, X, _ in loaded(names, arguments.data):
        with threadpool_limits(1):
            found = one_table(*holed(X, seed, n_rows), options)
        for some, lines in zip((cells, chains), found, strict=True):
            some += [{"table": name} | line for line in lines]
            print(*some[-len(lines) :], sep="\n", flush=True)
    for rows in dict.fromkeys(line["rows"] for line in cells):
        some = [line for line in cells if line["rows"] == rows]
        means = {part: float(np.mean([line[part] for line in some])) for part in PARTS}
        cells.append({"table": "mean", "rows": rows} | means)
    print(markdown(cells), markdown(chains), sep="\n\n")


if __name__ == "__main__":
    main()
