"""Files from which an interrupted run goes on with exactly the draws it would have made."""

import errno
import hashlib
import json
import time
from numbers import Real
from pathlib import Path

import numpy as np

from skbnp._version import __version__
from skbnp.mcmc import io
from skbnp.mcmc.caller import warn
from skbnp.mcmc.posterior import Posterior


class Checkpoint:
    """The file of one run: what has been drawn and where every chain stands.

    Its name is made of the model's name and a digest of the fingerprint, so that any number of
    fits, cross-validation folds and grid points share a directory. A file is replaced only by
    one that is complete and on the disk.

    Parameters
    ----------
    directory : str or Path
        Made if it is not there.
    fingerprint : dict of str to str
        All that shapes the chains, by name, each as `digest` has it; "model" as it is.
    every : float, default=60.0
        Seconds between two writes.

    Attributes
    ----------
    path : Path
    """

    def __init__(self, directory, fingerprint, every=60.0):
        self.fingerprint = dict(fingerprint)
        self.every = every
        name = f"{self.fingerprint['model']}-{digest(self.fingerprint)[:32]}.skbnp"
        self.path = _checked(directory) / name
        self._last = time.monotonic()
        self._failed = False
        self._has_begun = False

    def load(self, may_hold=None):
        """What an earlier run has left.

        Parameters
        ----------
        may_hold : dict of str to tuple of float, default=None
            As for `skbnp.mcmc.io.read`: where numbers need not be finite.

        Returns
        -------
        posterior : Posterior or None
            None if there is no file yet.

        Raises
        ------
        skbnp.mcmc.io.FileFormatError
            If there is one but not of this run, damaged, or from a newer version.
        """
        try:
            content = io.read(self.path, "checkpoint", may_hold=may_hold)
        except FileNotFoundError:
            return None
        except io.FileFormatError as error:
            raise io.FileFormatError(
                f"{error}. Remove the file or name another checkpoint directory to start anew"
            ) from error
        try:
            found = content["fingerprint"]
            others = [name for name in self.fingerprint | found if name not in ("library",)]
            others = [name for name in others if found.get(name) != self.fingerprint.get(name)]
            library = content["library"]
            posterior = None if others else Posterior.from_data(content["posterior"])
        except Exception as error:  # the file is at fault, whatever it is
            raise io.FileFormatError(f"{self.path} is damaged: {error}") from error
        if others:
            raise io.FileFormatError(
                f"{self.path} belongs to another run, which differs in {', '.join(others)}. Remove "
                "the file or name another checkpoint directory to start anew"
            )
        if library != __version__:
            warn(
                f"{self.path} was written by skbnp {library}; the draws that {__version__} adds "
                "are valid, but may not be the ones it would have made alone",
            )
        return posterior

    def check(self, posterior, check_draw):
        """Make sure that nothing loaded can mislead a kernel.

        Parameters
        ----------
        posterior : Posterior
        check_draw : callable
            ``check_draw(draw)`` raises for a draw that the model cannot have made.

        Raises
        ------
        skbnp.mcmc.io.FileFormatError
        """
        try:
            if len(posterior.ends) != posterior.n_chains:
                raise ValueError("it does not say where its chains stand")
            for chain in posterior.all_draws():
                for draw in chain:
                    check_draw(draw)
        except Exception as error:
            raise io.FileFormatError(f"{self.path} is damaged: {error}") from error

    def begin(self):
        """Make sure, before any sampling, that the file can be written.

        Raises
        ------
        OSError
            If it cannot.
        """
        if self._has_begun:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            what = f"cannot make the checkpoint directory: {error.strerror}"
            raise type(error)(error.errno, what, str(self.path.parent)) from error
        io.remove_unfinished(self.path)
        io.check_writable(self.path)
        self._has_begun = True
        self._last = time.monotonic()

    def is_due(self):
        """Whether it is time for the next write.

        Returns
        -------
        is_due : bool
        """
        return time.monotonic() - self._last >= self.every

    def save(self, posterior):
        """Replace the file.

        Parameters
        ----------
        posterior : Posterior

        Warns
        -----
        UserWarning
            If it cannot be written. The older file stays, the draws in memory go on, and the
            next call tries again.
        """
        content = {
            "fingerprint": self.fingerprint,
            "library": __version__,
            "posterior": posterior.to_data(),
        }
        try:
            io.write(self.path, "checkpoint", content)
        except OSError as error:
            self._warn(error)
        else:
            self._failed = False
        self._last = time.monotonic()

    def _warn(self, error):
        # Once until a write succeeds: a disk that is full now will be so at the next interval.
        if not self._failed:
            older = "the file of an earlier write stays" if self.path.exists() else "there is none"
            warn(
                f"{error}. The chains go on and their draws stay in memory ({older}); the next "
                f"attempt is in {self.every:g} s",
            )
        self._failed = True


def _checked(directory):
    """The directory as a path, home directories written out."""
    if str(directory) == "":
        raise ValueError("checkpoint must name a directory, got ''")
    path = Path(directory).expanduser()
    if path.exists() and not path.is_dir():
        raise NotADirectoryError(
            errno.ENOTDIR, "checkpoint must be a directory, got a file", str(path)
        )
    return path


def digest(value):
    """A short name for data: equal values have equal ones.

    Numbers count by value, whatever their type; sequences and arrays by what they hold.

    Parameters
    ----------
    value : tree
        None, str, numbers, arrays, sequences, dicts and dataclasses of such, and objects that
        have ``to_data()``.

    Returns
    -------
    digest : str
        64 hexadecimal digits.
    """
    return hashlib.sha256(json.dumps(_canonical(value)).encode()).hexdigest()


def _canonical(value):
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, Real):
        return float(value).hex() if float(value) == value else str(value)
    if isinstance(value, dict):
        return {"dict": sorted(([_canonical(k), _canonical(v)] for k, v in value.items()), key=str)}
    data = io.as_data(value)
    if data is not None:
        return [type(value).__name__, _canonical(data)]
    if not (hasattr(value, "__array__") or isinstance(value, (list, tuple))):
        raise TypeError(f"nothing to tell runs apart by: {value!r} of {type(value).__name__}")
    try:
        array = np.asarray(value)
    except ValueError:  # rows of different lengths
        return [_canonical(item) for item in value]
    if array.dtype.kind in "iuf":
        return _digest_floats(array)
    return [_canonical(item) for item in array.tolist()]


def _digest_floats(array):
    """Digest of a numeric array of any size, row by row; every NaN is the same."""
    found = hashlib.sha256(str(array.shape).encode())
    for start in range(0, len(array) if array.ndim else 1, 4096):
        rows = np.array(array[start : start + 4096] if array.ndim else array, np.float64)
        rows[np.isnan(rows)] = np.nan
        found.update(rows.tobytes())
    return found.hexdigest()
