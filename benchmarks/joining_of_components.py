"""From components to clusters: which overlap, at which threshold, and what the consensus drops.

For choices only: simulated tables with known clusters, `simulated_tables.py` of the data folder, in
seven groups of equal weight; beside them the setting of four clusters that overlap, which no
joining may make worse, and splits of real tables that no report uses. Each simulated table is seen
whole and with a fifth of its rows left out: a rule is as good as the mean over both, and "same
number" is the share of the tables that keep their number of clusters. With --many other simulated
tables take their place, of 3,000 to 6,000 rows and 6 to 16 clusters, with --touching Gaussians of
which all are equally far apart, by 2.5 to 4 standard deviations. Prints Markdown and writes it
as JSON beside this file. Short chains, the same draws for all methods.
"""

import runpy
import warnings
from itertools import product
from typing import NamedTuple

import numpy as np
from _command import command_line, path_beside, write
from _report import cpu_seconds, markdown
from _tables import CHOICE_SEED, group_of, load, simulated, standardised
from dirichlet_process_mixture_quality import SETTINGS
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from skbnp import DirichletProcessMixture
from skbnp.summaries import joining
from skbnp.summaries.consensus import drop_unsupported, stable_consensus
from skbnp.summaries.joining import OVERLAPS, cluster_shares, joined_draws, merge_tree
from skbnp.summaries.partitions import consensus_partition

THRESHOLDS = (0.2, 0.225, 0.25, 0.275, 0.285, 0.3, 0.325, 0.35, 0.375, 0.4)
BESIDE = "four that overlap"
LEFT_OUT = "rows left out"
SPLITS = {"iris": 6, "wine": 6, "cancer10": 6, "cancer6": 6, "digits8": 2, "wifi": 2}
N_DRAWS = 40
# Columns, clusters, rows and seed, of each family; by seeds of 60 to 99 the clusters are chains.
MANY = (
    *((3, 8, 3000, 71), (5, 10, 6000, 72), (8, 12, 5000, 73)),
    *((3, 6, 4000, 201), (6, 10, 6000, 202), (4, 16, 6000, 203)),
)
# Distances of the centres, and clusters and columns, of clusters of which every two touch.
DISTANCES, TOUCHING = (2.5, 3.0, 3.5, 4.0), ((3, 3), (3, 6), (4, 4), (5, 5), (6, 8))
# Kind and linkage of overlaps.
KINDS = (*((kind, "sum") for kind in OVERLAPS), ("share", "capped"))


def tables(data):
    """(name, group, X, labels); a table with rows left out has the name of the whole."""
    for name, X, label in simulated(data):
        yield name, group_of(name), X, label
        yield name, LEFT_OUT, *most_of(X, label, CHOICE_SEED)
    population = SETTINGS["a2: 4 clusters"].population
    for seed in range(2):
        X, label = population.draw(SETTINGS["a2: 4 clusters"].n_samples, seed=seed)
        yield f"{BESIDE}, {seed}", BESIDE, X, label
    for name, n_splits in SPLITS.items():
        X, label = load(name, data)
        for seed in range(CHOICE_SEED, CHOICE_SEED + n_splits):
            yield f"{name}, {seed}", name, *most_of(X, label, seed)


def tables_of_many_rows(data):
    """The same of simulated tables of more rows and clusters; their centres are 3.6 apart."""
    simulate = runpy.run_path(data / "simulated_tables.py")["sim"]
    for family in ("gauss", "skew", "t3"):
        for d, k, n, seed in MANY:
            name = f"{family}-{d}-{k}-{n}-{seed}"
            yield name, f"many {group_of(name)}", *simulate(family, d, k, n, seed, 3.6)


def tables_that_touch(data):
    """The same of spherical Gaussians, each as far from each other one."""
    for n, (distance, (k, d)) in enumerate(product(DISTANCES, TOUCHING)):
        rng = np.random.default_rng(9000 + n)
        share = np.full(k, 1 / k) if n % 2 == 0 else rng.dirichlet(np.full(k, 6.0))
        label = rng.choice(k, size=k * int(rng.integers(80, 150)), p=share)
        X = distance / np.sqrt(2) * np.eye(k, d)[label] + rng.normal(size=(len(label), d))
        yield f"{distance}-{k}-{d}", f"{distance} apart", X, label


def most_of(X, label, seed):
    """Four fifths of the rows of each class."""
    X, _, label, _ = train_test_split(X, label, test_size=0.2, stratify=label, random_state=seed)
    return X, label


def partitions_of(mixture):
    """Labels by method, and the seconds of the two kinds of shares."""
    labels = [draw["label"] for draw in mixture.posterior_.evenly_spaced(300)]
    few = mixture.posterior_.evenly_spaced(N_DRAWS)
    few_labels = [draw["label"] for draw in few]
    consensus = {
        "search": consensus_partition(labels, random_state=0)[0],
        "stable": stable_consensus(labels, random_state=0)[0],
    }
    found = {(name, "none", "-", "-", "-"): partition for name, partition in consensus.items()}
    seconds = {"labels": 0.0, "left out": 0.0}
    for name, partition in consensus.items():
        shares = {}
        shares["labels"], more = cpu_seconds(cluster_shares, partition, few_labels)
        seconds["labels"] += more
        left_out = (mixture._training_rows.shares(draw) for draw in few)
        shares["left out"], more = cpu_seconds(cluster_shares, partition, few_labels, left_out)
        seconds["left out"] += more
        for kind in KINDS:
            for source, P in shares.items():
                tree = merge_tree(P.T @ P, np.bincount(partition), *kind)
                for threshold in THRESHOLDS:
                    joined = tree.cut(threshold)[partition]
                    found[name, source, *kind, threshold] = joined
    for kind in KINDS:
        for threshold in (0.25, 0.285, 0.3, 0.325, 0.35):
            draws = joined_draws(few_labels, threshold, *kind)
            for source in seconds:
                joined = found["stable", source, *kind, threshold]
                supported = drop_unsupported(joined, few_labels, draws, random_state=0)[0]
                found["stable, supported", source, *kind, threshold] = supported
    return found, seconds


def compare(of_tables, n_warmup, n_draws, step, seed):
    """Rows of the table of methods, best first, and seconds."""
    agreement, seconds = {}, {"sampling": 0.0, "labels": 0.0, "left out": 0.0}
    chosen = []
    for name, group, X, label in of_tables:
        if name not in chosen:
            chosen.append(name)
        if (len(chosen) - 1) % step:
            continue
        mixture = DirichletProcessMixture(n_warmup=n_warmup, n_draws=n_draws, random_state=seed)
        _, more = cpu_seconds(mixture.fit, standardised(X))
        seconds["sampling"] += more
        found, costs = partitions_of(mixture)
        for kind, more in costs.items():
            seconds[kind] += more
        for method, partition in found.items():
            index = adjusted_rand_score(label, partition)
            run = Run(name, group, index, int(partition.max() + 1), int(label.max() + 1))
            agreement.setdefault(method, []).append(run)
    return [row_of(method, runs) for method, runs in agreement.items()], seconds


class Run(NamedTuple):
    """What one method finds in one table."""

    name: str
    group: str
    agreement: float
    n_found: int
    n_classes: int


def row_of(method, runs):
    """One line: mean adjusted Rand index by group, over the groups, and clusters too many."""
    beside = (BESIDE, LEFT_OUT, *SPLITS)
    whole = {run.name: run for run in runs if run.group not in beside}
    part = {run.name: run for run in runs if run.group == LEFT_OUT}
    groups = {run.group: [] for run in whole.values()}
    for name, run in whole.items():
        groups[run.group].append((run.agreement, part.get(name, run).agreement))
    mean = {group: float(np.mean(values)) for group, values in groups.items()}
    others = {run.group: [] for run in runs if run.group in (BESIDE, *SPLITS)}
    for run in runs:
        if run.group in others:
            others[run.group].append(run.agreement)
    return {
        **dict(zip(("consensus", "shares", "overlap", "linkage", "least"), method, strict=True)),
        "mean": float(np.mean(list(mean.values()))),
        "same number": float(
            np.mean([run.n_found == part.get(name, run).n_found for name, run in whole.items()])
        ),
        "clusters too many": float(
            np.mean([run.n_found - run.n_classes for run in whole.values()])
        ),
        **mean,
        **{group: float(np.mean(values)) for group, values in others.items()},
    }


def main():
    """Run, print and write."""
    parser = command_line(__doc__, "every sixth table")
    parser.add_argument("--warmup", type=int, default=150)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--many", action="store_true", help="tables of many rows")
    parser.add_argument("--touching", action="store_true", help="clusters of which every two touch")
    parser.add_argument(
        "--sixteenths",
        type=int,
        default=joining.SIXTEENTHS,
        help='of the share of the rows in "share": 4 are its fourth root',
    )
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        step = 6 if args.quick else 1
        joining.SIXTEENTHS = args.sixteenths
        of_tables = tables_of_many_rows if args.many else tables
        of_tables = (tables_that_touch if args.touching else of_tables)(args.data)
        rows, seconds = compare(of_tables, args.warmup, args.draws, step, args.seed)
    rows.sort(key=lambda row: -row["mean"])
    print(markdown(rows))
    print("\nCPU seconds:", ", ".join(f"{name} {value:.1f}" for name, value in seconds.items()))
    write(path_beside(__file__), args.quick, {"rows": rows, "seconds": seconds})


if __name__ == "__main__":
    main()
