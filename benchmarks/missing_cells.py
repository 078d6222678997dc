"""Filled cells and what is said of their errors, for training rows and for new ones.

A fifth of the cells of a table is removed at random. A method learns from three quarters of the
rows and fills the holes of these and of the others. Errors are in standard deviations of the
columns; coverage is the share of removed cells within one and two standard deviations of what was
filled in (nominal .683 and .954) and within 1.645 (.900). `impute` weighs all draws alike; "by
density" is what it did until 0.1, as Bayes' rule has it: each draw by its density of what is
observed of the row. Prints Markdown tables and writes the same as JSON beside this file.
"""

import warnings
from copy import copy

import numpy as np
from _command import command_line, path_beside, write
from _report import markdown
from _tables import loaded
from scipy.special import logsumexp
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer

from skbnp import DirichletProcessMixture, TreeFactorModel
from skbnp.mcmc.posterior import Posterior

REAL = ("wine", "redwine with quality", "cloud", "abalone")
SHARE, N_IMPUTATIONS, N_DRAWS = 0.2, 20, 100
MODELS = {
    "mixture": DirichletProcessMixture,
    "tree": TreeFactorModel,
}


def tables(data):
    """Name -> complete rows."""
    rng = np.random.default_rng(0)
    root = rng.normal(size=(14, 14))
    found = {"Gaussian, 14 columns": rng.multivariate_normal(np.zeros(14), root @ root.T, size=400)}
    found |= {name: X for name, X, _ in loaded(REAL, data)}
    return found


def holed(X, seed, n_train):
    """Standardised truth, the same with holes and which rows are for training."""
    rng = np.random.default_rng(seed)
    X = X[rng.permutation(len(X))[: n_train * 4 // 3]]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    holes = rng.random(X.shape) < SHARE
    holes[holes.all(axis=1), 0] = False
    return X, np.where(holes, np.nan, X), len(X) * 3 // 4


def by_density(model, rows):
    """Mean and standard deviation with each draw weighed by its density of the row's cells."""
    logs, means, variances = [], [], []
    model = copy(model)
    # Training rows would be answered with what the chains say of them, whatever the draws.
    vars(model).pop("_training_cells", None)
    for draw in model.posterior_.evenly_spaced(N_DRAWS):
        one = copy(model)
        one.posterior_ = Posterior([[draw]], {"log_joint": np.zeros((1, 1))})
        logs.append(one.score_samples(rows))
        mean, std = one.impute(rows, return_std=True)
        means.append(mean)
        variances.append(std**2)
    weight = np.exp(logs - logsumexp(logs, axis=0))[:, :, np.newaxis]
    mean = np.sum(weight * means, axis=0)
    spread = np.where(weight > 0, variances + (np.array(means) - mean) ** 2, 0.0)
    return mean, np.sqrt(np.sum(weight * spread, axis=0))


def ours(name, train, new, options):
    """Both ways to weigh draws: yields (name, filled training rows, filled new rows)."""
    model = MODELS[name](n_jobs=1, random_state=0, **options).fit(train)
    yield f"{name}, impute", *(model.impute(rows, return_std=True) for rows in (train, new))
    yield f"{name}, by density", *(by_density(model, rows) for rows in (train, new))


def peers(train, new):
    """Nearest neighbours, which give no error, and chained Bayesian ridges, several times."""
    knn = KNNImputer(n_neighbors=5).fit(train)
    yield "KNNImputer", *((knn.transform(rows), None) for rows in (train, new))
    several = []
    for seed in range(N_IMPUTATIONS):
        chained = IterativeImputer(sample_posterior=True, max_iter=5, random_state=seed).fit(train)
        several.append([chained.transform(rows) for rows in (train, new)])
    parts = zip(*several, strict=True)
    yield "IterativeImputer", *((np.mean(one, axis=0), np.std(one, axis=0)) for one in parts)


def figures(truth, given, answer):
    """Root mean square error and coverage over the removed cells."""
    (mean, std), holes = answer, np.isnan(given)
    error = (mean - truth)[holes]
    out = {"rmse": float(np.sqrt(np.mean(error**2)))}
    for name, width in (("1 sd", 1.0), ("2 sd", 2.0), ("90 %", 1.645)):
        covered = "" if std is None else float(np.mean(np.abs(error) <= width * std[holes]))
        out[name] = covered
    return out


def run(name, X, n_train, options):
    """Rows of the table of results for one table."""
    truth, given, n = holed(X, 0, n_train)
    answers = list(peers(given[:n], given[n:]))
    for model in MODELS:
        answers += ours(model, given[:n], given[n:], options)
    rows = []
    for method, *answer in answers:
        parts = zip(("training", "new"), (slice(n), slice(n, None)), answer, strict=True)
        for part, which, one in parts:
            shown = {"table": name, "rows": part, "method": method}
            rows.append(shown | figures(truth[which], given[which], one))
    return rows


def main():
    """Run, print, write."""
    parser = command_line(__doc__, "fewer rows and shorter chains")
    arguments = parser.parse_args()
    options = dict(n_chains=2, n_warmup=100, n_draws=100) if arguments.quick else {}
    rows = []
    warnings.simplefilter("ignore")
    for name, X in tables(arguments.data).items():
        rows += run(name, X, 200 if arguments.quick else 600, options)
    print(markdown(rows))
    write(path_beside(__file__), arguments.quick, {"rows": rows})


if __name__ == "__main__":
    main()
