"""How many factors the printed sampler and ours find: the experiment of Figure 2 of the paper.

E. Pan and Z. Han, "Non-parametric Bayesian learning with deep learning structure and its
applications in wireless networks". 16 features, 200 rows, K = 3..10 columns, mass 3, slab IG(2, 1),
ten data sets for each K, 200 sweeps from 2 columns, from 10, or from a random number of 3..10. The
paper gives a figure and no numbers.

Data are as printed but for a floor of noise of standard deviation .05, known to both samplers,
without which rows have no density. Of K columns some have no link, and no method can find these:
figures are against the columns with a link (active) and with two or more (shared). The last half of
the sweeps counts. Weights and scores move alike in both samplers; the printed one adds and deletes
empty columns by the paper's ratios and is not annealed, ours is the default.
"""

import numpy as np
from _report import cpu_seconds

from skbnp.deep_scale_model._model import Prior
from skbnp.deep_scale_model._sampler import Sampler
from skbnp.deep_scale_model._start import start_state

N_FEATURES, N_ROWS, MASS, FLOOR = 16, 200, 3.0, 0.05
N_SWEEPS, N_ANNEAL = 200, 80
STARTS = {"2": lambda rng: 2, "10": lambda rng: 10, "random": lambda rng: int(rng.integers(3, 11))}
SAMPLERS = {"printed": "pan-han", "corrected": "singleton"}
BIAS, ERROR = 1.0, 1.5  # asked of shared factors, corrected, from 2


def draw_data(n_columns, seed):
    """Rows of the printed model with its floor, and the loadings (16, n_columns)."""
    rng = np.random.default_rng([n_columns, seed])
    popularity = rng.beta(MASS / n_columns, 1, size=n_columns)
    links = rng.random((N_FEATURES, n_columns)) < popularity
    slab = 1 / rng.gamma(2.0, size=n_columns)
    loadings = np.where(links, rng.normal(size=links.shape) * np.sqrt(slab), 0.0)
    amplitude = rng.normal(size=(N_ROWS, n_columns)) @ loadings.T
    noise = rng.normal(size=amplitude.shape)
    return np.sqrt(amplitude**2 + FLOOR**2) * noise, loadings


def found_factors(X, sampler, n_start, seed, n_sweeps=N_SWEEPS, n_anneal=N_ANNEAL):
    """Mean numbers of active and of shared factors over the last half of the sweeps."""
    prior = Prior(
        mass=MASS, noise_variance=np.full(X.shape[1], FLOOR**2), birth_move=SAMPLERS[sampler]
    )
    anneals = n_anneal if sampler == "corrected" else 0
    rng = np.random.default_rng(seed)
    state = start_state(X, prior, rng, n_start, annealed=anneals > 0)
    chain = Sampler(X, prior, state, np.random.PCG64(rng.integers(2**32)), n_anneal=anneals)
    found = []
    for step in range(n_sweeps):
        chain.sweep()
        if step < n_sweeps // 2:
            chain.adapt(step)
        else:
            scalars = chain.scalars()
            # The printed sampler's columns are counted as it counts them, empty ones too.
            total = scalars.get("n_columns", scalars["n_factors"])
            found.append((total, scalars["n_factors"], scalars["n_shared_factors"]))
    return np.mean(found, axis=0)


def figure2(data, quick):
    """Tables of the numbers of factors found; data are drawn."""
    columns, repeats = ((3, 6, 10), 2) if quick else (range(3, 11), 10)
    runs = []
    for n_columns in columns:
        for repeat in range(repeats):
            X, loadings = draw_data(n_columns, repeat)
            n_links = np.count_nonzero(loadings, axis=0)
            truth = {"active": int(np.sum(n_links > 0)), "shared": int(np.sum(n_links > 1))}
            for sampler in SAMPLERS:
                for start, number in STARTS.items():
                    n_start = number(np.random.default_rng([7, n_columns, repeat]))
                    found, time = cpu_seconds(found_factors, X, sampler, n_start, repeat)
                    runs.append(
                        {
                            "K": n_columns,
                            "repeat": repeat,
                            "sampler": sampler,
                            "start": start,
                            **truth,
                            "found columns": found[0],
                            "found active": found[1],
                            "found shared": found[2],
                            "CPU s": time,
                        }
                    )
        print(f"  K = {n_columns} done", flush=True)
    return {
        "figure2: factors found, mean (standard deviation over data sets)": by_columns(runs),
        "figure2: bias / root mean square error over all data sets": errors(runs),
        "figures": runs,
    }


def chosen(runs, **options):
    """Runs with these settings."""
    return [run for run in runs if all(run[key] == value for key, value in options.items())]


def by_columns(runs):
    """One line for each K: what there is and what each sampler says from each start."""
    rows = []
    for n_columns in dict.fromkeys(run["K"] for run in runs):
        some = chosen(runs, K=n_columns)
        row = {"K": n_columns}
        for kind in ("active", "shared"):
            row[kind] = float(np.mean([run[kind] for run in some]))
        for sampler in SAMPLERS:
            for start in STARTS:
                for kind in ("columns", "shared"):
                    values = [
                        run[f"found {kind}"] for run in chosen(some, sampler=sampler, start=start)
                    ]
                    spread = np.std(values, ddof=1)
                    row[f"{sampler} from {start}, {kind}"] = f"{np.mean(values):.1f} ({spread:.1f})"
        rows.append(row)
    return rows


def errors(runs):
    """Bias and root mean square error of each sampler from each start, and what was asked."""
    rows = []
    for sampler in SAMPLERS:
        for start in STARTS:
            row = {"sampler": sampler, "from": start}
            some = chosen(runs, sampler=sampler, start=start)
            for found, truth in (("columns", "active"), ("active", "active"), ("shared", "shared")):
                off = np.array([run[f"found {found}"] - run[truth] for run in some])
                bias, error = np.mean(off), np.sqrt(np.mean(off**2))
                row[f"{found} against {truth}"] = f"{bias:+.2f} / {error:.2f}"
            row["shared within 1 / 1.5"] = "yes" if abs(bias) <= BIAS and error <= ERROR else "no"
            row["CPU s"] = float(np.mean([run["CPU s"] for run in some]))
            rows.append(row)
    return rows
