"""exp, log and log1p in vector code beside NumPy's, and the same bits wherever they run."""

import ctypes
import platform
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import solve_triangular

from skbnp.numerics.vector_math import distances_of, lane_distances_of, of_array

HEADER = Path(__file__).parents[2] / "skbnp" / "numerics" / "vector_math.h"
ENDS = np.array(
    [0.0, np.inf, -np.inf, np.nan, 1e-310, 5e-324, 1.0, 709.7, 710.0, -708.0, -740.0, -746.0, 1e308,
     2.0**-54, -0.5, -1.0, -2.0, 1e15, 1e16]
)  # fmt: skip
# Instruction sets that a build chooses between, and what a processor must have for them.
CHOICES = {"x86-64": (), "x86-64-v3": ("avx2", "fma"), "x86-64-v4": ("avx2", "fma", "avx512f")}
WRAPPED = """
#include <stddef.h>
typedef ptrdiff_t Py_ssize_t;
#define SKBNP_CLONES
#include "vector_math.h"
void exp_all(Py_ssize_t n, double *x) { skbnp_exp_all(n, x); }
void log_all(Py_ssize_t n, double *x) { skbnp_log_all(n, x); }
void log1p_all(Py_ssize_t n, double *x) { skbnp_log1p_all(n, x); }
void running_exp(Py_ssize_t n, double *x) { skbnp_running_exp(n, x); }
void log_t_all(Py_ssize_t n, const double *distance, const double *constant, const double *power,
               const double *share, double *out) {
    skbnp_log_t_all(n, distance, constant, power, share, out);
}
void lanes(Py_ssize_t n, Py_ssize_t d, const double *x, const double *mean, const double *factor,
           double *work, double *out) { skbnp_lane_distances(n, d, x, mean, factor, work, out); }
"""


def numbers(name):
    """Arguments over the range of a function, and the ends of it."""
    rng = np.random.default_rng(0)
    wide = np.exp(rng.uniform(-740.0, 709.0, 20_000))
    near = rng.uniform(0.5, 2.0, 20_000)
    return np.concatenate(
        {
            "exp": [rng.uniform(-746.0, 710.0, 20_000), rng.normal(size=20_000), ENDS],
            "log": [wide, near, ENDS],
            "log1p": [wide, near - 1.4, rng.normal(scale=1e-9, size=1000), ENDS],
        }[name]
    )


@pytest.mark.parametrize("name", ["exp", "log", "log1p"])
def test_functions_are_those_of_numpy(name):
    x = numbers(name)
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(x)
    found = of_array(name, x)
    # NumPy's own may be off by a unit in the last place.
    np.testing.assert_array_max_ulp(
        found[np.isfinite(expected)], expected[np.isfinite(expected)], 2
    )
    np.testing.assert_array_equal(found[~np.isfinite(expected)], expected[~np.isfinite(expected)])


@pytest.mark.parametrize("name", ["exp", "log", "log1p"])
def test_an_element_does_not_depend_on_its_place(name):
    x = numbers(name)[::200]
    whole = of_array(name, x)
    np.testing.assert_array_equal(np.concatenate([of_array(name, one) for one in x]), whole)
    np.testing.assert_array_equal(of_array(name, x[3:]), whole[3:])


def test_squared_distances_are_those_of_triangular_solves():
    rng = np.random.default_rng(1)
    X, mean = rng.normal(size=(150, 6)), rng.normal(size=6)
    feature = np.array([4, 0, 5, 2])
    factor = np.triu(rng.normal(size=(4, 4))) + 3.0 * np.eye(4)
    columns = np.ascontiguousarray(X.T)
    found = distances_of(columns, feature, mean, factor)
    whitened = solve_triangular(factor, (X - mean)[:, feature].T, trans="T")
    np.testing.assert_allclose(found, (whitened**2).sum(axis=0), rtol=1e-13)
    alone = np.ascontiguousarray(X[77:78].T)
    assert distances_of(alone, feature, mean, factor)[0] == found[77]


@pytest.mark.parametrize("n", [1, 3, 4, 11])
def test_running_sums_of_exponentials(n):
    x = np.random.default_rng(n).normal(scale=30.0, size=n) + 5000.0
    expected = np.cumsum(np.exp(x - x.max()))
    np.testing.assert_allclose(of_array("running_exp", x), expected, rtol=1e-15 * (n + 3))
    x[0] = -np.inf
    if n > 1:
        found = of_array("running_exp", x)
        np.testing.assert_allclose(found, np.cumsum(np.exp(x - x.max())), rtol=1e-15 * (n + 3))


@pytest.mark.parametrize("bad", [[-np.inf, -np.inf], [np.nan, 1.0], [1.0, np.nan], [1.0, np.inf]])
def test_running_sums_of_what_is_no_weight_end_in_nan(bad):
    assert np.isnan(of_array("running_exp", bad)[-1])


def blocks_in_lanes(d, n_blocks=12):
    """A row, means and factors of blocks, and both four side by side with reciprocal diagonals."""
    rng = np.random.default_rng(d)
    x, mean = rng.normal(size=d), rng.normal(size=(n_blocks, d))
    factor = np.triu(rng.normal(size=(n_blocks, d, d))) + 3.0 * np.eye(d)
    inverse = factor.copy()
    inverse[:, range(d), range(d)] = 1.0 / factor[:, range(d), range(d)]
    by_lanes = [
        np.ascontiguousarray(np.moveaxis(a.reshape(n_blocks // 4, 4, *a.shape[1:]), 1, -1))
        for a in (mean, inverse)
    ]
    return x, mean, factor, by_lanes


@pytest.mark.parametrize("d", [1, 2, 3, 8, 9])
def test_distances_by_lanes_are_those_of_triangular_solves(d):
    x, mean, factor, by_lanes = blocks_in_lanes(d)
    expected = [
        np.sum(solve_triangular(U, x - m, trans="T") ** 2)
        for m, U in zip(mean, factor, strict=True)
    ]
    np.testing.assert_allclose(lane_distances_of(x, *by_lanes), expected, rtol=1e-12)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="there is one choice elsewhere")
@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a compiler")
@pytest.mark.parametrize("choice", CHOICES)
def test_every_instruction_set_gives_the_same_bits(choice, tmp_path):
    flags = Path("/proc/cpuinfo")
    if not flags.exists() or not set(CHOICES[choice]) <= set(flags.read_text().split()):
        pytest.skip("this processor has not this instruction set")
    (tmp_path / "wrapped.c").write_text(WRAPPED)
    command = f"cc -O3 -fno-trapping-math -ffp-contract=off -march={choice} -shared -fPIC"
    subprocess.run(
        [*command.split(), "-I", str(HEADER.parent), "wrapped.c", "-o", "wrapped.so"],
        cwd=tmp_path, check=True,
    )  # fmt: skip
    library = ctypes.CDLL(str(tmp_path / "wrapped.so"))
    for name, function in [
        *((name, f"{name}_all") for name in ("exp", "log", "log1p")),
        ("running_exp", "running_exp"),
    ]:
        x = numbers("exp")[: -len(ENDS)] if name == "running_exp" else numbers(name)
        expected, n = of_array(name, x), len(x)
        x = np.append(x, np.zeros(4))
        place = x.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
        getattr(library, function)(ctypes.c_ssize_t(n), place)
        np.testing.assert_array_equal(x[:n], expected)
    law = np.random.default_rng(2).gamma(2.0, size=(5, 400))
    library.log_t_all(
        ctypes.c_ssize_t(399), *(line.ctypes.data_as(ctypes.c_void_p) for line in law)
    )
    distance, constant, power, share, found = law
    np.testing.assert_array_equal(found, constant - power * of_array("log1p", share * distance))
    for d in (1, 2, 3, 8):
        x, _, _, by_lanes = blocks_in_lanes(d)
        work, found = np.empty(8 * d), np.empty(12)
        places = [a.ctypes.data_as(ctypes.c_void_p) for a in (x, *by_lanes, work, found)]
        library.lanes(ctypes.c_ssize_t(12), ctypes.c_ssize_t(d), *places)
        np.testing.assert_array_equal(found, lane_distances_of(x, *by_lanes))
