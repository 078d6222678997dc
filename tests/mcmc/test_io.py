"""Files of data: what goes in comes out, and what somebody has tampered with is refused."""

import json
import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

from skbnp.mcmc import Posterior, io

EXECUTED = []


class Trap:
    """Leaves a trace when it is unpickled."""

    def __reduce__(self):
        return EXECUTED.append, ("code from the file",)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "file.skbnp"


def there_and_back(path, content):
    io.write(path, "thing", content)
    return io.read(path, "thing")


def assert_same(one, other):
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
    np.testing.assert_equal(one, other)


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, False, 0, -(2**70), 1.5, -0.0, np.inf, np.nan, 5e-324, "", "ü\ud800\0"),
        *([], (), {}, [()], ([], {}), {"a": (1, [2, {"b": None}])}, {"$a": 1}, {1: 2, (1, 2): "x"}),
        *(Path("a/b"), {"": 0}, {"$array": ["float64", [1]]}, [[["deep"]]]),
        *(np.float32(1.5), np.int8(-3), np.bool_(True), np.str_("text"), np.datetime64("2020-01")),
    ],
    ids=repr,
)
def test_values(path, value):
    assert_same(there_and_back(path, {"value": value})["value"], value)


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(()),
        np.zeros((0, 3)),
        np.zeros((3, 0), dtype=np.int8),
        np.arange(12.0).reshape(3, 4).T,
        np.arange(24)[::-2].reshape(3, 2, 2),
        np.array([True, False]),
        np.array([np.nan, -np.nan, -0.0, np.inf]),
        np.array(["a", "", "long"]),
        np.array([""]),
        np.array([b"a", b"bc"]),
        np.array(["2020-01-01", "NaT"], dtype="datetime64[ns]"),
        np.array([None, 1, "x", (1, 2), np.arange(2)], dtype=object),
        np.array([[None], [1.5]], dtype=object),
        np.arange(3, dtype=np.float16),
        np.arange(3, dtype=np.uint64) + 2**63,
    ],
    ids=lambda array: f"{array.dtype}{array.shape}",
)
def test_arrays(path, array):
    found = there_and_back(path, [array, {"again": array}])
    if array.dtype.kind == "O":
        assert found[0].shape == array.shape
        np.testing.assert_equal(found[0].tolist(), array.tolist())
        return
    wanted = np.array([""], dtype="U1") if array.dtype.itemsize == 0 else array
    for one in (found[0], found[1]["again"]):
        assert one.dtype == wanted.dtype
        assert one.tobytes() == wanted.tobytes()
        assert one.flags.writeable
        assert one.flags.owndata or one.base.flags.owndata


def test_byte_order_is_that_of_the_machine(path):
    assert_same(there_and_back(path, np.arange(3, dtype=">i4")), np.arange(3, dtype="=i4"))


def test_random_state_goes_on(path):
    random_state = np.random.RandomState(4)
    random_state.normal(size=3)
    found = there_and_back(path, {"x": random_state})["x"]
    np.testing.assert_array_equal(found.normal(size=700), random_state.normal(size=700))


@pytest.mark.parametrize(
    "value",
    [
        *(object(), len, Trap(), Trap, {1, 2}, 1j, b"bytes", np.zeros(2, dtype=complex)),
        *(np.zeros(2, dtype=[("a", int)]), np.array([object()]), np.zeros(2, np.longdouble)),
        *(np.random.default_rng(0), np.random.RandomState(np.random.PCG64(0)), [lambda: 0]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_data_is_refused_before_anything_is_written(path, value):
    path.write_text("older")
    with pytest.raises(TypeError, match="cannot be saved as data"):
        io.write(path, "thing", {"deep": [value]})
    assert path.read_text() == "older"
    assert list(path.parent.iterdir()) == [path]


def test_many_small_dicts():
    random = np.random.default_rng(0)
    draws = [
        {
            "x": random.normal(),
            "n": int(random.integers(9)),
            "scalar": np.array(float(t)),
            "label": np.zeros(t, dtype=np.uint8 if t < 3 else np.int32),
            "table": random.normal(size=(t % 3, 2)),
            "odd": np.zeros((2,) * (1 + t % 2)),
        }
        for t in range(7)
    ]
    found = io.unpack(io.pack(draws))
    assert len(found) == 7
    for one, other in zip(found, draws, strict=True):
        assert list(one) == list(other)
        for name in one:
            assert_same(one[name], other[name])
    assert io.unpack(io.pack([])) == []


def test_small_dicts_of_different_names():
    draws = [{"a": 1.0}, {"a": 2.0, "b": np.arange(3)}, {"a": 3.0}, {"b": np.zeros(1), "a": 4.0}]
    packed = io.pack(draws)
    assert packed["columns"]["b"]["missing"] == [0, 2]
    for one, other in zip(io.unpack(packed), draws, strict=True):
        assert one.keys() == other.keys()
        for name in one:
            assert_same(one[name], other[name])
    for missing in ([0], [0, 1, 2], [0, 4], [0, -1], ["a", "b"]):
        packed["columns"]["b"]["missing"] = missing
        with pytest.raises(ValueError, match="a column is"):
            io.unpack(packed)


def test_writing_leaves_the_older_file_until_the_end(path, monkeypatch):
    io.write(path, "thing", "older")
    before = path.read_bytes()

    def stop(*_):
        raise KeyboardInterrupt

    for function in ("fsync", "replace"):
        monkeypatch.setattr(os, function, stop)
        with pytest.raises(KeyboardInterrupt):
            io.write(path, "thing", "newer")
        monkeypatch.undo()
        assert path.read_bytes() == before
        assert list(path.parent.iterdir()) == [path]


# -- tampered files


def tamper(path, content, arrays=None, compression=zipfile.ZIP_STORED, **document):
    """Write a file as `io.write` does it, with anything in it."""
    document = {"format": "skbnp", "version": 1, "library": "0", "kind": "thing"} | document
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, array in (arrays or {}).items():
            with archive.open(f"{name}.npy", "w") as member:
                if isinstance(array, bytes):
                    member.write(array)
                else:
                    np.lib.format.write_array(member, array, version=(1, 0))
        archive.writestr("document.json", json.dumps(document | {"content": content}))


def header(text):
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


def random_state(position):
    state = {"key": {"$array": ["uint32", [624]]}, "pos": position}
    body = {"bit_generator": "MT19937", "state": state, "has_gauss": 0, "gauss": 0.0}
    return {"$random_state": body}


FLOATS = {"float64": np.arange(6.0)}
KEY = {"uint32": np.arange(624, dtype=np.uint32)}


@pytest.mark.parametrize(
    "content, arrays, message",
    [
        ({"$array": ["float64", [7]]}, FLOATS, "instead of 7"),
        ({"$array": ["float64", [5]]}, FLOATS, "instead of 5"),
        ({"$array": ["float64", [2**62, 2**62]]}, FLOATS, "instead of"),
        ({"$array": ["float64", [10**12]]}, FLOATS, "instead of"),
        ({"$array": ["float64", [-2, -3]]}, FLOATS, "shape"),
        ({"$array": ["float64", [6.0]]}, FLOATS, "shape"),
        ({"$array": ["float64", "6"]}, FLOATS, "shape"),
        ({"$array": ["float64", None]}, FLOATS, None),
        ({"$array": ["float32", [6]]}, FLOATS, "no item named"),
        ({"$array": ["../float64", [6]]}, FLOATS, "name"),
        ({"$array": [["float64"], [6]]}, FLOATS, "name"),
        ({"$array": ["float64"]}, FLOATS, None),
        ([{"$array": ["float64", [6]]}, {"$array": ["float64", [0, 10**12]]}], FLOATS, "more rows"),
        ({"$array": ["object", [1]]}, {"object": np.array([Trap()])}, "object"),
        ({"$array": ["x", [2]]}, {"x": header("{'descr': '<f8', 'fortran_order': False}")}, None),
        ({"$array": ["x", [2]]}, {"x": header("__import__('os').system('true')")}, None),
        ({"$array": ["x", [2]]}, {"x": b"\x93NUMPY\x02\x00"}, "version"),
        ({"$array": ["x", [2]]}, {"x": pickle.dumps([Trap()])}, None),
        ({"$array": ["x", [2]]}, {"x": np.array([(1, 2)] * 2, dtype="i4,i4")}, "holds"),
        ({"$array": ["x", [2]]}, {"x": np.array([2, 3], dtype=np.uint8).view(bool)}, "neither"),
        ({"$array": ["x", [3]]}, {"x": np.array([1j] * 3)}, "holds"),
        ({"$object": ["Trap", {}]}, {}, "an object of the type 'Trap'"),
        ({"$object": ["Posterior", {}]}, {}, "an object of the type 'Posterior'"),
        ({"$object": [["Trap"], {}]}, {}, None),
        ({"$call": ["os.system", "true"]}, {}, "unknown '\\$call'"),
        ({"$tuple": 3}, {}, None),
        ({"$tuple": [], "$dict": []}, {}, None),
        ({"$dict": [[[], 1]]}, {}, None),
        ({"$path": 3}, {}, None),
        ({"$scalar": 3}, {}, None),
        ({"$objects": [[3], [1]]}, {}, None),
        ({"$objects": [[-1, 0], [1]]}, {}, None),
        (random_state(625), KEY, "position 625"),
        (random_state(-1), KEY, "position -1"),
        (random_state(10**7), KEY, "position 10000000"),
        (random_state(None), KEY, None),
        ({"$random_state": {"bit_generator": "PCG64", "state": {"pos": 0}}}, {}, None),
    ],
)
def test_tampered_content(path, content, arrays, message):
    tamper(path, content, arrays)
    for _ in range(2):
        with pytest.raises(io.FileFormatError, match=message) as caught:
            io.read(path, "thing")
        assert str(path) in str(caught.value)
        content = {"deep": [content]}
        tamper(path, content, arrays)
    assert EXECUTED == []


@pytest.mark.parametrize(
    "document, message",
    [
        ({"version": 3, "library": "9.1"}, "newer skbnp \\(9.1, file format 3\\).*upgrade skbnp"),
        ({"version": "1"}, "damaged"),
        ({"kind": "posterior"}, "holds a posterior, not a thing"),
        ({"kind": None}, "holds a None, not a thing"),
        ({"format": "pickle"}, "its format is 'pickle'"),
    ],
)
def test_tampered_document(path, document, message):
    tamper(path, None, **document)
    with pytest.raises(io.FileFormatError, match=message):
        io.read(path, "thing")


def test_deep_nesting(path):
    for opening, closing in [("[", "]"), ('{"$tuple":[', "]}"), ('{"$dict":[[0,', "]]}")]:
        for depth in (900, 100_000):
            text = '{"format":"skbnp","version":1,"library":"0","kind":"thing","content":'
            with zipfile.ZipFile(path, "w") as archive:
                nested = opening * depth + "0" + closing * depth
                archive.writestr("document.json", text + nested + "}")
            with pytest.raises(io.FileFormatError, match="recursion"):
                io.read(path, "thing")


def test_bombs(path):
    zeros = {"float64": np.zeros(10**6)}
    tamper(path, {"$array": ["float64", [10**6]]}, zeros, zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 20_000
    with pytest.raises(io.FileFormatError, match="compressed"):
        io.read(path, "thing")
    # The same bytes under several names.
    tamper(path, {"$array": ["float64", [6]]}, {"float64": np.zeros(10**4)})
    with zipfile.ZipFile(path, "a") as archive:
        (first, *_) = archive.infolist()
        for name in ("a.npy", "b.npy"):
            again = zipfile.ZipInfo(name)
            for field in ("header_offset", "file_size", "compress_size", "CRC"):
                setattr(again, field, getattr(first, field))
            archive.filelist.append(again)
            archive.NameToInfo[name] = again
        archive._didModify = True
    with pytest.raises(io.FileFormatError, match="more than there is"):
        io.read(path, "thing")


@pytest.mark.parametrize(
    "content", [b"", b"\0" * 1000, b"PK\x05\x06" + bytes(18), pickle.dumps(Trap()), b"PK\x03\x04"]
)
def test_no_archives(path, content):
    path.write_bytes(content)
    with pytest.raises(io.FileFormatError, match="damaged or was not written by skbnp"):
        io.read(path, "thing")
    assert EXECUTED == []


def test_no_file(path):
    with pytest.raises(FileNotFoundError):
        io.read(path, "thing")
    path.mkdir()
    with pytest.raises(OSError, match="file.skbnp"):
        io.read(path, "thing")
    with pytest.raises(OSError, match="cannot write the file"):
        io.write(path, "thing", 1)
    assert list(path.parent.iterdir()) == [path]
    with pytest.raises(OSError, match="cannot write the file.*missing"):
        io.write(path / "missing" / "file", "thing", 1)


# -- posteriors


@pytest.fixture
def data():
    """What `Posterior.to_data` returns, and a file of it holds."""
    draws = [[{"x": np.arange(t), "y": 1.0, "n": 3} for t in range(4)] for _ in range(2)]
    return Posterior(draws, {"log_joint": np.zeros((2, 4))}).to_data()


def packed(data):
    return data["draws"][0]


SPOIL = {
    "claims many draws": lambda data: packed(data).update(n_draws=10**15),
    "claims fewer draws": lambda data: packed(data).update(n_draws=3),
    "negative number of draws": lambda data: packed(data).update(n_draws=-1),
    "no columns": lambda data: packed(data).update(columns={}),
    "column too short": lambda data: packed(data)["columns"]["n"]["int"].pop(),
    "column of text": lambda data: packed(data)["columns"]["n"].update(int=["a"] * 4),
    "floats of two dimensions": lambda data: packed(data)["columns"]["y"].update(
        float=np.zeros((2, 2))
    ),
    "kind of no part": lambda data: packed(data)["columns"]["x"]["kind"].__setitem__(0, 7),
    "part too short": lambda data: packed(data)["columns"]["x"]["parts"][0].update(
        flat=np.zeros(3, int)
    ),
    "part too long": lambda data: packed(data)["columns"]["x"]["parts"][0].update(
        flat=np.zeros(9, int)
    ),
    "negative shape": lambda data: packed(data)["columns"]["x"]["parts"][0]["shape"].__setitem__(
        0, -1
    ),
    "no parts": lambda data: packed(data)["columns"]["x"].update(parts=[]),
    "one chain missing": lambda data: data["draws"].pop(),
    "trace too short": lambda data: data["traces"]["log_joint"].__setitem__(0, np.zeros(2)),
    "trace of text": lambda data: data["traces"].update(x=["ab", "cd"]),
    "no log joint": lambda data: data.update(traces={"x": [np.zeros(4)] * 2}),
    "store_every of zero": lambda data: data.update(store_every=0),
    "store_every of text": lambda data: data.update(store_every="1"),
    "ends of one chain": lambda data: data.update(ends=[{}]),
    "unknown attribute": lambda data: data.update(attach_rows=1),
    "nothing": lambda data: data.clear(),
    "acceptance of one number": lambda data: data.update(acceptance={"walk": 3}),
}


@pytest.mark.parametrize("how", SPOIL)
def test_tampered_posteriors(path, data, how):
    io.write(path, "posterior", data)
    assert len(Posterior.load(path)) == 8
    SPOIL[how](data)
    io.write(path, "posterior", data)
    with pytest.raises(io.FileFormatError, match=path.name):
        Posterior.load(path)


@pytest.mark.skipif(os.name != "posix", reason="modes, links and pipes of POSIX")
def test_what_is_replaced_keeps_its_kind(path, tmp_path):
    io.write(path, "thing", 1)
    path.chmod(0o600)
    link = tmp_path / "link.skbnp"
    link.symlink_to(path.name)
    io.write(link, "thing", 2)
    assert link.is_symlink() and io.read(path, "thing") == 2
    assert path.stat().st_mode & 0o777 == 0o600
    pipe = tmp_path / "pipe.skbnp"
    os.mkfifo(pipe)
    for refuses in (lambda: io.write(pipe, "thing", 3), lambda: io.check_writable(pipe)):
        with pytest.raises(OSError, match="cannot write the file: there is something that is no"):
            refuses()
    assert pipe.is_fifo() and sorted(tmp_path.iterdir()) == sorted([path, link, pipe])
