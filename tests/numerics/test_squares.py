"""Squares of rows in vector code beside NumPy's, and the same bits wherever they run."""

import ctypes
import platform
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from skbnp.numerics.squares import column_squares_of, scaled_residuals_of, squares_of

SOURCE = Path(__file__).parents[2] / "skbnp" / "numerics" / "squares.pyx"
# Instruction sets that a build chooses between, and what a processor must have for them.
CHOICES = {"x86-64": (), "x86-64-v3": ("avx2", "fma"), "x86-64-v4": ("avx2", "fma", "avx512f")}
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


def table(d, n=40):
    rng = np.random.default_rng(d)
    return rng.normal(size=(n, d)), rng.permutation(n)[:23], *rng.gamma(2.0, size=(2, d))


@pytest.mark.parametrize("d", WIDTHS)
def test_they_are_those_of_numpy(d):
    x, row, mean, scale = table(d)
    expected = (x[row] - mean) * scale
    e, square = scaled_residuals_of(x, row, mean, scale)
    np.testing.assert_array_equal(e, expected)
    np.testing.assert_allclose(square, np.sum(expected**2, axis=1), rtol=1e-14)
    np.testing.assert_allclose(squares_of(x, -1.0), -np.sum(x**2, axis=1), rtol=1e-14)
    found = column_squares_of(x, mean)
    np.testing.assert_allclose(found, np.sum((x - mean) ** 2, axis=1), rtol=1e-14)


@pytest.mark.parametrize("d", WIDTHS)
def test_a_row_does_not_depend_on_its_place(d):
    x, row, mean, scale = table(d)
    e, square = scaled_residuals_of(x, row, mean, scale)
    for i in (0, 11, 22):
        alone = scaled_residuals_of(x, row[i : i + 1], mean, scale)
        np.testing.assert_array_equal(alone[0][0], e[i])
        assert alone[1][0] == square[i]
        assert squares_of(x[i : i + 1], 1.0)[0] == squares_of(x, 1.0)[i]
        assert column_squares_of(x[i : i + 1], mean)[0] == column_squares_of(x, mean)[i]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays_so(bad):
    x, row, mean, scale = table(9)
    x[row[3], 2] = bad
    others = np.arange(len(row)) != 3
    for square in (scaled_residuals_of(x, row, mean, scale)[1], squares_of(x, 1.0)[row]):
        assert not np.isfinite(square[3])
        assert np.isfinite(square[others]).all()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="there is one choice elsewhere")
@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a compiler")
@pytest.mark.parametrize("choice", CHOICES)
def test_every_instruction_set_gives_the_same_bits(choice, tmp_path):
    flags = Path("/proc/cpuinfo")
    if not flags.exists() or not set(CHOICES[choice]) <= set(flags.read_text().split()):
        pytest.skip("this processor has not this instruction set")
    code = re.search('nogil:\n    """\n(.*?)    """\n', SOURCE.read_text(), re.S)[1]
    (tmp_path / "squares.c").write_text(BEFORE + code.replace("\\\\", "\\") + EXPORTED)
    command = f"cc -O3 -fno-trapping-math -ffp-contract=off -march={choice} -shared -fPIC"
    subprocess.run(
        [*command.split(), "squares.c", "-lm", "-o", "squares.so"], cwd=tmp_path, check=True
    )
    library = ctypes.CDLL(str(tmp_path / "squares.so"))

    def call(name, *arguments):
        getattr(library, name)(
            *(
                a.ctypes.data_as(ctypes.c_void_p)
                if isinstance(a, np.ndarray)
                else ctypes.c_double(a)
                if isinstance(a, float)
                else ctypes.c_ssize_t(a)
                for a in arguments
            )
        )

    for d in WIDTHS:
        x, row, mean, scale = table(d)
        e, out = np.empty((len(row), d)), np.empty(len(row))
        call("residuals", len(row), d, x, row, mean, scale, e, out)
        expected = scaled_residuals_of(x, row, mean, scale)
        np.testing.assert_array_equal(e, expected[0])
        np.testing.assert_array_equal(out, expected[1])
        out = np.zeros(len(x))
        call("squares", len(x), d, -1.0, x, out)
        np.testing.assert_array_equal(out, squares_of(x, -1.0))
        out, columns = np.zeros(len(x)), np.ascontiguousarray(x.T)
        call("column_squares", len(x), d, columns, len(x), mean, out)
        np.testing.assert_array_equal(out, column_squares_of(x, mean))
