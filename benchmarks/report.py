"""What reports call sure, beside the truth: pairs of rows, rows, columns of clusters.

Mixtures are simulated whose clusters overlap more or less, some with holes. A report calls two rows
"surely together" where at least 95 % of the draws have them in one group, and "surely apart" where
at most 5 % have; of such pairs at least 95 % must be together, or apart, in truth. Rows are in
their clusters with a probability p, and are right there if most rows of their kind are in the same
cluster: as many should be as p says. Columns of pure noise should hardly ever be named in a
profile. Prints Markdown.
"""

import warnings

import numpy as np
from _command import command_line
from _report import cpu_seconds, markdown
from threadpoolctl import threadpool_limits

from skbnp import DirichletProcessMixture
from skbnp.reports.partition import DOUBTFUL, sure_pairs

SEPARATIONS = (2.0, 3.0, 5.0)
N_NOISE = 2  # columns that say nothing of the kinds


def mixture(separation, seed, n_rows=300, n_kinds=4, n_columns=4):
    """Rows of a mixture and columns of noise, a tenth of the cells missing; and their kinds."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(n_kinds, n_columns)) * separation / np.sqrt(2.0)
    kind = rng.choice(n_kinds, n_rows, p=rng.dirichlet(np.full(n_kinds, 5.0)))
    spread = np.exp(rng.normal(scale=0.2, size=(n_kinds, n_columns)))
    X = centers[kind] + spread[kind] * rng.normal(size=(n_rows, n_columns))
    X = np.column_stack([X, rng.normal(size=(n_rows, N_NOISE))])
    holes = rng.random(X.shape) < 0.1
    holes[holes.all(axis=1), 0] = False
    return np.where(holes, np.nan, X), kind


def figures(model, kind, n_informative):
    """Of one fitted model: counts of what its report calls sure, and of what is true of it."""
    report = model.report()
    rows, together, apart = sure_pairs(model._label_draws(), len(kind))
    same = kind[rows][:, np.newaxis] == kind[rows]
    above = np.triu(np.ones(same.shape, dtype=bool), 1)
    found = {
        "together": (together & above).sum(),
        "truly together": (together & same & above).sum(),
        "apart": (apart & above).sum(),
        "truly apart": (apart & ~same & above).sum(),
    }
    # Kinds that overlap may share a cluster: the one in which each has most of its rows.
    cluster = [np.bincount(model.labels_[kind == c]).argmax() for c in range(kind.max() + 1)]
    right = np.array(cluster)[kind] == model.labels_
    table = report.sections["rows"].table
    p = np.array([one["probability"] for one in table])
    here = np.array([int(one["row"]) for one in table])
    for name, chosen in (("sure", p >= DOUBTFUL), ("doubtful", p < DOUBTFUL)):
        found |= {f"{name} rows": chosen.sum(), f"{name} right": right[here[chosen]].sum()}
        found |= {f"{name} expected": p[chosen].sum()}
    profiles = report.sections.get("profiles")
    said = " ".join(profiles.sentences) if profiles else ""
    noise = [f"x{j}," for j in range(n_informative, n_informative + N_NOISE)]
    return found | {"noise named": sum(said.count(name) for name in noise)}


def shares(found):
    """Shares of a sum of figures."""

    def share(part, whole):
        return float(found[part] / found[whole]) if found[whole] else np.nan

    return {
        "pairs together": int(found["together"]),
        "of them in truth": share("truly together", "together"),
        "pairs apart": int(found["apart"]),
        "of these in truth": share("truly apart", "apart"),
        "rows, p >= .8": int(found["sure rows"]),
        "right": share("sure right", "sure rows"),
        "mean p": share("sure expected", "sure rows"),
        "doubtful rows": int(found["doubtful rows"]),
        "right there": share("doubtful right", "doubtful rows"),
        "their mean p": share("doubtful expected", "doubtful rows"),
        "noise named": int(found["noise named"]),
    }


def measure(separation, n_tables, **options):
    """The line of one separation."""
    total = {}
    for seed in range(n_tables):
        X, kind = mixture(separation, seed)
        model = DirichletProcessMixture(random_state=seed, **options).fit(X)
        for name, value in figures(model, kind, X.shape[1] - N_NOISE).items():
            total[name] = total.get(name, 0) + value
    return {"separation": separation, "tables": n_tables} | shares(total)


def main():
    """Run and print."""
    parser = command_line(__doc__, "fewer tables and short chains", reads_data=False)
    parser.add_argument("--tables", type=int, default=20)
    arguments = parser.parse_args()
    options = {"n_warmup": 100, "n_draws": 100} if arguments.quick else {}
    n_tables = min(arguments.tables, 6) if arguments.quick else arguments.tables
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        lines = []
        for separation in SEPARATIONS:
            line, seconds = cpu_seconds(lambda s=separation: measure(s, n_tables, **options))
            lines.append(line | {"CPU s": seconds})
        print(markdown(lines))


if __name__ == "__main__":
    main()
