"""How many draws are worth their time? The mixture's defaults but for the number of draws.

For a choice, not a comparison: the generated tables of `start_search.py` and every third of the
simulated tables of the data folder; three quarters of the rows are to learn from. A warm-up looks
for its own end, and thinning aims at as many effective draws whatever their number. Prints
Markdown.
"""

import warnings

import numpy as np
from _command import command_line
from _report import cpu_seconds, markdown
from _tables import CHOICE_SEED, simulated, standardised
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import train_test_split
from start_search import GENERATED, generated
from threadpoolctl import threadpool_limits

from skbnp import DirichletProcessMixture

NUMBERS = (300, 200, 150, 100)


def tables(which, data, step):
    """(name, X, labels)."""
    if which == "many rows":
        yield from ((name, *generated(*numbers)) for name, numbers in GENERATED.items())
    else:
        yield from list(simulated(data))[1::step]


def figures(X, label, n_draws, n_chains, seed):
    """Of one fit."""
    train, new, known, _ = train_test_split(X, label, test_size=0.25, random_state=CHOICE_SEED)
    mixture = DirichletProcessMixture(n_chains=n_chains, n_draws=n_draws, random_state=seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _, cost = cpu_seconds(mixture.fit, train)
    posterior = mixture.posterior_
    return {
        "CPU s": cost,
        "warnings": sum(issubclass(one.category, ConvergenceWarning) for one in caught),
        "R-hat": max(posterior.rhat()[name] for name in mixture._reported_traces),
        "effective draws": min(posterior.ess()[name] for name in mixture._reported_traces),
        "log density": mixture.score(new),
        "ARI": adjusted_rand_score(known, mixture.labels_),
    }


def main():
    """Run and print."""
    parser = command_line(__doc__, "every tenth simulated table")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--n-chains", type=int, default=4)
    arguments = parser.parse_args()
    lines = []
    with threadpool_limits(1):
        for which in ("few rows",) if arguments.quick else ("many rows", "few rows"):
            found = {n_draws: [] for n_draws in NUMBERS}
            for name, X, label in tables(which, arguments.data, 10 if arguments.quick else 3):
                for n_draws, runs in found.items():
                    runs.append(
                        figures(standardised(X), label, n_draws, arguments.n_chains, arguments.seed)
                    )
                print(f"  {name}: done", flush=True)
            for n_draws, runs in found.items():
                total = {key: sum(run[key] for run in runs) for key in ("CPU s", "warnings")}
                means = {key: np.mean([run[key] for run in runs]) for key in ("log density", "ARI")}
                lines.append(
                    {
                        "tables": f"{len(runs)} of {which}",
                        "draws": n_draws,
                        **total,
                        "R-hat, median": np.median([run["R-hat"] for run in runs]),
                        "effective draws, median": np.median(
                            [run["effective draws"] for run in runs]
                        ),
                        **means,
                    }
                )
    print(markdown(lines))


if __name__ == "__main__":
    main()
