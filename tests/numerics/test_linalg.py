"""Linear algebra against NumPy and SciPy."""

from decimal import Decimal, getcontext

import numpy as np
import pytest
import scipy.linalg

from checks.mutants import compiled
from skbnp.numerics import linalg

faces = compiled("numerics", "faces")

SIZES = [1, 2, 5, 30]


def random_covariance(rng, n, extra=3):
    half = rng.normal(size=(n, n + extra))
    return half @ half.T


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("n", SIZES)
def test_cholesky(rng, n):
    matrix = random_covariance(rng, n)
    factor = linalg.cholesky_upper(matrix)
    np.testing.assert_allclose(factor, np.linalg.cholesky(matrix).T, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(np.tril(factor, -1), 0.0)


def test_cholesky_reads_the_upper_triangle_only(rng):
    matrix = random_covariance(rng, 4)
    garbage = np.triu(matrix) + np.tril(np.full((4, 4), np.nan), -1)
    np.testing.assert_array_equal(linalg.cholesky_upper(garbage), linalg.cholesky_upper(matrix))


@pytest.mark.parametrize(
    "matrix", [[[-1.0]], [[0.0]], [[1.0, 2.0], [2.0, 1.0]], [[1.0, 1.0], [1.0, 1.0]]]
)
def test_cholesky_refuses_what_is_not_positive_definite(matrix):
    with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
        linalg.cholesky_upper(np.array(matrix))


@pytest.mark.parametrize("position", [(0, 0), (0, 2), (1, 1), (1, 2), (2, 2)])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_cholesky_refuses_what_is_not_finite(rng, position, value):
    matrix = random_covariance(rng, 3)
    matrix[position] = value
    with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
        linalg.cholesky_upper(matrix)


def test_cholesky_of_a_rectangle_is_an_error():
    with pytest.raises(ValueError, match=r"matrix must be square, got shape \(2, 3\)"):
        linalg.cholesky_upper(np.ones((2, 3)))
    assert linalg.cholesky_upper(np.empty((0, 0))).shape == (0, 0)


@pytest.mark.parametrize("n", SIZES)
def test_rank_one_changes_against_recomputation(rng, n):
    matrix, v = random_covariance(rng, n), rng.normal(size=n)
    factor = linalg.cholesky_upper(matrix)
    up = faces.updated_factor(factor, v)
    expected = linalg.cholesky_upper(matrix + np.outer(v, v))
    np.testing.assert_allclose(up, expected, rtol=1e-9, atol=1e-11)
    down = faces.downdated_factor(up, v)
    np.testing.assert_allclose(down, factor, rtol=1e-7, atol=1e-9)


def exact_diagonal_after_update(factor, v):
    """Diagonal of the factor of U^T U + v v^T in sixty digits."""
    getcontext().prec = 60
    n = len(v)
    u = [[Decimal(float(x)) for x in row] for row in factor]
    w = [Decimal(float(x)) for x in v]
    lower = [[Decimal(0)] * n for _ in range(n)]
    for a in range(n):
        for b in range(a + 1):
            entry = sum((u[c][a] * u[c][b] for c in range(n)), w[a] * w[b])
            entry -= sum((lower[a][c] * lower[b][c] for c in range(b)), Decimal(0))
            lower[a][b] = entry.sqrt() if a == b else entry / lower[b][b]
    return np.array([float(lower[a][a]) for a in range(n)])


@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e-8])
def test_update_of_a_tight_cluster_by_a_far_row(rng, scale):
    """Only true rotations keep all digits here; the form with 1/c has 1e-10 at 1e-3."""
    for _ in range(5):
        factor = linalg.cholesky_upper(random_covariance(rng, 5) * scale**2)
        v = rng.normal(size=5)
        diagonal = np.diag(faces.updated_factor(factor, v))
        np.testing.assert_allclose(diagonal, exact_diagonal_after_update(factor, v), rtol=2e-15)


def test_update_with_zeros(rng):
    factor = linalg.cholesky_upper(random_covariance(rng, 4))
    np.testing.assert_array_equal(faces.updated_factor(factor, np.zeros(4)), factor)
    np.testing.assert_array_equal(faces.downdated_factor(factor, np.zeros(4)), factor)


def test_drift_of_ten_thousand_random_changes(rng):
    """Rows come and go, as in a Gibbs sweep; at the end the factor equals a fresh one."""
    n = 6
    prior = np.eye(n) * 0.5
    factor, rows = linalg.cholesky_upper(prior), []
    for _ in range(10_000):
        if rows and (len(rows) > 40 or rng.random() < 0.5):
            factor = faces.downdated_factor(factor, rows.pop(rng.integers(len(rows))))
        else:
            rows.append(rng.normal(size=n))
            factor = faces.updated_factor(factor, rows[-1])
    held = np.array(rows).reshape(-1, n)
    expected = linalg.cholesky_upper(prior + held.T @ held)
    np.testing.assert_allclose(factor, expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("factor_of_v", [1.0, 1.0 - 1e-14, 1.5, np.nan])
def test_a_failed_downdate_is_reported(rng, factor_of_v):
    v = np.ascontiguousarray(linalg.cholesky_upper(random_covariance(rng, 3))[0])
    singular = linalg.cholesky_upper(1e-30 * np.eye(3) + np.outer(v, v) + np.diag([0.0, 1.0, 1.0]))
    with pytest.raises(np.linalg.LinAlgError, match="downdated matrix"):
        faces.downdated_factor(singular, factor_of_v * v)


@pytest.mark.parametrize("trans_a", [False, True])
@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize("m, k, n", [(1, 1, 1), (2, 3, 4), (5, 1, 2), (1, 7, 1), (20, 30, 10)])
def test_gemm(rng, trans_a, trans_b, m, k, n):
    a = rng.normal(size=(k, m) if trans_a else (m, k))
    b = rng.normal(size=(n, k) if trans_b else (k, n))
    expected = (a.T if trans_a else a) @ (b.T if trans_b else b)
    np.testing.assert_allclose(
        faces.matrix_product(a, b, trans_a, trans_b), expected, rtol=1e-12, atol=1e-13
    )


@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (4, 3), (30, 20)])
def test_gemv(rng, shape, trans):
    a = rng.normal(size=shape)
    x = rng.normal(size=shape[0] if trans else shape[1])
    np.testing.assert_allclose(
        faces.matrix_vector_product(a, x, trans), (a.T if trans else a) @ x, rtol=1e-12, atol=1e-13
    )


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (4, 3), (30, 200)])
def test_gram(rng, shape):
    a = rng.normal(size=shape)
    got = faces.row_products(a)
    np.testing.assert_allclose(np.triu(got), np.triu(a @ a.T), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(np.tril(got, -1), 0.0)


@pytest.mark.parametrize("n", SIZES)
def test_symmetric_rank_one(rng, n):
    a, x = rng.normal(size=(n, n)), rng.normal(size=n)
    got = faces.rank_one_sum(a, -1.3, x)
    expected = a - 1.3 * np.outer(x, x)
    np.testing.assert_allclose(np.triu(got), np.triu(expected), rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(np.tril(got, -1), np.tril(a, -1))


@pytest.mark.parametrize("trans_a", [False, True])
@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize("m, k, n", [(1, 1, 1), (2, 3, 4), (1, 7, 1), (20, 30, 10)])
def test_gemm_of_rows_apart(rng, trans_a, trans_b, m, k, n):
    """Operands and result are the leading columns of wider matrices, which keep the others."""
    a = rng.normal(size=(k, m + 3) if trans_a else (m, k + 2))
    b = rng.normal(size=(n, k + 1) if trans_b else (k, n + 4))
    c = rng.normal(size=(m, n + 5))
    A = a[:, :m].T if trans_a else a[:, :k]
    B = b[:, :k].T if trans_b else b[:, :n]
    got = faces.added_product(a, b, c, m, n, k, 0.7, -2.0, trans_a, trans_b)
    np.testing.assert_allclose(got[:, :n], 0.7 * A @ B - 2.0 * c[:, :n], rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(got[:, n:], c[:, n:])


@pytest.mark.parametrize("n", SIZES)
def test_triangular_solves(rng, n):
    factor = linalg.cholesky_upper(random_covariance(rng, n))
    x = rng.normal(size=n)
    expected = scipy.linalg.solve_triangular(factor, x, trans="T")
    y, squares = faces.solved_transposed(factor, x)
    np.testing.assert_allclose(y, expected, rtol=1e-9)
    assert squares == pytest.approx(y @ y, rel=1e-13)
    np.testing.assert_allclose(
        linalg.solved(factor, x), scipy.linalg.solve_triangular(factor, x), rtol=1e-9
    )
    rows = rng.normal(size=(7, n))
    expected = scipy.linalg.solve_triangular(factor, rows.T, trans="T").T
    np.testing.assert_allclose(faces.solved_rows(factor, rows), expected, rtol=1e-9, atol=1e-12)
    expected = scipy.linalg.solve_triangular(factor, rows.T).T
    np.testing.assert_allclose(
        faces.solved_rows_back(factor, rows), expected, rtol=1e-9, atol=1e-12
    )


def test_solves_never_read_below_the_diagonal(rng):
    factor = linalg.cholesky_upper(random_covariance(rng, 4))
    garbage = factor + np.tril(np.full((4, 4), np.nan), -1)
    x, rows = rng.normal(size=4), rng.normal(size=(3, 4))
    np.testing.assert_array_equal(linalg.solved(garbage, x), linalg.solved(factor, x))
    np.testing.assert_array_equal(
        faces.solved_transposed(garbage, x)[0], faces.solved_transposed(factor, x)[0]
    )
    np.testing.assert_array_equal(faces.solved_rows(garbage, rows), faces.solved_rows(factor, rows))
    np.testing.assert_array_equal(
        faces.solved_rows_back(garbage, rows), faces.solved_rows_back(factor, rows)
    )
    np.testing.assert_array_equal(faces.updated_factor(garbage, x), faces.updated_factor(factor, x))


@pytest.mark.parametrize("n", SIZES)
def test_determinants_of_shifted_matrices(rng, n):
    half = rng.normal(size=(n, max(1, n // 2)))
    matrix = half @ half.T * 10.0 ** rng.uniform(-3, 3)
    diagonal, coupling = linalg.tridiagonal(matrix)
    assert coupling[0] == 0.0
    beside = np.sqrt(coupling[1:])
    np.testing.assert_allclose(
        np.linalg.eigvalsh(np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1)),
        np.linalg.eigvalsh(matrix),
        rtol=1e-10,
        atol=1e-12 * np.trace(matrix),
    )
    for shift in (1e-3, 1.0, 512.0, 1e150, 1e-150):
        expected = np.log(np.maximum(np.linalg.eigvalsh(matrix), 0.0) + shift).sum()
        found = faces.shifted_log_det(shift, diagonal, coupling)
        rounding = 1e-14 * n * np.trace(matrix) / shift  # of eigenvalues that are 0
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10 + rounding)
        assert found > n * np.log(shift) - 1e-9 * abs(np.log(shift)) * n


def test_products_of_rows_are_added(rng):
    rows, matrix = rng.normal(size=(7, 4)), random_covariance(rng, 4)
    found = faces.with_gram(matrix, -0.3, rows)
    expected = np.triu(matrix - 0.3 * rows.T @ rows) + np.tril(matrix, -1)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_read_only_input_is_left_alone(rng):
    matrix, v = random_covariance(rng, 3), rng.normal(size=3)
    copies = matrix.copy(), v.copy()
    matrix.flags.writeable = v.flags.writeable = False
    factor = linalg.cholesky_upper(matrix)
    faces.updated_factor(factor, v)
    linalg.tridiagonal(matrix)
    np.testing.assert_array_equal(matrix, copies[0])
    np.testing.assert_array_equal(v, copies[1])
