"""Held-out densities by networks in more than eight columns, where hidden nodes are sampled by row.

`CIBPBeliefNet` and `ICPNetwork` at their defaults, and what `score` says under each value of
`density`, in nats a row: of standardised tables 400 rows to learn from and 100 others, or a fifth
of all. All estimates are unbiased for the density, so that the largest is nearest. In
brackets the median row, where the mean is that of a few rows far out; and milliseconds a row.
Beside them a mixture of full Gaussians, its number by BIC.

Prints a Markdown table.
"""

import warnings

import numpy as np
from _command import command_line
from _peers import search_by_bic
from _report import cpu_seconds, markdown
from _tables import CHOICE_SEED, load, split, standardised
from sklearn.exceptions import ConvergenceWarning

from skbnp import CIBPBeliefNet, ICPNetwork

TABLES = ("cancer10", "diabetes", "cloud", "redwine")
MOST_ROWS, MOST_NEW = 400, 100
DENSITIES = {
    CIBPBeliefNet: ("auto", "ais", "importance"),
    ICPNetwork: ("auto", "ais"),
}


def line(name, data, seed, estimator, quick):
    """What one estimator says of one table."""
    train, _, test, _ = split(standardised(load(name, data)[0]), None, seed)
    train, test = train[: 60 if quick else MOST_ROWS], test[: 5 if quick else MOST_NEW]
    lengths = dict(n_chains=2, n_warmup=10, n_draws=4) if quick else {}
    model = estimator(random_state=seed, n_jobs=1, **lengths)
    _, fitting = cpu_seconds(model.fit, train)
    row = {"table": name, "seed": seed, "estimator": estimator.__name__, "fit, CPU s": fitting}
    for density in DENSITIES[estimator]:
        model.set_params(density=density)
        model.score_samples(test[:1])
        found, time = cpu_seconds(model.score_samples, test)
        row[density] = f"{np.mean(found):.2f} ({np.median(found):.2f})"
        row[f"{density}, ms"] = 1e3 * time / len(test)
    row.setdefault("importance", "")
    row.setdefault("importance, ms", "")
    found = search_by_bic(train, seed).score_samples(test)
    row["BIC"] = f"{np.mean(found):.2f} ({np.median(found):.2f})"
    print(row, flush=True)
    return row


def main():
    """Print the table."""
    parser = command_line(__doc__, "short chains, to see that it runs")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--choice", action="store_true", help="seeds for choices: not reported")
    parser.add_argument("--only", nargs="+", default=TABLES)
    options = parser.parse_args()
    seeds = [seed + CHOICE_SEED * options.choice for seed in options.seeds]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)
        print(
            markdown(
                [
                    line(name, options.data, seed, estimator, options.quick)
                    for name in options.only
                    for seed in seeds
                    for estimator in DENSITIES
                ]
            )
        )


if __name__ == "__main__":
    main()
