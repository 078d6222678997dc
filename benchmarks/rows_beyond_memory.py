"""What a sweep over rows beyond memory costs and gives: CPU, memory, a checkpoint, densities.

Run ``python benchmarks/rows_beyond_memory.py [--rows N] [--workers N] [--where dask|threads]
[--data DIR]``. It writes a file of single precision, eight columns, twenty clusters of .1 to 30 %
of the rows, and fits one chain to it. CPU is the difference between a longer and a shorter fit, so
that reading, starting and summing up are not in it; memory is the peak of all processes, and its
medians over the second and the last quarter of the longer fit. Before each fit and after the last,
``partial_fit`` of scikit-learn's MiniBatchKMeans with as many clusters sees blocks of the same
rows, in as many processes at once: what a microsecond is worth on the machine at that time.

``--part density`` compares densities of held-out rows with those of the collapsed sampler, which
visits rows one by one in memory, after as many sweeps.
"""

import json
import multiprocessing
import os
import tempfile
import threading
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

# No import of skbnp here: workers of a cluster that a script starts import the script first, and
# whatever that imports takes memory in each.

N_FEATURES = 8


def write_rows(path, n_samples, n_clusters, seed=0):
    """Rows of normal clusters, .1 to 30 % of them each, written part by part."""
    rng = np.random.default_rng(seed)
    sizes = np.geomspace(0.3, 0.001, n_clusters)
    centers = rng.normal(0.0, 6.0, (n_clusters, N_FEATURES))
    X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n_samples, N_FEATURES))
    for start in range(0, n_samples, 250_000):
        stop = min(start + 250_000, n_samples)
        group = rng.choice(n_clusters, p=sizes / sizes.sum(), size=stop - start)
        X[start:stop] = rng.normal(centers[group], 1.0)
    X.flush()


def read_part(path, start, stop):
    """Some rows of the file, on a worker."""
    return np.array(np.load(path, mmap_mode="r")[start:stop])


def as_dask(path, n_samples, block_rows):
    """The file as a Dask array whose blocks are read where they are needed."""
    import dask
    import dask.array as da

    read = dask.delayed(read_part, pure=True)
    starts = range(0, n_samples, block_rows)
    return da.concatenate([
        da.from_delayed(
            read(str(path), start, min(start + block_rows, n_samples)),
            (min(block_rows, n_samples - start), N_FEATURES),
            dtype=np.float32,
        )
        for start in starts
    ])  # fmt: skip


class Watch(threading.Thread):
    """Peak of the memory of this process and its children, in bytes.

    Resident, where pages that several share count for each; their own; and proportional, where such
    pages are shared out, which is what all of them take together.
    """

    def __init__(self):
        super().__init__(daemon=True)
        self.peak = self.own = self.proportional = self.driver = 0
        self.resident, self.paused = [], False
        self._end = threading.Event()

    def run(self):
        while not self._end.wait(0.2):
            if self.paused:
                continue
            found = [memory_of(process) for process in family()]
            self.driver = max(self.driver, found[0][0])
            self.resident.append(sum(one[0] for one in found))
            self.peak = max(self.peak, self.resident[-1])
            self.own = max(self.own, sum(one[1] for one in found))
            self.proportional = max(self.proportional, sum(one[2] for one in found))

    def stop(self):
        self._end.set()
        self.join()


def family():
    import psutil

    me = psutil.Process()
    return [me, *me.children(recursive=True)]


def memory_of(process):
    """Resident bytes, those of them that are no pages of files, and proportional ones."""
    import psutil

    try:
        found = process.memory_full_info()
    except psutil.Error:
        return 0, 0, 0
    return found.rss, found.rss - found.shared, found.pss


def cpu_seconds():
    """Of this process and all its children that are alive."""
    import psutil

    total = 0.0
    for process in family():
        try:
            found = process.cpu_times()
        except psutil.Error:
            continue
        total += found.user + found.system
    return total


def measure(X, args, checkpoint, sweeps):
    """CPU and wall seconds of a fit of so many sweeps, with a few before the first draw."""
    from skbnp import DirichletProcessMixture

    began, began_wall = cpu_seconds(), time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = DirichletProcessMixture(
            n_chains=1, n_warmup=args.warmup, n_draws=sweeps, n_jobs=args.workers, random_state=0,
            checkpoint=checkpoint,
        ).fit(X)  # fmt: skip
    return np.array([cpu_seconds() - began, time.perf_counter() - began_wall]), model


def kmeans_of_a_process(path, block_rows, n_clusters, n_blocks=6):
    """CPU seconds a row of ``partial_fit``, reading included as it is in a sweep."""
    from sklearn.cluster import MiniBatchKMeans
    from threadpoolctl import threadpool_limits

    stored = np.load(path, mmap_mode="r")
    block_rows = min(block_rows, len(stored))
    model = MiniBatchKMeans(n_clusters, n_init=1, random_state=0)
    with threadpool_limits(1):
        model.partial_fit(np.array(stored[:block_rows]))  # starts from random rows
        began = time.process_time()
        for b in range(n_blocks):
            start = b * block_rows % max(1, len(stored) - block_rows)
            model.partial_fit(np.array(stored[start : start + block_rows]))
        return (time.process_time() - began) / (n_blocks * block_rows)


def kmeans_seconds(args, path):
    """The mean of as many processes as there are workers, all at once."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(args.workers, context) as pool:
        options = path, min(args.block_rows, 2**18), args.clusters
        return np.mean(
            list(pool.map(kmeans_of_a_process, *zip(*[options] * args.workers, strict=True)))
        )


def idle_cpu(seconds=10.0):
    """CPU that the processes take while nothing is done, as a share of a core."""
    began = cpu_seconds()
    time.sleep(seconds)
    return (cpu_seconds() - began) / seconds


def report(args, X, path):
    known = [kmeans_seconds(args, path)]
    watch = Watch()
    watch.start()
    began = time.perf_counter()
    found = {}
    with tempfile.TemporaryDirectory() as checkpoint:
        short, _ = measure(X, args, None, args.first)
        watch.paused = True
        known.append(kmeans_seconds(args, path))
        watch.paused = False
        start = len(watch.resident)
        long, model = measure(X, args, checkpoint, args.first + args.sweeps)
        sizes = [path.stat().st_size for path in Path(checkpoint).iterdir()]
        found["checkpoint_mb"] = max(sizes) / 1e6
    watch.stop()
    quarters = np.array_split(watch.resident[start:], 4)
    cpu, wall = long - short
    # Event loops take time by the clock, which a crowded machine has more of.
    net = cpu - idle_cpu() * wall
    known.append(kmeans_seconds(args, path))
    traces = model.posterior_.traces["n_clusters"]
    found |= {
        "rows": args.rows,
        "where": args.where,
        "workers": args.workers,
        "clusters": float(traces.mean()),
        "microseconds_per_row_and_sweep": 1e6 * cpu / args.rows / args.sweeps,
        "the_same_without_idle_processes": 1e6 * net / args.rows / args.sweeps,
        "microseconds_of_mini_batch_kmeans": 1e6 * np.mean(known),
        "times_mini_batch_kmeans": cpu / args.rows / args.sweeps / np.mean(known),
        "peak_resident_mb": watch.peak / 1e6,
        "peak_proportional_mb": watch.proportional / 1e6,
        "peak_own_mb": watch.own / 1e6,
        "peak_driver_mb": watch.driver / 1e6,
        "resident_in_second_quarter_mb": np.median(quarters[1]) / 1e6,
        "resident_in_last_quarter_mb": np.median(quarters[3]) / 1e6,
        "seconds_per_sweep": wall / args.sweeps,
        "seconds": time.perf_counter() - began,
    }
    show(found)
    return found


def report_densities(args, path):
    """Densities of held-out rows by the sampler of collections and by the collapsed one."""
    from skbnp import DirichletProcessMixture
    from skbnp.samplers import MixtureSampler

    stored, found = np.load(path, mmap_mode="r"), {"rows": args.rows - args.held_out}
    new = np.array(stored[-args.held_out :])
    n = args.rows - args.held_out
    rows = np.memmap(path, np.float32, "r", stored.offset, (n, N_FEATURES))
    tables = {
        "collection": (rows, MixtureSampler()),
        "collapsed": (np.array(rows, dtype=float), MixtureSampler(algorithm="collapsed")),
    }
    for name, (X, sampler) in tables.items():
        began = cpu_seconds()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = DirichletProcessMixture(
                n_chains=2, n_warmup=args.sweeps, n_draws=args.sweeps, sampler=sampler,
                random_state=0, n_jobs=args.workers,
            ).fit(X)  # fmt: skip
        density = model.score_samples(new)
        found |= {
            f"{name}_density": density.mean(),
            f"{name}_components": model.posterior_.traces["n_clusters"].mean(),
            f"{name}_clusters": model.n_clusters_,
            f"{name}_cpu_seconds": cpu_seconds() - began,
        }
        del model
    found["difference"] = found["collection_density"] - found["collapsed_density"]
    show(found)
    return found


def show(found):
    print("| figure | value |\n|---|---|")
    for name, value in found.items():
        print(f"| {name} | {value if isinstance(value, (str, int)) else format(value, '.6g')} |")


def main():
    from _command import command_line

    parser = command_line(__doc__, "a million rows, three sweeps")
    parser.add_argument("--part", choices=["cost", "density"], default="cost")
    parser.add_argument("--held-out", type=int, default=20_000, help="of the rows, for densities")
    parser.add_argument("--warmup", type=int, default=5, help="sweeps before the first draw")
    parser.add_argument("--first", type=int, default=5, help="draws of the shorter fit")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--clusters", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--sweeps", type=int, default=20)
    parser.add_argument("--block-rows", type=int, default=16 * 65_536)
    parser.add_argument("--where", choices=["dask", "threads"], default="dask")
    parser.set_defaults(data=Path(tempfile.gettempdir()))
    args = parser.parse_args()
    if args.quick:
        args.rows, args.sweeps = 1_000_000, 3
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    path = args.data / f"rows_beyond_memory_{args.rows}_{args.clusters}.npy"
    if not path.exists():
        write_rows(path, args.rows, args.clusters)
    if args.part == "density":
        found = report_densities(args, path)
    elif args.where == "threads":
        found = report(args, np.load(path, mmap_mode="r"), path)
    else:
        from dask.distributed import Client, LocalCluster

        with (
            LocalCluster(args.workers, threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster),
        ):
            found = report(args, as_dask(path, args.rows, args.block_rows), path)
    Path("rows_beyond_memory.json").write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
