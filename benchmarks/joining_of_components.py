"""From components to clusters: which overlap, at which threshold, and what the consensus drops.

For choices only: simulated tables with known clusters, `simulated_tables.py` of the data folder, in
seven groups of equal weight; beside them the setting of four clusters that overlap, which no
joining may make worse. Prints Markdown and writes it as JSON beside this file. Short chains, the
same draws for all methods.
"""

import argparse
import json
import warnings
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from _report import cpu_seconds, markdown
from _tables import group_of, simulated
from dirichlet_process_mixture_quality import SETTINGS
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from skbnp import DirichletProcessMixture
from skbnp.summaries.consensus import drop_unsupported, stable_consensus
from skbnp.summaries.joining import OVERLAPS, cluster_shares, joined_draws, merge_tree
from skbnp.summaries.partitions import consensus_partition

ROOT = Path(__file__).resolve().parents[1]
THRESHOLDS = (0.15, 0.2, 0.225, 0.25, 0.275, 0.3, 0.35)
BESIDE = "four that overlap"
N_DRAWS = 40


def tables(data):
    """(group, X, labels) of each table."""
    for name, X, label in simulated(data):
        yield group_of(name), X, label
    population = SETTINGS["a2: 4 clusters"].population
    for seed in range(2):
        yield BESIDE, *population.draw(SETTINGS["a2: 4 clusters"].n_samples, seed=seed)


def partitions_of(mixture):
    """Labels by method, and the seconds of the two kinds of shares."""
    labels = [draw["label"] for draw in mixture.posterior_.evenly_spaced(300)]
    few = mixture.posterior_.evenly_spaced(N_DRAWS)
    few_labels = [draw["label"] for draw in few]
    consensus = {
        "search": consensus_partition(labels, random_state=0)[0],
        "stable": stable_consensus(labels, random_state=0)[0],
    }
    found = {(name, "none", "-", "-"): partition for name, partition in consensus.items()}
    seconds = {"labels": 0.0, "left out": 0.0}
    for name, partition in consensus.items():
        shares = {}
        shares["labels"], more = cpu_seconds(cluster_shares, partition, few_labels)
        seconds["labels"] += more
        left_out = (mixture._training_rows.shares(draw) for draw in few)
        shares["left out"], more = cpu_seconds(cluster_shares, partition, few_labels, left_out)
        seconds["left out"] += more
        for kind in OVERLAPS:
            for source, P in shares.items():
                tree = merge_tree(P.T @ P, np.bincount(partition), kind)
                for threshold in THRESHOLDS:
                    joined = tree.cut(threshold)[partition]
                    found[name, source, kind, threshold] = joined
    for kind in OVERLAPS:
        for threshold in (0.25, 0.275):
            draws = joined_draws(few_labels, threshold, kind)
            for source in seconds:
                joined = found["stable", source, kind, threshold]
                supported = drop_unsupported(joined, few_labels, draws, random_state=0)[0]
                found["stable, supported", source, kind, threshold] = supported
    return found, seconds


def compare(data, n_warmup, n_draws, step, seed):
    """Rows of the table of methods, best first, and seconds."""
    agreement, seconds = {}, {"sampling": 0.0, "labels": 0.0, "left out": 0.0}
    for t, (group, X, label) in enumerate(tables(data)):
        if t % step:
            continue
        mixture = DirichletProcessMixture(n_warmup=n_warmup, n_draws=n_draws, random_state=seed)
        _, more = cpu_seconds(mixture.fit, (X - X.mean(axis=0)) / X.std(axis=0))
        seconds["sampling"] += more
        found, costs = partitions_of(mixture)
        for name, more in costs.items():
            seconds[name] += more
        for method, partition in found.items():
            by_group = agreement.setdefault(method, {})
            index = adjusted_rand_score(label, partition)
            by_group.setdefault(group, []).append((index, partition.max() - label.max()))
    return [row_of(method, groups) for method, groups in agreement.items()], seconds


def row_of(method, groups):
    """One line: mean adjusted Rand index by group, over the groups, and clusters too many."""
    mean = {group: float(np.mean(values, axis=0)[0]) for group, values in groups.items()}
    counted = [group for group in mean if group != BESIDE]
    excess = [extra for group in counted for _, extra in groups[group]]
    names = ("consensus", "shares", "overlap", "least")
    return {
        **dict(zip(names, method, strict=True)),
        "mean": float(np.mean([mean[group] for group in counted])),
        **mean,
        "clusters too many": float(np.mean(excess)),
    }


def main():
    """Run, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--warmup", type=int, default=150)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="every sixth table")
    args = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    with threadpool_limits(1):
        step = 6 if args.quick else 1
        rows, seconds = compare(args.data, args.warmup, args.draws, step, args.seed)
    rows.sort(key=lambda row: -row["mean"])
    print(markdown(rows))
    print("\nCPU seconds:", ", ".join(f"{name} {value:.1f}" for name, value in seconds.items()))
    result = {"date": datetime.now(UTC).isoformat(), "rows": rows, "seconds": seconds}
    Path(__file__).with_suffix(".json").write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
