"""Do the units of columns matter to tree and imputer at their defaults?

Two factors in eight columns, of which three are shrunk: held-out log density of `TreeFactorModel`
with one scale for all columns and with one for each. Then raw tables of scikit-learn with a fifth
of the cells removed: error and width of 90 % intervals in standard deviations of the column, mean
over columns, and the share of cells that these hold; beside scikit-learn's imputers. Prints
Markdown.
"""

import warnings

import numpy as np
from _command import SHORT, command_line
from _report import cpu_seconds, markdown
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer
from threadpoolctl import threadpool_limits

from skbnp import BNPImputer, TreeFactorModel
from skbnp.imputer import default_model

TABLES = {"wine": load_wine, "cancer": load_breast_cancer, "diabetes": load_diabetes}
N_HELD_OUT = 200


def gain(n, size, seeds, **options):
    """Nats a row that a scale of each column gains, mean over seeds."""
    gains = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        scores = rng.normal(size=(n + N_HELD_OUT, 2))
        X = scores @ rng.normal(size=(2, 8)) + 0.5 * rng.normal(size=(n + N_HELD_OUT, 8))
        X[:, 5:] *= size
        common, each = (
            TreeFactorModel(scaling=scaling, random_state=0, **options).fit(X[:n]).score(X[n:])
            for scaling in ("common", "each")
        )
        gains.append(each - common)
    return float(np.mean(gains))


def filled(name, method, X, holes):
    """Error, width and share held of one method on a table with holes."""
    holed, scale = np.where(holes, np.nan, X), X.std(axis=0)
    result, seconds = cpu_seconds(method.fit_transform, holed)
    columns = [(holes[:, j], scale[j], j) for j in range(X.shape[1])]
    error = [np.sqrt(np.mean((result - X)[rows, j] ** 2)) / sd for rows, sd, j in columns]
    line = {"table": name, "error": float(np.mean(error)), "worst": float(np.max(error))}
    line |= {"width": np.nan, "held": np.nan}
    if hasattr(method, "intervals"):
        low, high = method.intervals()
        widths = [np.mean((high - low)[rows, j]) / sd for rows, sd, j in columns]
        line["width"] = float(np.mean(widths))
        line["held"] = float(np.mean(((low <= X) & (X <= high))[holes]))
    return line | {"CPU s": seconds}


def main():
    """Run and print."""
    parser = command_line(__doc__, "one seed, one size, wine alone, short chains", reads_data=False)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    arguments = parser.parse_args()
    seeds, counts, sizes = arguments.seeds, (60, 300), (0.3, 0.1, 0.05, 0.03)
    tables, options = TABLES, {}
    if arguments.quick:
        seeds, counts, sizes = seeds[:1], counts[:1], sizes[:1]
        tables, options = {"wine": TABLES["wine"]}, SHORT
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        lines = [
            {"size of three columns": size, f"{n} rows": gain(n, size, seeds, **options)}
            for n in counts
            for size in sizes
        ]
        by_size = {}
        for one in lines:
            by_size.setdefault(one["size of three columns"], {}).update(one)
        print(markdown(list(by_size.values())))
        lines = []
        for name, load in tables.items():
            X = load().data
            holes = np.random.default_rng(4).random(X.shape) < 0.2
            holed = np.where(holes, np.nan, X)
            short = {"estimator": default_model(holed).set_params(**options)} if options else {}
            one_scale = default_model(holed).set_params(scaling="common", **options)
            methods = {
                "BNPImputer": BNPImputer(random_state=0, **short),
                "one scale": BNPImputer(estimator=one_scale, random_state=0),
                "IterativeImputer": IterativeImputer(random_state=0),
                "KNNImputer": KNNImputer(),
            }
            for said, method in methods.items():
                lines.append({"method": said} | filled(name, method, X, holes))
                print(f"  {lines[-1]}", flush=True)
        print("\n" + markdown(lines))


if __name__ == "__main__":
    main()
