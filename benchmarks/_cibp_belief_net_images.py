"""Images with holes: CIBPBeliefNet beside scikit-learn's imputers and linear models.

The experiments of Adams, Wallach and Ghahramani (2010), who show pictures and print no figures:
the lower half of test images is missing. Beside it, a fifth of all pixels is missing at random, and
a method learns from the same images that it fills. Figures are root mean square errors over the
missing pixels in percent of the range of intensities, means and standard errors over splits; the
paired ones are differences of mean square errors, in the square of that, over images.
"""

import warnings
from functools import partial

import numpy as np
from _data import IMAGES, load_images
from _imputers import PEERS, lower_half, scattered
from _report import cpu_seconds, mean_and_error

from skbnp import CIBPBeliefNet
from skbnp.samplers import BeliefNetSampler

MISSING = 0.2
CHAINS = dict(n_chains=8, n_warmup=60, n_draws=2, thin=5, n_jobs=1, random_state=0)
SHORT = {**CHAINS, "n_chains": 2}
ROW_CLUSTERS = "network, row clusters"
OURS = {
    "network, the paper's": dict(feature_bounds=(0, 1), max_layers=3, n_chains=3),
    ROW_CLUSTERS: dict(
        feature_bounds=(0, 1),
        max_layers=1,
        row_clusters=True,
        sampler=BeliefNetSampler(n_init_units=40),
    ),
}
# Hidden units of each layer that the paper reports, lowest first, about.
WIDTHS = {"Olivetti": "70-70-70", "MNIST": "120-100-70", "Frey": "260-120-35"}


def halves(data, quick):
    """Tables of the lower halves."""
    return compare("lower half missing", data, quick, lambda *rows, random: lower_half(*rows))


def cells(data, quick):
    """Tables of the scattered cells of all training images."""

    def task(train, test, shape, random):
        return scattered(train, MISSING, random)

    return compare(f"{MISSING:.0%} of the pixels missing", data, quick, task, without=("ridge",))


def network(options, task):
    """The rows filled by a belief network, and its widths, lowest first."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # short chains, constant pixels
        model = CIBPBeliefNet(**options).fit(task.known)
        filled = model.impute(task.holed)
    return filled, "-".join(f"{width}" for width in model.layer_widths_)


def compare(heading, data, quick, make_task, without=()):
    """Errors of all methods on the same splits, and of ours less those of each other."""
    chains = SHORT if quick else CHAINS
    ours = {name: partial(network, {**chains, **options}) for name, options in OURS.items()}
    methods = {name: fill for name, fill in (PEERS | ours).items() if name not in without}
    rows, paired = [], []
    for name in IMAGES:
        if name != "digits" and (quick or not data.exists()):
            continue
        found = {method: [] for method in methods}
        for seed in range(1 if quick else 3):
            train, test, shape = load_images(name, data, seed)
            task = make_task(train, test, shape, random=np.random.default_rng(seed))
            for method, fill in methods.items():
                (filled, chosen), time = cpu_seconds(run_quietly, fill, task)
                squares = 1e4 * task.square_errors(filled)
                found[method].append((squares, chosen, time))
                error = np.sqrt(squares.mean())
                print(f"{heading}, {name}, split {seed}, {method}: {error:.2f}", flush=True)
        images = f"{name}, {len(train)} of {shape[0]} x {shape[1]}"
        for method, figures in found.items():
            squares, chosen, times = zip(*figures, strict=True)
            error, spread = mean_and_error([np.sqrt(square.mean()) for square in squares])
            told = [f"{value}" for value in chosen if value is not None]
            if method in OURS and name in WIDTHS:
                told.append(f"paper {WIDTHS[name]}")
            rows.append(
                {
                    "images": images,
                    "method": method,
                    "error, %": f"{error:.2f} ({spread:.2f})",
                    "chosen or found": ", ".join(told),
                    "s": np.mean(times),
                }
            )
        best = pooled(found[ROW_CLUSTERS])
        for method, figures in found.items():
            if method != ROW_CLUSTERS:
                less, spread = mean_and_error(best - pooled(figures))
                row = {"images": images, f"{ROW_CLUSTERS}, less": method}
                paired.append(row | {"mean square error": f"{less:+.1f} ({spread:.1f})"})
    return {heading: rows, f"{heading}, paired": paired}


def run_quietly(fill, task):
    """A method without its warnings of few rounds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return fill(task)


def pooled(figures):
    """Square errors of the images of all splits."""
    return np.concatenate([squares for squares, *_ in figures])
