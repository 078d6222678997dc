"""The convolutional classifier beside support vectors, neural networks and logistic regression.

Digits of 8 x 8 pixels: 500 to learn from, 500 others, splits 0 to 5 (`train_test_split` with the
number of the split, stratified), pixels divided by 4. "one network" is stochastic-gradient HMC on
one fixed architecture, two maps between image and output and five edges, for as many steps as take
about as long, its probabilities sharpened in the same way: what averaging over architectures has to
beat. MNIST: digits 1 to 3, 600 images of each to learn from, 100 others of each; "search of the
paper" judges architectures by the likelihood that they were trained on, one chain, point weights
averaged over its draws. All rivals see pixels with one scale. Seconds are those of one core, in
the same run. The part "gradient" times the kernel, beside torch where it is installed.

    python benchmarks/icp_conv_classifier.py [--data ../shared/data] [--quick]
        [--only digits mnist gradient] [--methods NAME ...]
"""

import sys
import warnings

import numpy as np
from _cibp_belief_net_density import in_words
from _command import command_line
from _icp_conv_classifier_gradient import gradients, print_gradients
from _report import cpu_seconds
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC

from skbnp import ICPConvClassifier
from skbnp.icp_network.convolution._sampler import start_graph
from skbnp.samplers import ICPConvSampler

PARTS = ["gradient", "digits", "mnist"]
N_SPLITS, N_DIGITS = 6, 500
N_STEPS_OF_ONE = 28_000
QUICK = dict(n_warmup=20, n_draws=20, n_architectures=2)
# The model that `networks` has fitted last.
LAST = {}
GRID = {"hidden_layer_sizes": [(20,), (50,), (100,)], "alpha": [0.1, 1.0, 10.0]}


def main():
    parser = command_line(__doc__, "one split, few rows and short chains")
    parser.add_argument("--only", nargs="*", choices=PARTS, default=PARTS)
    parser.add_argument("--methods", nargs="*", choices=list(METHODS), default=list(METHODS))
    options = parser.parse_args()
    if "gradient" in options.only:
        print_gradients(gradients(options.quick))
    if "digits" in options.only:
        print_table(digits(options))
    if "mnist" in options.only:
        print_table(mnist(options))


def digits(options):
    """Figures of all methods over the splits."""
    X, y = load_digits(return_X_y=True)
    quick = options.quick
    found, n = {}, 150 if quick else N_DIGITS
    for name in [name for name in options.methods if name not in ONLY_MNIST]:
        for split in range(1 if quick else N_SPLITS):
            parts = train_test_split(
                X / 4, y, train_size=n, test_size=n, random_state=split, stratify=y
            )
            figures = figures_of(METHODS[name], parts, quick)
            found.setdefault(name, []).append(figures)
            print(f"digits, {split}, {name}: {np.round(figures, 4).tolist()}", flush=True)
    return found


def mnist(options):
    """The paper's task: ones, twos and threes."""
    path = options.data / "mnist_subset.npz"
    if not path.exists():
        sys.exit(f"{path} is not there: name the folder of the data by --data")
    with np.load(path) as arrays:
        parts = {name: arrays[name] for name in arrays.files}
    found, tables = {}, []
    for part, n in (("train", 60 if options.quick else 600), ("test", 100)):
        labels = parts[f"{part}_labels"]
        rows = np.concatenate([np.flatnonzero(labels == digit)[:n] for digit in (1, 2, 3)])
        tables.append((parts[f"{part}_images"][rows].reshape(len(rows), -1) / 64.0, labels[rows]))
    (X, y), (new, y_new) = tables
    methods = {name: METHODS[name] for name in options.methods}
    if "ICPConvClassifier" in methods:
        methods = {
            "ICPConvClassifier": networks,
            "point weights of its search": point_networks,
        } | methods
    for name, fit in methods.items():
        found[name] = [figures_of(fit, (X, new, y, y_new), options.quick)]
        print(f"MNIST 1-3, {name}: {np.round(found[name][0], 4).tolist()}", flush=True)
    return found


def figures_of(fit, parts, quick):
    """Accuracy, log loss, mean accuracy of single networks, seconds."""
    X, new, y, y_new = parts
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        (probability, singles), seconds = cpu_seconds(fit, X, y, new, quick)
    classes = np.unique(y)
    right = np.mean(classes[probability.argmax(axis=1)] == y_new)
    alone = [np.mean(classes[one] == y_new) for one in singles]
    loss = log_loss(y_new, probability, labels=classes)
    return right, loss, np.mean(alone) if alone else np.nan, seconds


def print_table(found):
    print("\n| method | accuracy, % | log loss | single networks, % | CPU s |")
    print("|---|---|---|---|---|")
    for name, figures in found.items():
        right, loss, alone, seconds = np.transpose(figures)
        words = in_words(100 * right, ".1f"), in_words(loss, ".3f")
        alone = "" if np.isnan(alone).all() else f"{100 * alone.mean():.1f}"
        print(f"| {name} | {words[0]} | {words[1]} | {alone} | {seconds.mean():.1f} |")
    print(flush=True)


# -- functions of (X, y, new X, quick): probabilities, and classes that single networks say


def networks(X, y, new, quick):
    """The library's, at its defaults."""
    model = ICPConvClassifier(random_state=0, **(QUICK if quick else {})).fit(X, y)
    summary = model.architecture_summary_["live edges"]
    means = model.posterior_.traces["n_edges"].mean(axis=1).round(2).tolist()
    print(
        f"  live edges of the chains: {means}, R-hat {summary['r_hat']:.2f}; power "
        f"{model.power_:.2f}"
    )
    LAST["model"] = model
    return model.predict_proba(new), single_networks(model, new)


class OneNetwork(ICPConvClassifier):
    """Weights of the architecture that chains start with, whatever they find."""

    def _chosen_draws_of_chains(self):
        graph = start_graph("chain", self._prior, None)
        layout = self._prior.layout(graph["order"], graph["edges"])
        z = np.random.default_rng(self.seed_).standard_normal(layout.n_weights)
        return [graph | {"weights": (z * layout.deviations).astype(np.float32)}]


def one_network(X, y, new, quick):
    """As long as all architectures together: five chains, of all images and without each fold."""
    sampler = ICPConvSampler(n_start_steps=800, n_weight_steps=200 if quick else N_STEPS_OF_ONE)
    model = OneNetwork(n_chains=1, n_warmup=0, n_draws=1, sampler=sampler, random_state=0)
    model.fit(X, y)
    return model.predict_proba(new), single_networks(model, new)


def point_networks(X, y, new, quick):
    """Weights as the search of `networks` has left them, averaged over its draws."""
    return averaged_search(LAST["model"], new)


def search_of_the_paper(X, y, new, quick):
    """Its rule and its number of steps; how many proposals it has made is not said."""
    n_warmup, n_draws = (2, 4) if quick else (50, 100)
    # Weights of the search are the answer: none are drawn after it.
    model = ICPConvClassifier(
        inference="paper", n_chains=1, n_warmup=n_warmup, n_draws=n_draws, random_state=0,
        n_architectures=1, probability_calibration=None,
        sampler=ICPConvSampler(n_start_steps=540, n_steps=540, n_weight_steps=0),
    ).fit(X, y)  # fmt: skip
    print(f"  live edges of the draws: {model.posterior_.traces['n_edges'].mean():.1f}")
    return averaged_search(model, new)


def averaged_search(model, new):
    """Probabilities averaged over the draws of a search, and the classes of each."""
    images = model._images(model._check_new(new))
    draws = model.posterior_.evenly_spaced(100)
    found = [model._probabilities(draw, 0, images)[0] for draw in draws]
    return np.mean(found, axis=0), [one.argmax(axis=1) for one in found]


def single_networks(model, new):
    """Classes that draws of weights name, one by one."""
    images = model._images(model._check_new(new))
    draws = model.ensemble_.evenly_spaced(60)
    return [model._probabilities(draw, 0, images)[0].argmax(axis=1) for draw in draws]


def support_vectors(X, y, new, quick):
    """Radial kernel, C = 10, probabilities by Platt's method."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        model = SVC(C=10.0, probability=True, random_state=0).fit(*scaled(X, y))
    return model.predict_proba(scaled_like(new, X)), []


def tuned_network(X, y, new, quick):
    """MLPClassifier, width and penalty by cross-validation."""
    model = MLPClassifier(solver="lbfgs", activation="tanh", max_iter=500, random_state=0)
    grid = {name: values[:1] for name, values in GRID.items()} if quick else GRID
    search = GridSearchCV(model, grid, cv=5, scoring="neg_log_loss").fit(*scaled(X, y))
    return search.predict_proba(scaled_like(new, X)), []


def logistic(X, y, new, quick):
    """Its penalty by cross-validation."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        model = LogisticRegressionCV(
            Cs=5, l1_ratios=(0,), scoring="neg_log_loss", use_legacy_attributes=False,
            max_iter=5000,
        ).fit(*scaled(X, y))  # fmt: skip
    return model.predict_proba(scaled_like(new, X)), []


def scaled(X, y):
    return scaled_like(X, X), y


def scaled_like(new, X):
    """Pixels with the mean and the deviation of all pixels of X."""
    return (new - X.mean()) / X.std()


METHODS = {
    "ICPConvClassifier": networks,
    "one network": one_network,
    "SVC": support_vectors,
    "MLPClassifier, tuned": tuned_network,
    "LogisticRegression, tuned": logistic,
    "search of the paper": search_of_the_paper,
}
# On the paper's own task alone.
ONLY_MNIST = {"search of the paper"}


if __name__ == "__main__":
    main()
