"""Cluster the rows of a CSV file: labels and probabilities out as CSV, and a picture.

    python examples/cluster_table.py people.csv --drop id
    python examples/cluster_table.py people.csv --family age=gaussian visits=poisson

The first line names the columns. Small integers from 0 or 1 on are counts, all other numbers are
real, True and False, 0 and 1 are binary, everything else is categorical; --family says
otherwise. Empty cells are missing. Beside FILE.csv come FILE_clusters.csv, one line per row with
its cluster, the probability of each cluster and of being unlike all others, and
FILE_clusters.png.

With --checkpoint DIR a run that was stopped goes on when the same command is given again; with
--save FILE the fitted mixture is kept for `DirichletProcessMixture.load`.
"""

import argparse
import warnings
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from skbnp import DirichletProcessMixture
from skbnp.plot import ClusterDisplay, CoclusteringDisplay
from skbnp.progress import ProgressBar


def read_arguments():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file", type=Path, help="CSV file with a header line")
    parser.add_argument("--drop", nargs="+", default=[], metavar="COLUMN", help="leave out")
    parser.add_argument("--only", nargs="+", metavar="COLUMN", help="leave out all others")
    parser.add_argument(
        "--family",
        nargs="+",
        default=[],
        metavar="COLUMN=FAMILY",
        help="gaussian, bernoulli, categorical or poisson",
    )
    parser.add_argument("--covariance", default="full", choices=["full", "diag", "spherical"])
    parser.add_argument("--warmup", type=int, help="sweeps before the first draw")
    parser.add_argument("--draws", type=int, help="draws per chain")
    parser.add_argument("--jobs", type=int, default=-1, help="cores, -1: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--checkpoint", type=Path, metavar="DIR", help="continue what is there")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the fitted mixture")
    return parser.parse_args()


def read_table(arguments):
    """The table that is to be clustered."""
    table = pd.read_csv(arguments.file)
    unknown = sorted({*arguments.drop, *(arguments.only or [])} - set(table.columns))
    if unknown:
        raise SystemExit(f"no column {unknown[0]!r} in {arguments.file}: {list(table.columns)}")
    table = table.drop(columns=arguments.drop)
    if arguments.only:
        table = table[arguments.only]
    # A column of integers with holes is read as real numbers; it holds counts all the same.
    return table.convert_dtypes()


def fit(table, arguments):
    """The fitted mixture, with a progress bar where rich is installed."""
    mixture = DirichletProcessMixture(
        family=dict(pair.split("=", 1) for pair in arguments.family),
        covariance_type=arguments.covariance,
        n_warmup=arguments.warmup or "auto",
        n_draws=arguments.draws or "auto",
        n_jobs=arguments.jobs,
        random_state=arguments.seed,
        checkpoint=arguments.checkpoint,
    )
    try:
        mixture.set_callbacks(ProgressBar())
    except ImportError:
        mixture.set_params(verbose=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mixture.fit(table)
    for warning in caught:
        if issubclass(warning.category, (ConvergenceWarning, UserWarning)):
            print(f"note: {warning.message}")
    return mixture


def describe(table, mixture):
    """What was found, in words."""
    print("\ncolumns:")
    for name, family in zip(table.columns, mixture.families_, strict=True):
        print(f"  {name}: {family}, {table[name].isna().mean():.0%} missing")
    counts = mixture.posterior_.traces["n_clusters"].ravel().astype(int)
    values, times = np.unique(counts, return_counts=True)
    print("\nnumber of clusters, posterior probability:")
    for value, share in zip(values, times / counts.size, strict=True):
        print(f"  {value}: {share:.2f}")
    print(f"\nconsensus: {mixture.n_clusters_} clusters, expected distance to all draws "
          f"{mixture.expected_loss_:.2f} nats")  # fmt: skip
    for k, size in enumerate(np.bincount(mixture.labels_)):
        rows = table[mixture.labels_ == k]
        profile = ", ".join(
            f"{name} {typical(rows[name], family)}"
            for name, family in zip(table.columns, mixture.families_, strict=True)
        )
        print(f"  cluster {k}, {size} rows: {profile}")


def typical(column, family):
    """A column of one cluster in a word."""
    column = column.dropna()
    if column.empty:
        return "unknown"
    if family == "categorical":
        return f"{column.mode().iloc[0]} ({(column == column.mode().iloc[0]).mean():.0%})"
    if family == "bernoulli":
        return f"{column.astype(float).mean():.0%}"
    return f"{column.astype(float).mean():.3g}"


def write(table, mixture, path):
    """Labels and probabilities, a line per row."""
    proba = mixture.predict_proba(table)
    out = pd.DataFrame(proba, columns=mixture.get_feature_names_out())
    out.insert(0, "cluster", mixture.labels_)
    out["novelty"] = mixture.novelty_proba(table)
    out.to_csv(path, index=False, float_format="%.4f")
    print(f"\nwrote {path}")


def draw(table, mixture, path):
    """Clusters in two real columns, if there are two, beside how often rows were together."""
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    real = np.flatnonzero(mixture.families_ == "gaussian")[:2]
    figure, axes = plt.subplots(1, len(real) == 2 and 2 or 1, figsize=(12, 5), squeeze=False)
    CoclusteringDisplay.from_estimator(mixture, ax=axes[0, -1])
    if len(real) == 2:
        ClusterDisplay.from_estimator(
            mixture, table, columns=tuple(real), labels=mixture.labels_, ax=axes[0, 0]
        )
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    print(f"wrote {path}")


def main():
    """Read, fit, describe, write, draw."""
    arguments = read_arguments()
    table = read_table(arguments)
    mixture = fit(table, arguments)
    describe(table, mixture)
    stem = arguments.file.with_name(arguments.file.stem + "_clusters")
    write(table, mixture, stem.with_suffix(".csv"))
    draw(table, mixture, stem.with_suffix(".png"))
    if arguments.save:
        mixture.save(arguments.save)
        print(f"wrote {arguments.save}")


if __name__ == "__main__":
    main()
