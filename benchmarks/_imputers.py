"""What a user would take instead to fill holes: imputers of scikit-learn, and low-rank Gaussians.

A method is a function of a `Task` that returns the filled rows and what it chose. Choices are made
by the error on the task's validation part; the method then learns from all of `known`.
"""

import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
from _command import command_line
from sklearn.decomposition import PCA
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.linear_model import RidgeCV
from threadpoolctl import threadpool_limits

from skbnp import DirichletProcessMixture

LEAST_VARIANCE = 1e-4  # noise of one percent of the range; many factors of few rows leave none


@dataclass(frozen=True)
class Task:
    """Rows to learn from and rows to fill, NaN where missing; they may be the same ones.

    Errors are over the cells `asked` for.
    """

    known: np.ndarray
    holed: np.ndarray
    truth: np.ndarray
    asked: np.ndarray
    validation: "Task | None" = None

    def square_errors(self, filled):
        """Mean square error of each row over the cells asked for, of which it has some."""
        n_asked = self.asked.sum(axis=1)
        squares = np.where(self.asked, (filled - self.truth) ** 2, 0.0).sum(axis=1)
        return squares[n_asked > 0] / n_asked[n_asked > 0]


def lower_half(train, test, shape):
    """The lower half of each test row is missing; for validation, of the last fifth of `train`."""
    missing = np.zeros(shape, dtype=bool)
    missing[shape[0] // 2 :] = True
    missing = missing.ravel()

    def task(known, rows, validation=None):
        asked = np.broadcast_to(missing, rows.shape)
        return Task(known, np.where(asked, np.nan, rows), rows, asked, validation)

    n_known = len(train) - len(train) // 5
    return task(train, test, task(train[:n_known], train[n_known:]))


def scattered(rows, share, random):
    """So many cells are missing at random; for validation, a twentieth more."""
    draw = random.random(rows.shape)
    missing, more = draw < share, (draw >= share) & (draw < share + 0.05)
    holed, emptier = (np.where(cells, np.nan, rows) for cells in (missing, missing | more))
    return Task(holed, holed, rows, missing, Task(emptier, emptier, rows, more))


def tuned(fill, options):
    """The method with the option of least error on the validation part."""

    def method(task):
        part = task.validation
        errors = [part.square_errors(fill(part, option)).mean() for option in options]
        best = options[int(np.argmin(errors))]
        return fill(task, best), best

    return method


def fixed(fill):
    """A method without a choice."""
    return lambda task: (fill(task), None)


def mean(task):
    """Means of the columns."""
    return SimpleImputer(keep_empty_features=True).fit(task.known).transform(task.holed)


def neighbours(task, n_neighbors):
    """Means of the nearest rows."""
    imputer = KNNImputer(n_neighbors=n_neighbors, keep_empty_features=True)
    return imputer.fit(task.known).transform(task.holed)


def one_by_one(task):
    """Each pixel by a regression on fifty others, in turns.

    Test rows are among those it learns from: of complete rows it would learn nothing.
    """
    imputer = IterativeImputer(
        n_nearest_features=50, max_iter=3, keep_empty_features=True, random_state=0
    )
    if task.known is task.holed:
        return imputer.fit_transform(task.known)
    return imputer.fit_transform(np.concatenate([task.known, task.holed]))[len(task.known) :]


def ridge(task):
    """All missing pixels by a linear function of the given ones, the same ones in all rows."""
    missing = np.isnan(task.holed[0])
    model = RidgeCV(np.logspace(-3, 3, 13)).fit(task.known[:, ~missing], task.known[:, missing])
    filled = task.holed.copy()
    filled[:, missing] = model.predict(task.holed[:, ~missing])
    return filled


def low_rank(task, option):
    """Conditional means of probabilistic principal components (Tipping and Bishop 1999).

    An option is the number of factors and that of steps of expectation maximisation, which start
    from the closed form for rows with the means in their holes: too many steps fit noise.
    """
    n_factors, n_steps = option
    model = LowRank.of_complete(mean_filled(task.known), n_factors)
    for _ in range(n_steps):
        model = model.improved(task.known)
    return np.where(np.isnan(task.holed), model.expected(task.holed), task.holed)


def mean_filled(rows):
    """Rows with the means of the columns in their holes."""
    return SimpleImputer(keep_empty_features=True).fit_transform(rows)


@dataclass(frozen=True)
class LowRank:
    """x = center + loadings z + noise: loadings (K, D), z standard normal, one variance."""

    center: np.ndarray
    loadings: np.ndarray
    variance: float

    @classmethod
    def of_complete(cls, rows, n_factors):
        """The maximum of the likelihood of complete rows."""
        pca = PCA(n_factors, svd_solver="full").fit(rows)
        variance = max(pca.noise_variance_, LEAST_VARIANCE)
        scale = np.sqrt(np.maximum(pca.explained_variance_ - variance, 0.0))[:, np.newaxis]
        return cls(pca.mean_, scale * pca.components_, variance)

    def moments(self, rows):
        """Means (n, K) and covariances (n, K, K) of z given the entries of each row."""
        known = ~np.isnan(rows)
        residual = np.where(known, rows - self.center, 0.0)
        K, D = self.loadings.shape
        squares = (self.loadings[:, np.newaxis] * self.loadings).reshape(K * K, D)
        precision = (known @ squares.T).reshape(-1, K, K) + self.variance * np.eye(K)
        covariance = np.linalg.inv(precision)
        mean = np.einsum("nkl,nl->nk", covariance, residual @ self.loadings.T)
        return mean, self.variance * covariance

    def expected(self, rows):
        """Conditional means of all entries."""
        return self.center + self.moments(rows)[0] @ self.loadings

    def improved(self, rows):
        """One step of expectation maximisation for the loadings and the centre, their intercept.

        They have a standard normal prior, nearly flat on the scale of intensities.
        """
        known = ~np.isnan(rows)
        mean, covariance = self.moments(rows)
        K, n = mean.shape[1] + 1, len(rows)
        z = np.column_stack([np.ones(n), mean])
        second = z[:, :, np.newaxis] * z[:, np.newaxis]
        second[:, 1:, 1:] += covariance
        gram = (known.T @ second.reshape(n, -1)).reshape(-1, K, K)
        cross = np.where(known, rows, 0.0).T @ z
        weight = np.linalg.solve(gram + self.variance * np.eye(K), cross[:, :, np.newaxis])[:, :, 0]
        fitted = np.einsum("jk,jkl,jl->", weight, gram, weight)
        squares = np.nansum(rows**2) - 2 * np.sum(weight * cross) + fitted
        return LowRank(weight[:, 0], weight[:, 1:].T, max(squares / known.sum(), LEAST_VARIANCE))


def names_of(table):
    """The columns of a frame that hold no numbers."""
    return [name for name in table if not pd.api.types.is_numeric_dtype(table[name])]


def by_dummies(given, seed):
    """A frame filled by IterativeImputer, with the name whose column of 0 and 1 is largest.

    The first name has no such column, which would follow from the others: what they leave is its.
    """
    levels = {name: given[name].dropna().unique() for name in names_of(given)}
    dummies = given.drop(columns=list(levels))
    for name, (_, *some) in levels.items():
        for level in some:
            dummies[f"{name}={level}"] = (
                (given[name] == level).where(given[name].notna()).astype(float)
            )
    mean, std = dummies.mean(), dummies.std()
    filled = IterativeImputer(random_state=seed, max_iter=20).fit_transform((dummies - mean) / std)
    filled = pd.DataFrame(filled * std.to_numpy() + mean.to_numpy(), columns=dummies.columns)
    for name, some in levels.items():
        shares = filled[[f"{name}={level}" for level in some[1:]]].to_numpy()
        shares = np.column_stack([1.0 - shares.sum(axis=1), shares])
        filled[name] = some[shares.argmax(axis=1)]
    return filled[given.columns]


def lines_asked_for(description, tables, compare):
    """Run a comparison on generated tables, as the command line asks for it.

    Parameters
    ----------
    description : str
        The script's; its first line is shown.
    tables : dict
        By name.
    compare : callable
        Of a name, a seed, a number of rows and options of `BNPImputer`: yields dicts, which are
        printed.
    """
    parser = command_line(description, "few rows and short chains", reads_data=False)
    parser.add_argument("--tables", nargs="+", choices=tables, default=list(tables))
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    arguments = parser.parse_args()
    estimator, n_rows = {}, arguments.rows
    if arguments.quick:
        n_rows = min(n_rows, 60)
        short = DirichletProcessMixture(n_chains=2, n_warmup=10, n_draws=10)
        estimator = {"estimator": short}
    warnings.simplefilter("ignore")
    lines = []
    with threadpool_limits(1):
        for name in arguments.tables:
            for seed in arguments.seeds:
                for line in compare(name, seed, n_rows, estimator):
                    lines.append(line)
                    print(line, flush=True)
    return lines


NEIGHBOURS = (1, 3, 5, 8, 10, 15, 20)
FACTORS = (5, 10, 20, 40, 60, 120, 240)
FACTORS_WITH_HOLES = FACTORS[:5]  # a step takes the square of them for each entry
STEPS = (10, 50)


def ppca(task):
    """The low-rank Gaussian, its options by validation."""
    known = task.validation.known
    if np.isnan(known).any():
        options = [(n, steps) for n in FACTORS_WITH_HOLES for steps in STEPS]
    else:
        options = [(n, 0) for n in FACTORS if n < min(known.shape)]
    filled, (n_factors, n_steps) = tuned(low_rank, options)(task)
    return filled, f"{n_factors} ({n_steps} steps)" if n_steps else n_factors


PEERS = {
    "mean": fixed(mean),
    "KNNImputer": tuned(neighbours, NEIGHBOURS),
    "PPCA": ppca,
    "ridge": fixed(ridge),
    "IterativeImputer": fixed(one_by_one),
}
