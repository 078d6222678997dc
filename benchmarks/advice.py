"""Is what warnings advise worth following, and what they no longer say?

Cells: a fifth of the cells of a table is removed and filled by the default model of an imputer,
then by chains four times as long. ``r_hat_`` is what the imputer judges its chains by, "R-hat" that
of ``log_density``, by which the model alone would be judged; errors are root mean squares in
standard deviations of the columns, "held" is the share of cells in 90 % intervals.

Few rows: a mixture with full covariances and one with diagonal ones learn from three or six rows a
column, and are scored on all other rows, up to 400. "correlated" multiplies the columns by a matrix
that makes correlations of .7 to .99 of them; diagonal covariances then know nothing.

Simulated tables with known clusters (`--data`), every third of those with more than four columns,
or four for few rows, which no default of the two was chosen by. Prints Markdown.
"""

import warnings

import numpy as np
from _command import SHORT, command_line
from _report import markdown
from _tables import simulated, standardised
from threadpoolctl import threadpool_limits

from skbnp import BNPImputer, DirichletProcessMixture
from skbnp.imputer import default_model

MOST_ROWS, ROWS_PER_COLUMN = 600, (3, 6)


def cells(X, seed, longer, **options):
    """What the default model fills in, and with chains so many times as long."""
    rng = np.random.default_rng(seed)
    removed = rng.random(X.shape) < 0.2
    removed[removed.all(axis=1)] = False
    table, found = np.where(removed, np.nan, X), {}
    short = {"estimator": default_model(table).set_params(**options)} if options else {}
    imputer = BNPImputer(random_state=seed, **short).fit(table)
    sweeps = imputer.estimator_.posterior_.n_warmup
    for times in (1, longer):
        if times > 1:
            model = default_model(table).set_params(**options | {"n_warmup": times * sweeps})
            imputer = BNPImputer(estimator=model, random_state=seed).fit(table)
        low, high = imputer.intervals(level=0.9)
        off = (imputer.transform(table) - X)[removed]
        inside = (low <= X) & (high >= X)
        found |= {
            f"r_hat_ x{times}": imputer.r_hat_,
            f"R-hat x{times}": imputer.estimator_.posterior_.rhat()["log_density"],
            f"error x{times}": float(np.sqrt(np.mean(off**2))),
            f"held x{times}": float(inside[removed].mean()),
        }
    return found


def correlated(X, seed):
    """The table in columns that share most of what they are."""
    rng = np.random.default_rng(seed)
    d = X.shape[1]
    return X @ (0.1 * rng.normal(size=(d, d)) + np.outer(np.ones(d), np.ones(d)) / np.sqrt(d))


def few_rows(X, rows_per_column, seed, **options):
    """Log densities of other rows, full less diagonal covariances, and numbers of clusters."""
    order, n = np.random.default_rng(seed).permutation(len(X)), rows_per_column * X.shape[1]
    found = []
    for shape in ("full", "diag"):
        mixture = DirichletProcessMixture(covariance_type=shape, random_state=seed, **options)
        mixture.fit(X[order[:n]])
        found.append((mixture.score(X[order[n : n + 400]]), mixture.n_clusters_))
    (full, k_full), (diagonal, k_diagonal) = found
    return {"full - diag": full - diagonal, "clusters": k_full, "diag": k_diagonal}


def line(name, found):
    """Medians of the figures of some tables, and the extremes of the first."""
    first = next(iter(found[0]))
    medians = {key: float(np.median([one[key] for one in found])) for key in found[0]}
    ends = [float(np.quantile([one[first] for one in found], q)) for q in (0, 1)]
    return {"tables": name, "n": len(found), **medians, "least": ends[0], "most": ends[1]}


def main():
    """Run and print."""
    parser = command_line(__doc__, "one table of each kind, short chains")
    parser.add_argument("--every", type=int, default=3, help="simulated tables")
    parser.add_argument("--longer", type=int, default=4, help="times the sweeps of warm-up")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if not arguments.data.exists():
        print("no data")
        return
    tables = [standardised(X)[:MOST_ROWS] for _, X, _ in simulated(arguments.data)]
    every, options = (len(tables), SHORT) if arguments.quick else (arguments.every, {})
    with threadpool_limits(1):
        wide = [X for X in tables if X.shape[1] > 4][::every]
        found = [cells(X, 0, arguments.longer, **options) for X in wide]
        print("\n" + markdown([line("a fifth of the cells removed", found)]), flush=True)
        lines = []
        for name, change in (("as they are", lambda X, _: X), ("correlated", correlated)):
            some = [X for X in tables if X.shape[1] > 3][::every]
            for rows in ROWS_PER_COLUMN:
                fits = [
                    few_rows(change(X, 0), rows, 0, **options)
                    for X in some
                    if len(X) > (rows + 5) * X.shape[1]
                ]
                lines.append(line(f"{name}, {rows} rows a column", fits))
                print(f"  {lines[-1]}", flush=True)
    print("\n" + markdown(lines))


if __name__ == "__main__":
    main()
