"""The first table of somebody new: mixed columns, holes, an identifier and a date, all defaults.

A table as a biologist brings it: 2,000 animals of four kinds with measurements, one of them skewed,
counts, categories and a yes or no, 8 % of the cells missing, a running number and a date of
capture. `DirichletProcessMixture()` is fitted as it is, and what it refuses or warns of is dropped
as its message says. Prints the messages, processor seconds, the number of clusters beside the true
one, the adjusted Rand index, and the report of the fit.
"""

import re
import time
import warnings

import numpy as np
import pandas as pd
from _command import command_line
from _report import cpu_seconds, markdown
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from skbnp import DirichletProcessMixture

N_ROWS, N_KINDS, HOLES = 2_000, 4, 0.08
MOST_SECONDS, MOST_CLUSTERS = 60.0, 1 / 50  # the latter of the number of rows
FIRST_DAY = pd.Timestamp("2023-04-01")
HABITATS, COLOURS = ("forest", "meadow", "shore"), ("brown", "grey", "red", "white")


def animals(n_rows=N_ROWS, seed=0):
    """The table, 12 columns, and the true kind of each row."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(N_KINDS, n_rows, p=[0.4, 0.3, 0.2, 0.1])

    def of_kind(*values):
        return np.array(values)[kind]

    def chosen(names, shares):
        return [names[rng.choice(len(names), p=shares[k])] for k in kind]

    length = rng.normal(of_kind(82.0, 95.0, 110.0, 88.0), of_kind(4.0, 5.0, 5.0, 4.0))
    weight = 0.35 * length + rng.normal(of_kind(0.0, 4.0, -2.0, 9.0), 1.5)
    table = pd.DataFrame(
        {
            "animal": np.arange(1001, 1001 + n_rows),
            "captured": FIRST_DAY + pd.to_timedelta(rng.integers(200, size=n_rows), "D"),
            "length_mm": length.round(1),
            "weight_g": weight.round(2),
            "tail_mm": rng.normal(of_kind(70.0, 88.0, 60.0, 95.0), 6.0).round(1),
            "ear_mm": rng.normal(of_kind(14.0, 16.5, 13.0, 18.0), 1.2).round(1),
            "temperature": rng.normal(37.6, 0.4, n_rows).round(1),
            "cortisol": np.exp(rng.normal(of_kind(1.0, 1.2, 2.2, 1.5), 0.6)).round(2),
            "parasites": rng.poisson(of_kind(1.0, 3.0, 6.0, 2.0)),
            "habitat": chosen(HABITATS, [[0.8, 0.15, 0.05], [0.2, 0.7, 0.1], [0.1, 0.2, 0.7],
                                         [0.45, 0.45, 0.1]]),
            "colour": chosen(COLOURS, [[0.6, 0.3, 0.05, 0.05], [0.2, 0.2, 0.5, 0.1],
                                       [0.1, 0.6, 0.1, 0.2], [0.3, 0.1, 0.3, 0.3]]),
            "pregnant": rng.random(n_rows) < of_kind(0.2, 0.35, 0.5, 0.2),
        }
    )  # fmt: skip
    table["pregnant"] = table["pregnant"].astype("boolean")
    measured = table.columns[2:]
    holes = rng.random((n_rows, len(measured))) < HOLES
    for j, name in enumerate(measured):
        table.loc[holes[:, j], name] = pd.NA if name == "pregnant" else None
    return table, kind


def fitted(table, **options):
    """A mixture fitted to what is left of the table, and the messages that said what to drop."""
    messages = []
    while True:
        model = DirichletProcessMixture(**options)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", UserWarning)
                warnings.simplefilter("ignore", ConvergenceWarning)
                return model.fit(table), messages, list(table.columns)
        except (ValueError, UserWarning) as message:
            dropped = [name for name in _named(str(message)) if name in table.columns]
            if "drop" not in str(message) or not dropped:
                raise
            messages.append((dropped, str(message)))
            table = table.drop(columns=dropped)


def _named(message):
    """Columns that a message names."""
    return re.findall(r"'([^']*)'", message)


def measure(n_rows, seed, **options):
    """The line of the table of figures, and the fitted model."""
    table, kind = animals(n_rows, seed)
    start = time.perf_counter()
    (model, messages, columns), seconds = cpu_seconds(lambda: fitted(table, **options))
    line = {
        "rows": n_rows,
        "columns": len(columns),
        "dropped": ", ".join(name for names, _ in messages for name in names),
        "CPU s": seconds,
        "wall s": time.perf_counter() - start,
        "clusters": model.n_clusters_,
        "true": N_KINDS,
        "ARI": adjusted_rand_score(kind, model.labels_),
    }
    return line, model, messages


def main():
    """Run and print."""
    parser = command_line(__doc__, "fewer rows and short chains", reads_data=False)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--html", help="write the report to this file, with its pictures")
    arguments = parser.parse_args()
    n_rows, options = N_ROWS, {"random_state": arguments.seed}
    if arguments.quick:
        n_rows, options = 300, options | {"n_warmup": 50, "n_draws": 50}
    with threadpool_limits(1):
        line, model, messages = measure(n_rows, arguments.seed, **options)
        for names, message in messages:
            print(f"dropped {', '.join(names)}, as the message said: {message}\n")
        print(markdown([line]))
        most = int(MOST_CLUSTERS * n_rows)
        print(
            f"\nprocessor seconds {line['CPU s']:.1f} (must be at most {MOST_SECONDS:g}); "
            f"{line['clusters']} clusters (must be at most {most})\n"
        )
        report, seconds = cpu_seconds(model.report)
        print(report)
        print(f"The report took {seconds:.2f} processor seconds.")
        if arguments.html:
            with open(arguments.html, "w", encoding="utf-8") as file:
                file.write(report.to_html())


if __name__ == "__main__":
    main()
