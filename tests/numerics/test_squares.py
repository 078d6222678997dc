"""Squares of rows in vector code beside NumPy's, by every choice of instructions."""

import ctypes
import platform
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

SOURCE = Path(__file__).parents[2] / "skbnp" / "numerics" / "squares.pxd"
# Instruction sets that a build chooses between, and what a processor must have for them.
CHOICES = {"x86-64": (), "x86-64-v3": ("avx2", "fma"), "x86-64-v4": ("avx2", "fma", "avx512f")}
if platform.machine() != "x86_64":
    CHOICES = {"": ()}  # what the compiler takes
BEFORE = "#include <stddef.h>\ntypedef ptrdiff_t Py_ssize_t;\n#define SKBNP_CLONES\n"
EXPORTED = """
void residuals(Py_ssize_t n, Py_ssize_t d, const double *x, const Py_ssize_t *row,
               const double *mean, const double *scale, double *e, double *out) {
    skbnp_scaled_residuals(n, d, x, row, mean, scale, e, out);
}
void squares(Py_ssize_t n, Py_ssize_t d, double sign, const double *x, double *out) {
    skbnp_add_squares(n, d, sign, x, out);
}
void column_squares(Py_ssize_t n, Py_ssize_t h, const double *z, Py_ssize_t stride,
                    const double *shift, double *out) {
    skbnp_add_column_squares(n, h, z, stride, shift, out);
}
"""
WIDTHS = [1, 7, 8, 9, 16, 30]

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a compiler")


class Squares:
    """The functions, compiled for one instruction set."""

    def __init__(self, folder, choice):
        code = re.search('nogil:\n    """\n(.*?)    """\n', SOURCE.read_text(), re.S)[1]
        (folder / "squares.c").write_text(BEFORE + code.replace("\\\\", "\\") + EXPORTED)
        march = f"-march={choice}" if choice else ""
        command = f"cc -O2 -ffp-contract=off {march} -shared -fPIC squares.c -o squares.so"
        subprocess.run(command.split(), cwd=folder, check=True)
        self._library = ctypes.CDLL(str(folder / "squares.so"))

    def _call(self, name, *arguments):
        kinds = {np.ndarray: np.ctypeslib.as_ctypes, float: ctypes.c_double, int: ctypes.c_ssize_t}
        getattr(self._library, name)(*(kinds[type(a)](a) for a in arguments))

    def residuals(self, x, row, mean, scale):
        e, out = np.empty((len(row), x.shape[1])), np.empty(len(row))
        self._call("residuals", len(row), x.shape[1], x, row, mean, scale, e, out)
        return e, out

    def squares(self, x, sign):
        out = np.zeros(len(x))
        self._call("squares", len(x), x.shape[1], sign, x, out)
        return out

    def column_squares(self, x, shift):
        out = np.zeros(len(x))
        self._call("column_squares", *x.shape, np.ascontiguousarray(x.T), len(x), shift, out)
        return out


@pytest.fixture(scope="module", params=CHOICES)
def compiled(request, tmp_path_factory):
    needed, flags = set(CHOICES[request.param]), Path("/proc/cpuinfo")
    if needed and not (flags.exists() and needed <= set(flags.read_text().split())):
        pytest.skip("this processor has not this instruction set")
    return Squares(tmp_path_factory.mktemp("squares"), request.param)


def table(d, n=40):
    rng = np.random.default_rng(d)
    return rng.normal(size=(n, d)), rng.permutation(n)[:23], *rng.gamma(2.0, size=(2, d))


def side_by_side(x):
    """Sums of the squares of rows in the order that is promised, the same for all choices."""
    total, whole = np.zeros(len(x)), x.shape[1] // 8 * 8
    if whole:
        s = np.zeros((len(x), 8))
        for j in range(0, whole, 8):
            s += x[:, j : j + 8] * x[:, j : j + 8]
        total = ((s[:, 0] + s[:, 4]) + (s[:, 2] + s[:, 6])) + (
            (s[:, 1] + s[:, 5]) + (s[:, 3] + s[:, 7])
        )
    for j in range(whole, x.shape[1]):
        total = total + x[:, j] * x[:, j]
    return total


@pytest.mark.parametrize("d", WIDTHS)
def test_they_are_sums_of_squares_to_the_last_bit(compiled, d):
    x, row, mean, scale = table(d)
    e, square = compiled.residuals(x, row, mean, scale)
    np.testing.assert_array_equal(e, (x[row] - mean) * scale)
    np.testing.assert_array_equal(square, side_by_side(e))
    np.testing.assert_array_equal(compiled.squares(x, -1.0), -side_by_side(x))
    in_order = np.zeros(len(x))
    for column in ((x - mean) ** 2).T:
        in_order += column
    np.testing.assert_array_equal(compiled.column_squares(x, mean), in_order)


@pytest.mark.parametrize("d", WIDTHS)
def test_a_row_does_not_depend_on_its_place(compiled, d):
    x, row, mean, scale = table(d)
    e, square = compiled.residuals(x, row, mean, scale)
    for i in (0, 11, 22):
        alone = compiled.residuals(x, row[i : i + 1].copy(), mean, scale)
        np.testing.assert_array_equal(alone[0][0], e[i])
        assert alone[1][0] == square[i]
        one = x[i : i + 1].copy()
        assert compiled.squares(one, 1.0)[0] == compiled.squares(x, 1.0)[i]
        assert compiled.column_squares(one, mean)[0] == compiled.column_squares(x, mean)[i]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays_so(compiled, bad):
    x, row, mean, scale = table(9)
    x[row[3], 2] = bad
    others = np.arange(len(row)) != 3
    for square in (compiled.residuals(x, row, mean, scale)[1], compiled.squares(x, 1.0)[row]):
        assert not np.isfinite(square[3])
        assert np.isfinite(square[others]).all()
