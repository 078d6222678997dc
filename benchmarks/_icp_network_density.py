"""Table 1 of the Indian chefs paper: Hellinger distances of fantasies to held-out rows.

The distance is that of `_hellinger.py`; the paper does not define its own, so that its figures are
ours in order only. The baseline is the distance of the rows learnt from to the held-out ones: what
a perfect method has, by chance. Fantasies are as many as held-out rows, 2,000 at most; the mean
over five sets of them is taken. Beside the distance stands the held-out log density of standardised
columns in nats, by each method's own formula, over 200 rows at most.

Means over seeds and their standard errors: a seed is a split (of the generated sets, a sample), and
for the networks a chain. Some columns of yeast, abalone and wine take a few values only, at which
densities can be as high as a method lets them.
"""

import numpy as np
from _cibp_belief_net_density import fitted_quietly, in_words
from _hellinger import hellinger_kde
from _icp_network_sets import GENERATORS, MOST, NAMES, load
from _report import cpu_seconds
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KernelDensity

import skbnp

N_SEEDS, N_SETS, N_SCORED, FEW_ROWS = 3, 5, 200, 300
CHAIN = dict(n_jobs=1)  # all else at its default
SHORT = dict(n_chains=1, n_warmup=150, n_draws=50, thin=2, n_jobs=1)
BASELINE = "baseline"
# What the paper prints.
PRINTED = {
    "ring": {"ICP": 0.0402, "CIBP": 0.0493, "extended CIBP": 0.0419, BASELINE: 0.0312},
    "moons": {"ICP": 0.0342, "CIBP": 0.0469, "extended CIBP": 0.0450, BASELINE: 0.0138},
    "pinwheel": {"ICP": 0.0547, "CIBP": 0.0692, "extended CIBP": 0.0685, BASELINE: 0.0436},
    "geyser": {"ICP": 0.0734, "CIBP": 0.1246, "extended CIBP": 0.1171, BASELINE: 0.0234},
    "iris": {"ICP": 0.2666, "CIBP": 0.2667, "extended CIBP": 0.2632, BASELINE: 0.1930},
    "yeast": {"ICP": 0.3817, "CIBP": 0.4056, "extended CIBP": 0.3840, BASELINE: 0.3059},
    "abalone": {"ICP": 0.1379, "CIBP": 0.1502, "extended CIBP": 0.1470, BASELINE: 0.1079},
    "cloud": {"ICP": 0.1495, "CIBP": 0.1713, "extended CIBP": 0.1501, BASELINE: 0.1299},
    "wine": {"ICP": 0.3629, "CIBP": 0.4079, "extended CIBP": 0.3855, BASELINE: 0.3387},
}
BANDWIDTHS = np.geomspace(0.02, 1.0, 20)


def density(data, quick, methods=None, known=(), sets=NAMES):
    """The tables, and the figures that they are made of.

    Only ``methods`` are run on ``sets``, all if None; other figures are taken from ``known``, those
    of an earlier run.
    """
    methods = METHODS if methods is None else methods
    figures = [one for one in known if one["method"] not in methods or one["set"] not in sets]
    for name in [name for name in sets if name in GENERATORS or data.exists()]:
        for seed in range(1 if quick else N_SEEDS):
            train, test = load(name, data, seed, FEW_ROWS if quick else MOST)
            for method in methods:
                figure = figures_of(METHODS[method], train, test, seed, quick)
                figures.append({"set": name, "method": method, "seed": seed, **figure})
                print(f"density, {figures[-1]}", flush=True)
    return {
        "density: Hellinger distance": table(figures, "distance", ".4f", PRINTED),
        "density: Hellinger distance over that of the baseline": ratios(figures),
        "density: held-out log density": table(figures, "log density", ".3f"),
        "density: seconds": table(figures, "seconds", ".1f"),
        "figures": figures,
    }


def figures_of(method, train, test, seed, quick):
    """Distance, mean log density and seconds of a fit on one split."""
    (score, draw), seconds = cpu_seconds(method, train, seed, quick)
    rows = np.random.default_rng(seed).permutation(draw(N_SETS * len(test)))
    sets = [rows[start : start + len(test)] for start in range(0, len(rows), len(test))]
    return {
        "distance": float(np.mean([hellinger_kde(rows, test) for rows in sets])),
        "log density": float(score(test[:N_SCORED]).mean()),
        "seconds": seconds,
    }


# -- methods: functions of (rows, seed, quick) that return how to score rows and how to draw them


def network(name, **options):
    """One of the library's Bayesian networks."""

    def fit(X, seed, quick):
        chain = SHORT if quick else CHAIN
        model = getattr(skbnp, name)(**chain, random_state=seed, **options)
        fitted_quietly(model, X)
        return model.score_samples, lambda n: model.sample(n, random_state=seed)

    return fit


def baseline(X, seed, quick):
    """The rows themselves, which have no density."""
    return lambda rows: np.full(len(rows), np.nan), lambda n: X


def mixture_by_bic(X, seed, quick):
    """Full Gaussians, more of them until the criterion has not gained for three."""
    model, best, n = None, np.inf, 0
    while model is None or n - model.n_components < 3:
        n += 1
        found = GaussianMixture(n, n_init=3, max_iter=300, random_state=seed).fit(X)
        if found.bic(X) < best:
            model, best = found, found.bic(X)
    return model.score_samples, lambda n: model.sample(n)[0]


def kernel_density(X, seed, quick):
    """KernelDensity, its bandwidth by cross-validation."""
    search = GridSearchCV(KernelDensity(), {"bandwidth": BANDWIDTHS}, cv=5)
    model = search.fit(X).best_estimator_
    return model.score_samples, lambda n: model.sample(n, random_state=seed)


def dirichlet_process(X, seed, quick):
    """DirichletProcessMixture with default settings."""
    model = fitted_quietly(skbnp.DirichletProcessMixture(n_jobs=1, random_state=seed), X)
    return model.score_samples, lambda n: model.sample(n, random_state=seed)[0]


def one_gaussian(X, seed, quick):
    """Mean and covariance of the rows."""
    model = GaussianMixture(1, random_state=seed).fit(X)
    return model.score_samples, lambda n: model.sample(n)[0]


METHODS = {
    BASELINE: baseline,
    "ICP": network("ICPNetwork"),
    "CIBP": network("CIBPBeliefNet"),
    "extended CIBP": network("CIBPBeliefNet", skip_connections=True),
    "mixture by BIC": mixture_by_bic,
    "kernel density": kernel_density,
    "DPM": dirichlet_process,
    "one Gaussian": one_gaussian,
}


# -- tables


def of(figures, name, method, figure):
    """A figure of all seeds, in their order."""
    rows = [row for row in figures if (row["set"], row["method"]) == (name, method)]
    return np.array([row[figure] for row in sorted(rows, key=lambda row: row["seed"])])


def table(figures, figure, form, printed=None):
    """Sets by methods, what the paper prints in front."""
    rows = []
    for name in dict.fromkeys(row["set"] for row in figures):
        row = {"set": name}
        for method in METHODS:
            if printed and method in printed[name]:
                row[f"{method}, printed"] = f"{printed[name][method]:{form}}"
            values = of(figures, name, method, figure)
            if len(values) and np.isfinite(values).all():
                row[method] = in_words(values, form) if len(values) > 1 else f"{values[0]:{form}}"
            elif not (figure == "log density" and method == BASELINE):
                row[method] = ""
        rows.append(row)
    return rows


def ratios(figures):
    """Of each seed's distances; of the printed ones; and whether ICP's is within 1.3 times it."""
    rows = []
    for name in dict.fromkeys(row["set"] for row in figures):
        row, base = {"set": name}, of(figures, name, BASELINE, "distance")
        for method in list(METHODS)[1:]:
            if method in PRINTED[name]:
                printed = PRINTED[name][method] / PRINTED[name][BASELINE]
                row[f"{method}, printed"] = f"{printed:.2f}"
            values = of(figures, name, method, "distance")
            ratio = values.mean() / base.mean() if len(values) else np.nan
            row[method] = f"{ratio:.2f}" if np.isfinite(ratio) else ""
            if method == "ICP":
                row["within 1.3"] = "yes" if ratio <= 1.3 * printed else "no"
        rows.append(row)
    return rows
