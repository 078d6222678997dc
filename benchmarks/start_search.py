"""Does the search for blocks help chains over some thousand rows? At defaults, with and without.

Generated tables of Gaussian clusters of very different sizes; four fifths of the rows are to learn
from. Chains begin with the search from 5,000 rows on. That was decided on these tables and on real
ones of fewer rows (``--data DIR``: splits 10 and 11 of tables that other benchmarks report), so the
figures show what was gained there and no more. Prints Markdown.
"""

import warnings

import numpy as np
from _command import SHORT, command_line
from _report import cpu_seconds, markdown, mean_and_error
from _tables import load, split, standardised
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from skbnp import DirichletProcessMixture
from skbnp.dirichlet_process_mixture import _searching

# Rows, columns, clusters, seed, distance of the centres.
GENERATED = {
    "15 clusters": (20_000, 8, 15, 1, 1.5),
    "30 clusters": (12_000, 10, 30, 2, 1.5),
    "20 clusters": (15_000, 4, 20, 3, 2.5),
    "40 clusters": (8_000, 8, 40, 9, 1.5),
    "25 clusters": (6_000, 5, 25, 7, 2.0),
    "12 clusters": (4_000, 6, 12, 4, 1.5),
}
REAL = ("wifi", "digits8", "abalone")
# The least number of rows from which chains search.
VARIANTS = {"without": 10**9, "with": 1000}


def generated(n_samples, n_features, n_clusters, seed, distance):
    """Rows and their clusters, which hold 30 % to some tenths of a percent."""
    rng = np.random.default_rng(seed)
    least = 0.002 if n_clusters >= 20 else 0.001 * 15 / n_clusters
    share = np.geomspace(0.3, least, n_clusters)
    label = rng.choice(n_clusters, n_samples, p=share / share.sum())
    centers = distance * rng.normal(size=(n_clusters, n_features))
    X = np.empty((n_samples, n_features))
    for k in range(n_clusters):
        root = rng.normal(size=(n_features, n_features)) / np.sqrt(n_features)
        root += 0.6 * np.eye(n_features)
        rows = label == k
        X[rows] = centers[k] + rng.normal(size=(rows.sum(), n_features)) @ root.T
    return X, label


def compared(name, X, label, seeds, **options):
    """A line of each variant and seed."""
    for seed in seeds:
        train, known, new, _ = split(standardised(X), label, 10 if name in GENERATED else 10 + seed)
        reference = None
        for variant, least_rows in VARIANTS.items():
            _searching.SEARCHED_ROWS = least_rows
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                mixture = DirichletProcessMixture(random_state=seed, **options)
                _, seconds = cpu_seconds(mixture.fit, train)
                density = mixture.score_samples(new)
            reference = density if reference is None else reference
            gain, error = mean_and_error(density - reference)
            rhat, traces = mixture.posterior_.rhat(), mixture.posterior_.traces
            ari = "" if known is None else f"{adjusted_rand_score(known, mixture.labels_):.3f}"
            yield {
                "table": f"{name}, {len(train):,} x {X.shape[1]}",
                "seed": seed,
                "search": variant,
                "log density": f"{density.mean():.4f}",
                "gain": f"{gain:.4f} ({error:.4f})",
                "ARI": ari,
                "components": f"{traces['n_clusters'].mean():.1f}",
                "clusters": mixture.n_clusters_,
                "R-hat log_joint": f"{rhat['log_joint']:.2f}",
                "R-hat log_density": f"{rhat['log_density']:.2f}",
                "log joint": f"{traces['log_joint'].mean():.0f}",
                "CPU s": f"{seconds:.1f}",
            }


def main():
    """Run and print."""
    names = (*GENERATED, *REAL)
    parser = command_line(__doc__, "one seed of the smallest generated table, short chains")
    parser.add_argument("--only", nargs="+", choices=names, metavar="TABLE")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    arguments = parser.parse_args()
    only, seeds, options = arguments.only or names, arguments.seeds, {}
    if arguments.quick:
        only, seeds = arguments.only or ["12 clusters"], seeds[:1]
        options = SHORT | {"n_warmup": _searching.SEARCHED_WARMUP}  # no search in less
    lines = []
    with threadpool_limits(1):
        for name in only:
            if name in REAL:
                try:
                    X, label = load(name, arguments.data)
                except FileNotFoundError:
                    print(f"no file of {name} in {arguments.data}: left out")
                    continue
            else:
                X, label = generated(*GENERATED[name])
            lines += compared(name, X, label, seeds, **options)
            print(f"  {name}: done", flush=True)
    print(markdown(lines))


if __name__ == "__main__":
    main()
