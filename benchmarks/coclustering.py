"""Is the probability that two rows are in one cluster right? Clusters, and components of the draws.

Generated tables with known clusters, Gaussian or skewed, the mixture at its defaults. Pairs of rows
of all tables by the probability that `coclustering` gives them, with and without joins of
components that overlap, and how many of them are of one true cluster; and the mean squared error of
both, the Brier score. Prints Markdown.
"""

import warnings

import numpy as np
from _command import SHORT, command_line
from _report import markdown
from threadpoolctl import threadpool_limits

from skbnp import DirichletProcessMixture

EDGES = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)


def generated(seed):
    """Rows of one to five clusters, and their clusters; exponentials of Gaussians at odd seeds."""
    rng = np.random.default_rng(7000 + seed)
    n, d, k = int(rng.integers(100, 400)), int(rng.integers(2, 7)), int(rng.integers(1, 6))
    label = rng.choice(k, n, p=rng.dirichlet(np.full(k, 4.0)))
    center = rng.uniform(1.5, 3.0) * rng.normal(size=(k, d))
    factor = np.eye(d) + 0.4 * rng.normal(size=(k, d, d))
    spread = np.einsum("nij,nj->ni", factor[label], rng.normal(size=(n, d)))
    if seed % 2:
        spread = np.exp(0.5 * spread)
    return center[label] + spread, label


def of_pairs(seed, **options):
    """Of each pair of rows: whether it is of one cluster, and both probabilities of that."""
    X, label = generated(seed)
    mixture = DirichletProcessMixture(random_state=0, **options).fit(X)
    pairs = np.triu_indices(len(X), 1)
    stated = [mixture.coclustering(joined=joined)[pairs] for joined in (True, False)]
    return np.array([(label[:, np.newaxis] == label)[pairs], *stated])


def main():
    """Run and print."""
    parser = command_line(__doc__, "three tables and short chains", reads_data=False)
    parser.add_argument("--tables", type=int, default=24)
    arguments = parser.parse_args()
    n_tables, options = arguments.tables, {}
    if arguments.quick:
        n_tables, options = min(n_tables, 3), SHORT
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        tables = [of_pairs(seed, **options) for seed in range(n_tables)]
    # Every table counts alike, whatever its number of rows.
    weight = np.concatenate([np.full(table.shape[1], 1.0 / table.shape[1]) for table in tables])
    same, *all_stated = np.concatenate(tables, axis=1)
    rows = []
    for low, high in zip(EDGES, EDGES[1:], strict=False):
        row = {"stated": f"{low:g} to {high:g}"}
        for name, stated in zip(("clusters", "components"), all_stated, strict=True):
            here = (stated >= low) & ((stated < high) | (high == 1.0))
            share = weight[here].sum() / weight.sum()
            mean, found = (
                np.average(x[here], weights=weight[here]) if here.any() else np.nan
                for x in (stated, same)
            )
            row[f"{name}: share of pairs, stated, found"] = f"{share:.3f}, {mean:.2f}, {found:.2f}"
        rows.append(row)
    print(markdown(rows))
    for name, stated in zip(("clusters", "components"), all_stated, strict=True):
        error = np.average((stated - same) ** 2, weights=weight)
        print(f"mean squared error, {name}: {error:.4f}")


if __name__ == "__main__":
    main()
