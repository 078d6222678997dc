"""Files of plain data: a JSON document beside arrays in one npz archive. No pickle, no code.

The archive is stored without compression, so that nothing in it can be larger than the file.
``document.json`` holds a tree of values; the numbers of its arrays stand in ``float64.npy``,
``uint8.npy`` and so on, one after the other in the order in which the tree names them.
"""

import dataclasses
import errno
import json
import os
import shutil
import socket
import time
import zipfile
from contextlib import contextmanager, suppress
from numbers import Integral, Real
from pathlib import Path
from uuid import uuid4

import numpy as np

from skbnp._version import __version__

# Raised when a file written by this code cannot be read by the code before it.
FORMAT_VERSION = 2

_DOCUMENT = "document.json"
_A_DAY = 86_400.0  # seconds
# On Windows ``os.kill`` with 0 sends Ctrl-C, and with any other number it kills.
_CAN_ASK = os.name == "posix"
# Bool, integers, floats up to 64 bits, text, times; never objects.
_KINDS = "biufUSMm"


class FileFormatError(ValueError):
    """A file is damaged, foreign, or written by a newer version."""


def write(path, kind, content, types=()):
    """Write data to a file, all of it or nothing.

    Parameters
    ----------
    path : str or Path
        An older file stays as it is until the new one is complete and on the disk.
    kind : str
        What the file holds; `read` insists on it.
    content : tree
        None, bool, int, float, str, Path, arrays, NumPy scalars, RandomState, and lists, tuples
        and dicts of such; objects of `types`.
    types : iterable of type
        Dataclasses, or classes with ``to_data()`` and ``from_data(data)``, that may occur.

    Raises
    ------
    TypeError
        If something in `content` is no data.
    OSError
        If the file cannot be written; nothing is left behind.
    """
    path = Path(path)
    arrays = {}
    document = {
        "format": "skbnp",
        "version": FORMAT_VERSION,
        "library": __version__,
        "kind": kind,
        "content": _encode(content, arrays, _by_name(types)),
    }
    document = json.dumps(document).encode()
    with _replacing(path) as file:
        _write_archive(file, document, arrays)


def check_writable(path):
    """Try to write beside a file, without touching it.

    Parameters
    ----------
    path : str or Path

    Raises
    ------
    OSError
        If nothing can be written there.
    """
    with suppress(_NotNow), _replacing(Path(path)) as file:
        file.write(bytes(1 << 16))
        file.flush()
        os.fsync(file.fileno())
        raise _NotNow


class _NotNow(Exception):
    """Leave `_replacing` without replacing anything."""


@contextmanager
def _replacing(path):
    """A file to write, which takes the place of the one at path at the end.

    Where that is a link, of the file it leads to; who may read and write it stays as it was.
    """
    path = Path(os.path.realpath(path))
    unfinished = path.with_name(f".{path.name}.{socket.gethostname()}-{os.getpid()}-{uuid4().hex}")
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise OSError(errno.EINVAL, "there is something that is no file")
        with open(unfinished, "xb") as file:
            if path.is_file():
                shutil.copymode(path, unfinished)
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
        _sync_directory(path.parent)
    except OSError as error:
        reason = error.strerror or str(error)
        raise type(error)(error.errno, f"cannot write the file: {reason}", str(path)) from error
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


def remove_unfinished(path):
    """Remove what writers of this file left behind when they were killed.

    Those of other machines, or with a process of the same number, are taken for dead after a day;
    on Windows all are.

    Parameters
    ----------
    path : str or Path
    """
    path = Path(os.path.realpath(path))
    here = f".{path.name}.{socket.gethostname()}-"
    for unfinished in path.parent.glob(f".{path.name}.*"):
        process = unfinished.name.rsplit("-", 2)[-2:][0]
        was_here = unfinished.name.startswith(here) and process.isdigit()
        with suppress(OSError):
            is_old = time.time() - unfinished.stat().st_mtime > _A_DAY
            if is_old or (was_here and not _is_alive(int(process))):
                unfinished.unlink()


def read(path, kind, types=(), may_hold=None):
    """Read what `write` has written.

    Parameters
    ----------
    path : str or Path
    kind : str
    types : iterable of type
        As for `write`. No other class is ever made, whatever the file says.
    may_hold : dict of str to tuple of float, default=None
        By key of a dict or name of a field which of NaN, inf and -inf the numbers below it may
        be; all others must be finite. None: all numbers may be anything.

    Returns
    -------
    content : tree
        Arrays are new and writeable.

    Raises
    ------
    FileFormatError
        If the file is damaged, holds something else or comes from a newer version.
    OSError
        If it cannot be opened.
    """
    path = Path(path)
    try:
        with zipfile.ZipFile(path) as archive:
            document = _read_document(archive, path, kind)
            pending = {}
            content = _decode(document["content"], pending, _by_name(types))
            for name, arrays in pending.items():
                _fill(archive, name, arrays)
            if may_hold is not None:
                _refuse_non_finite(content, may_hold)
            return _finished(content)
    except (FileFormatError, ImportError):  # a frame may need its library
        raise
    except Exception as error:  # whatever is wrong inside, the file is at fault
        # A member may claim to begin before the file does: an invalid argument to the system.
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise
        reason = str(error) or type(error).__name__
        raise FileFormatError(f"{path} is damaged or was not written by skbnp: {reason}") from error


def _by_name(types):
    return {cls.__name__: cls for cls in types}


# -- the archive


def _write_archive(file, document, arrays):
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, parts in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                dtype = parts[0].dtype
                header = {
                    "descr": np.lib.format.dtype_to_descr(dtype),
                    "fortran_order": False,
                    "shape": (sum(part.size for part in parts),),
                }
                np.lib.format.write_array_header_1_0(member, header)
                for part in parts:
                    member.write(part.reshape(-1).view(np.uint8).data)
        # A ZipInfo has the same date whenever it is made: equal contents make equal files.
        archive.writestr(zipfile.ZipInfo(_DOCUMENT), document)


def _read_document(archive, path, kind):
    infos = archive.infolist()
    if any(info.compress_type != zipfile.ZIP_STORED for info in infos):
        raise ValueError("it is compressed")
    if sum(info.file_size for info in infos) > path.stat().st_size:
        raise ValueError("it claims to hold more than there is")
    document = json.loads(archive.read(_DOCUMENT))
    if document["format"] != "skbnp":
        raise ValueError(f"its format is {document['format']!r}")
    if document["version"] > FORMAT_VERSION:
        raise FileFormatError(
            f"{path} was written by a newer skbnp ({document['library']}, file format "
            f"{document['version']}); this one, {__version__}, reads up to format "
            f"{FORMAT_VERSION}: upgrade skbnp"
        )
    if document["kind"] != kind:
        raise FileFormatError(f"{path} holds a {document['kind']}, not a {kind}")
    return document


def _fill(archive, name, arrays):
    """Read the numbers of these arrays, given by their dtype and shape, in order."""
    with archive.open(f"{name}.npy") as member:
        version = np.lib.format.read_magic(member)
        if version != (1, 0):
            raise ValueError(f"{name}.npy has the unknown version {version}")
        shape, _, dtype = np.lib.format.read_array_header_1_0(member)
        if dtype.kind not in _KINDS or dtype.itemsize == 0 or dtype.hasobject:
            raise ValueError(f"{name}.npy holds {dtype}")
        # Before any room is made: what the document asks for must be in the file.
        n = sum(array.size_asked for array in arrays)
        if shape != (n,) or n * dtype.itemsize > archive.getinfo(f"{name}.npy").file_size:
            raise ValueError(f"{name}.npy holds {shape} values instead of {n}")
        # No values take no room, but a list of as many rows does.
        if any(max(array.shape, default=0) > archive.start_dir for array in arrays):
            raise ValueError(f"an array of {name}.npy has more rows than the file has bytes")
        for array in arrays:
            array.value = np.empty(array.shape, dtype)
            room = memoryview(array.value.reshape(-1).view(np.uint8))
            while len(room):
                n_read = member.readinto(room)
                if not n_read:
                    raise ValueError(f"{name}.npy ends too early")
                room = room[n_read:]
            if dtype.kind == "b" and np.any(array.value.view(np.uint8) > 1):
                raise ValueError(f"{name}.npy holds bytes that are neither 0 nor 1")
        if member.read(1):  # reads to the end, where the checksum is compared
            raise ValueError(f"{name}.npy is too long")


def _sync_directory(directory):
    """Make a rename survive a loss of power."""
    with suppress(OSError):  # not every file system can
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _is_alive(process):
    """Whether there is such a process, or nobody can say."""
    if not _CAN_ASK:
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


# -- the tree
#
# What JSON has no word for is a dict with one key that begins with a dollar sign.


class _Pending:
    """An array whose numbers are still to be read."""

    def __init__(self, shape):
        if not all(isinstance(n, int) and n >= 0 for n in shape):
            raise ValueError(f"an array has the shape {shape}")
        self.shape = tuple(shape)
        self.size_asked = int(np.prod(shape, dtype=object)) if shape else 1
        self.value = None


def _encode(value, arrays, types):
    """The value as JSON; the numbers of its arrays go to the lists of ``arrays``."""

    def encode(value):
        return _encode(value, arrays, types)

    if value is None or isinstance(value, (bool, str)) and not isinstance(value, np.generic):
        return value
    if isinstance(value, np.generic):
        return {"$scalar": encode(np.asarray(value))}
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    if isinstance(value, np.ndarray):
        return _encode_array(value, arrays, encode)
    if type(value) is list:
        return [encode(item) for item in value]
    if type(value) is tuple:
        return {"$tuple": [encode(item) for item in value]}
    if type(value) is dict:
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: encode(item) for key, item in value.items()}
        return {"$dict": [[encode(key), encode(item)] for key, item in value.items()]}
    if isinstance(value, Path):
        return {"$path": str(value)}
    if isinstance(value, np.random.RandomState):
        state = value.get_state(legacy=False)
        if state["bit_generator"] == "MT19937":  # not one made of another bit generator
            return {"$random_state": encode(state)}
    name = type(value).__name__
    if types.get(name) is type(value):
        return {"$object": [name, encode(as_data(value))]}
    if hasattr(value, "__array__"):  # a Series where an array-like may stand
        return encode(np.asarray(value))
    raise TypeError(f"cannot be saved as data: {value!r} of type {type(value).__name__}")


def _encode_array(array, arrays, encode):
    if array.dtype.kind == "O":
        return {"$objects": [list(array.shape), [encode(item) for item in array.ravel()]]}
    if array.dtype.kind not in _KINDS or array.dtype.itemsize > 8 and array.dtype.kind == "f":
        raise TypeError(f"cannot be saved as data: an array of {array.dtype}")
    if array.dtype.itemsize == 0:  # empty strings, which npy widens
        array = array.astype(array.dtype.kind + "1")
    dtype = array.dtype.newbyteorder("=")
    arrays.setdefault(dtype.name, []).append(np.ascontiguousarray(array, dtype))
    return {"$array": [dtype.name, list(array.shape)]}


def as_data(value):
    """What an object is made of: its ``to_data()``, or the fields of a dataclass; else None."""
    if hasattr(value, "to_data"):
        return value.to_data()
    if not dataclasses.is_dataclass(value):
        return None
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


@dataclasses.dataclass
class _Making:
    """Something that can be made once all arrays have been read."""

    make: object
    of: object


def _decode(node, pending, types):
    """The tree with `_Pending` for arrays and `_Making` for what is made of them."""

    def decode(node):
        return _decode(node, pending, types)

    if isinstance(node, list):
        return [decode(item) for item in node]
    if not isinstance(node, dict):
        return node
    tag = next(iter(node), "")
    if not tag.startswith("$"):
        return {key: decode(item) for key, item in node.items()}
    (body,) = node.values()
    if tag == "$array":
        name, shape = body
        if not isinstance(name, str) or not name.replace("[", "").replace("]", "").isalnum():
            raise ValueError(f"an array has the name {name!r}")
        array = _Pending(shape)
        pending.setdefault(name, []).append(array)
        return array
    if tag == "$object":
        name, fields = body
        if name not in types:
            raise ValueError(f"it asks for an object of the type {name!r}")
        return _Making(lambda fields: _from_data(types[name], fields), decode(fields))
    makers = {
        "$tuple": tuple,
        "$dict": dict,
        "$path": Path,
        "$scalar": lambda array: array[()],
        "$objects": lambda shape_and_items: _object_array(*shape_and_items),
        "$random_state": _random_state,
    }
    if tag not in makers:
        raise ValueError(f"it asks for the unknown {tag!r}")
    return _Making(makers[tag], decode(body))


def _refuse_non_finite(node, may_hold, names=()):
    """Raise a ValueError for numbers that are not finite where none may be.

    Looks at the tree before objects are made: many draws still are a few long arrays.
    """
    if isinstance(node, dict):
        for name, item in node.items():
            _refuse_non_finite(item, may_hold, (*names, name))
    elif isinstance(node, list):
        for item in node:
            _refuse_non_finite(item, may_hold, names)
    elif isinstance(node, _Making):
        _refuse_non_finite(node.of, may_hold, names)
    else:
        value = node.value if isinstance(node, _Pending) else node
        if isinstance(value, float) or isinstance(value, np.ndarray) and value.dtype.kind == "f":
            value = np.asarray(value)
            found = value[~np.isfinite(value)]
            allowed = next((may_hold[name] for name in names if name in may_hold), ())
            for number in allowed:
                found = found[~((found == number) | (np.isnan(found) & np.isnan(number)))]
            if found.size:
                raise ValueError(f"{'.'.join(map(str, names))} holds {found[0]}")


def _finished(node):
    if isinstance(node, list):
        return [_finished(item) for item in node]
    if isinstance(node, dict):
        return {key: _finished(item) for key, item in node.items()}
    if isinstance(node, _Pending):
        return node.value
    if isinstance(node, _Making):
        return node.make(_finished(node.of))
    return node


def _from_data(cls, data):
    return cls.from_data(data) if hasattr(cls, "from_data") else cls(**data)


def _object_array(shape, items):
    array = np.empty(len(items), dtype=object)
    for place, item in enumerate(items):
        array[place] = item
    return array.reshape(shape)


def _random_state(state):
    random_state = np.random.RandomState(0)
    position = state["state"]["pos"]
    if not 0 <= position <= 624:  # NumPy takes any, and reads there
        raise ValueError(f"a random state has the position {position}")
    random_state.set_state(state)
    return random_state


# -- many small dicts


def pack(draws):
    """Columns instead of rows: a list of dicts of arrays and numbers as a few long arrays.

    Parameters
    ----------
    draws : list of dict
        Keys, and shapes and dtypes of arrays, may differ from dict to dict.

    Returns
    -------
    packed : dict
        For `unpack`; of plain data.

    Raises
    ------
    TypeError
        If a value is neither an array nor a number.
    """
    columns = {}
    for name in dict.fromkeys(name for draw in draws for name in draw):
        column = _pack_column(name, [draw[name] for draw in draws if name in draw])
        missing = [t for t, draw in enumerate(draws) if name not in draw]
        columns[name] = column | ({"missing": missing} if missing else {})
    return {"n_draws": len(draws), "columns": columns}


def _pack_column(name, values):
    if all(type(value) is float for value in values):
        return {"float": np.array(values)}
    if all(type(value) is int for value in values):
        return {"int": values}
    for value in values:
        if not isinstance(value, np.ndarray) or value.dtype.kind not in _KINDS:
            raise TypeError(f"{name!r} of a draw must be an array or a number, got {value!r}")
    kinds = sorted({(value.dtype.str, value.ndim) for value in values})
    kind = np.array([kinds.index((value.dtype.str, value.ndim)) for value in values], np.uint8)
    parts = []
    for k, (_, ndim) in enumerate(kinds):
        of_kind = [value for value, t in zip(values, kind, strict=True) if t == k]
        parts.append(
            {
                "shape": np.array([x.shape for x in of_kind], int).reshape(len(of_kind), ndim),
                "flat": np.concatenate([value.reshape(-1) for value in of_kind]),
            }
        )
    return {"kind": kind, "parts": parts}


def unpack(packed):
    """The list of dicts again.

    Parameters
    ----------
    packed : dict
        What `pack` has returned.

    Returns
    -------
    draws : list of dict
        Each array owns its numbers.
    """
    n_draws = packed["n_draws"]
    if type(n_draws) is not int or n_draws < 0:
        raise ValueError(f"the number of draws is {n_draws!r}")
    if n_draws and not packed["columns"]:
        raise ValueError("draws hold nothing")
    columns = {}
    for name, column in packed["columns"].items():
        missing, values = set(column.get("missing", ())), _unpack_column(column)
        # Before a list of so many draws is made: the number may be anything.
        if len(values) + len(missing) != n_draws:
            raise ValueError(f"a column is not of {n_draws} draws")
        columns[name] = missing, values
    draws = [{} for _ in range(n_draws)]
    for name, (missing, values) in columns.items():
        holders = [draw for t, draw in enumerate(draws) if t not in missing]
        if len(values) != len(holders):
            raise ValueError("a column is missing from draws that there are not")
        for draw, value in zip(holders, values, strict=True):
            draw[name] = value
    return draws


def _unpack_column(column):
    if "float" in column:
        return column["float"].astype(np.float64).tolist()
    if "int" in column:
        return [int(value) for value in column["int"]]
    parts = [_split(part["flat"], part["shape"]) for part in column["parts"]]
    values = [next(parts[k]) for k in column["kind"]]
    if any(True for part in parts for _ in part):
        raise ValueError("a part has too many arrays")
    return values


def _split(flat, shapes):
    """Copies of consecutive stretches of a flat array."""
    start = 0
    for shape in shapes.tolist():
        size = int(np.prod(shape, dtype=object)) if shape else 1
        if size < 0 or start + size > flat.size:
            raise ValueError("a part is too short")
        yield flat[start : start + size].reshape(shape).copy()
        start += size
    if start != flat.size:
        raise ValueError("a part is too long")
