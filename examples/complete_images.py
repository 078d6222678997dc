"""Fill the missing pixels of a set of images of one size, from what the images have in common.

    python examples/complete_images.py photos/ completed/
    python examples/complete_images.py photos/ completed/ --mask holes.png
    python examples/complete_images.py photos/ completed/ --mask masks/ --learn whole/
    python examples/complete_images.py images.npz completed/ --key faces --missing -1

IN is a folder of pictures of one size or an array saved by NumPy, (n, height, width) or with three
colours (n, height, width, 3). A pixel is missing where it is fully transparent or, with --mask,
where the mask is not black: one picture for all images, or a folder with one of the same name for
each. In an array it is missing where it is NaN or, with --missing VALUE, where it is VALUE.

A deep sparse belief network learns from all images, holes and all, and from those of --learn; a
whole part may be missing of some, if others show it. It takes images as rows of a table and knows
of no neighbourhood of pixels: they should show things of one kind, aligned, such as faces or
digits, at least some dozens. An image of 30 x 30 grey pixels is of the right size; reduce larger
ones before. 330 images of 20 x 28 pixels take a minute of one core.

The folder OUT gets the completed images (NAME.png); completed.npz, with their values and the
standard deviation of each as a measure of how sure they are, 0 where a pixel was given; and
completion.png, some images beside what was given and how sure each pixel is.

With --truth, images without holes as in IN, errors over the missing pixels are printed beside those
of two simple fillings.
"""

import argparse
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import matplotlib.image
import matplotlib.pyplot as plt
import numpy as np
from inpaint_image import read, size_of
from PIL import Image
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import KNNImputer, SimpleImputer

from skbnp import CIBPBeliefNet
from skbnp.plot import CompletionDisplay, frame_image, save_figure, style
from skbnp.samplers import BeliefNetSampler

N_SHOWN = 8


def read_arguments():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("images", type=Path, metavar="IN", help="a folder, .npy or .npz")
    parser.add_argument("completed", type=Path, metavar="OUT", help="a folder")
    parser.add_argument("--mask", type=Path, help="picture or folder, black where known")
    parser.add_argument("--missing", type=float, help="value of missing pixels in an array")
    parser.add_argument("--key", help="name of the array in .npz files")
    parser.add_argument("--learn", type=Path, help="more images to learn from, as IN")
    parser.add_argument("--truth", type=Path, help="the images without holes, as IN")
    parser.add_argument("--units", type=int, default=40, help="hidden units to begin with")
    parser.add_argument("--chains", type=int, default=3)
    parser.add_argument("--warmup", type=int, default=150, help="sweeps before the first draw")
    parser.add_argument("--draws", type=int, default=10, help="draws per chain")
    parser.add_argument("--jobs", type=int, default=-1, help="cores, -1: all")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.completed.exists() and not arguments.completed.is_dir():
        parser.error(f"OUT must be a folder, and {arguments.completed} is a file")
    return arguments


# -- images


@dataclass(frozen=True)
class Stack:
    """Images as rows (n, pixels), NaN where missing, values from `low` to `high`."""

    rows: np.ndarray
    shape: tuple
    names: list
    low: float
    high: float

    def __str__(self):
        kind = "colour" if len(self.shape) == 3 else "grey"
        return f"{len(self.rows)} {kind} images of {self.shape[1]} x {self.shape[0]} pixels"


def read_images(path, key=None, missing=None):
    """The images of a folder or of an array."""
    if path.is_dir():
        return read_folder(path)
    return read_array(path, key, missing)


def read_folder(path):
    """All pictures of a folder, by name; grey if all of them are."""
    known = Image.registered_extensions()
    files = sorted(file for file in path.iterdir() if file.suffix.lower() in known)
    if not files:
        raise SystemExit(f"there are no pictures in {path}")
    pictures, holes = zip(*(read(file) for file in files), strict=True)
    for file, picture in zip(files, pictures, strict=True):
        if picture.shape[:2] != pictures[0].shape[:2]:
            raise SystemExit(
                f"pictures must be of one size: {files[0]} has {size_of(pictures[0])}, {file} has "
                f"{size_of(picture)}"
            )
    n_channels = max(picture.shape[2] for picture in pictures)
    rows = [
        np.where(
            hole[:, :, np.newaxis], np.nan, np.broadcast_to(picture, (*hole.shape, n_channels))
        )
        for picture, hole in zip(pictures, holes, strict=True)
    ]
    shape = pictures[0].shape[:2] + ((3,) if n_channels == 3 else ())
    names = [file.stem for file in files]
    if len(set(names)) < len(names):
        raise SystemExit(f"two pictures in {path} have the same name but for its ending")
    return Stack(np.array(rows).reshape(len(rows), -1), shape, names, 0.0, 1.0)


def read_array(path, key, missing):
    """A stack saved by NumPy."""
    try:
        found = np.load(path)
    except (OSError, ValueError) as error:
        raise SystemExit(f"cannot read {path}: {error}") from error
    if isinstance(found, np.lib.npyio.NpzFile):
        with found as file:
            if key is None and len(file.files) != 1:
                raise SystemExit(f"{path} holds {', '.join(file.files)}: choose one by --key")
            key = key or file.files[0]
            if key not in file.files:
                raise SystemExit(f"{path} holds {', '.join(file.files)}, not {key}")
            found = file[key]
    if (
        found.dtype.kind not in "uif"
        or found.ndim not in (3, 4)
        or found.shape[3:] not in ((), (3,))
    ):
        raise SystemExit(
            f"{path} is no (n, height, width) or (n, height, width, 3) array of numbers: its shape "
            f"is {found.shape}, of {found.dtype}"
        )
    rows = found.reshape(len(found), -1).astype(float)
    if missing is not None:
        rows[rows == missing] = np.nan
    if not np.any(np.isfinite(rows)):
        raise SystemExit(f"all pixels of {path} are missing")
    digits = len(f"{len(rows) - 1}")
    names = [f"{i:0{digits}d}" for i in range(len(rows))]
    return Stack(rows, found.shape[1:], names, np.nanmin(rows), np.nanmax(rows))


def with_mask(stack, path):
    """The images without what a mask, or a folder of masks, does not leave."""
    rows = stack.rows.copy()
    for i, name in enumerate(stack.names):
        file = path
        if path.is_dir():
            found = sorted(path.glob(f"{name}.*"))
            if len(found) != 1:
                raise SystemExit(f"{path} must hold one mask {name}, and has {len(found)}")
            file = found[0]
        if i == 0 or path.is_dir():
            mask, _ = read(file)
        if mask.shape[:2] != stack.shape[:2]:
            raise SystemExit(f"{file} must have the size of the images, and has {size_of(mask)}")
        missing = np.any(mask > 0, axis=2)
        rows[i].reshape(stack.shape)[missing] = np.nan
    return Stack(rows, stack.shape, stack.names, stack.low, stack.high)


def read_holed(arguments):
    """The images to complete."""
    stack = read_images(arguments.images, arguments.key, arguments.missing)
    if arguments.mask:
        stack = with_mask(stack, arguments.mask)
    if not np.isnan(stack.rows).any():
        raise SystemExit(
            f"no pixel of {arguments.images} is missing: give a --mask, make pixels fully "
            "transparent, or say by --missing which value marks them"
        )
    return stack


def read_others(path, stack, arguments):
    """More images of the same size, as many and whole if they are the truth."""
    other = read_images(path, arguments.key, arguments.missing)
    if other.shape[:2] != stack.shape[:2]:
        raise SystemExit(f"{path} must hold images of the size of IN, and has {other}")
    if other.shape != stack.shape:
        raise SystemExit(f"{path} and IN must both be grey or both in colour: {other}, {stack}")
    return other


def read_truth(arguments, stack):
    """The images without holes, if they are given."""
    if not arguments.truth:
        return None
    truth = read_others(arguments.truth, stack, arguments)
    if truth.names != stack.names or np.isnan(truth.rows).any():
        raise SystemExit(f"{arguments.truth} must hold the images of IN, by the same names, whole")
    return truth.rows


# -- the filling


def learn(rows, low, high, **options):
    """The network of a table of images with holes."""
    model = CIBPBeliefNet(feature_bounds=(low, high), max_layers=1, row_clusters=True, **options)
    with warnings.catch_warnings():
        # Filling needs no long chains; of pixels that are the same in all images nobody has doubts.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "X is constant in", UserWarning)
        return model.fit(rows)


def report(filled, std, known, holed, truth):
    """Errors over the missing pixels, and whether the uncertainties are right."""
    missing = np.isnan(holed)
    fillings = {
        "belief network": filled,
        "mean of the images": SimpleImputer(keep_empty_features=True).fit(known).transform(holed),
        "5 nearest images": KNNImputer(keep_empty_features=True).fit(known).transform(holed),
    }
    for name, values in fillings.items():
        print(f"{name:18s} error {np.sqrt(np.mean((values - truth)[missing] ** 2)):.4g}")
    doubted = missing & (std > 0.0)
    distance = np.abs(filled - truth)[doubted] / std[doubted]
    print(f"within one std: {np.mean(distance < 1):.0%}, within two: {np.mean(distance < 2):.0%}")


def write(folder, stack, filled, std, truth):
    """Pictures, values and what some of them look like."""
    folder.mkdir(parents=True, exist_ok=True)
    scaled = np.clip((filled - stack.low) / (stack.high - stack.low), 0.0, 1.0)
    for name, image in zip(stack.names, scaled.reshape(-1, *stack.shape), strict=True):
        grey = {} if image.ndim == 3 else {"cmap": "gray", "vmin": 0.0, "vmax": 1.0}
        matplotlib.image.imsave(folder / f"{name}.png", image, **grey)
    shape = (len(filled), *stack.shape)
    np.savez_compressed(
        folder / "completed.npz", images=filled.reshape(shape), std=std.reshape(shape)
    )
    with plt.style.context(style()):
        figure = show(stack, filled, std, truth)
    save_figure(figure, folder / "completion.png")
    print(f"wrote {len(filled)} images, completed.npz and completion.png to {folder}")


def show(stack, filled, std, truth):
    """Given, filled, how sure, and the truth; colours as greys."""

    def grey(rows):
        return rows.reshape(len(rows), *stack.shape[:2], -1).mean(axis=3).reshape(len(rows), -1)

    holed = np.flatnonzero(np.isnan(stack.rows).any(axis=1))
    shown = holed[np.linspace(0, len(holed) - 1, min(N_SHOWN, len(holed))).astype(int)]
    n_columns = 3 if truth is None else 4
    figure, axes = plt.subplots(len(shown), n_columns, figsize=(1.4 * n_columns, 1.5 * len(shown)))
    axes = axes.reshape(len(shown), n_columns)
    CompletionDisplay(
        grey(stack.rows[shown]),
        grey(filled[shown]),
        None if truth is None else grey(truth[shown]),
        image_shape=stack.shape[:2],
    ).plot(ax=np.delete(axes, 2, axis=1), vmin=stack.low, vmax=stack.high)
    for ax, image in zip(axes[:, 2], grey(std[shown]), strict=True):
        picture = ax.imshow(image.reshape(stack.shape[:2]), vmin=0.0, vmax=std[shown].max())
        frame_image(ax)
    axes[0, 2].set_title("give or take", fontsize="medium")
    figure.colorbar(picture, ax=axes, shrink=0.5, label="standard deviation")
    return figure


def main():
    """Read, fit, fill, write."""
    arguments = read_arguments()
    stack = read_holed(arguments)
    truth = read_truth(arguments, stack)
    print(f"{stack}; {np.isnan(stack.rows).mean():.1%} missing")
    rows = stack.rows
    if arguments.learn:
        others = read_others(arguments.learn, stack, arguments)
        print(f"learning from {others} as well")
        rows = np.concatenate([rows, others.rows])
    nowhere = np.isnan(rows).all(axis=0)
    if nowhere.any():
        raise SystemExit(
            f"{nowhere.sum()} pixels are missing in all images: give some that show them by --learn"
        )
    start = time.perf_counter()
    model = learn(
        rows,
        min(stack.low, np.nanmin(rows)),
        max(stack.high, np.nanmax(rows)),
        sampler=BeliefNetSampler(n_init_units=arguments.units),
        n_chains=arguments.chains,
        n_warmup=arguments.warmup,
        n_draws=arguments.draws,
        n_jobs=arguments.jobs,
        random_state=arguments.seed,
        verbose=1,
    )
    filled, std = model.impute(stack.rows, return_std=True)
    print(f"{model.layer_widths_[0]} hidden units, {time.perf_counter() - start:.0f} s")
    if truth is not None:
        report(filled, std, rows, stack.rows, truth)
    write(arguments.completed, stack, filled, std, truth)


if __name__ == "__main__":
    main()
