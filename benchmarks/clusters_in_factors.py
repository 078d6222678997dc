"""Clusters that differ in two to four factors of many columns, or in all of few rows' columns.

Generated tables, the mixture at its defaults with and without the
comparison of its chains with others early in the warm-up. Beside them, as a measure of how hard a
table is, the Gaussian mixture of scikit-learn of lowest BIC. Prints Markdown.
"""

import warnings

import numpy as np
from _command import SHORT, command_line
from _report import cpu_seconds, markdown
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from skbnp import DirichletProcessMixture
from skbnp.dirichlet_process_mixture import _estimator, _searching

FIGURES = ("ARI", "CPU s")


def factors(seed):
    """Rows, and their clusters."""
    rng = np.random.default_rng(1000 + seed)
    d, n = int(rng.integers(12, 41)), int(rng.integers(150, 800))
    n_factors, n_clusters = int(rng.integers(2, 5)), int(rng.integers(2, 6))
    loadings = rng.normal(size=(n_factors, d)) * (rng.random((n_factors, d)) < 0.5)
    centers = 3.0 * rng.normal(size=(n_clusters, n_factors))
    label = rng.integers(n_clusters, size=n)
    scores = centers[label] + rng.normal(size=(n, n_factors))
    return scores @ loadings + 0.7 * rng.normal(size=(n, d)), label


def dense(seed):
    """Rows, and their clusters: few rows, means that differ in all columns, common factors."""
    rng = np.random.default_rng(7000 + seed)
    n, d, n_clusters = (int(rng.integers(*ends)) for ends in ((60, 300), (10, 61), (1, 6)))
    apart = rng.uniform(0.4, 1.2) * np.sqrt(20 / d) if n_clusters > 1 else 0.0
    common = rng.choice([0, 0, 0.5])
    means = apart * rng.normal(size=(n_clusters, d))
    label = rng.choice(n_clusters, size=n, p=rng.dirichlet(np.full(n_clusters, 5.0)))
    loadings = common * rng.normal(size=(3, d))
    return means[label] + rng.normal(size=(n, 3)) @ loadings + rng.normal(size=(n, d)), label


GENERATORS = {"factors": factors, "dense": dense}


def peer(X):
    """The labels of lowest BIC."""
    Z = StandardScaler().fit_transform(X)
    mixtures = [
        GaussianMixture(k, covariance_type=shape, n_init=3, reg_covar=1e-3, random_state=0).fit(Z)
        for shape in ("full", "tied", "diag", "spherical")
        for k in range(1, 9)
    ]
    return min(mixtures, key=lambda mixture: mixture.bic(Z)).predict(Z)


def figures(X, label, compares, **options):
    """Of one fit."""
    kind = _searching.kind_of_sampler
    _estimator.kind_of_sampler = kind if compares else lambda *of_chain: _searching.Sampler
    try:
        mixture = DirichletProcessMixture(random_state=0, **options)
        _, seconds = cpu_seconds(mixture.fit, X)
    finally:
        _estimator.kind_of_sampler = kind
    traces = mixture.posterior_.traces
    return {
        "ARI": adjusted_rand_score(label, mixture.labels_),
        "clusters": mixture.n_clusters_,
        "log joint, widest gap": np.ptp(traces["log_joint"].mean(axis=1)),
        "R-hat log_density": mixture.posterior_.rhat()["log_density"],
        "CPU s": seconds,
    }


def main():
    """Run and print."""
    parser = command_line(__doc__, "one table, short chains", reads_data=False)
    parser.add_argument("--tables", type=int, default=16)
    parser.add_argument("--clusters", choices=GENERATORS, default="factors")
    # The rule was chosen on the first hundred, and one of the second made us change it.
    parser.add_argument("--first", type=int, default=200, help="seed of the first table")
    arguments = parser.parse_args()
    n_tables, options = arguments.tables, {}
    if arguments.quick:
        n_tables = 1
        options = SHORT | {"n_warmup": 2 * _searching.COMPARED_SWEEPS}  # no comparison in less
    warnings.simplefilter("ignore")
    rows, all_of = [], {name: [] for name in FIGURES}
    with threadpool_limits(1):
        for seed in range(arguments.first, arguments.first + n_tables):
            X, label = GENERATORS[arguments.clusters](seed)
            one, other = (figures(X, label, compares, **options) for compares in (True, False))
            rows.append({
                "table": f"{X.shape[0]} x {X.shape[1]}, {label.max() + 1} clusters",
                **{f"{name}, without": f"{one[name]:.3g}, {other[name]:.3g}" for name in one},
                "ARI, lowest BIC": adjusted_rand_score(label, peer(X)),
            })  # fmt: skip
            for name in FIGURES:
                all_of[name].append((one[name], other[name]))
    print(markdown(rows))
    for name, values in all_of.items():
        print(f"mean {name}, without: {np.mean(values, axis=0).round(3).tolist()}")
    print(f"mean ARI, lowest BIC: {np.mean([row['ARI, lowest BIC'] for row in rows]):.3f}")


if __name__ == "__main__":
    main()
