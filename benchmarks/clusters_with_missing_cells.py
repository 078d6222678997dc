"""Are the clusters of tables with missing cells those of the rows?

Three Gaussian clusters in three columns with a share of all cells removed, and others of which half
of the rows lack the column that tells two clusters apart; then simulated tables with known clusters
(`--data`), some of them. Adjusted Rand index of ``labels_``, of the consensus of the draws as
they are and of the most probable clusters under the law that made the rows; of ``predict`` for the
same rows without holes, and the 5 % quantile of their largest probabilities. Defaults, means over
seeds. Prints Markdown.
"""

import warnings

import numpy as np
from _command import SHORT, command_line
from _report import cpu_seconds, markdown
from _tables import simulated, standardised
from scipy.stats import norm
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from skbnp import DirichletProcessMixture
from skbnp.summaries.consensus import stable_consensus

MOST_ROWS = 600


def with_holes(X, holes, *others):
    """Rows that have some cell left, with the same rows of the others."""
    X = np.where(holes, np.nan, X)
    kept = ~np.isnan(X).all(axis=1)
    return tuple(one[kept] for one in (X, *others))


def blobs(share, seed):
    """Three clusters, centres of standard deviation six; a share of all cells removed."""
    rng = np.random.default_rng(seed)
    label, centers = rng.integers(3, size=300), 6.0 * rng.normal(size=(3, 3))
    X = centers[label] + rng.normal(size=(300, 3))
    return *with_holes(X, rng.random(X.shape) < share, label, X), centers


def one_column(share, seed):
    """Three clusters ten apart; a share of the first column, by which alone two differ."""
    rng = np.random.default_rng(seed)
    label, centers = np.repeat(range(3), [300, 250, 150]), np.array([[0, 0], [10, 0], [0, 10]])
    X = centers[label] + rng.normal(size=(700, 2))
    holes = (rng.random(X.shape) < share) & [True, False]
    return *with_holes(X, holes, label, X), centers


def best_labels(X, centers):
    """The most probable cluster of each row by the cells that it has, all clusters alike."""
    return np.argmax([np.nansum(norm.logpdf(X, mean), axis=1) for mean in centers], axis=0)


def figures(X, label, seed, complete=None, centers=None, **options):
    """Rand indices of the answers, their numbers of clusters, and CPU seconds."""
    mixture = DirichletProcessMixture(random_state=seed, **options)
    seconds = cpu_seconds(mixture.fit, X)[1]
    of_draws = stable_consensus(mixture._label_draws(), random_state=0)[0]
    best = of_complete = least = np.nan
    if centers is not None:
        best = adjusted_rand_score(label, best_labels(X, centers))
        of_complete = adjusted_rand_score(label, mixture.predict(complete))
        least = np.quantile(mixture.predict_proba(complete).max(axis=1), 0.05)
    return {
        "labels_": adjusted_rand_score(label, mixture.labels_),
        "components": adjusted_rand_score(label, mixture.component_labels_),
        "components of the draws as they are": adjusted_rand_score(label, of_draws),
        "best": best,
        "predict, complete": of_complete,
        "least sure 5 %": least,
        "clusters": mixture.n_clusters_,
        "components, number": int(mixture.component_labels_.max()) + 1,
        "of the draws": int(of_draws.max()) + 1,
        "CPU s": seconds,
    }


def line(name, found):
    """Means of the figures of some fits."""
    means = {key: float(np.mean([one[key] for one in found])) for key in found[0]}
    return {"tables": name, "fits": len(found), **means}


def main():
    """Run and print."""
    parser = command_line(__doc__, "one seed, a fifth removed, short chains")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(6)))
    parser.add_argument("--every", type=int, default=4, help="simulated tables, 0 for none")
    arguments = parser.parse_args()
    seeds, shares, options = arguments.seeds, (0.2, 0.4, 0.5, 0.6), {}
    if arguments.quick:
        seeds, shares, options = seeds[:1], shares[:1], SHORT
    warnings.simplefilter("ignore")
    lines = []
    with threadpool_limits(1):
        for make in (blobs, one_column):
            for share in shares:
                found = []
                for seed in seeds:
                    X, label, complete, centers = make(share, seed)
                    found.append(figures(X, label, seed, complete, centers, **options))
                lines.append(line(f"{make.__name__}, {share:.0%} removed", found))
                print(f"  {lines[-1]}", flush=True)
        if arguments.every and arguments.data.exists():
            tables = list(simulated(arguments.data))
            tables = tables[:1] if arguments.quick else tables[:: arguments.every]
            for share in shares[:2]:
                found = []
                for _, X, label in tables:
                    rng = np.random.default_rng(0)
                    rows = rng.permutation(len(X))[:MOST_ROWS]
                    X, holes = standardised(X[rows]), rng.random((len(rows), X.shape[1])) < share
                    X, label = with_holes(X, holes, np.asarray(label)[rows])
                    found.append(figures(X, label, 0, **options))
                lines.append(line(f"simulated, {share:.0%} removed", found))
                print(f"  {lines[-1]}", flush=True)
    print("\n" + markdown(lines))


if __name__ == "__main__":
    main()
