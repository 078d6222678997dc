"""What the columns of integers are taken for: answers, and counts, by "auto" and by name.

Generated tables of three clusters: answers on a scale of 3, 5, 7 or 11 points, or counts, with or
without three real columns beside them. Adjusted Rand index of `labels_`, and log probability of the
integers of held-out rows given the real ones, a row and column; the mixture at its defaults
otherwise. A density of real numbers is made one of the integers that training rows have. Prints
Markdown.
"""

import itertools
import time
import warnings

import numpy as np
import pandas as pd
from _command import SHORT, command_line
from _report import markdown
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from skbnp import DirichletProcessMixture

FAMILIES = ("auto", "poisson", "gaussian", "categorical")
POINTS = {"3 points": 3, "5 points": 5, "7 points": 7, "11 points": 11, "counts": None}


def generated(points, n_real, seed, n=400, n_whole=4):
    """A frame of integers and real numbers, and the clusters of its rows."""
    rng = np.random.default_rng([points or 0, n_real, seed])
    label = rng.integers(3, size=n)
    if points is None:
        whole = rng.poisson(rng.gamma(1.0, 2.0, size=(3, n_whole))[label])
    else:
        level = rng.uniform(0.1, 0.9, size=(3, n_whole))[label] + 0.17 * rng.normal(
            size=(n, n_whole)
        )
        whole = 1 + np.clip(np.floor(points * level), 0, points - 1).astype(int)
    frame = pd.DataFrame(whole, columns=[f"q{j}" for j in range(n_whole)])
    real = 1.4 * rng.normal(size=(3, n_real))[label] + rng.normal(size=(n, n_real))
    return frame.assign(**{f"x{j}": x for j, x in enumerate(real.T)}), label


def log_probability(mixture, X, seen):
    """Mean log probability of single integers of rows, given all other cells."""
    X = X[np.logical_and.reduce([X[name].isin(values) for name, values in seen.items()])]
    total = []
    for name, values in seen.items():
        log_p = np.array([mixture.score_samples(X.assign(**{name: x})) for x in values])
        own = log_p[np.searchsorted(values, X[name]), np.arange(len(X))]
        total.append(np.mean(own - np.logaddexp.reduce(log_p)))
    return np.mean(total)


def of_table(points, n_real, seed, **options):
    """By family: index, log probability and CPU seconds."""
    X, label = generated(points, n_real, seed)
    train, test = X.iloc[:300], X.iloc[300:]
    seen = {name: np.unique(train[name]) for name in X if name[0] == "q"}
    found = []
    for family in FAMILIES:
        begun = time.process_time()
        given = "auto" if family == "auto" else dict.fromkeys(seen, family)
        mixture = DirichletProcessMixture(family=given, random_state=0, **options).fit(train)
        spent = time.process_time() - begun
        index = adjusted_rand_score(label[:300], mixture.labels_)
        found.append((index, log_probability(mixture, test, seen), spent))
    return found


def main():
    """Run and print."""
    parser = command_line(
        __doc__, "one table of 3 points, one of counts, short chains", reads_data=False
    )
    parser.add_argument("--tables", type=int, default=3, help="of each kind")
    arguments = parser.parse_args()
    n_tables, kinds, numbers_real, options = arguments.tables, POINTS, (0, 3), {}
    if arguments.quick:
        kinds = {name: POINTS[name] for name in ("3 points", "counts")}
        n_tables, numbers_real, options = 1, (0,), SHORT
    warnings.simplefilter("ignore")
    rows = []
    with threadpool_limits(1):
        for (name, points), n_real in itertools.product(kinds.items(), numbers_real):
            found = [of_table(points, n_real, seed, **options) for seed in range(n_tables)]
            mean = np.mean(found, axis=0)
            row = {"integers": name, "real": n_real}
            for j, figure in enumerate(("ARI", "log p", "CPU s")):
                row |= {
                    f"{figure}, {family}": f"{x:.2f}"
                    for family, x in zip(FAMILIES, mean[:, j], strict=True)
                }
            rows.append(row)
    print(markdown(rows))


if __name__ == "__main__":
    main()
