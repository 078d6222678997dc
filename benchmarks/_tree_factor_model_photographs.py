"""Whole photographs with four of five pixels missing, filled patch by patch.

A method fills overlapping 8 x 8 patches and a pixel is the mean of what the patches say; or it
interpolates between pixels. Those that can learn from the incomplete patches of the
photograph itself do so ("own"); mixtures of scikit-learn need whole patches and get those of other
photographs ("Berkeley"). Peak signal to noise ratio over the missing pixels, in decibels. The
command `skbnp inpaint` does the first of ours, with patches of ten pixels and, unless told
otherwise, half the step between them.
"""

import time
import warnings

import numpy as np
from _data import load_patches
from _gaussians import gaussian_mixture, one_gaussian
from scipy.interpolate import griddata
from sklearn.datasets import load_sample_image
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer

from skbnp.command_line import patches

SIDE, STEP, RATE = 8, 4, 0.8
N_BERKELEY, N_OWN = 20_000, 20_000  # patches to learn from
SHORT = dict(n_chains=1, n_warmup=10, n_draws=4)
CROP = np.s_[100:228, 100:292]


def photographs_of(quick):
    """Name -> grey photograph (height, width, 1), 0 to 1."""
    part = CROP if quick else np.s_[:, :]
    return {
        name: load_sample_image(f"{name}.jpg").mean(axis=2)[part][:, :, np.newaxis] / 255
        for name in (("china",) if quick else ("china", "flower"))
    }


def interpolated(given, method):
    """Between the given pixels; outside their hull the nearest one."""
    missing, known = np.isnan(given), np.nonzero(~np.isnan(given))
    everywhere = tuple(np.indices(given.shape))
    nearest = griddata(known, given[known], everywhere, method="nearest")
    found = griddata(known, given[known], everywhere, method=method)
    return np.where(missing, np.where(np.isnan(found), nearest, found), given)


def by_patches(given, impute):
    """Plain means of filled patches."""
    corner = patches.corners(given, SIDE, STEP)
    filled = impute(patches.patches_at(given, corner, SIDE))
    return patches.joined(filled, np.ones_like(filled), corner, given, SIDE)


def below(rows, impute):
    """A filling of rows that stand below others which it may learn from."""
    return lambda holed: impute(np.vstack([rows, holed]))[len(rows) :]


def methods(given, berkeley, quick):
    """Name -> a function that fills the photograph."""

    def own(side):
        return patches.some_patches(given, side, N_OWN, 0)

    def ours(rows, side):
        chains = dict(n_chains=2, n_warmup=40, n_draws=8, n_jobs=-1, random_state=0)
        model = patches.model(**chains | (SHORT if quick else {})).fit(rows)
        return patches.fill(given, model, side, STEP)

    def through(impute):
        return lambda: by_patches(given, impute)

    iterative, near = IterativeImputer(random_state=0), KNNImputer(n_neighbors=10)
    return {
        "griddata, linear": lambda: interpolated(given[:, :, 0], "linear")[:, :, np.newaxis],
        "griddata, cubic": lambda: interpolated(given[:, :, 0], "cubic")[:, :, np.newaxis],
        "KNNImputer(10), own": through(lambda rows: near.fit(own(SIDE)).transform(rows)),
        "IterativeImputer, own": through(iterative.fit_transform),
        "IterativeImputer, own and 1,000 Berkeley": through(
            below(berkeley[:1000], iterative.fit_transform)
        ),
        "one full Gaussian, Berkeley": through(lambda rows: one_gaussian(berkeley).impute(rows)),
        "GaussianMixture(8), Berkeley": through(
            lambda rows: gaussian_mixture(berkeley, 8, 0, reg_covar=1e-5).impute(rows)
        ),
        "tree, own, 10 x 10: skbnp inpaint": lambda: ours(own(10), 10),
        "tree, own": lambda: ours(own(SIDE), SIDE),
        "tree, Berkeley": lambda: ours(berkeley, SIDE),
    }


def photographs(data, quick):
    """One table, a row for each method and photograph."""
    whole = load_patches(data, N_BERKELEY, 1)[0]
    random = np.random.default_rng(0)
    berkeley = (whole + random.uniform(-0.5, 0.5, whole.shape)) / 255
    rows = []
    warnings.simplefilter("ignore", ConvergenceWarning)  # IterativeImputer stops after ten rounds
    for picture, truth in photographs_of(quick).items():
        missing = np.random.default_rng(1).random(truth.shape[:2]) < RATE
        given = np.where(missing[:, :, np.newaxis], np.nan, truth)
        for name, filled in methods(given, berkeley, quick).items():
            started = time.perf_counter()
            db = patches.psnr(filled(), truth, np.isnan(given))
            row = {"photograph": picture, "method": name, "PSNR, dB": f"{db:.2f}"}
            rows.append(row | {"s": time.perf_counter() - started})
            print(rows[-1], flush=True)
    size = " x ".join(str(n) for n in truth.shape[:2])
    return {f"photographs, {size} pixels, {RATE:.0%} missing": rows}
