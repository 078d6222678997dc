"""Speed of DirichletProcessMixture, as ratios: sweeps, predictions, the search for one partition.

Prints Markdown tables and writes them as JSON beside this file. One BLAS thread, one job.
"""

import importlib.util
import sys
import tracemalloc
import warnings
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import numpy as np
from _command import command_line, path_beside, write
from _report import growth_row, markdown, seconds, shortest
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

import skbnp
from skbnp import DirichletProcessMixture
from skbnp.dirichlet_process_mixture._model import (
    GaussianPrior,
    Prior,
    default_covariance,
    default_degrees_of_freedom,
)
from skbnp.dirichlet_process_mixture._sampler import Sampler
from skbnp.mcmc.rows import for_row_blocks
from skbnp.summaries.partitions import consensus_partition

BUILD = Path(__file__).resolve().parents[1] / "build" / "benchmarks"
SHAPES = ("full", "diag", "spherical")


# -- data and chains


def blobs(n, d, k, spread=3.0, tilt=0.3):
    """n rows in k Gaussian clusters, standardised, and their labels.

    Centres have standard deviation ``spread``: at 3 clusters stand apart, at 0.6 they overlap so
    that a sweep moves every sixth row. Without ``tilt`` clusters are spheres.
    """
    rng = np.random.default_rng(0)
    label = rng.permutation(np.arange(n) % k)
    center = rng.normal(scale=spread, size=(k, d))
    root = np.eye(d) + rng.normal(scale=tilt, size=(k, d, d))
    X = center[label] + np.einsum("nd,nde->ne", rng.normal(size=(n, d)), root[label])
    return (X - X.mean(axis=0)) / X.std(axis=0), label


def start_chain(X, label, shape, n_warmup=10, **options):
    """A chain with the default prior, warmed up from the true clusters."""
    d = X.shape[1]
    degrees_of_freedom = default_degrees_of_freedom(d, shape)
    covariance = default_covariance(X, shape, degrees_of_freedom)
    part = GaussianPrior(np.arange(d), shape, np.zeros(d), 0.01, degrees_of_freedom, covariance)
    bit_generator = np.random.default_rng(0).bit_generator
    sampler = Sampler(X, Prior((part,)), label, bit_generator, **options)
    for step in range(n_warmup):
        sampler.sweep()
        sampler.adapt(step)
    return sampler


# -- timing


def compile_floor():
    """The module _floor, built next to the package's own kernels with their settings."""
    try:
        from Cython.Build import cythonize
        from setuptools import Distribution, Extension
    except ImportError as error:
        sys.exit(f"the floors are compiled: pip install '.[bench]' ({error})")
    extension = Extension(
        "_floor",
        [str(Path(__file__).with_name("_floor.pyx"))],
        extra_compile_args=["/O2"] if sys.platform == "win32" else ["-O3"],
    )
    modules = cythonize(
        [extension],
        build_dir=str(BUILD),
        quiet=True,
        compiler_directives={
            "language_level": "3",
            "boundscheck": False,
            "initializedcheck": False,
            "wraparound": False,
            "cdivision": True,
        },
    )
    command = Distribution({"ext_modules": modules}).get_command_obj("build_ext")
    command.build_lib = command.build_temp = str(BUILD)
    command.ensure_finalized()
    command.run()
    spec = importlib.util.spec_from_file_location("_floor", command.get_ext_fullpath("_floor"))
    floor = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(floor)
    return floor


# -- what is measured; each returns (heading, rows), a row being a dict


def measure_sweep(quick):
    """A sweep over the operations it cannot do without, measured by turns."""
    floor = compile_floor()
    rows = []
    for n, name, spread in (
        (10_000, "apart", 3.0),
        (10_000, "overlapping", 0.6),
        (1_000, "overlapping", 0.6),
    ):
        X, label = blobs(n, 8, 10, spread)
        sampler = start_chain(X, label, "full")
        draw = sampler.draw()
        k = sampler.n_clusters
        mean, factor = draw["mean"][:k], np.ascontiguousarray(draw["factor"][:k])
        numbers = np.random.default_rng(0).exponential(size=n * k)
        moved = sampler.acceptance()["gibbs"]
        times = {"sweep": [], "solves": [], "log1p + exp": [], "updates": []}
        for _ in range(10 if quick else 40):
            times["sweep"].append(seconds(sampler.sweep))
            times["solves"].append(seconds(floor.forward_substitutions, X, mean, factor))
            times["log1p + exp"].append(seconds(floor.logarithms_and_exponentials, numbers))
            times["updates"].append(seconds(floor.rank_one_updates, X, factor.copy(), 2))
        changed = sampler.acceptance()["gibbs"]
        best = {name: min(values) for name, values in times.items()}
        rows.append(
            {
                "clusters": name,
                "N": n,
                "D": 8,
                "K": k,
                "rows that move": f"{(changed[0] - moved[0]) / (changed[1] - moved[1]):.1%}",
                **{f"{name}, ms": 1e3 * value for name, value in best.items()},
                "sweep / floor": best["sweep"] / (sum(best.values()) - best["sweep"]),
            }
        )
    return "Sweep over its floor: N K solves, N K log1p and exp, 2 N rank-one updates", rows


def measure_growth(quick):
    """How the time of a sweep grows: the slope of log time on log size, one size at a time."""
    sizes = {
        "N": [2_000, 4_000, 8_000] if quick else [2_000, 4_000, 8_000, 16_000, 32_000],
        "D": [4, 8, 16, 32],
        "K": [5, 10, 20, 40],
    }
    rows = []
    for shape in SHAPES:
        row = {"covariance": shape}
        for name, values in sizes.items():
            times = []
            for value in values:
                size = {"N": 4_000, "D": 8, "K": 10} | {name: value}
                # Spheres, so that no shape of covariance wants another number of clusters.
                X, label = blobs(size["N"], size["D"], size["K"], tilt=0.0)
                sampler = start_chain(X, label, shape, n_warmup=3)
                n_sweeps = 4 if quick else 10
                times.append(shortest(sampler.sweep, repeats=n_sweeps, wall=True))
            found = growth_row(values, times, "s")
            row[f"slope in {name}"] = found["slope"]
            row[f"last doubling of {name}"] = found["last doubling"]
        rows.append(row)
    return "Growth of a sweep (elsewhere N = 4,000, D = 8, K = 10)", rows


def measure_prediction(quick):
    """Time per row of the predict-type methods, 100 draws, one thread."""
    rows = []
    X, _ = blobs(1_000, 8, 10)
    new, _ = blobs(100_000, 8, 10)
    holed = new.copy()
    holed[np.random.default_rng(0).random(new.shape) < 0.1] = np.nan
    for shape in SHAPES[:1] if quick else SHAPES:
        mixture = DirichletProcessMixture(
            covariance_type=shape, n_warmup=50, n_draws=50, n_jobs=1, random_state=0
        )
        mixture.fit(X)
        for n in (10_000, 100_000):
            for name, table in (
                ("predict_proba", new),
                ("score_samples", new),
                ("score_samples, 10 % holes", holed),
                ("impute, 10 % holes", holed),
            ):
                method = getattr(mixture, name.partition(",")[0])
                repeats = 30_000 // n + 1
                value = shortest(method, table[:n], repeats=repeats, wall=True)
                rows.append(
                    {
                        "covariance": shape,
                        "method": name,
                        "rows": n,
                        "s": value,
                        "us per row": 1e6 * value / n,
                        "bytes per row": peak_bytes(method, table[:n]) / n,
                    }
                )
    return "Predict-type methods, D = 8, K about 10, 100 draws", rows


def peak_bytes(function, *arguments):
    """Bytes of arrays allocated at once in a call, on top of those there were."""
    tracemalloc.start()
    function(*arguments)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def em_iteration(X, label, k):
    """A function that makes one iteration of scikit-learn's EM, both steps, from the clusters."""
    centers = np.array([X[label == c].mean(axis=0) for c in range(k)])
    mixture = GaussianMixture(k, max_iter=1, means_init=centers, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mixture.fit(X[:20_000])

    def iterate():
        mixture._m_step(X, mixture._e_step(X)[1])

    return iterate


def measure_many_rows(quick):
    """A parallel sweep beside one iteration of EM, one BLAS thread each, by turns."""
    n, d, k = 100_000 if quick else 1_000_000, 10, 20
    rows = []
    for name, spread in (("apart", 3.0), ("overlapping", 0.6)):
        X, label = blobs(n, d, k, spread)
        em = em_iteration(X, label, k)
        chains = {
            threads: start_chain(
                X,
                label,
                "full",
                n_warmup=2,
                algorithm="parallel",
                for_rows=partial(for_row_blocks, n_threads=threads),
            )
            for threads in (1, 2)
        }
        times = {"EM": [], 1: [], 2: []}
        for _ in range(3 if quick else 4):
            times["EM"].append(seconds(em))
            for threads, chain in chains.items():
                times[threads].append(seconds(chain.sweep))
        best = {name: min(values) for name, values in times.items()}
        rows.append(
            {
                "clusters": name,
                "N": n,
                "D": d,
                "K": chains[1].n_clusters,
                "EM iteration, s": best["EM"],
                "sweep, s": best[1],
                "sweep, two threads, s": best[2],
                "sweep / EM": best[1] / best["EM"],
                "one thread / two": best[1] / best[2],
                "same draws": bool(np.array_equal(chains[1].labels, chains[2].labels)),
            }
        )
    return "A sweep of the parallel algorithm beside an iteration of EM, full covariance", rows


def measure_search(quick, data):
    """Time of the search for one partition as a share of the sampling."""
    tables = {
        f"{name}, {n:,} x 8": blobs(n, 8, 10, spread)[0]
        for name, spread in (("apart", 3.0), ("overlapping", 0.6))
        for n in (1_000, 10_000)
    }
    path = data / "wifi_localization.csv.gz"
    if path.exists():
        X = np.loadtxt(path, delimiter=",", skiprows=1)[:, :-1]
        tables[f"wifi_localization, {X.shape[0]:,} x {X.shape[1]}"] = X
    else:
        print(f"no {path}: that row is left out\n")
    length = {"n_warmup": 50, "n_draws": 75} if quick else {}
    rows = []
    for name, X in tables.items():
        mixture = DirichletProcessMixture(n_jobs=1, random_state=0, **length)
        whole = seconds(mixture.fit, X)
        labels = [draw["label"] for draw in mixture.posterior_.evenly_spaced(300)]
        search = seconds(
            lambda labels=labels, mixture=mixture, X=X: consensus_partition(
                labels,
                max_work=mixture._search_work(X),
                random_state=mixture.seed_ % 2**32,
            )
        )
        rows.append(
            {
                "table": name,
                "clusters": mixture.n_clusters_,
                "fit, s": whole,
                "search, s": search,
                "search / sampling": search / (whole - search),
                "stopped early": mixture.partition_info_["truncated"],
            }
        )
    return "Search for labels_ beside the sampling, four chains, one core", rows


def main():
    """Measure, print, write."""
    parser = command_line(__doc__, "fewer sizes and repeats")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", "The chains may not have converged")  # short on purpose
    BUILD.mkdir(parents=True, exist_ok=True)

    results = {}
    print(f"skbnp {skbnp.__version__}, {datetime.now(UTC):%Y-%m-%d}\n")
    with threadpool_limits(1):
        for measure, extra in (
            (measure_sweep, ()),
            (measure_growth, ()),
            (measure_many_rows, ()),
            (measure_prediction, ()),
            (measure_search, (arguments.data,)),
        ):
            heading, rows = measure(arguments.quick, *extra)
            print(f"{heading}\n\n{markdown(rows)}\n", flush=True)
            results[heading] = rows
    path = path_beside(__file__)
    write(path, arguments.quick, results)
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
