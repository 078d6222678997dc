"""Choices of the mixture: kappa0 sampled or fixed, a Dirichlet process or finite mixtures.

For choices only: the 52 simulated tables with known clusters, in seven groups, white wine and
leading components of Golub's expression data, all standardised. Everything else at its default;
four fifths of the rows to learn from, a fifth held out, the same rows for all variants. Log
densities are per row and their differences paired over rows. Prints Markdown and writes it as JSON
beside this file.
"""

import warnings

import numpy as np
from _command import command_line, path_beside, write
from _report import cpu_seconds, markdown, mean_and_error
from _tables import CHOICE_SEED, for_choices, group_of, split, standardised
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from skbnp import DirichletProcessMixture
from skbnp.laws import ShiftedBetaNegativeBinomial

LAW = ShiftedBetaNegativeBinomial(1, 4, 3)
VARIANTS = {
    "process, sampled": {},
    "process, .125": {"mean_precision_prior": 0.125},
    "process, .1": {"mean_precision_prior": 0.1},
    "finite, sampled": {"n_components": LAW},
    "finite, .1": {"n_components": LAW, "mean_precision_prior": 0.1},
}
MOST_ROWS = 1_250  # of a table, before the split
REFERENCE = "process, sampled"


def one_fit(options, train, label, new, seed):
    """Figures of one variant on one split, and its log density of each held-out row."""
    mixture = DirichletProcessMixture(random_state=seed, **options)
    _, seconds = cpu_seconds(mixture.fit, train)
    rhat = mixture.posterior_.rhat()

    def agreement(found):
        return np.nan if label is None else adjusted_rand_score(label, found)

    figures = {
        "K": float(mixture.posterior_.traces["n_clusters"].mean()),
        "clusters": mixture.n_clusters_,
        "ARI": agreement(mixture.labels_),
        "ARI components": agreement(mixture.component_labels_),
        "R-hat log_joint": rhat["log_joint"],
        "R-hat n_clusters": rhat["n_clusters"],
        "CPU s": seconds,
    }
    return figures, mixture.score_samples(new)


def compare(tables, seed):
    """Figures of each table and variant on the split of a seed."""
    runs = []
    for name, X, label in tables:
        rows = np.random.default_rng(0).permutation(len(X))[:MOST_ROWS]
        label = None if label is None else label[rows]
        train, label, new, _ = split(standardised(X[rows]), label, CHOICE_SEED + seed)
        found = {
            variant: one_fit(options, train, label, new, seed)
            for variant, options in VARIANTS.items()
        }
        base = found[REFERENCE][1]
        for variant, (figures, density) in found.items():
            gain, error = mean_and_error(density - base)
            said = {"group": group_of(name), "table": name, "seed": seed, "variant": variant}
            densities = {"log density": density.mean(), "gain": gain, "error": error}
            runs.append(said | densities | figures)
        gains = ", ".join(f"{run['gain']:.3f}" for run in runs[-len(VARIANTS) :])
        print(f"  {name}: {gains}", flush=True)
    return runs


def summary(runs):
    """One line per variant and group, and the variant over all tables."""
    lines = []
    for groups in [*((one,) for one in dict.fromkeys(run["group"] for run in runs)), None]:
        for variant in VARIANTS:
            some = [
                run
                for run in runs
                if run["variant"] == variant and (groups is None or run["group"] in groups)
            ]
            lines.append({"tables": "all" if groups is None else groups[0], **line(variant, some)})
    return lines


def line(variant, runs):
    """Means over tables; the error of the gain is that over tables, of one alone that over rows."""
    gain, error = mean_and_error([run["gain"] for run in runs])
    if len(runs) == 1:
        error = runs[0]["error"]
    z = np.array([run["gain"] / run["error"] if run["error"] > 0 else 0.0 for run in runs])
    means = {
        name: float(np.nanmean([run[name] for run in runs]))
        if not all(np.isnan(run[name]) for run in runs)
        else ""
        for name in ("ARI", "ARI components", "K", "clusters", "CPU s")
    }
    healthy = [max(run["R-hat log_joint"], run["R-hat n_clusters"]) < 1.05 for run in runs]
    return {
        "variant": variant,
        "log density": float(np.mean([run["log density"] for run in runs])),
        "less that of the first": f"{gain:.3f} ± {error:.3f}",
        "better, worse by 2 errors": f"{np.sum(z > 2)}, {np.sum(z < -2)}",
        **means,
        "median R-hat log_joint": float(np.median([run["R-hat log_joint"] for run in runs])),
        "median R-hat n_clusters": float(np.median([run["R-hat n_clusters"] for run in runs])),
        "both < 1.05": f"{sum(healthy)} of {len(runs)}",
    }


def main():
    """Run, print, write."""
    parser = command_line(__doc__, "every eighth table")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="of splits and chains")
    arguments = parser.parse_args()
    if not arguments.data.exists():
        print(f"no {arguments.data}: nothing to choose on")
        return
    warnings.simplefilter("ignore", ConvergenceWarning)  # R-hat has its own columns
    runs = []
    with threadpool_limits(1):
        for seed in arguments.seeds:
            tables = list(for_choices(arguments.data))[:: 8 if arguments.quick else 1]
            runs += compare(tables, seed)
    lines = summary(runs)
    print("\n" + markdown(lines))
    write(path_beside(__file__), arguments.quick, {"lines": lines, "runs": runs})


if __name__ == "__main__":
    main()
