"""What a sweep of the tree factor model costs: its growth, its share of BLAS, threads and memory.

Times are those of the compiled sampler, one BLAS thread, the shortest of several sweeps; the rate
of matrix products is measured in turns with them. Densities of new rows are those of
`score_samples`. The arithmetic of a sweep is counted by

    paths        2 n_pairs P L    pairs of a row and a branch that its slice lets it consider
    scores       2 N L (P + L)    whitening, and the product with U^-1
    loadings     2 N L (P + L)    Z'WY and Z'WZ
    residuals    2 N P L

and, where it is counted, 4 L^2 P for each branch that a block of 2,048 rows considers: its products
of loadings and the whitened ones.
"""

import subprocess
import sys
import tempfile
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from _data import load_patches
from _report import growth_row, seconds, shortest
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from skbnp import TreeFactorModel
from skbnp.mcmc.rows import for_row_blocks
from skbnp.tree_factor_model._model import Prior
from skbnp.tree_factor_model._sampler import Sampler
from skbnp.tree_factor_model._start import start_state

QUICK, FULL = 20_000, 100_000  # patches
N_SETTLE, N_TIMED = 3, 5  # sweeps
MOVES = ("paths", "leaf_means", "scores", "loadings", "precisions")
PROCESS = Path("/proc/self/status")


def planted(n, p, n_axes, n_branches, seed=0):
    """Rows that scatter along directions of their own branch."""
    rng = np.random.default_rng(seed)
    axes = rng.normal(size=(n_branches, n_axes, p)) / np.sqrt(n_axes)
    score = rng.normal(size=(n, n_axes))
    X = np.einsum("nl,nlp->np", score, axes[rng.integers(n_branches, size=n)])
    return X + 0.3 * rng.normal(size=X.shape)


def patches_without_mean(data, n):
    """Berkeley patches as "dc" of the patch part has them."""
    X = load_patches(data, n, 1)[0].astype(float)
    X += np.random.default_rng(0).uniform(-0.5, 0.5, X.shape)
    X -= X.mean(axis=1, keepdims=True)
    return X / X.std()


def chain(X, depth, levels, n_children, **options):
    """A sampler that has left its start behind."""
    prior = Prior(X.shape[1], depth, branch_levels=levels)
    state = start_state(X, prior, np.random.default_rng(0), (n_children,) * len(levels))
    sampler = Sampler(X, prior, state, np.random.PCG64(1), **options)
    for _ in range(N_SETTLE):
        sampler.sweep()
    return sampler


def sweep_seconds(sampler):
    """The shortest of a few."""
    return shortest(sampler.sweep, repeats=N_TIMED, wall=True)


def gemm_rate(n_repeats=400):
    """Flops a second of the products that a sweep is made of: chunks of rows times loadings."""
    rng = np.random.default_rng(0)
    rows, loadings = rng.normal(size=(256, 64)), rng.normal(size=(64, 32))
    out = np.empty((256, 32))

    def multiply():
        for _ in range(n_repeats):
            np.matmul(rows, loadings, out=out)

    n_flops = 2.0 * n_repeats * 256 * 64 * 32
    return n_flops / shortest(multiply, repeats=3, wall=True)


def pairs(count):
    """Expected pairs of row and branch: slices are uniform below the mass of the row's branch."""
    return float(np.minimum.outer(count, count).sum())


def flops(sampler):
    """Flops of the matrix products of a sweep: over rows, and to set branches up for blocks."""
    draw = sampler.draw()
    n, p = sampler.state.n_samples, sampler.state.n_features
    depth = draw["score_precision"].shape[1]
    n_pairs = pairs(draw["leaf_count"])
    over_rows = 2 * n_pairs * p * depth + 2 * n * depth * (3 * p + 2 * depth)
    n_set_up = sampler.state.n_leaves * (n // 2048 + 1) + sampler.state.n_pieces
    return over_rows, 4 * n_set_up * depth**2 * p


# -- the tables


def growth(quick):
    """Time of a sweep in each size alone, and the slope of its logarithm."""
    base = dict(n=4_000 if quick else 16_000, p=64, depth=32, n_branches=8)
    grid = {
        "n": [base["n"] // 4, base["n"] // 2, base["n"], 2 * base["n"]],
        "p": [32, 64, 128, 256],
        "depth": [8, 16, 32, 64],
        "n_branches": [2, 4, 8, 16],
    }
    rows = []
    for name, values in grid.items():
        found = [one_size(**(base | {name: value})) for value in values]
        sizes = [size for size, _ in found] if name == "n_branches" else values
        times = [time for _, time in found]
        rows.append(
            {"size": {"n": "N", "p": "P", "depth": "L", "n_branches": "branches"}[name]}
            | growth_row(sizes, times, "sweep, s")
        )
    return rows


def one_size(n, p, depth, n_branches):
    """Branches there are in the end, seconds of a sweep."""
    X = planted(n, p, 6, n_branches)
    sampler = chain(X, depth, (depth // 2,), n_branches)
    return sampler.state.n_leaves, sweep_seconds(sampler)


def holes(quick):
    """Every row with holes of its own, beside complete rows."""
    rows = []
    for share in (0.0, 0.1, 0.5):
        X = planted(500 if quick else 2_000, 64, 6, 8)
        X[np.random.default_rng(1).random(X.shape) < share] = np.nan
        sampler = chain(X, 16, (8,), 8)
        row = {"missing": f"{share:.0%}", "N": len(X), "branches": sampler.state.n_leaves}
        row["sweep, s"] = sweep_seconds(sampler)
        rows.append(row | {"sweep / complete": row["sweep, s"] / (rows or [row])[0]["sweep, s"]})
    return rows


def share_of_products(X):
    """The full size: time of a sweep beside that of its own matrix products."""
    rows = []
    for n_children in (2, 3):
        sampler = chain(X, 32, (16, 32), n_children)
        time, rate = np.inf, 0.0
        for _ in range(3):
            time = min(time, sweep_seconds(sampler))
            rate = max(rate, gemm_rate())
        products, set_up = flops(sampler)
        rows.append(
            {
                "N": len(X),
                "branches": sampler.state.n_leaves,
                "branches a row considers": pairs(sampler.draw()["leaf_count"]) / len(X),
                "sweep, s": time,
                "dgemm, Gflop/s": rate / 1e9,
                "products, s": products / rate,
                "sweep / products": time * rate / products,
                "sweep / (products + setting up)": time * rate / (products + set_up),
                "share in products": products / rate / time,
            }
        )
    return rows


def share_of_moves(X):
    """Where the time of a sweep goes; the first two bring the scores along."""
    sampler = chain(X, 32, (16, 32), 3)
    timed = partial(shortest, sampler.sweep_only, repeats=N_TIMED, wall=True)
    return [{"move": move, "s": timed(move)} for move in MOVES]


def densities(quick):
    """`score_samples` of complete rows under 100 draws, beside one product for each branch."""
    n_rows, n_draws, rows = (500, 10, []) if quick else (10_000, 100, [])
    for p in (10, 30, 64):
        X = planted(600 + n_rows, p, 6, 8)
        model = TreeFactorModel(
            n_chains=1,
            n_warmup=60,
            n_draws=n_draws,
            random_state=0,
            n_jobs=1,
            predict_draws=n_draws,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a short chain
            model.fit(X[:600])
        model.score_samples(X[600:700])
        time, rate = np.inf, 0.0
        for _ in range(3):
            time = min(time, seconds(model.score_samples, X[600:]))
            rate = max(rate, gemm_rate())
        branches = model.posterior_.traces["n_branches"].mean()
        products = n_draws * branches * n_rows * min(p * p, 2 * p * model.max_depth_) / rate
        rows.append(
            {
                "P": p,
                "L": model.max_depth_,
                "branches": branches,
                "us a row": 1e6 * time / n_rows,
                "time / products": time / products,
            }
        )
    return rows


def threads(X):
    """Rows cut among two threads beside one thread; the draws must not differ."""
    rows, draws = [], []
    for n_threads in (1, 2):
        for_rows = partial(for_row_blocks, n_threads=n_threads)
        sampler = chain(X, 32, (16, 32), 3, for_rows=for_rows)
        rows.append({"threads": n_threads, "sweep, s": sweep_seconds(sampler)})
        draws.append(sampler.draw())
    for row in rows:
        row["one thread / this"] = rows[0]["sweep, s"] / row["sweep, s"]
        row["same draws"] = all(np.array_equal(draws[0][name], draws[1][name]) for name in draws[0])
    return rows


def memory(X):
    """Growth of a fresh process over what it was with X in it, in multiples of X."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "X.npy"
        np.save(path, X)
        done = subprocess.run(
            [sys.executable, __file__, path], check=True, stdout=subprocess.PIPE, text=True
        )
    grown = float(done.stdout)
    return [{"N": len(X), "X, MB": X.nbytes / 1e6, "peak above X / X": grown / X.nbytes}]


def fit_in_this_process(path):
    """Prints by how many bytes a short fit makes the process grow."""
    model = TreeFactorModel(n_chains=1, n_warmup=3, n_draws=3, max_depth=32, random_state=0)
    X = np.load(path)
    before = peak_bytes()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # three draws are none
        model.fit(X)
    print(peak_bytes() - before)


def peak_bytes():
    """Most memory that this process has held; ru_maxrss would begin with that of its parent."""
    (line,) = (line for line in PROCESS.read_text().splitlines() if line.startswith("VmHWM"))
    return 1024 * int(line.split()[1])


def cost(data, quick):
    """All tables, by name; without the patches those that need none, the memory on Linux alone."""
    with threadpool_limits(1, user_api="blas"):
        tables = {
            "cost: growth of a sweep (elsewhere P = 64, L = 32, 8 branches)": growth(quick),
            "cost: a pattern of holes to each row (P = 64, L = 16)": holes(quick),
            "cost: densities of complete rows, 100 draws": densities(quick),
        }
        if not data.exists():
            return tables
        X = patches_without_mean(data, QUICK if quick else FULL)
        of_patches = f"patches, {len(X):,} x {X.shape[1]}, L = 32"
        tables |= {
            f"cost: a sweep beside its matrix products, {of_patches}": share_of_products(X),
            f"cost: its moves, {of_patches}": share_of_moves(X),
            f"cost: two threads beside one, {of_patches}": threads(X),
        }
    if PROCESS.exists():
        tables["cost: memory of fit"] = memory(X)
    return tables


if __name__ == "__main__":
    fit_in_this_process(sys.argv[1])
