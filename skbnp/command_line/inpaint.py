"""Fill the missing pixels of a picture, from nothing but the pixels that are left.

A pixel is missing where the mask is not black or, without --mask, where the picture is fully
transparent (in an array saved by NumPy, FILE.npy with values from 0 to 1: where it is NaN). Small
overlapping patches are rows of a table with holes; a tree factor model fitted to a random choice
of these rows fills all of them, and a pixel is the mean of what the patches around it say, each
weighted by how sure it is. Four of five pixels may be missing if they are scattered; a hole wider
than a patch is filled with a guess at the colour alone.

Save masks as PNG: in a JPEG black is not exactly black. Patches of colour pictures have three times
the columns of grey ones. For a first look add --rows 3000 --chains 1 --warmup 15 --draws 4: 40
seconds for a colour picture of 80 x 100 pixels, on one core.

Beside photo.jpg comes photo_filled.png. With --truth, the picture without holes, the peak signal to
noise ratio over the missing pixels is printed.
"""

import time
from pathlib import Path

import numpy as np

from skbnp.command_line import patches, pictures
from skbnp.command_line.arguments import (
    add_chain_options,
    chain_options,
    check_is_there,
    check_outputs,
    say,
    whole,
)
from skbnp.command_line.errors import BadInput, refusing, require
from skbnp.command_line.fitting import fit

INPUT = "FILE"
EXAMPLE = "skbnp inpaint photo.jpg --mask holes.png --output filled.png"
# Short chains: filling needs good places of the posterior, not all of it.
_SHORT = {"chains": 2, "warmup": 40, "draws": 8}
_IGNORED = ("The chains may not have converged", "X is constant in")


def add_options(parser):
    """What this command understands."""
    parser.add_argument("picture", type=Path, metavar="FILE", help="grey or colour")
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="the filled picture (default: ..._filled.png)"
    )
    parser.add_argument("--mask", type=Path, help="picture of the same size, black where known")
    parser.add_argument("--truth", type=Path, help="the picture without holes")
    group = parser.add_argument_group("patches")
    group.add_argument(
        "--side", type=whole(2), default=10, metavar="N", help="of a patch, in pixels (default: 10)"
    )
    group.add_argument(
        "--step",
        type=whole(1),
        default=2,
        metavar="N",
        help="between patches, in pixels (default: 2)",
    )
    group.add_argument(
        "--rows",
        type=whole(1),
        default=20000,
        metavar="N",
        help="patches to learn from, at most (default: 20000)",
    )
    add_chain_options(parser, **_SHORT)


def run(arguments):
    """Read, fit, fill, write."""
    check_is_there(arguments.picture)
    require("matplotlib", "PIL")
    output = _output(arguments)
    picture = _read_holed(arguments)
    truth = _read_truth(arguments, picture)
    missing = np.isnan(picture)
    kind = "grey" if picture.shape[2] == 1 else "colour"
    say(arguments, f"{pictures.size_of(picture.shape)}, {kind}; {missing.mean():.1%} missing")
    start = time.perf_counter()
    rows = patches.some_patches(picture, arguments.side, arguments.rows, arguments.seed)
    say(arguments, f"learning from {len(rows)} patches of {rows.shape[1]} values each")
    model = patches.model(**chain_options(arguments))
    fit(model, rows, arguments, arguments.picture, _IGNORED)
    seconds = time.perf_counter() - start
    say(arguments, f"{len(model.tree_['leaf_node'])} kinds of patches, {seconds:.0f} s")
    with refusing(arguments.picture):
        filled = patches.fill(picture, model, arguments.side, arguments.step)
    say(arguments, f"filled after {time.perf_counter() - start:.0f} s")
    if truth is not None:
        db = patches.psnr(filled, truth, missing)
        say(arguments, f"PSNR over the missing pixels: {db:.2f} dB")
    pictures.write(filled, output)
    say(arguments, f"wrote {output}")


def _output(arguments):
    """The file to write, checked."""
    from PIL import Image

    path, output = arguments.picture, arguments.output
    if output is None:
        ending = ".npy" if path.suffix.lower() == ".npy" else ".png"
        output = path.with_name(f"{path.stem}_filled{ending}")
    if output.suffix.lower() not in {".npy", *Image.registered_extensions()}:
        raise BadInput(f"--output must end in .npy or as pictures do, .png say, got {output}")
    inputs = [arguments.picture, arguments.mask, arguments.truth]
    check_outputs({"--output": output}, [path for path in inputs if path is not None])
    return output


def _read_holed(arguments):
    """The picture, NaN where it is missing."""
    path = arguments.picture
    picture, missing = pictures.read(path)
    if arguments.mask:
        missing = pictures.read_mask(arguments.mask, picture.shape, path)
    picture[missing] = np.nan
    holes = np.isnan(picture)
    if not holes.any():
        raise BadInput(
            f"no pixel of {path} is missing: give a --mask that is not black, or make pixels fully "
            "transparent"
        )
    if np.any(holes.all(axis=(0, 1))):
        raise BadInput(f"all pixels of {path} are missing")
    if arguments.side > min(picture.shape[:2]):
        raise BadInput(
            f"--side must be from 2 to the sides of {path}, {pictures.size_of(picture.shape)}, got "
            f"{arguments.side}"
        )
    if arguments.step > arguments.side:
        raise BadInput(f"--step must be from 1 to --side, got {arguments.step}")
    return picture


def _read_truth(arguments, picture):
    """The picture without holes, if it is given."""
    if arguments.truth is None:
        return None
    truth, _ = pictures.read(arguments.truth)
    if truth.shape[:2] != picture.shape[:2]:
        raise BadInput(
            f"{arguments.truth} must have the size of {arguments.picture}, "
            f"{pictures.size_of(picture.shape)}, and has {pictures.size_of(truth.shape)}"
        )
    if truth.shape[2] not in (1, picture.shape[2]) or not np.isfinite(truth).all():
        raise BadInput(f"{arguments.truth} must be {arguments.picture} without holes")
    return np.broadcast_to(truth, picture.shape)
