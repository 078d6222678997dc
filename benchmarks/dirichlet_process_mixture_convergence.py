"""Do the chains of a mixture at its defaults agree, and are its clusters the known classes?

Whole tables, all defaults, several seeds: R-hat of the draws that are kept, how often `fit` warned
of chains that differ, the adjusted Rand index of ``labels_`` and CPU seconds; beside them
GaussianMixture with number and shape of its components by BIC, one seed. Prints Markdown.
"""

import warnings

import numpy as np
from _command import command_line
from _peers import search_by_bic
from _report import cpu_seconds, markdown
from _tables import loaded, standardised
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from skbnp import DirichletProcessMixture

SMALL = ("iris", "wine", "old_faithful", "galaxy", "acidity", "enzyme")
OF_CANCER = ("cancer6", "cancer10", "cancer")
LARGE = ("digits8", "wifi", "dlbcl2000", "mnist04", "diabetes", "yeast", "redwine", "cloud")
LARGEST = ("abalone", "gvhd", "uwwifi")
NAMES = (*SMALL, *OF_CANCER, *LARGE, *LARGEST)
TRACES = ("log_joint", "log_density", "n_clusters")


def fitted(X, seed):
    """The mixture, CPU seconds, and whether it warned of its chains."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mixture, seconds = cpu_seconds(DirichletProcessMixture(random_state=seed).fit, X)
    warned = any(issubclass(one.category, ConvergenceWarning) for one in caught)
    return mixture, seconds, warned


def agreement(label, found):
    """Adjusted Rand index over the rows that have a label."""
    return adjusted_rand_score(label[label >= 0], found[label >= 0])


def figures(name, X, label, seeds):
    """One line: medians over seeds, the largest R-hat of all, the mean and all Rand indices."""
    rhat, clusters, indices, seconds, n_warned = [], [], [], [], 0
    for seed in seeds:
        mixture, used, warned = fitted(X, seed)
        found = mixture.posterior_.rhat()
        rhat.append([found[trace] for trace in TRACES])
        clusters.append(mixture.n_clusters_)
        seconds.append(used)
        n_warned += warned
        if label is not None:
            indices.append(agreement(label, mixture.labels_))
    medians = zip(TRACES, np.median(rhat, axis=0), strict=True)
    line = {
        "table": f"{name}, {X.shape[0]:,} x {X.shape[1]}",
        **{f"R-hat {trace}": f"{value:.3f}" for trace, value in medians},
        "largest": f"{np.max(rhat):.3f}",
        "warned": f"{n_warned} of {len(seeds)}",
        "CPU s": float(np.median(seconds)),
        "clusters": " ".join(map(str, clusters)),
        "ARI": f"{np.mean(indices):.3f}" if indices else "",
        "by seed": " ".join(f"{a:.2f}" for a in indices),
        "by BIC": "",
    }
    if label is not None:
        X = standardised(X)
        chosen = search_by_bic(X, 0)
        line["by BIC"] = f"{agreement(label, chosen.predict(X)):.2f} ({chosen.n_components})"
    return line


def main():
    """Run and print."""
    parser = command_line(__doc__, "one seed of the small tables")
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES, metavar="TABLE")
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    names, seeds = arguments.only, range(arguments.seeds)
    if arguments.quick:
        names, seeds = [name for name in names if name in SMALL], range(1)
    lines = []
    with threadpool_limits(1):
        for table in loaded(names, arguments.data):
            lines.append(figures(*table, seeds))
            print("  " + " | ".join(map(str, lines[-1].values())), flush=True)
    print(markdown(lines))


if __name__ == "__main__":
    main()
