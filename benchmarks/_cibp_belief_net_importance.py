"""What to propose in importance sampling of the belief network's densities, and how many points.

Simulated tables and white wine, none of which another benchmark reports. Networks of one hidden
layer and, for annealed importance sampling, of several; given one draw, densities of held-out rows
by several seeds: their standard deviation in nats, how low the mean logarithm is against a
reference of much work, processor time. For two columns also the integral less one, over a grid.
Means over tables, root mean squares of the errors.
"""

import runpy
import warnings

import numpy as np
from _report import cpu_seconds

from skbnp import CIBPBeliefNet
from skbnp.cibp_belief_net._predictive import N_IMPORTANCE, PROPOSALS, log_densities

N_TRAIN, N_TEST, N_SEEDS, N_REFERENCE = 150, 40, 8, 20_000
SIMULATED = [("gauss", 2), ("skew", 2), ("moon", 2), ("moon", 5), ("t3", 8)]
POINTS = (100, 200, 1000, 2000)
# Steps and particles of the annealing.
ANNEALING = ((150, 4), (75, 4), (300, 4), (300, 2), (75, 8), (150, 8))
REFERENCE_OF_ANNEALING = {"n_temperatures": 600, "n_particles": 32}
WIDENED, LOOSE, DEFENSIVE = (1.0, 1.5), (0.0, 0.5), (0.05, 0.4)


def importance(data, quick):
    """Two tables: a line for each choice."""
    if not data.exists():
        return {}
    cases = [case_of(X, quick, 1) for X in tables(data, quick)]
    widened, loose, defensive = PROPOSALS
    choices = [(N_IMPORTANCE, PROPOSALS), *((n, PROPOSALS) for n in POINTS)]
    choices += [(N_IMPORTANCE, (x, loose, defensive)) for x in WIDENED]
    choices += [(N_IMPORTANCE, (widened, x, defensive)) for x in LOOSE]
    choices += [(N_IMPORTANCE, (widened, loose, x)) for x in DEFENSIVE]
    found = []
    for n, proposals in choices:
        shown = dict(zip(("points", "widened", "loose", "defensive"), (n, *proposals), strict=True))
        found.append(line(cases, shown, n_importance=n, proposals=proposals))
    cases = [case_of(X, quick, "auto") for X in tables(data, quick) if quick or X.shape[1] > 2]
    annealed = []
    for n, n_particles in ANNEALING[: 2 if quick else None]:
        options = {"n_temperatures": n, "n_particles": n_particles}
        annealed.append(line(cases, options, method="ais", **options))
    return {"importance sampling": found, "annealed importance sampling": annealed}


def tables(data, quick):
    """Arrays of rows, those to learn from first."""
    simulate = runpy.run_path(data / "simulated_tables.py")["sim"]
    n = N_TRAIN + N_TEST
    for family, n_columns in SIMULATED[: 3 if quick else None]:
        X, _ = simulate(family, n_columns, 2, n, seed=11)
        yield np.random.default_rng(11).permutation(X)
    if not quick:
        wine = np.genfromtxt(
            data / "wine_quality.csv.gz", delimiter=",", skip_header=1, usecols=range(11)
        )
        yield np.random.default_rng(11).permutation(wine[1599:])[:n]


def case_of(X, quick, max_layers):
    """A draw, held-out rows, their log densities by much work, and a grid for two columns."""
    train, test = X[:N_TRAIN], X[N_TRAIN:]
    train, test = ((rows - train.mean(axis=0)) / train.std(axis=0) for rows in (train, test))
    lengths = {"n_chains": 1, "n_warmup": 100 if quick else 500, "n_draws": 1}
    model = CIBPBeliefNet(max_layers=max_layers, random_state=10, **lengths)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        draw = model.fit(train).posterior_[0, 0]
    if max_layers == 1:
        reference = log_densities(draw, test, 99, n_importance=N_REFERENCE)
    else:
        reference = log_densities(draw, test, 99, method="ais", **REFERENCE_OF_ANNEALING)
    grid = None
    if X.shape[1] == 2:
        x = np.linspace(-5.0, 5.0, 51 if quick else 101)
        grid = np.stack(np.meshgrid(x, x), axis=-1).reshape(-1, 2), (x[1] - x[0]) ** 2
    return draw, test, reference, grid


def line(cases, shown, **options):
    """Figures of one choice."""
    spread, low, off, times = [], [], [], []
    for draw, test, reference, grid in cases:
        found, time = cpu_seconds(
            lambda draw=draw, test=test: [
                log_densities(draw, test, seed, **options) for seed in range(N_SEEDS)
            ]
        )
        spread.append(np.mean(np.var(found, axis=0, ddof=1)))
        low.append(np.mean(found - reference))
        times.append(1e3 * time / (N_SEEDS * len(test)))
        if grid is not None:
            density = np.exp(log_densities(draw, grid[0], 0, **options))
            off.append((density.sum() * grid[1] - 1.0) ** 2)
    row = shown | {
        "sd": float(np.sqrt(np.mean(spread))),
        "largest sd": float(np.sqrt(np.max(spread))),
        "less reference": float(np.mean(low)),
        "integral less 1": float(np.sqrt(np.mean(off))) if off else np.nan,
        "ms a row": float(np.mean(times)),
    }
    print(row, flush=True)
    return row
