"""Do the chains of a mixture at its defaults agree, and are its clusters the known classes?

Whole tables, all defaults, several seeds: R-hat of the draws that are kept, the adjusted Rand index
of ``labels_`` and CPU seconds. Prints Markdown.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
from _report import cpu_seconds, markdown
from _tables import loaded
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from skbnp import DirichletProcessMixture

ROOT = Path(__file__).resolve().parents[1]
SMALL = ("iris", "wine", "old_faithful", "galaxy", "acidity", "enzyme")
NAMES = (*SMALL, "cancer6", "cancer10", "cancer")
TRACES = ("log_joint", "log_density", "n_clusters")


def figures(name, X, label, seeds):
    """One line: medians over seeds, the largest R-hat of all, the mean and all Rand indices."""
    rhat, agreement, seconds = [], [], []
    for seed in seeds:
        mixture, used = cpu_seconds(DirichletProcessMixture(random_state=seed).fit, X)
        found = mixture.posterior_.rhat()
        rhat.append([found[trace] for trace in TRACES])
        seconds.append(used)
        if label is not None:
            agreement.append(adjusted_rand_score(label, mixture.labels_))
    medians = zip(TRACES, np.median(rhat, axis=0), strict=True)
    return {
        "table": name,
        **{f"R-hat {trace}": f"{value:.3f}" for trace, value in medians},
        "largest": f"{np.max(rhat):.3f}",
        "CPU s": float(np.median(seconds)),
        "ARI": f"{np.mean(agreement):.3f}" if agreement else "",
        "by seed": " ".join(f"{a:.2f}" for a in agreement),
    }


def main():
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES, metavar="TABLE")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one seed of the small tables")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)  # R-hat has its own columns
    names, seeds = arguments.only, range(arguments.seeds)
    if arguments.quick:
        names, seeds = [name for name in names if name in SMALL], range(1)
    with threadpool_limits(1):
        lines = [figures(*table, seeds) for table in loaded(names, arguments.data)]
    print(markdown(lines))


if __name__ == "__main__":
    main()
