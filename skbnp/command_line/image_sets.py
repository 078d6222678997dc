"""Sets of images of one size, as rows of a table with holes: folders, and arrays of NumPy."""

from dataclasses import dataclass

import numpy as np

from skbnp.command_line.arguments import check_is_there
from skbnp.command_line.errors import BadInput
from skbnp.command_line.pictures import read, read_mask, size_of


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
        return f"{len(self.rows)} {kind} images of {size_of(self.shape)}"


def read_images(path, key=None, missing=None):
    """The images of a folder or of an array.

    Parameters
    ----------
    path : Path
        A folder, .npy or .npz.
    key : str or None
        Name of the array in an .npz file.
    missing : float or None
        What stands for missing pixels in an array, beside NaN.

    Returns
    -------
    stack : Stack
    """
    check_is_there(path)
    if path.is_dir():
        return read_folder(path)
    return read_array(path, key, missing)


def read_folder(path):
    """All pictures of a folder, by name; grey if all of them are."""
    from PIL import Image

    known = Image.registered_extensions()
    files = sorted(file for file in path.iterdir() if file.suffix.lower() in known)
    if not files:
        raise BadInput(f"there are no pictures in {path}")
    pictures, holes = zip(*(read(file) for file in files), strict=True)
    for file, picture in zip(files, pictures, strict=True):
        if picture.shape[:2] != pictures[0].shape[:2]:
            raise BadInput(
                f"pictures must be of one size: {files[0]} has {size_of(pictures[0].shape)}, "
                f"{file} has {size_of(picture.shape)}"
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
        raise BadInput(f"two pictures in {path} have the same name but for its ending")
    return Stack(np.array(rows).reshape(len(rows), -1), shape, names, 0.0, 1.0)


def read_array(path, key, missing):
    """A stack saved by NumPy."""
    found = _load(path, key)
    if (
        found.dtype.kind not in "uif"
        or found.ndim not in (3, 4)
        or found.shape[3:] not in ((), (3,))
    ):
        raise BadInput(
            f"{path} is no (n, height, width) or (n, height, width, 3) array of numbers: its shape "
            f"is {found.shape}, of {found.dtype}"
        )
    rows = found.reshape(len(found), -1).astype(float)
    if missing is not None:
        rows[rows == missing] = np.nan
    if not np.any(np.isfinite(rows)):
        raise BadInput(f"all pixels of {path} are missing")
    digits = len(f"{len(rows) - 1}")
    names = [f"{i:0{digits}d}" for i in range(len(rows))]
    return Stack(rows, found.shape[1:], names, np.nanmin(rows), np.nanmax(rows))


def _load(path, key):
    try:
        found = np.load(path)
    except (OSError, ValueError, EOFError) as error:
        raise BadInput(f"cannot read {path}: {error}") from error
    if not isinstance(found, np.lib.npyio.NpzFile):
        return found
    with found as file:
        if key is None and len(file.files) != 1:
            raise BadInput(f"{path} holds {', '.join(file.files)}: choose one by --key")
        key = key or file.files[0]
        if key not in file.files:
            raise BadInput(f"{path} holds {', '.join(file.files)}, not {key}")
        return file[key]


def with_mask(stack, path):
    """The images without what a mask, or a folder of masks, does not leave."""
    check_is_there(path)
    rows, missing = stack.rows.copy(), None
    for i, name in enumerate(stack.names):
        if path.is_dir():
            found = sorted(path.glob(f"{name}.*"))
            if len(found) != 1:
                raise BadInput(f"{path} must hold one mask {name}, and has {len(found)}")
            missing = read_mask(found[0], stack.shape, "the images")
        elif missing is None:
            missing = read_mask(path, stack.shape, "the images")
        rows[i].reshape(stack.shape)[missing] = np.nan
    return Stack(rows, stack.shape, stack.names, stack.low, stack.high)


def model(low, high, **options):
    """The network of a table of images whose pixels are between two values.

    Options are those of `CIBPBeliefNet`.
    """
    from skbnp.cibp_belief_net import CIBPBeliefNet

    return CIBPBeliefNet(feature_bounds=(low, high), max_layers=1, row_clusters=True, **options)
