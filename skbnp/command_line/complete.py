"""Fill the missing pixels of a set of images of one size, from what the images have in common.

IN is a folder of pictures of one size or an array saved by NumPy, (n, height, width) or with three
colours (n, height, width, 3). A pixel is missing where it is fully transparent or, with --mask,
where the mask is not black: one picture for all images, or a folder with one of the same name for
each. In an array it is missing where it is NaN or, with --missing VALUE, where it is VALUE.

A deep sparse belief network learns from all images, holes and all, and from those of --learn; a
whole part may be missing of some, if others show it. It takes images as rows of a table and knows
of no neighbourhood of pixels: they should show things of one kind, aligned, such as faces or
digits, at least some dozens. An image of 30 x 30 grey pixels is of the right size; reduce larger
ones before. 330 images of 20 x 28 pixels take a minute of one core.

A folder, IN_completed unless --output says otherwise, gets the completed images (NAME.png);
completed.npz, with their values and the standard deviation of each as a measure of how sure they
are, 0 where a pixel was given; and completion.png, some images beside what was given and how sure
each pixel is.

With --truth, images without holes as in IN, errors over the missing pixels are printed beside those
of two simple fillings.
"""

import time
from pathlib import Path

import numpy as np

from skbnp.command_line.arguments import (
    add_chain_options,
    chain_options,
    check_is_there,
    say,
    whole,
)
from skbnp.command_line.errors import BadInput, refusing, require
from skbnp.command_line.fitting import fit
from skbnp.command_line.image_sets import model, read_images, with_mask

INPUT = "IN"
EXAMPLE = "skbnp complete photos/ --mask holes.png --output completed/"
_SHORT = {"chains": 3, "warmup": 150, "draws": 10}
# Filling needs no long chains; of pixels that are the same in all images nobody has doubts.
_IGNORED = ("The chains may not have converged", "An ensemble of", "X is constant in")
_N_SHOWN = 8


def add_options(parser):
    """What this command understands."""
    parser.add_argument("images", type=Path, metavar="IN", help="a folder, .npy or .npz")
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="(default: IN_completed)")
    parser.add_argument("--mask", type=Path, help="picture or folder, black where known")
    parser.add_argument(
        "--missing", type=float, metavar="VALUE", help="of missing pixels in an array"
    )
    parser.add_argument("--key", help="name of the array in .npz files")
    parser.add_argument("--learn", type=Path, help="more images to learn from, as IN")
    parser.add_argument("--truth", type=Path, help="the images without holes, as IN")
    parser.add_argument(
        "--units",
        type=whole(1),
        default=40,
        metavar="N",
        help="hidden units to begin with (default: 40)",
    )
    add_chain_options(parser, **_SHORT)


def run(arguments):
    """Read, fit, fill, write."""
    check_is_there(arguments.images)
    require("matplotlib", "PIL")
    output = _output(arguments)
    stack = _read_holed(arguments)
    truth = _read_truth(arguments, stack)
    rows = _rows_to_learn_from(arguments, stack)
    say(arguments, f"{stack}; {np.isnan(stack.rows).mean():.1%} missing")
    if len(rows) > len(stack.rows):
        say(arguments, f"learning from {len(rows) - len(stack.rows)} others as well")
    start = time.perf_counter()
    network = _network(arguments, stack, rows)
    fit(network, rows, arguments, arguments.images, _IGNORED)
    with refusing(arguments.images):
        filled, std = network.impute(stack.rows, return_std=True)
    seconds = time.perf_counter() - start
    say(arguments, f"{network.layer_widths_[0]} hidden units, {seconds:.0f} s")
    if truth is not None:
        say(arguments, _errors(filled, std, rows, stack.rows, truth))
    _write(output, stack, filled, std, truth)
    files = f"{len(filled)} images, completed.npz and completion.png"
    say(arguments, f"wrote {files} to {output}")


def _output(arguments):
    """The folder to write to, checked."""
    path = arguments.images
    output = arguments.output or path.absolute().with_name(f"{path.absolute().stem}_completed")
    if output.exists() and not output.is_dir():
        raise BadInput(f"--output must be a folder, and {output} is a file")
    given = [path, arguments.mask, arguments.learn, arguments.truth]
    if output.resolve() in [one.resolve() for one in given if one is not None]:
        raise BadInput(f"--output {output} would overwrite the pictures there")
    if not output.absolute().parent.is_dir():
        raise BadInput(f"--output {output}: there is no folder {output.parent}")
    return output


# -- images


def _read_holed(arguments):
    """The images to complete."""
    stack = read_images(arguments.images, arguments.key, arguments.missing)
    if arguments.mask:
        stack = with_mask(stack, arguments.mask)
    if not np.isnan(stack.rows).any():
        raise BadInput(
            f"no pixel of {arguments.images} is missing: give a --mask, make pixels fully "
            "transparent, or say by --missing which value marks them"
        )
    return stack


def _read_others(path, stack, arguments):
    """More images of the same size, as many and whole if they are the truth."""
    other = read_images(path, arguments.key, arguments.missing)
    if other.shape[:2] != stack.shape[:2]:
        raise BadInput(f"{path} must hold images of the size of IN, and has {other}")
    if other.shape != stack.shape:
        raise BadInput(f"{path} and IN must both be grey or both in colour: {other}, {stack}")
    return other


def _read_truth(arguments, stack):
    """The images without holes, if they are given."""
    if arguments.truth is None:
        return None
    truth = _read_others(arguments.truth, stack, arguments)
    if truth.names != stack.names or np.isnan(truth.rows).any():
        raise BadInput(f"{arguments.truth} must hold the images of IN, by the same names, whole")
    return truth.rows


def _rows_to_learn_from(arguments, stack):
    rows = stack.rows
    if arguments.learn:
        rows = np.concatenate([rows, _read_others(arguments.learn, stack, arguments).rows])
    n_nowhere = np.isnan(rows).all(axis=0).sum()
    if n_nowhere:
        raise BadInput(
            f"{n_nowhere} pixels are missing in all images of {arguments.images}: give some that "
            "show them by --learn"
        )
    return rows


# -- the filling


def _network(arguments, stack, rows):
    """The model, not fitted."""
    from skbnp.cibp_belief_net import BeliefNetSampler

    return model(
        min(stack.low, np.nanmin(rows)),
        max(stack.high, np.nanmax(rows)),
        sampler=BeliefNetSampler(n_init_units=arguments.units),
        **chain_options(arguments),
    )


def _errors(filled, std, known, holed, truth):
    """Errors over the missing pixels, and whether the uncertainties are right, in words."""
    from sklearn.impute import KNNImputer, SimpleImputer

    missing = np.isnan(holed)
    fillings = {
        "belief network": filled,
        "mean of the images": SimpleImputer(keep_empty_features=True).fit(known).transform(holed),
        "5 nearest images": KNNImputer(keep_empty_features=True).fit(known).transform(holed),
    }
    lines = [
        f"{name:18s} error {np.sqrt(np.mean((values - truth)[missing] ** 2)):.4g}"
        for name, values in fillings.items()
    ]
    doubted = missing & (std > 0.0)
    distance = np.abs(filled - truth)[doubted] / std[doubted]
    shares = f"within one std: {np.mean(distance < 1):.0%}, within two: {np.mean(distance < 2):.0%}"
    return "\n".join([*lines, shares])


# -- what is written


def _write(folder, stack, filled, std, truth):
    """Pictures, values and what some of them look like."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.image

    scaled = np.clip((filled - stack.low) / (stack.high - stack.low), 0.0, 1.0)
    shape = (len(filled), *stack.shape)
    values = {"images": filled.reshape(shape), "std": std.reshape(shape)}
    try:
        folder.mkdir(exist_ok=True)
        for name, image in zip(stack.names, scaled.reshape(shape), strict=True):
            grey = {} if image.ndim == 3 else {"cmap": "gray", "vmin": 0.0, "vmax": 1.0}
            matplotlib.image.imsave(folder / f"{name}.png", image, **grey)
        np.savez_compressed(folder / "completed.npz", **values)
        _show(stack, filled, std, truth, folder / "completion.png")
    except OSError as error:
        raise BadInput(f"cannot write to {folder}: {error}") from error


def _show(stack, filled, std, truth, path):
    """A picture of the given, the filled, how sure, and the truth; colours as greys."""
    import matplotlib.pyplot as plt

    from skbnp.plot import CompletionDisplay, frame_image, save_figure, style

    def grey(rows):
        return rows.reshape(len(rows), *stack.shape[:2], -1).mean(axis=3).reshape(len(rows), -1)

    holed = np.flatnonzero(np.isnan(stack.rows).any(axis=1))
    shown = holed[np.linspace(0, len(holed) - 1, min(_N_SHOWN, len(holed))).astype(int)]
    n_columns = 3 if truth is None else 4
    with plt.style.context(style()):
        size = (1.4 * n_columns, 1.5 * len(shown))
        figure, axes = plt.subplots(len(shown), n_columns, figsize=size, squeeze=False)
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
    save_figure(figure, path)
    plt.close(figure)
