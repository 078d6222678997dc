"""Quality of DirichletProcessMixture: held-out density and clusters beside tuned mixtures.

(a) two populations with a known truth, five training sets each; (b) real tables, five random
splits each, the same for all methods; (c) covariances that learn from one another beside the prior
in which their numbers are fixed, tables standardised, three splits. Prints Markdown tables and
writes them as JSON beside this file. One thread on one core, chain after chain; seconds are
processor time and hold everything a method does with the training rows, its search for settings
included.
"""

import warnings
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from _command import command_line, path_beside, write
from _data import Population
from _peers import Answer, bnpy_in, by_bic, variational
from _report import cpu_seconds, markdown, mean_and_error
from _tables import loaded, rounding_step, split, standardised
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

import skbnp
from skbnp import DirichletProcessMixture

LEARNED, FIXED = "learned", "nu0 = d + 2"
OURS, VARIATIONAL = "DirichletProcessMixture", "BayesianGaussianMixture, tuned"
REAL = (
    "galaxy",
    "acidity",
    "enzyme",
    "old_faithful",
    "iris",
    "wine",
    "wifi",
    "dlbcl",
    "gvhd",
    "gvhd, control",
)
PRIOR_TABLES = (
    "iris",
    "wine",
    "cancer6",
    "cancer10",
    "cancer",
    "old_faithful",
    "galaxy",
    "acidity",
    "enzyme",
    "wifi",
    "digits8",
)
SHORT_TABLE = 1_000  # rows: what --quick leaves of part (b)


@dataclass(frozen=True)
class Setting:
    """A population, what is known of the peers on it, and what is asked of us."""

    population: Population
    n_samples: int
    least_log_density: float
    least_agreement: float


# Stand-ins for the populations of a published comparison, of which sizes and the peers' figures are
# known but not the parameters. Each was chosen once, by the oracle and by GaussianMixture with the
# true number of clusters alone (5 restarts, training sets 0..4), before anything else was fitted:
# - seed of the generator: the first at which GaussianMixture found the right mode five times;
# - number of clusters, where unknown (a2), and ``spread``, hence the overlap: so that the adjusted
#   Rand index of the oracle on the held-out rows is .909 (a1) and .747 (a2) and that of
#   GaussianMixture on the training rows .908 and .714, a little above what is asked;
# - ``scale``, which shifts log densities and nothing else: so that the true mean log density of the
#   held-out rows is -8.671 as published (a1), and -1.7506 (a2), where GaussianMixture then gets
#   -1.75625, the mean of the two published peers.
# Published, held-out log density and seconds on another machine:
# - a1: bnpy -8.7009 (ARI .903, 15.7 s), BayesianGaussianMixture -8.704 (11.9 s), GaussianMixture by
#   BIC -8.7025 (3.2 s), BNPmix 7 clusters after 30.6 s;
# - a2: bnpy -1.7555 (19.6 s), BNPmix -1.7570 (0.9 s), NUTS 88 s.
# GaussianMixture loses .022 to the truth on our (a1), the published peers .030: ours is easier.
SETTINGS = {
    "a1: 10 clusters": Setting(
        Population.random(
            n_clusters=10, n_features=8, spread=1.12, scale=0.7120967673892206, seed=1
        ),
        n_samples=10_000,
        least_log_density=-8.703,
        least_agreement=0.90,
    ),
    "a2: 4 clusters": Setting(
        Population.random(
            n_clusters=4, n_features=2, spread=2.65, scale=0.4324539037998621, seed=0
        ),
        n_samples=2_000,
        least_log_density=-1.7565,
        least_agreement=0.70,
    ),
}
HELD_OUT_ROWS, HELD_OUT_SEED = 20_000, 10**6


# -- the methods


def ours(X, new, seed, quick, **options):
    """Default settings but for options."""
    mixture, seconds = cpu_seconds(DirichletProcessMixture(random_state=seed, **options).fit, X)
    ess, rhat = mixture.posterior_.ess(), mixture.posterior_.rhat()
    extras = {f"ESS/s {name}": ess[name] / seconds for name in ("log_joint", "n_clusters")}
    extras |= {f"R-hat {name}": rhat[name] for name in ("log_joint", "n_clusters")}
    k = mixture.posterior_.traces["n_clusters"]
    extras["K from"], extras["K to"] = np.quantile(k, [0.05, 0.95]).astype(int).tolist()
    label, label_new, log_density = (
        mixture.labels_,
        mixture.predict(new),
        mixture.score_samples(new),
    )
    return Answer(label, label_new, log_density, seconds, extras, mixture.component_labels_)


def truth_of(population):
    """The oracle: true densities and the most probable cluster of each row."""

    def method(X, new, seed, quick):
        return Answer(
            population.predict(X), population.predict(new), population.score_samples(new), np.nan
        )

    return method


METHODS = {OURS: ours, VARIATIONAL: variational, "GaussianMixture by BIC": by_bic}


# -- figures


def agreement(label, found):
    """Adjusted Rand index over the rows that have a label; NaN if none has."""
    if label is None or found is None:
        return np.nan
    known = label >= 0
    return adjusted_rand_score(label[known], found[known])


def figures(answer, label, label_new, n_new):
    """One run in numbers; rows beyond ``n_new`` are those of `within_rounding`."""
    moved = answer.log_density[n_new:]
    return {
        "clusters": len(np.unique(answer.label)),
        "ARI": agreement(label, answer.label),
        "ARI components": agreement(label, answer.component),
        "ARI held out": agreement(label_new, answer.label_new[:n_new]),
        "log density": answer.log_density[:n_new].mean(),
        "within rounding": moved.mean() if len(moved) else np.nan,
        "CPU s": answer.seconds,
        **answer.extras,
    }


def within_rounding(X, step, seed):
    """Rows moved at random within the rounding of their columns.

    A component as narrow as a column is rounded has an unbounded density at the column's values;
    here it is found out.
    """
    return X + step * np.random.default_rng(seed).uniform(-0.5, 0.5, size=X.shape)


def mean_of(runs, name):
    """Mean of one figure over runs."""
    return float(np.mean([run[name] for run in runs]))


def best_of(results, name):
    """The method with the highest mean of one figure."""
    return max(results, key=lambda method: mean_of(results[method], name))


def with_error(values):
    """Mean and standard error as text."""
    mean, error = mean_and_error(values)
    return f"{mean:.4f} ± {error:.4f}"


def mixing(runs):
    """Speed and agreement of the chains: columns that only our method fills."""
    return {
        f"{figure} {name}": mean_of(runs, f"{figure} {name}")
        if f"{figure} {name}" in runs[0]
        else ""
        for figure in ("ESS/s", "R-hat")
        for name in ("log_joint", "n_clusters")
    }


# -- the three parts; each returns {heading: rows}, a row being a dict


def measure_populations(arguments):
    """(a) Populations with a known truth."""
    rows = []
    seeds = range(1 if arguments.quick else 5)
    for name, setting in SETTINGS.items():
        if arguments.quick and setting.n_samples > 5_000:
            continue
        new, label_new = setting.population.draw(HELD_OUT_ROWS, HELD_OUT_SEED)
        methods = arguments.methods | {"truth": truth_of(setting.population)}
        if arguments.bnpy:
            methods["bnpy"] = bnpy_in(arguments.bnpy)
        for method, answer_of in methods.items():
            runs = []
            for seed in seeds:
                X, label = setting.population.draw(setting.n_samples, seed)
                answer = answer_of(X, new, seed, arguments.quick)
                runs.append(figures(answer, label, label_new, len(new)))
            meets = {
                "density": mean_of(runs, "log density") >= setting.least_log_density,
                "ARI": mean_of(runs, "ARI") >= setting.least_agreement,
            }
            rows.append(
                {
                    "population": name,
                    "method": method,
                    "clusters": ", ".join(str(run["clusters"]) for run in runs),
                    "ARI": mean_of(runs, "ARI"),
                    "ARI held out": mean_of(runs, "ARI held out"),
                    "log density": with_error([run["log density"] for run in runs]),
                    "must": f"{setting.least_log_density}, {setting.least_agreement:.2f}",
                    "met": ", ".join(what for what, met in meets.items() if met) or "neither",
                    "CPU s": mean_of(runs, "CPU s"),
                    **mixing(runs),
                    "runs": runs,
                }
            )
            print_progress(rows[-1])
    return {"Populations with a known truth, five training sets": rows}


def measure_real(arguments):
    """(b) Real tables, the same splits for all methods."""
    rows, verdicts = [], []
    for name, X, label in loaded(REAL, arguments.data):
        if arguments.quick and len(X) > SHORT_TABLE:
            continue
        step = rounding_step(X)
        results = {}
        for method, answer_of in arguments.methods.items():
            results[method] = []
            for seed in range(2 if arguments.quick else 5):
                train, label_train, new, label_new = split(X, label, seed)
                asked = np.concatenate([new, within_rounding(new, step, seed)])
                answer = answer_of(train, asked, seed, arguments.quick)
                results[method].append(figures(answer, label_train, label_new, len(new)))
        density = {
            method: np.array([run["log density"] for run in runs])
            for method, runs in results.items()
        }
        for method, runs in results.items():
            rows.append(
                {
                    "table": f"{name}, {X.shape[0]:,} x {X.shape[1]}",
                    "method": method,
                    "clusters": ", ".join(str(run["clusters"]) for run in runs),
                    "ARI": mean_of(runs, "ARI"),
                    "ARI held out": mean_of(runs, "ARI held out"),
                    "log density": with_error(density[method]),
                    f"minus {VARIATIONAL}": ""
                    if arguments.alone
                    else with_error(density[method] - density[VARIATIONAL]),
                    "within rounding": mean_of(runs, "within rounding"),
                    "CPU s": mean_of(runs, "CPU s"),
                    **mixing(runs),
                    "runs": runs,
                }
            )
            print_progress(rows[-1])
        if arguments.alone:
            continue
        gain, error = mean_and_error(density[OURS] - density[VARIATIONAL])
        verdicts.append(
            {
                "table": name,
                "must (tuned variational less one standard error)": "met"
                if gain >= -error
                else "missed",
                "best density": best_of(results, "log density"),
                "best within rounding": best_of(results, "within rounding"),
            }
        )
    asked = {} if arguments.alone else {"Real tables, what was asked": verdicts}
    return {"Real tables, five splits": rows, **asked}


def measure_priors(arguments):
    """(c) Learned covariances beside fixed numbers of their prior."""
    rows = []
    for name, X, label in loaded(PRIOR_TABLES, arguments.data):
        if arguments.quick and len(X) > SHORT_TABLE:
            continue
        X, d = standardised(X), X.shape[1]
        runs, densities = {LEARNED: [], FIXED: []}, {LEARNED: [], FIXED: []}
        for seed in range(1 if arguments.quick else 3):
            train, label_train, new, label_new = split(X, label, seed)
            for prior, options in (LEARNED, {}), (FIXED, {"degrees_of_freedom_prior": d + 2}):
                answer = ours(train, new, seed, arguments.quick, **options)
                runs[prior].append(figures(answer, label_train, label_new, len(new)))
                densities[prior].append(answer.log_density)
        gain = np.concatenate(densities[LEARNED]) - np.concatenate(densities[FIXED])
        for prior in runs:
            rows.append(
                {
                    "table": f"{name}, {X.shape[0]:,} x {d}",
                    "prior": prior,
                    "log density": f"{np.mean(np.concatenate(densities[prior])):.3f}",
                    f"minus {FIXED}": with_error(gain) if prior == LEARNED else "",
                    **clusters_of(runs[prior]),
                    "CPU s": mean_of(runs[prior], "CPU s"),
                    "runs": runs[prior],
                }
            )
            print_progress(rows[-1])
    return {"Learned covariances beside fixed numbers, three splits": rows}


def clusters_of(runs):
    """Clusters, agreement and mixing of several splits, each as a list."""
    forms = {"K, 5 to 95 %": "{K from}-{K to}", "clusters": "{clusters}"}
    names = ("ARI", "ARI components", "R-hat log_joint", "R-hat n_clusters")
    forms |= {name: "{" + name + ":.2f}" for name in names}
    shown = {
        heading: ", ".join(form.format(**run) for run in runs) for heading, form in forms.items()
    }
    return {heading: "" if "nan" in text else text for heading, text in shown.items()}


# -- printing


def print_progress(row):
    """What one method did on one table, as soon as it is known: the whole takes hours."""
    shown = [f"{value:.3g}" if isinstance(value, float) else value for value in row.values()]
    print("  " + " | ".join(value for value in shown if isinstance(value, str)), flush=True)


def main():
    """Measure, print, write."""
    parser = command_line(__doc__, "small tables, fewer settings")
    parser.add_argument("--only", choices=("a", "b", "c"), help="one part")
    parser.add_argument("--alone", action="store_true", help="parts (a) and (b) without peers")
    parser.add_argument("--bnpy", metavar="PYTHON", help="interpreter that has bnpy 0.1.7")
    arguments = parser.parse_args()
    arguments.methods = {OURS: ours} if arguments.alone else METHODS
    warnings.filterwarnings("ignore", category=ConvergenceWarning)  # R-hat has its own columns

    parts = {"a": measure_populations, "b": measure_real, "c": measure_priors}
    if not arguments.data.exists():
        print(f"no {arguments.data}: part (b) is left out, of (c) what is not scikit-learn's\n")
        del parts["b"]
    print(f"skbnp {skbnp.__version__}, {datetime.now(UTC):%Y-%m-%d}\n")
    for part, measure in parts.items():
        if arguments.only not in (None, part):
            continue
        with threadpool_limits(1):
            results = measure(arguments)
        for heading, rows in results.items():
            shown = [{key: row[key] for key in row if key != "runs"} for row in rows]
            print(f"\n{heading}\n\n{markdown(shown)}\n", flush=True)
        path = path_beside(__file__, part)
        write(path, arguments.quick, results)
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
