"""Cluster the iris and wine measurements without K, score held-out rows, fill holes.

Run by `make demo`. The classes are known to botanists and winemakers but not to the methods; they
serve to grade the answers. DirichletProcessMixture runs with its defaults, which were chosen on
other data; the alternatives are tuned on the training rows, as their users would.
"""

import argparse
import textwrap
import time
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.datasets import load_iris, load_wine
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.cluster import contingency_matrix
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.preprocessing import StandardScaler

from skbnp import DirichletProcessMixture
from skbnp.plot import ClusterDisplay, TraceDisplay, save_figure, style

SEED = 0
OURS = "DirichletProcessMixture"
HOLES = 0.2
MAX_RHAT, MIN_ESS = 1.05, 100  # what fit warns about

# The columns of the pictures, chosen by name: petals, and two that tasters would name.
DATA = {
    "iris": (load_iris, ("petal length (cm)", "petal width (cm)")),
    "wine": (load_wine, ("flavanoids", "color_intensity")),
}

NOTES = """
Adjusted Rand: 1 = the true classes, 0 = chance, on the rows fitted. Log density: per row in the
units of the data, higher is better. Errors: root mean square, in standard deviations of the
column. BayesianGaussianMixture has its size (at most 10) and shape chosen by five-fold held-out
density, GaussianMixture by BIC; DirichletProcessMixture runs with its defaults. Verdicts within
two standard errors are too close to call. Chains agree if R-hat is below 1.05; what has under 100
effective draws is known roughly.
"""


# -- the alternatives, each fitted to standardised training rows


# Rounded measurements repeat, and a component of equal values has a density without bound, which
# BIC would reward: a floor under the variances. The default, 1e-6, is too low for one.
RIVAL = {"reg_covar": 1e-3, "max_iter": 500, "random_state": SEED}


def fit_bayesian_mixture(Z):
    """BayesianGaussianMixture, its size and shape chosen by five-fold held-out density."""
    mixture = BayesianGaussianMixture(n_init=2, **RIVAL)
    grid = {"n_components": [2, 3, 5, 10], "covariance_type": ["full", "tied", "diag"]}
    return GridSearchCV(mixture, grid, cv=5).fit(Z).best_estimator_


def fit_mixture_by_bic(Z):
    """GaussianMixture of one to ten components and any shape, by BIC."""
    candidates = [
        GaussianMixture(k, covariance_type=shape, n_init=5, **RIVAL).fit(Z)
        for k in range(1, 11)
        for shape in ("full", "tied", "diag", "spherical")
    ]
    return min(candidates, key=lambda mixture: mixture.bic(Z))


# -- what is compared


def cluster(X_train, X_test):
    """Fit every method; return the fitted mixture of ours and one row of results per method."""
    rows = []
    start = time.perf_counter()
    ours = DirichletProcessMixture(n_jobs=-1, random_state=SEED).fit(X_train)
    seconds = time.perf_counter() - start
    rows.append((OURS, "defaults", ours.labels_, ours.score_samples(X_test), seconds))

    scaler = StandardScaler().fit(X_train)
    Z_train, Z_test = scaler.transform(X_train), scaler.transform(X_test)
    for fit in (fit_bayesian_mixture, fit_mixture_by_bic):
        start = time.perf_counter()
        mixture = fit(Z_train)
        seconds = time.perf_counter() - start
        # The density of x is that of its standardised z over the product of the scales.
        log_density = mixture.score_samples(Z_test) - np.log(scaler.scale_).sum()
        setting = f"{mixture.n_components} {mixture.covariance_type}"
        name = type(mixture).__name__ + (" by BIC" if fit is fit_mixture_by_bic else "")
        rows.append((name, setting, mixture.predict(Z_train), log_density, seconds))
    return ours, rows


def punch_holes(X, rng):
    """Set a fifth of the cells to NaN; keep at least one cell of each row and column."""
    while True:
        hole = rng.permutation(X.size).reshape(X.shape) < HOLES * X.size
        if not hole.all(axis=0).any() and not hole.all(axis=1).any():
            return np.where(hole, np.nan, X), hole


def fill(X_train):
    """Fill the same holes by every method; return results per method, errors in units of sd."""
    X_holed, hole = punch_holes(X_train, np.random.default_rng(SEED))
    centre, scale = np.nanmean(X_holed, axis=0), np.nanstd(X_holed, axis=0)
    Z_holed = (X_holed - centre) / scale

    start = time.perf_counter()
    ours = DirichletProcessMixture(n_jobs=-1, random_state=SEED).fit(X_holed)
    filled = {OURS: ((ours.X_imputed_ - centre) / scale, time.perf_counter() - start)}
    for name, imputer in {
        "IterativeImputer": IterativeImputer(random_state=SEED),
        "KNNImputer": KNNImputer(),
        "column means": SimpleImputer(),
    }.items():
        start = time.perf_counter()
        filled[name] = imputer.fit_transform(Z_holed), time.perf_counter() - start

    # Judged in the spread of the complete column, which no method has seen.
    unit = X_train.std(axis=0) / scale
    truth = (X_train - centre) / scale
    rows = [(name, ((Z - truth) / unit)[hole], seconds) for name, (Z, seconds) in filled.items()]
    return ours, rows, int(hole.sum())


# -- printing


def print_wrapped(text, indent="  "):
    """A paragraph no wider than the tables."""
    print(
        textwrap.fill(" ".join(text.split()), 96, initial_indent=indent, subsequent_indent=indent)
    )


def print_table(header, rows):
    """Columns aligned: the first to the left, the others to the right."""
    cells = [[str(cell) for cell in row] for row in (header, *rows)]
    width = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for n, (first, *others) in enumerate(cells):
        right = (cell.rjust(w) for cell, w in zip(others, width[1:], strict=True))
        print("  " + "   ".join([first.ljust(width[0]), *right]))
        if n == 0:
            print("  " + "-" * (sum(width) + 3 * (len(width) - 1)))


def print_verdict(what, score, error=None):
    """Say who is better, ours or the best of the others, and whether the rows can tell.

    Parameters
    ----------
    what : str
    score : dict of name to float
        Larger is better.
    error : dict of name to float, optional
        Standard error of the difference to each, paired over held-out rows or cells.
    """
    rival = max((name for name in score if name != OURS), key=score.get)
    gap = score[OURS] - score[rival]
    error = error[rival] if error else 0.0
    side = "ahead of" if gap > 0 else "behind"
    by = f"{abs(gap):.3f}" + (f" +- {error:.3f}" if error else "")
    if abs(gap) < 5e-4:
        print(f"  {what}: equal to {rival}")
    elif abs(gap) < 2 * error:
        print(f"  {what}: too close to call, {side} {rival} by {by}")
    else:
        print(f"  {what}: we {'win' if gap > 0 else 'lose'}, {side} {rival} by {by}")


def paired_error(score):
    """Standard error of our mean score minus each method's, over the same rows or cells."""
    return {
        name: (score[OURS] - values).std(ddof=1) / np.sqrt(len(values))
        for name, values in score.items()
    }


def print_chains(mixture):
    """How many clusters the draws have, what the chains traced, and whether they agree."""
    posterior = mixture.posterior_
    value, count = np.unique(posterior.traces["n_clusters"], return_counts=True)
    shares = ", ".join(
        f"{v:.0f} ({c / count.sum():.0%})"
        for v, c in zip(value, count, strict=True)
        if c / count.sum() >= 0.005
    )
    print_wrapped(f"number of clusters in the draws: {shares}")
    print()

    # What is fixed, or stands still in all chains, has nothing to converge.
    names = [name for name, trace in posterior.traces.items() if np.ptp(trace) > 0]
    rhat, ess = posterior.rhat(), posterior.ess()
    print_table(
        (f"{mixture.n_chains} chains", *names),
        [
            ("R-hat", *(f"{rhat[name]:.3f}" for name in names)),
            ("effective draws", *(f"{ess[name]:.0f}" for name in names)),
        ],
    )
    apart = [name for name in names if not rhat[name] <= MAX_RHAT]
    few = [name for name in names if not ess[name] >= MIN_ESS]
    if apart:
        print_wrapped(
            f"NOT CONVERGED: R-hat is above {MAX_RHAT} for {', '.join(apart)}. The chains sit in "
            "different partitions; another seed may well find another number of clusters."
        )
    elif few:
        print_wrapped(
            f"The chains agree, but {', '.join(few)} with under {MIN_ESS} effective draws is "
            "known roughly."
        )
    else:
        print("  The chains agree.")


# -- the job


def run(name, output):
    """Everything for one data set."""
    load, columns = DATA[name]
    data = load()
    X, y = data.data, data.target
    X_train, X_test, y_train, _ = train_test_split(
        X, y, test_size=0.2, stratify=y, random_state=SEED
    )
    print(
        f"\n{name}: {X.shape[1]} features, {len(data.target_names)} true classes, "
        f"{len(X_train)} rows to fit, {len(X_test)} held out\n"
    )

    mixture, rows = cluster(X_train, X_test)
    rand = {method: adjusted_rand_score(y_train, labels) for method, _, labels, _, _ in rows}
    log_density = {method: values for method, _, _, values, _ in rows}
    print_table(
        ("clusters without K", "setting", "clusters", "adjusted Rand", "held-out log density", "s"),
        [
            (
                method,
                setting,
                len(np.unique(labels)),
                f"{rand[method]:.3f}",
                f"{values.mean():.3f} +- {values.std(ddof=1) / np.sqrt(len(values)):.3f}",
                f"{seconds:.1f}",
            )
            for method, setting, labels, values, seconds in rows
        ],
    )
    print_verdict("adjusted Rand", rand)
    mean = {method: values.mean() for method, values in log_density.items()}
    print_verdict("held-out log density", mean, paired_error(log_density))
    print_chains(mixture)

    mixture_of_holed, rows, n_holes = fill(X_train)
    print()
    print_table(
        (f"fill {n_holes} removed cells", "error / sd", "s"),
        [
            (method, f"{np.sqrt(np.mean(error**2)):.3f}", f"{seconds:.1f}")
            for method, error, seconds in rows
        ],
    )
    score = {method: -(error**2) for method, error, _ in rows}
    mean = {method: values.mean() for method, values in score.items()}
    print_verdict("squared error of the filled cells", mean, paired_error(score))
    print_chains(mixture_of_holed)

    print()
    at = [list(data.feature_names).index(column) for column in columns]
    figure = draw_clusters(mixture, X_train[:, at], y_train, data.target_names, columns)
    figure.suptitle(f"{name}: {mixture.n_clusters_} clusters found, {len(set(y))} true classes")
    save(figure, output / f"{name}_clusters.png")
    save(TraceDisplay.from_estimator(mixture).figure_, output / f"{name}_traces.png")


def draw_clusters(mixture, points, classes, class_names, columns):
    """The clusters found, beside the true classes."""
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.5), sharey=True)
    # Number the classes so that each has the colour of the cluster it resembles.
    table = contingency_matrix(classes, mixture.labels_)
    table = np.pad(table, ((0, 0), (0, len(class_names))))
    number = linear_sum_assignment(table, maximize=True)[1]
    ClusterDisplay(points, mixture.labels_, names=columns).plot(ax=axes[0])
    truth = ClusterDisplay(points, number[classes], names=columns).plot(ax=axes[1])
    for c, text in zip(np.argsort(number), truth.legend_.get_texts(), strict=True):
        text.set_text(f"{class_names[c]}  ({np.sum(classes == c)})")
    axes[0].set_title("found")
    axes[1].set(title="true", ylabel="")
    return figure


def save(figure, path):
    """Write a picture and say where it is."""
    save_figure(figure, path)
    plt.close(figure)
    print(f"  wrote {path}")


def main():
    """Both data sets, warnings in plain sight."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--output", type=Path, default=Path("demo_output"))
    output = parser.parse_args().output
    plt.switch_backend("agg")  # pictures go to files
    plt.style.use(style())
    output.mkdir(parents=True, exist_ok=True)

    print_wrapped(NOTES, "")
    start = time.perf_counter()
    for name in DATA:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            # print_chains says the same in place.
            warnings.filterwarnings("ignore", "The chains may not have converged")
            run(name, output)
        for text in dict.fromkeys(str(warning.message) for warning in caught):
            print_wrapped(f"warning: {text}")
    print(f"\n{time.perf_counter() - start:.0f} s in all; pictures in {output}/")


if __name__ == "__main__":
    main()
