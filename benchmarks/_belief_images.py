"""Images with holes: CIBPBeliefNet beside scikit-learn's imputers and linear models.

The experiments of Adams, Wallach and Ghahramani (2010), who show pictures and print no figures:
the lower half of test images is missing. Beside it, a fifth of all pixels is missing at random, and
a method learns from the same images that it fills. Figures are root mean square errors over the
missing pixels in percent of the range of intensities, means and standard errors over splits.
"""

import warnings

import numpy as np
from _data import IMAGES, load_images
from _imputers import PEERS, lower_half, scattered
from _tables import cpu_seconds, mean_and_error
from sklearn.exceptions import ConvergenceWarning

MISSING = 0.2


def halves(data, quick):
    """Tables of the lower halves."""
    return compare("lower half missing", data, quick, lambda *rows, random: lower_half(*rows))


def cells(data, quick):
    """Tables of the scattered cells of all training images."""

    def task(train, test, shape, random):
        return scattered(train, MISSING, random)

    return compare(f"{MISSING:.0%} of the pixels missing", data, quick, task, without=("ridge",))


def compare(heading, data, quick, make_task, without=()):
    """Errors of all methods on the same splits."""
    rows = []
    for name in IMAGES:
        if name != "digits" and (quick or not data.exists()):
            continue
        figures = {}
        for seed in range(1 if quick else 3):
            train, test, shape = load_images(name, data, seed)
            task = make_task(train, test, shape, random=np.random.default_rng(seed))
            for method, fill in PEERS.items():
                if method in without:
                    continue
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)  # three rounds are few
                    (filled, chosen), time = cpu_seconds(fill, task)
                error = 100 * np.sqrt(task.square_errors(filled).mean())
                figures.setdefault(method, []).append((error, chosen, time))
                print(f"{heading}, {name}, split {seed}, {method}: {error:.2f}", flush=True)
        for method, found in figures.items():
            errors, chosen, times = zip(*found, strict=True)
            error, spread = mean_and_error(errors)
            rows.append(
                {
                    "images": f"{name}, {len(train)} of {shape[0]} x {shape[1]}",
                    "method": method,
                    "error, %": f"{error:.2f} ({spread:.2f})",
                    "chosen": ", ".join(f"{value}" for value in chosen if value is not None),
                    "s": np.mean(times),
                }
            )
    return {heading: rows}
