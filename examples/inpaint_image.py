"""Fill the missing pixels of a picture, from nothing but the pixels that are left.

    python examples/inpaint_image.py photo.png filled.png
    python examples/inpaint_image.py photo.jpg filled.png --mask holes.png
    python examples/inpaint_image.py photo.png filled.png --truth whole.png

A pixel is missing where the mask is not black or, without --mask, where the picture is fully
transparent (in an array saved by NumPy, FILE.npy with values from 0 to 1: where it is NaN). Small
overlapping patches are rows of a table with holes; a tree factor model fitted to a random choice
of these rows fills all of them, and a pixel is the mean of what the patches around it say, each
weighted by how sure it is. Four of five pixels may be missing if they are scattered; a hole wider
than a patch is filled with a guess at the colour alone.

Save masks as PNG: in a JPEG black is not exactly black. Patches of colour pictures have three times
the columns of grey ones. For a first look add --rows 3000 --chains 1 --warmup 15
--draws 4: 40 seconds for a colour picture of 80 x 100 pixels, on one core.

With --truth FILE, the picture without holes, the peak signal to noise ratio over the missing
pixels is printed.
"""

import argparse
import time
import warnings
from pathlib import Path

import matplotlib.image
import numpy as np
from PIL import Image
from sklearn.exceptions import ConvergenceWarning

from skbnp import TreeFactorModel
from skbnp.samplers import TreeSampler

# Short chains: filling needs good places of the posterior, not all of it.
OPTIONS = dict(max_depth=16, noise="isotropic", sampler=TreeSampler(init="em", init_children=3))


def read_arguments():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("picture", type=Path, metavar="IN", help="grey or colour")
    parser.add_argument("filled", type=Path, metavar="OUT")
    parser.add_argument("--mask", type=Path, help="picture of the same size, black where known")
    parser.add_argument("--truth", type=Path, help="the picture without holes")
    parser.add_argument("--side", type=int, default=10, help="of a patch, in pixels")
    parser.add_argument("--step", type=int, default=2, help="between patches, in pixels")
    parser.add_argument("--rows", type=int, default=20000, help="patches to learn from, at most")
    parser.add_argument("--chains", type=int, default=2)
    parser.add_argument("--warmup", type=int, default=40, help="sweeps before the first draw")
    parser.add_argument("--draws", type=int, default=8, help="draws per chain")
    parser.add_argument("--jobs", type=int, default=-1, help="cores, -1: all")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    suffix, folder = arguments.filled.suffix.lower(), arguments.filled.absolute().parent
    if suffix not in {".npy", *Image.registered_extensions()}:
        parser.error(f"OUT must end in .npy or as pictures do, .png say, got {arguments.filled}")
    if not folder.is_dir():
        parser.error(f"there is no folder {folder}")
    return arguments


# -- pictures


def read(path):
    """Pixels (height, width, channels), 0 to 1, and which of them are fully transparent."""
    try:
        found = np.load(path) if path.suffix == ".npy" else matplotlib.image.imread(path)
    except (OSError, ValueError, SyntaxError) as error:  # the last is Pillow's
        raise SystemExit(f"cannot read {path}: {error}") from error
    if found.ndim == 2:
        found = found[:, :, np.newaxis]
    if found.dtype.kind not in "uif" or found.ndim != 3 or found.shape[2] not in (1, 3, 4):
        raise SystemExit(
            f"{path} is no grey or colour picture: its shape is {found.shape}, of {found.dtype}"
        )
    if found.dtype.kind in "ui":
        found = found / np.iinfo(found.dtype).max
    transparent = np.zeros(found.shape[:2], dtype=bool)
    if found.shape[2] == 4:
        transparent = found[:, :, 3] == 0
        found = found[:, :, :3]
    if np.array_equal(found, np.broadcast_to(found[:, :, :1], found.shape), equal_nan=True):
        found = found[:, :, :1]
    return found.astype(float), transparent


def read_holed(arguments):
    """The picture, NaN where it is missing."""
    picture, missing = read(arguments.picture)
    if arguments.mask:
        mask, _ = read(arguments.mask)
        if mask.shape[:2] != picture.shape[:2]:
            raise SystemExit(
                f"{arguments.mask} must have the size of {arguments.picture}, "
                f"{size_of(picture)}, and has {size_of(mask)}"
            )
        missing = np.any(mask > 0, axis=2)
    picture[missing] = np.nan
    holes = np.isnan(picture)
    if not holes.any():
        raise SystemExit(
            f"no pixel of {arguments.picture} is missing: give a --mask that is not black, or "
            "make pixels fully transparent"
        )
    if np.any(holes.all(axis=(0, 1))):
        raise SystemExit(f"all pixels of {arguments.picture} are missing")
    if not 2 <= arguments.side <= min(picture.shape[:2]):
        raise SystemExit(
            f"--side must be from 2 to the sides of the picture, {size_of(picture)}, got "
            f"{arguments.side}"
        )
    if not 1 <= arguments.step <= arguments.side:
        raise SystemExit(f"--step must be from 1 to --side, got {arguments.step}")
    return picture


def size_of(picture):
    """In words."""
    return f"{picture.shape[1]} x {picture.shape[0]} pixels"


def write(picture, path):
    """In the format that the name says."""
    if path.suffix == ".npy":
        np.save(path, picture.squeeze())
    else:
        three = np.repeat(picture, 3, axis=2) if picture.shape[2] == 1 else picture
        matplotlib.image.imsave(path, np.clip(three, 0.0, 1.0))
    print(f"wrote {path}")


def psnr(picture, truth, missing):
    """Peak signal to noise ratio over the missing entries, in decibels."""
    return -10.0 * np.log10(np.mean((np.clip(picture, 0.0, 1.0) - truth)[missing] ** 2))


# -- patches


def corners(picture, side, step):
    """Top left corners of patches that cover the picture, (n, 2)."""
    edges = [
        np.unique(np.append(np.arange(0, length - side, step), length - side))
        for length in picture.shape[:2]
    ]
    return np.stack(np.meshgrid(*edges, indexing="ij"), axis=-1).reshape(-1, 2)


def patches_at(picture, corner, side):
    """The patches as rows (n, side * side * channels)."""
    windows = np.lib.stride_tricks.sliding_window_view(picture, (side, side), axis=(0, 1))
    return windows[corner[:, 0], corner[:, 1]].reshape(len(corner), -1)


def joined(rows, weights, corner, picture, side):
    """The weighted mean of the patches at each pixel, where the picture is missing."""
    total, weight = np.zeros_like(picture), np.zeros_like(picture)
    shape = (-1, picture.shape[2], side, side)
    for (top, left), row, w in zip(
        corner, rows.reshape(shape), weights.reshape(shape), strict=True
    ):
        at = np.s_[top : top + side, left : left + side]
        total[at] += (w * row).transpose(1, 2, 0)
        weight[at] += w.transpose(1, 2, 0)
    filled, missing = picture.copy(), np.isnan(picture)
    filled[missing] = total[missing] / weight[missing]
    return filled


# -- the filling


def learn(rows, **options):
    """The model of a table of patches with holes."""
    model = TreeFactorModel(**OPTIONS, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(rows)


def fill(picture, model, side, step):
    """The picture without holes."""
    corner = corners(picture, side, step)
    rows = patches_at(picture, corner, side)
    holed = np.isnan(rows).any(axis=1)
    corner, rows = corner[holed], rows[holed]
    filled, std = model.impute(rows, return_std=True)
    weights = np.where(np.isnan(rows), 1.0 / np.maximum(std, 1e-6) ** 2, 0.0)
    return joined(filled, weights, corner, picture, side)


def some_patches(picture, side, n_rows, seed):
    """At most n_rows patches, at random, that hold something."""
    rows = patches_at(picture, corners(picture, side, 1), side)
    rows = rows[~np.isnan(rows).all(axis=1)]
    return np.random.default_rng(seed).permutation(rows)[:n_rows]


def main():
    """Read, fit, fill, write."""
    arguments = read_arguments()
    picture = read_holed(arguments)
    missing = np.isnan(picture)
    kind = "grey" if picture.shape[2] == 1 else "colour"
    print(f"{size_of(picture)}, {kind}; {missing.mean():.1%} missing")
    start = time.perf_counter()
    rows = some_patches(picture, arguments.side, arguments.rows, arguments.seed)
    print(f"learning from {len(rows)} patches of {rows.shape[1]} values each")
    model = learn(
        rows,
        n_chains=arguments.chains,
        n_warmup=arguments.warmup,
        n_draws=arguments.draws,
        n_jobs=arguments.jobs,
        random_state=arguments.seed,
    )
    print(f"{model.n_clusters_} kinds of patches, {time.perf_counter() - start:.0f} s")
    filled = fill(picture, model, arguments.side, arguments.step)
    print(f"filled after {time.perf_counter() - start:.0f} s")
    if arguments.truth:
        truth, _ = read(arguments.truth)
        if truth.shape[:2] != picture.shape[:2]:
            raise SystemExit(f"{arguments.truth} must have the size of {arguments.picture}")
        print(f"PSNR over the missing pixels: {psnr(filled, truth, missing):.2f} dB")
    write(filled, arguments.filled)


if __name__ == "__main__":
    main()
