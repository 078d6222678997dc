"""Files that are damaged, and files that somebody has forged: refused, or nothing has changed."""

import shutil
import tempfile
import warnings
import zlib
from functools import cache
from pathlib import Path

import numpy as np

from checks.answers import answers, difference, draws
from checks.watched import table_with_holes
from contract.registry import DEFAULTS
from fuzz.oracle import said
from skbnp.mcmc import NonFiniteLogJointError, io

SETTINGS = {setting.kind.__name__: setting for setting in DEFAULTS}
# Half of the run is in the checkpoint.
BEGUN, WHOLE = {"n_draws": 2}, {"n_draws": 4}


@cache
def _table(name):
    X = table_with_holes(20)
    return X if SETTINGS[name].takes_holes else np.nan_to_num(X)


@cache
def _directory():
    """Where the whole files of this process are."""
    return Path(tempfile.mkdtemp())


@cache
def _whole_file(name):
    """A saved estimator: where it is, and what it says."""
    path = _directory() / f"{name}.skbnp"
    estimator = _fit(name).save(path)
    return path, answers(estimator, _table(name))


@cache
def _whole_checkpoint(name):
    """A checkpoint of half a run: where it is, and the draws of the whole run."""
    directory = _directory() / f"{name} begun"
    _fit(name, checkpoint=directory, **BEGUN)
    (path,) = directory.iterdir()
    return path, draws(_fit(name, **WHOLE))


def _fit(name, **changes):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SETTINGS[name].fit(_table(name), **changes)


def _random(name, seed):
    return np.random.default_rng([zlib.crc32(name.encode()), seed])


# -- damage


def damaged_file(name, seed):
    """What is wrong after one random damage to a saved estimator."""
    path, expected = _whole_file(name)
    damaged = path.with_name("damaged.skbnp")
    damaged.write_bytes(_damaged(_random(name, seed), path.read_bytes()))
    return _loaded(name, damaged, expected)


def damaged_checkpoint(name, seed):
    """What is wrong after one random damage to a checkpoint."""
    path, expected = _whole_checkpoint(name)
    return _gone_on(name, path, _damaged(_random(name, seed), path.read_bytes()), expected)


def _damaged(random, content):
    content = bytearray(content)
    place = int(random.integers(len(content)))
    how = random.integers(6)
    if how <= 1:
        content[place] ^= 1 << int(random.integers(8))
    elif how == 2:
        content[place : place + 8] = random.bytes(8)
    elif how == 3:
        del content[place:]
    elif how == 4:
        del content[place : place + int(random.integers(1, 200))]
    else:
        content[place:place] = random.bytes(int(random.integers(1, 200)))
    return bytes(content)


# -- forgery


def forged_file(name, seed):
    """What is wrong after a saved estimator was changed and written anew."""
    path, _ = _whole_file(name)
    kind = SETTINGS[name].kind
    types = kind._types_in_files()
    content = io.read(path, f"fitted {name}", types)
    forged = path.with_name("forged.skbnp")
    try:
        _forge(_random(name, seed), content)
        io.write(forged, f"fitted {name}", content, types)
    except (AttributeError, KeyError, TypeError, ValueError):
        return []  # nothing that can be written
    return _loaded(name, forged, None)


def forged_checkpoint(name, seed):
    """What is wrong after a checkpoint was changed and written anew."""
    path, _ = _whole_checkpoint(name)
    content = io.read(path, "checkpoint")
    _forge(_random(name, seed), content)
    forged = _directory() / "forged"
    io.write(forged, "checkpoint", content)
    return _gone_on(name, path, forged.read_bytes(), None)


def _forge(random, content):
    """Change one random leaf, or the name of one."""
    leaves = list(_leaves(content))
    holder, key = leaves[random.integers(len(leaves))]
    value = holder[key]
    if isinstance(holder, dict) and random.random() < 0.1:
        del holder[key]
        if random.random() < 0.5:
            holder[f"{key}x"] = value
    else:
        holder[key] = _another(random, value)


def _leaves(content):
    """Where all values are: (holder, key), one for each."""
    if hasattr(content, "__dict__") and not isinstance(content, np.ndarray):
        content = vars(content)
    places = content.items() if isinstance(content, dict) else ()
    places = enumerate(content) if isinstance(content, list) else places
    for key, value in places:
        if isinstance(value, dict | list) and value:
            yield from _leaves(value)
        elif hasattr(value, "__dict__") and not isinstance(value, np.ndarray):
            yield from _leaves(value)
        else:
            yield content, key


def _another(random, value):
    """A value that is not the given one."""
    if isinstance(value, np.ndarray):
        return _another_array(random, value)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | np.integer):
        return [-1, 0, value + 1, 2**31, 2**62, 1.5, None][random.integers(7)]
    if isinstance(value, float):
        return [np.nan, np.inf, -np.inf, 0.0, -value, 1e308, "1", None][random.integers(8)]
    if isinstance(value, str):
        return ["", value + "x", "gaussian", 3, None][random.integers(5)]
    return [None, -1, "x", np.zeros(3), [], {}][random.integers(6)]


def _another_array(random, value):
    how = random.integers(8)
    if how == 0:
        return value[:-1] if value.ndim else np.zeros(2)
    if how == 1:
        return np.concatenate([value, value[:1]]) if value.ndim else value[np.newaxis]
    if how == 2:
        return value[np.newaxis]
    if how == 3:
        return value.astype(random.choice(["float32", "int8", "bool", "float64"]))
    value = value.copy()
    if value.size and value.dtype.kind in "iufb":
        with np.errstate(all="ignore"):
            strange = np.array([-1, 0, 1, 2**31, 2**62, np.nan, np.inf, 1e300, -1e300])
            value.flat[random.integers(value.size)] = random.choice(strange).astype(value.dtype)
    return value


# -- what must come of it


def _loaded(name, path, expected):
    """Refused as a bad file; or, where the answers are known, they are the same."""
    kind, found = SETTINGS[name].kind, []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            estimator = kind.load(path)
        except io.FileFormatError:
            return found
        except Exception as error:
            return [f"load: {said(error)}"]
        try:
            given = answers(estimator, _table(name))
        except Exception as error:
            # A forger may write what nobody can ask for, but not what ends the process.
            return [f"loaded, then: {said(error)}"] if expected is not None else found
    if expected is not None and (other := difference(given, expected)):
        found.append(f"loaded with another {other}")
    return found


def _gone_on(name, path, content, expected):
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, path.name).write_bytes(content)
        try:
            given = draws(_fit(name, checkpoint=directory, **WHOLE))
        except (io.FileFormatError, ValueError, TypeError):
            return []  # by name, before any sampling
        except NonFiniteLogJointError as error:
            # A forger may write a state that no chain would reach.
            return [f"fit: {said(error)}"] if expected is not None else []
        except Exception as error:
            return [f"fit: {said(error)}"]
    if expected is not None and (other := difference(given, expected)):
        return [f"went on with another {other}"]
    return []


def remove_whole_files():
    shutil.rmtree(_directory(), ignore_errors=True)
