"""Pictures in and out, as arrays of pixels."""

import numpy as np

from skbnp.command_line.arguments import check_is_there
from skbnp.command_line.errors import BadInput


def read(path):
    """A picture and which of its pixels are missing.

    Parameters
    ----------
    path : Path
        A picture, or an array saved by NumPy with values from 0 to 1.

    Returns
    -------
    picture : ndarray of shape (height, width, n_channels)
        From 0 to 1; one channel if it is grey, otherwise three.
    transparent : ndarray of bool of shape (height, width)
        Pixels that are fully transparent.
    """
    check_is_there(path)
    try:
        found = np.load(path) if path.suffix.lower() == ".npy" else _image().imread(path)
    except (OSError, ValueError, SyntaxError) as error:  # the last is Pillow's
        raise BadInput(f"cannot read {path}: {error}") from error
    if found.ndim == 2:
        found = found[:, :, np.newaxis]
    if found.dtype.kind not in "uif" or found.ndim != 3 or found.shape[2] not in (1, 3, 4):
        raise BadInput(
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


def _image():
    import matplotlib.image  # it takes seconds

    return matplotlib.image


def read_mask(path, shape, of):
    """Where a picture of a given size is not black, (height, width).

    Parameters
    ----------
    path : Path
    shape : tuple of int
        Height and width that it must have.
    of : str
        Whose size that is, for messages.
    """
    mask, _ = read(path)
    if mask.shape[:2] != shape[:2]:
        raise BadInput(
            f"{path} must have the size of {of}, {size_of(shape)}, and has {size_of(mask.shape)}"
        )
    return np.any(mask > 0, axis=2)


def size_of(shape):
    """In words."""
    return f"{shape[1]} x {shape[0]} pixels"


def write(picture, path):
    """Write a picture in the format that the name says, values beyond 0 and 1 cut off.

    Parameters
    ----------
    picture : ndarray of shape (height, width, n_channels)
    path : Path
        An array of NumPy, with all values as they are, if it ends in .npy.
    """
    try:
        if path.suffix.lower() == ".npy":
            np.save(path, picture.squeeze())
        else:
            three = np.repeat(picture, 3, axis=2) if picture.shape[2] == 1 else picture
            _image().imsave(path, np.clip(three, 0.0, 1.0))
    except OSError as error:
        raise BadInput(f"cannot write {path}: {error}") from error
