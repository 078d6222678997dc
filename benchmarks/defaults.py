"""What estimators say when nothing is set but the seed, beside what a user would take instead.

density: mean held-out log density in nats a row, in the units of the table; two moons (450 rows and
100 others), iris (112 and 38) and Frey faces of 14 x 10 pixels in 256 levels (450 and 100). What
would be added for standardised columns is said beside it. Peers are full Gaussians, their number by
BIC, and for the faces FactorAnalysis, its number of factors by the likelihood of a fifth of the
training rows.

cells: digits in their 17 levels, 400 images to learn from. A fifth of all pixels is missing, and a
method fills the images that it learns from; or the lower halves of 100 new images are. Root mean
square errors in levels. `X_imputed_` is read, `impute` is asked for the new images.

intervals: 60 Olivetti faces of 32 x 32 pixels to learn from and 20 others, a block of 14 x 14 of
each missing, with and without `interval_calibration="holes"`; and as many rows that a first fit to
the whole faces has made up. Shares of missing pixels within one and two standard deviations
(nominal .683 and .954), and root mean square errors beside those of five nearest neighbours.

times: CPU seconds of `fit` on 100 rows of five columns and, after one call that prepares the draws,
milliseconds of each answer on a single row: the median of eleven.

warnings: which illness `fit` names, and which is expected. Four chains where they freeze, short
ones where they drift, else nothing is set.

Prints Markdown tables.
"""

import inspect
import time
import warnings

import numpy as np
from _command import command_line
from _data import load_images
from _imputers import lower_half, scattered
from _peers import search_by_bic
from _report import cpu_seconds, markdown
from _tables import CHOICE_SEED, load, standardised
from sklearn.base import is_classifier, is_regressor
from sklearn.datasets import load_iris, load_wine, make_moons
from sklearn.decomposition import FactorAnalysis
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer
from threadpoolctl import threadpool_limits

import skbnp
from skbnp import CIBPBeliefNet, ICPNetwork, InfiniteFactorClusterer, TreeFactorModel

LEVELS, MISSING = 16, 0.2
N_FACES, N_NEW, BLOCK = 60, 20, 14
OURS_OF_IMAGES = (CIBPBeliefNet, TreeFactorModel)
SIZE = (100, 5)
ONE_ROW = ("predict", "predict_proba", "score_samples", "transform", "impute", "novelty_proba")
N_CALLS = 11


# -- density: functions of (seed, folder of the data) that return training rows and others


def moons(seed, data):
    X, _ = make_moons(550, noise=0.1, random_state=seed)
    return X[:450], X[450:]


def iris(seed, data):
    X = np.random.default_rng(seed).permutation(load_iris().data)
    return X[:112], X[112:]


def frey(seed, data):
    with np.load(data / "frey_faces.npz") as file:
        images = np.random.default_rng(seed).permutation(file["images"])
    small = images.reshape(-1, 14, 2, 10, 2).mean(axis=(2, 4)).reshape(len(images), -1)
    return small[:450], small[450:550]


def floor(seed, data):
    X = np.random.default_rng(seed).permutation(standardised(load("uwwifi", data)[0]))
    return X[:161], X[161:]


def wine(seed, data):
    X = np.random.default_rng(seed).permutation(load_wine().data)
    return X[:133], X[133:]


def factors(X, seed):
    """FactorAnalysis, its number of factors by held-out likelihood."""
    part, others = np.split(X, [len(X) - len(X) // 5])
    numbers = [k for k in (2, 5, 10, 20, 40, 80) if k < X.shape[1]]
    best = max(numbers, key=lambda k: FactorAnalysis(k).fit(part).score(others))
    return FactorAnalysis(best).fit(X)


# Name, load, estimator, what its held-out density must reach, peer.
DENSITIES = (
    ("moons", moons, CIBPBeliefNet, -1.30, search_by_bic),
    ("iris", iris, CIBPBeliefNet, -1.90, search_by_bic),
    ("moons", moons, ICPNetwork, -1.20, search_by_bic),
    ("iris", iris, ICPNetwork, np.nan, search_by_bic),
    ("Frey", frey, TreeFactorModel, -445.0, factors),
)


def density(arguments):
    lines = []
    for name, table, kind, least, peer in DENSITIES:
        no_file = name == "Frey" and not arguments.data.exists()
        if no_file or is_left_out(kind.__name__, arguments):
            continue
        found = []
        for seed in arguments.seeds:
            train, new = table(seed, arguments.data)
            model, seconds = cpu_seconds(kind(random_state=seed, **arguments.chains).fit, train)
            score, asked = cpu_seconds(model.score, new)
            more = np.log(train.std(axis=0)).sum()
            found.append((score, peer(train, seed).score(new), seconds, asked, more))
            print(f"density, {name}, {kind.__name__}, {seed}: {np.round(found[-1], 3)}", flush=True)
        scores, peers, seconds, asked, more = np.transpose(found)
        line = {"table": name, "estimator": kind.__name__, "nats a row": in_words(scores)}
        line |= {"mean": f"{scores.mean():.3f}", "least": least, "peer": f"{peers.mean():.3f}"}
        line["standardised: add"] = f"{more.mean():.3f}"
        lines.append(line | {"fit, CPU s": seconds.mean(), "score, CPU s": asked.mean()})
    return lines


# -- cells


def cells(arguments):
    lines = []
    for seed in arguments.seeds:
        random = np.random.default_rng(seed)
        train, new, shape = load_images("digits", arguments.data, seed)
        if arguments.quick:
            train, new = train[:60], new[:10]
        train, new = LEVELS * train, LEVELS * new
        for heading, task in (
            ("a fifth", scattered(train, MISSING, random)),
            ("lower halves", lower_half(train, new, shape)),
        ):
            for name, fill in (PEERS | OURS).items():
                if name in OURS and is_left_out(name, arguments):
                    continue
                if heading == "lower halves" and name == "ExtraTrees":
                    continue  # nothing is missing where it learns: it chains no regressions
                filled, seconds, asked = fill(task, seed, arguments)
                error = rms((filled - task.truth)[task.asked])
                line = {"missing": heading, "seed": seed, "method": name, "error": error}
                lines.append(line | {"fit, CPU s": seconds, "fill, CPU s": asked})
                print(f"cells, {lines[-1]}", flush=True)
    return lines


def of_sklearn(make):
    def fill(task, seed, arguments):
        imputer, seconds = cpu_seconds(make(seed, arguments.quick).fit, task.known)
        filled, asked = cpu_seconds(imputer.transform, task.holed)
        return filled, seconds, asked

    return fill


def extra_trees(seed, quick):
    trees = ExtraTreesRegressor(20 if quick else 100, random_state=seed)
    return IterativeImputer(trees, max_iter=2 if quick else 10, random_state=seed)


def ours(kind):
    def fill(task, seed, arguments):
        model = kind(random_state=seed, **arguments.chains)
        _, seconds = cpu_seconds(model.fit, task.known)
        if task.known is task.holed:
            return model.X_imputed_, seconds, 0.0
        filled, asked = cpu_seconds(model.impute, task.holed)
        return filled, seconds, asked

    return fill


PEERS = {
    "KNN": of_sklearn(lambda seed, quick: KNNImputer()),
    "ExtraTrees": of_sklearn(extra_trees),
}
OURS = {kind.__name__: ours(kind) for kind in OURS_OF_IMAGES}


# -- intervals


def with_block(images, shape, seed):
    """Images with a square block of each missing."""
    random, holed = np.random.default_rng(seed), images.reshape(-1, *shape).copy()
    for image in holed:
        top, left = random.integers(shape[0] - BLOCK + 1, size=2)
        image[top : top + BLOCK, left : left + BLOCK] = np.nan
    return holed.reshape(len(images), -1)


def intervals(arguments):
    lines = []
    for seed in arguments.seeds:
        train, new, shape = load_images("Olivetti", arguments.data, seed)
        faces = np.vstack([train[:N_FACES], new[:N_NEW]])
        for kind in OURS_OF_IMAGES:
            if is_left_out(kind.__name__, arguments):
                continue
            first = kind(random_state=seed, **arguments.chains).fit(faces[:N_FACES])
            simulated = first.sample(len(faces), random_state=seed)
            for rows, truth in (("faces", faces), ("simulated", simulated)):
                lines += of_intervals(kind, rows, truth, shape, seed, arguments)
    return lines


def of_intervals(kind, rows, truth, shape, seed, arguments):
    """The lines of one table of images."""
    holed = with_block(truth, shape, seed)
    near = KNNImputer().fit(holed[:N_FACES]).transform(holed)
    lines = []
    for calibration in (None, "holes"):
        model = kind(interval_calibration=calibration, random_state=seed, **arguments.chains)
        _, seconds = cpu_seconds(model.fit, holed[:N_FACES])
        for part, which in (("training", slice(N_FACES)), ("new", slice(N_FACES, None))):
            holes = np.isnan(holed[which])
            mean, std = (one[holes] for one in model.impute(holed[which], return_std=True))
            off = mean - truth[which][holes]
            line = {"rows": f"{rows}, {part}", "estimator": kind.__name__, "seed": seed}
            line |= {"calibrated": calibration or "", "1 sd": float(np.mean(np.abs(off) < std))}
            line |= {"2 sd": float(np.mean(np.abs(off) < 2 * std)), "rmse": rms(off)}
            line |= {"of KNN": rms((near - truth)[which][holes]), "fit, CPU s": seconds}
            lines.append(line)
            print(f"intervals, {line}", flush=True)
    return lines


def rms(errors):
    return float(np.sqrt(np.mean(errors**2)))


# -- times


def table_of(seed):
    """A hundred rows of three bent factors in five columns, and a target."""
    random = np.random.default_rng(seed)
    X = np.tanh(random.normal(size=(SIZE[0], 3)) @ random.normal(size=(3, SIZE[1])))
    X += 0.2 * random.normal(size=SIZE)
    return X, X[:, 0] * X[:, 1] + 0.1 * random.normal(size=len(X))


def times(arguments):
    lines = []
    for name in skbnp.__all__:
        kind = getattr(skbnp, name)
        if not inspect.isclass(kind) or is_left_out(name, arguments):
            continue
        for seed in arguments.seeds:
            X, y = table_of(seed)
            model = kind(random_state=seed, **(arguments.chains if name != "BNPImputer" else {}))
            if is_classifier(model):
                y = (y > np.median(y)).astype(int)
            elif not is_regressor(model):
                y = None
            _, seconds = cpu_seconds(model.fit, X, y)
            row = X[:1].copy()
            line = {"estimator": name, "seed": seed, "fit, CPU s": seconds}
            for method in ONE_ROW:
                if hasattr(model, method):
                    line[method] = milliseconds(getattr(model, method), method, row)
            lines.append({**{column: "" for column in ("estimator", "seed", *ONE_ROW)}, **line})
            print(f"times, {line}", flush=True)
    return lines


def milliseconds(answer, method, row):
    """The median of some calls, after one that is not counted."""
    row = row.copy()
    if method == "impute":
        row[0, 0] = np.nan
    answer(row)
    spent = []
    for _ in range(N_CALLS):
        start = time.process_time()
        answer(row)
        spent.append(1e3 * (time.process_time() - start))
    return float(np.median(spent))


# -- warnings


ILLNESSES = ("still improving", "found different", "few effective")
# Table, load, estimator and its settings, the illness that is expected.
ILL = (
    ("moons", moons, CIBPBeliefNet, dict(n_warmup=250, n_draws=200), "still improving"),
    ("uw", floor, InfiniteFactorClusterer, dict(n_chains=4), "found different"),
    ("Frey", frey, TreeFactorModel, dict(n_chains=4), "found different"),
    ("wine", wine, TreeFactorModel, {}, ""),
)


def named_illnesses(arguments):
    lines = []
    for name, table, kind, settings, expected in ILL:
        no_file = name in ("uw", "Frey") and not arguments.data.exists()
        if no_file or is_left_out(kind.__name__, arguments):
            continue
        for seed in arguments.seeds:
            train, _ = table(seed, arguments.data)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", ConvergenceWarning)
                kind(random_state=seed, **(settings | arguments.chains)).fit(train)
            text = " ".join(str(one.message) for one in caught)
            found = "; ".join(illness for illness in ILLNESSES if illness in text)
            found = found or ("another" if text else "none")
            line = {"table": name, "estimator": kind.__name__, "seed": seed}
            lines.append(line | {"expected": expected or "none", "found": found})
            print(f"warnings, {lines[-1]}: {text}", flush=True)
    return lines


# -- running


def is_left_out(name, arguments):
    return arguments.estimators is not None and name not in arguments.estimators


def in_words(values):
    return " ".join(f"{value:.3f}" for value in values)


PARTS = {
    "density": density,
    "cells": cells,
    "intervals": intervals,
    "times": times,
    "warnings": named_illnesses,
}


def main():
    """Run and print."""
    parser = command_line(__doc__, "short chains, to see that it runs", parts=PARTS)
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(5)))
    parser.add_argument("--choice", action="store_true", help="seeds for choices: not reported")
    parser.add_argument("--estimators", nargs="+", help="these alone")
    arguments = parser.parse_args()
    if arguments.choice:
        arguments.seeds = [CHOICE_SEED + seed for seed in arguments.seeds]
    arguments.chains = dict(n_chains=2, n_warmup=20, n_draws=5) if arguments.quick else {}
    warnings.simplefilter("ignore")
    with threadpool_limits(1, user_api="blas"):
        for name in arguments.part:
            print(f"\n### {name}\n\n{markdown(PARTS[name](arguments))}\n", flush=True)


if __name__ == "__main__":
    main()
