"""Room that kernels fill: how it grows, and that it is never None."""

import re
from pathlib import Path

import numpy as np
from numpy.testing import assert_array_equal

from skbnp.numerics.buffers import longer

PACKAGE = Path(__file__).resolve().parents[2] / "skbnp"
KERNELS = sorted([*PACKAGE.rglob("*.pyx"), *PACKAGE.rglob("*.pxd")])


def declared(source):
    """Names that the source declares as memoryviews: a type, its axes in brackets, names."""
    for line in source.splitlines():
        kind, bracket, names = line.partition("[:")
        axes, closed, names = names.partition("] ")
        if bracket and closed and re.fullmatch(r"[\w ]+", kind) and set(axes) <= set(":, 1"):
            yield from re.findall(r"\w+", names.partition("#")[0])


def folder_of(path):
    """The folder of the package that a kernel is in."""
    return path.relative_to(PACKAGE).parts[0]


def test_longer_keeps_what_there_was_and_its_type():
    old = np.array([[1, 2], [3, 4]], dtype=np.int32)
    new = longer(old, (3, 2))
    assert new.dtype == old.dtype
    assert_array_equal(new, [[1, 2], [3, 4], [0, 0]])
    assert_array_equal(longer(np.zeros((0, 0)), (2, 3)), np.zeros((2, 3)))


def test_no_memoryview_of_an_object_is_none():
    # One that was never set is not None to Cython, and in a build with checks is an error.
    sources = {path: path.read_text(encoding="utf-8") for path in KERNELS}
    names = {}  # of each folder of the package: one may call an object as another an array
    for path, source in sources.items():
        names.setdefault(folder_of(path), set()).update(declared(source))
    assert sum(map(len, names.values())) > 100
    wrong = [
        f"{path.relative_to(PACKAGE)}: {line.strip()}"
        for path, source in sources.items()
        for line in source.splitlines()
        if re.search(r"self\.\w+ is (not )?None|^ +(self\.\w+ = )+None$", line)
        and names[folder_of(path)].intersection(re.findall(r"self\.(\w+)(?: =| is)", line))
    ]
    assert wrong == []
