"""BNPImputer beside scikit-learn's imputers: errors, coverage of intervals, multiple imputation.

A fifth of the cells of a table is removed, at random or by blocks of columns: the columns are cut
into three blocks, and three fifths of the rows lack one of them. Columns are standardised, a method
learns from the table with the holes and fills it; errors are root mean squares over the removed
cells in standard deviations of the columns, "held" is the share of them in the imputer's 90 %
intervals. Everything at its defaults, but for the regression trees of IterativeImputer, which are
100 of "extra" kind.

The last part simulates tables whose second column is missing the likelier the larger the target,
and the first at random. A regression is estimated from 20 completed tables and pooled by Rubin's
rules, and from the one table of IterativeImputer as if it had been complete: "held" is the share of
coefficients in their 95 % intervals. The chains are short there.

--choice compares the two models that the imputer chooses from, on tables of which no benchmark
knows. Prints Markdown tables.
"""

import warnings

import numpy as np
from _command import command_line
from _report import cpu_seconds, markdown
from _tables import CHOICE_SEED, load, loaded, standardised
from scipy import stats
from sklearn import datasets
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer
from threadpoolctl import threadpool_limits

from skbnp import BNPImputer, DirichletProcessMixture, TreeFactorModel
from skbnp.summaries import pool

TABLES = ("iris", "wine", "cancer10", "diabetes", "redwine", "abalone", "cloud", "yeast")
PATTERNS = ("random", "blocks")
SHARE, LEVEL, N_BLOCKS = 0.2, 0.9, 3
TRUTH = np.array([1.0, 1.0, -1.0])  # intercept and coefficients of the regression


# -- tables


def holes_of(shape, pattern, rng):
    """Which cells are removed; every row keeps one."""
    n, d = shape
    if pattern == "random":
        holes = rng.random(shape) < SHARE
    else:
        block = np.arange(d) * N_BLOCKS // d
        lost = np.where(rng.random(n) < N_BLOCKS * SHARE, rng.integers(N_BLOCKS, size=n), -1)
        holes = block == lost[:, np.newaxis]
    holes[holes.all(axis=1), 0] = False
    return holes


def holed(X, pattern, seed, n_rows):
    """Standardised rows, at most so many, and which of their cells are removed."""
    rng = np.random.default_rng(seed)
    X = standardised(X[rng.permutation(len(X))[:n_rows]])
    return X, holes_of(X.shape, pattern, rng)


def low_rank(n, d, n_factors, seed):
    rng = np.random.default_rng(seed)
    loadings = rng.normal(size=(n_factors, d))
    return rng.normal(size=(n, n_factors)) @ loadings + 0.6 * rng.normal(size=(n, d))


def classes(n, d, seed):
    """Three classes with covariances of their own, a quarter of the columns redundant."""
    options = dict(n_informative=d // 2, n_redundant=d // 4, n_classes=3, n_clusters_per_class=1)
    return datasets.make_classification(n, d, random_state=seed, **options)[0]


def for_choices(data):
    """(name, X) of tables that nothing else knows."""
    yield "linnerud", np.column_stack(datasets.load_linnerud(return_X_y=True))
    yield "s-curve", datasets.make_s_curve(200, noise=0.1, random_state=101)[0]
    yield "blobs, 4", datasets.make_blobs(200, 4, centers=4, cluster_std=2.0, random_state=102)[0]
    X, y = datasets.make_friedman1(200, 6, noise=0.5, random_state=103)
    yield "friedman, 7", np.column_stack([X, y])
    yield "low rank, 8", low_rank(150, 8, 3, 104)
    yield "classes, 8", classes(200, 8, 105)
    white = load("whitewine", data)[0]
    yield "white wine, 11", white[np.random.default_rng(106).permutation(len(white))[:250]]
    yield "classes, 16", classes(150, 16, 107)


# -- methods


def peers(seed, quick):
    """Name -> imputer of scikit-learn."""
    trees = ExtraTreesRegressor(20 if quick else 100, random_state=seed)
    options = dict(random_state=seed, **(dict(max_iter=3) if quick else {}))
    return {
        "KNN": KNNImputer(),
        "ridge": IterativeImputer(**options),
        "trees": IterativeImputer(trees, **options),
    }


def error(filled, truth, holes):
    return float(np.sqrt(np.mean((filled - truth)[holes] ** 2)))


def ours(model, given, truth, holes):
    """Error and coverage of an imputer of ours."""
    out = {"error": error(model.fit_transform(given), truth, holes)}
    low, high = model.intervals(level=LEVEL, random_state=0)
    return out | {"held": float(np.mean(((low <= truth) & (truth <= high))[holes]))}


def compare(name, X, pattern, arguments):
    """The line of one table."""
    truth, holes = holed(X, pattern, arguments.seed, arguments.rows)
    given = np.where(holes, np.nan, truth)
    line = {"table": name, "missing": pattern, "rows": len(X), "columns": X.shape[1]}
    for peer, imputer in peers(arguments.seed, arguments.quick).items():
        line[peer] = error(imputer.fit_transform(given), truth, holes)
    best = min(line[peer] for peer in ("KNN", "ridge", "trees"))
    model = BNPImputer(random_state=arguments.seed, n_jobs=1)
    found, seconds = cpu_seconds(ours, model, given, truth, holes)
    line |= {"rows": len(truth), "BNPImputer": found["error"], "held": found["held"]}
    return line | {"to the best": found["error"] / best, "CPU s": seconds}


def errors(arguments):
    """Errors and coverage on the tables of the benchmark."""
    lines = []
    for name, X, _ in loaded(arguments.tables or TABLES, arguments.data):
        for pattern in PATTERNS:
            lines.append(compare(name, X, pattern, arguments))
            print(lines[-1], flush=True)
    ratio, held = (np.array([line[key] for line in lines]) for key in ("to the best", "held"))
    print(markdown(lines))
    print(
        f"\nno worse than the best of the others on {np.sum(ratio <= 1)} of {len(ratio)}, at most "
        f"{ratio.max():.3f} times its error; 90 % intervals hold {held.mean():.3f}"
    )


def choice(arguments):
    """Both models that the imputer chooses from."""
    lines = []
    for name, X in for_choices(arguments.data):
        truth, holes = holed(X, "random", 100 + CHOICE_SEED, arguments.rows)
        line = {"table": name, "rows": len(truth)}
        for model in (DirichletProcessMixture(), TreeFactorModel()):
            imputer = BNPImputer(estimator=model, random_state=CHOICE_SEED, n_jobs=1)
            found, seconds = cpu_seconds(
                ours, imputer, np.where(holes, np.nan, truth), truth, holes
            )
            short = "mixture" if isinstance(model, DirichletProcessMixture) else "tree"
            line |= {f"{short} {key}": x for key, x in (found | {"CPU s": seconds}).items()}
        lines.append(line)
        print(line, flush=True)
    print(markdown(lines))


# -- multiple imputation


def regression(table):
    """Least squares of the last column on the others: coefficients and their variances."""
    y, Z = table[:, -1], np.column_stack([np.ones(len(table)), table[:, :-1]])
    inverse = np.linalg.inv(Z.T @ Z)
    coefficient = inverse @ Z.T @ y
    variance = np.sum((y - Z @ coefficient) ** 2) / (len(y) - Z.shape[1])
    return coefficient, variance * np.diag(inverse)


def simulated(n_rows, rng):
    """Two columns and the target, with holes."""
    x = rng.multivariate_normal([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]], size=n_rows)
    y = TRUTH[0] + x @ TRUTH[1:] + rng.normal(size=n_rows)
    table = np.column_stack([x, y])
    table[rng.random(n_rows) < 0.2, 0] = np.nan
    table[rng.random(n_rows) < 1 / (1 + np.exp(0.5 - (y - TRUTH[0]))), 1] = np.nan
    return table


def rubin(arguments):
    """Shares of 95 % intervals that hold the coefficients, pooled and of a single filling."""
    n_rows, hits = 100, {"20 tables, pooled": [], "IterativeImputer, once": []}
    widths = {name: [] for name in hits}
    for seed in range(arguments.n_simulated):
        given = simulated(n_rows, np.random.default_rng(seed))
        model = DirichletProcessMixture(n_chains=2, n_warmup=100, n_draws=100)
        imputer = BNPImputer(estimator=model, random_state=seed, n_jobs=1).fit(given)
        found = zip(*(regression(table) for table in imputer.multiple(20)), strict=True)
        pooled = pool(*found, n_rows - len(TRUTH)).interval()
        center, variance = regression(IterativeImputer(random_state=seed).fit_transform(given))
        half = stats.t.ppf(0.975, n_rows - len(TRUTH)) * np.sqrt(variance)
        for name, (low, high) in zip(hits, (pooled, (center - half, center + half)), strict=True):
            hits[name].append((low <= TRUTH) & (high >= TRUTH))
            widths[name].append(high - low)
        if seed % 10 == 9:
            print(seed + 1, {name: round(float(np.mean(x)), 3) for name, x in hits.items()},
                  flush=True)  # fmt: skip
    lines = []
    for name, some in hits.items():
        share, width = np.mean(some, axis=0), np.mean(widths[name], axis=0)
        line = {"intervals": name, "tables": arguments.n_simulated, "held": float(share.mean())}
        line |= dict(zip(("intercept", "first", "second"), share.tolist(), strict=True))
        lines.append(line | {"width": float(width.mean())})
    print(markdown(lines))


PARTS = {"errors": errors, "rubin": rubin}


def main():
    """Run and print."""
    parser = command_line(__doc__, "fewer rows, tables and trees", parts=PARTS)
    parser.add_argument("--choice", action="store_true", help="the choice of the default alone")
    parser.add_argument("--tables", nargs="+", help="these alone")
    parser.add_argument("--rows", type=int, default=800, help="at most so many")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--n-simulated", type=int, default=200)
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rows = min(arguments.rows, 150)
        arguments.n_simulated = min(arguments.n_simulated, 20)
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        if arguments.choice:
            choice(arguments)
            return
        for part in arguments.part:
            PARTS[part](arguments)


if __name__ == "__main__":
    main()
