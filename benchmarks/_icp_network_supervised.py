"""The supervised networks beside linear models, neural networks, kernels and trees.

Splits at random; means over them and standard errors. The intervals of 90 % are mean plus and minus
1.645 standard deviations: the network's own, and for the others that of residuals of 5-fold
cross-validation on the training rows. Rivals get standardised
columns. The widths and penalties of the neural networks, and of the kernels of support vectors, are
searched for by 5-fold cross-validation, and the time of that counts; boosted trees are as they
come, and a Gaussian process learns its lengths and noise from the rows. Pixels of digits are
divided by 4; for rivals cross-validation chooses between centred and standardised ones.
"""

import warnings

import numpy as np
from _cibp_belief_net_density import in_words
from _report import cpu_seconds
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_diabetes, load_digits, make_friedman1
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import log_loss, r2_score
from sklearn.model_selection import GridSearchCV, cross_val_predict, train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from skbnp import ICPNetworkClassifier, ICPNetworkRegressor

N_SPLITS, QUANTILE = 3, 1.645
CHAINS = dict(n_jobs=1)  # all else at its default
SHORT = dict(n_chains=2, n_warmup=150, n_draws=50, thin=2, n_jobs=1)
WIDTHS, PENALTIES = [(5,), (10,), (20,), (50,)], [0.01, 0.1, 1.0, 10.0]


def friedman(seed):
    """500 rows of five columns that matter and five that do not, noise of 1."""
    return make_friedman1(500, noise=1.0, random_state=seed)


REGRESSION = {
    "diabetes, 442 x 10": lambda seed: load_diabetes(return_X_y=True),
    "Friedman 1, 500 x 10": friedman,
}


def supervised(data, quick):
    """Tables of regression and of classification; data are not needed."""
    return {"supervised: regression": regression(quick), "supervised: digits": digits(quick)}


def regression(quick):
    """Coefficients of determination, and shares of held-out outputs in their intervals."""
    rows = []
    for name, load in REGRESSION.items():
        found = {}
        for seed in range(1 if quick else N_SPLITS):
            split = train_test_split(*load(seed), test_size=0.5, random_state=seed)
            for method, fit in REGRESSORS.items():
                (mean, spread), seconds = cpu_seconds(fit, split[0], split[2], split[1], quick)
                inside = np.abs(split[3] - mean) < QUANTILE * spread
                width = 2 * QUANTILE * np.mean(spread) / split[3].std()
                figures = r2_score(split[3], mean), 100 * inside.mean(), width, seconds
                found.setdefault(method, []).append(figures)
                print(f"supervised, {name}, {seed}, {method}: {np.round(figures, 3)}", flush=True)
        for method, figures in found.items():
            score, inside, width, seconds = np.transpose(figures)
            row = {"set": name, "method": method, "R^2": in_words(score, ".3f")}
            row["in 90 % interval, %"] = in_words(inside, ".1f")
            row["width / deviation of outputs"] = in_words(width, ".2f")
            rows.append(row | {"s": seconds.mean()})
    return rows


def digits(quick):
    """Accuracies and log losses; 500 images to learn from, 500 others."""
    found = {}
    for seed in range(1 if quick else N_SPLITS):
        n = 150 if quick else 500
        X, y = load_digits(return_X_y=True)
        X = X / 4  # of 16 grey levels, so that their deviations are near 1
        split = train_test_split(X, y, train_size=n, test_size=n, random_state=seed, stratify=y)
        for method, fit in CLASSIFIERS.items():
            proba, seconds = cpu_seconds(fit, split[0], split[2], split[1], quick)
            accuracy = 100 * np.mean(proba.argmax(axis=1) == split[3])
            figures = accuracy, log_loss(split[3], proba), seconds
            found.setdefault(method, []).append(figures)
            print(f"supervised, digits, {seed}, {method}: {np.round(figures, 3)}", flush=True)
    return [
        {
            "method": method,
            "accuracy, %": in_words(np.array(figures)[:, 0], ".1f"),
            "log loss": in_words(np.array(figures)[:, 1], ".3f"),
            "s": np.mean(figures, axis=0)[2],
        }
        for method, figures in found.items()
    ]


# -- regressors: functions of (X, y, new X, quick) that return means and standard deviations


def network_regressor(X, y, new, quick):
    """The library's."""
    model = ICPNetworkRegressor(**(SHORT if quick else CHAINS), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return model.fit(X, y).predict(new, return_std=True)


def ridge(X, y, new, quick):
    """Linear, its penalty by leave-one-out."""
    return with_residuals(
        make_pipeline(StandardScaler(), RidgeCV(np.geomspace(0.01, 1e3, 20))), X, y, new
    )


def tuned_regressor(X, y, new, quick):
    """MLPRegressor, width and penalty by cross-validation."""
    network = MLPRegressor(solver="lbfgs", activation="tanh", max_iter=500, random_state=0)
    model = TransformedTargetRegressor(
        make_pipeline(StandardScaler(), network), transformer=StandardScaler()
    )
    places = {f"regressor__mlpregressor__{name}": values for name, values in grid(quick).items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        search = GridSearchCV(model, places, cv=5).fit(X, y)
    return with_residuals(search.best_estimator_, X, y, new)


def support_vectors(X, y, new, quick):
    """Radial kernel, penalty and width by cross-validation."""
    model = TransformedTargetRegressor(
        make_pipeline(StandardScaler(), SVR()), transformer=StandardScaler()
    )
    places = {f"regressor__svr__{name}": values for name, values in kernels(quick).items()}
    return with_residuals(GridSearchCV(model, places, cv=5).fit(X, y).best_estimator_, X, y, new)


def boosted(X, y, new, quick):
    """Boosted trees at their defaults."""
    return with_residuals(HistGradientBoostingRegressor(random_state=0), X, y, new)


def gaussian_process(X, y, new, quick):
    """One length for each column, and noise: its own intervals."""
    kernel = ConstantKernel() * RBF(np.full(X.shape[1], 3.0), (0.1, 1e3)) + WhiteKernel()
    regressor = GaussianProcessRegressor(kernel, normalize_y=True, random_state=0)
    model = make_pipeline(StandardScaler(), regressor)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y).predict(new, return_std=True)


def with_residuals(model, X, y, new):
    """Predictions, and the deviation of residuals of cross-validation."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        spread = np.std(y - cross_val_predict(model, X, y, cv=5))
        return model.fit(X, y).predict(new), np.full(len(new), spread)


def grid(quick):
    """Widths and penalties to choose from."""
    return {"hidden_layer_sizes": WIDTHS[:2] if quick else WIDTHS, "alpha": PENALTIES}


def kernels(quick):
    """Penalties and widths of support vectors to choose from."""
    widths = ["scale"] if quick else ["scale", 0.003, 0.01, 0.03]
    return {"C": [1.0, 10.0] if quick else [0.3, 1.0, 3.0, 10.0, 30.0], "gamma": widths}


REGRESSORS = {
    "RidgeCV": ridge,
    "MLPRegressor, tuned": tuned_regressor,
    "SVR, tuned": support_vectors,
    "HistGradientBoostingRegressor": boosted,
    "GaussianProcessRegressor": gaussian_process,
    "ICPNetworkRegressor": network_regressor,
}


# -- classifiers: functions of (X, y, new X, quick) that return probabilities


def network_classifier(X, y, new, quick):
    """The library's."""
    model = ICPNetworkClassifier(**(SHORT if quick else CHAINS), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return model.fit(X, y).predict_proba(new)


def logistic(X, y, new, quick):
    """Linear, its penalty and the scaling by cross-validation."""
    places = {"C": np.geomspace(1e-3, 10, 9)}
    return (
        searched(LogisticRegression(max_iter=5000), places, "accuracy").fit(X, y).predict_proba(new)
    )


def tuned_classifier(X, y, new, quick):
    """MLPClassifier, width, penalty and the scaling by cross-validation."""
    network = MLPClassifier(solver="lbfgs", activation="tanh", max_iter=300, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return searched(network, grid(quick), "neg_log_loss").fit(X, y).predict_proba(new)


def support_vector_classifier(X, y, new, quick):
    """Radial kernel, penalty and width by cross-validation; probabilities by a further one."""
    places = kernels(quick)
    found = searched(SVC(), places, "accuracy").fit(X, y).best_estimator_
    return CalibratedClassifierCV(found, ensemble=False).fit(X, y).predict_proba(new)


def boosted_classifier(X, y, new, quick):
    """Boosted trees at their defaults."""
    model = HistGradientBoostingClassifier(max_iter=5 if quick else 100, random_state=0)
    return model.fit(X, y).predict_proba(new)


def process_classifier(X, y, new, quick):
    """Gaussian processes by Laplace's approximation, one for each class; one length for all."""
    model = GaussianProcessClassifier(1.0 * RBF(8.0), random_state=0)
    pipeline = make_pipeline(StandardScaler(with_std=False), model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return pipeline.fit(X, y).predict_proba(new)


def searched(model, places, scoring):
    """A search for the model's parameters and for whether its columns are standardised."""
    pipeline = Pipeline([("scaling", StandardScaler()), ("model", model)])
    places = {f"model__{name}": values for name, values in places.items()}
    places["scaling"] = [StandardScaler(), StandardScaler(with_std=False)]
    return GridSearchCV(pipeline, places, cv=5, scoring=scoring)


CLASSIFIERS = {
    "LogisticRegression, penalty by cross-validation": logistic,
    "MLPClassifier, tuned": tuned_classifier,
    "SVC, tuned": support_vector_classifier,
    "HistGradientBoostingClassifier": boosted_classifier,
    "GaussianProcessClassifier": process_classifier,
    "ICPNetworkClassifier": network_classifier,
}
