"""What a long run pays for being safe, as ratios: checkpoints, files, other processes.

Prints Markdown tables and writes them as JSON beside this file. The alternatives are the same fit
without a checkpoint, and pickle and joblib's dump, which are faster to write by hand and execute
what they read.
"""

import pickle
import tempfile
import warnings
from pathlib import Path

import joblib
import numpy as np
from _command import command_line, path_beside, write
from _report import markdown, mean_and_error, seconds, shortest
from dirichlet_process_mixture import blobs

from skbnp import DirichletProcessMixture
from skbnp.mcmc import Posterior
from skbnp.mcmc.checkpoint import Checkpoint

OPTIONS = dict(covariance_type="diag", n_chains=4, random_state=0)


def checkpoints(n, lengths, repeats):
    """The same fit without and with a file that is written at every meeting of the chains."""
    X, _ = blobs(n, 4, 5)
    rows = []
    for every in (60.0, 1.0, 0.0):
        ratios = []
        for _ in range(repeats):
            with tempfile.TemporaryDirectory() as directory:
                plain = seconds(DirichletProcessMixture(**OPTIONS, **lengths).fit, X)
                safe = DirichletProcessMixture(
                    **OPTIONS, **lengths, checkpoint=directory, checkpoint_every=every
                )
                taken = seconds(safe.fit, X)
                (file,) = Path(directory).iterdir()
                megabytes = file.stat().st_size / 1e6
                ratios.append(taken / plain)
                again = seconds(safe.fit, X) / plain
        ratio, error = mean_and_error(ratios)
        rows.append(
            {
                "seconds between writes": every,
                "N": n,
                "draws": lengths["n_draws"],
                "file, MB": megabytes,
                "time / without": ratio,
                "standard error": error,
                "finished run read again / without": again,
            }
        )
    return rows


def files(sizes, repeats):
    """Save and load beside pickle and joblib's dump: time and size, as ratios."""
    rows = []
    for n, n_draws in sizes:
        posterior = made_up(n, n_draws)
        with tempfile.TemporaryDirectory() as directory:
            paths = {name: Path(directory) / name for name in ("ours", "pickle", "joblib")}
            checkpoint = Checkpoint(directory, {"model": "made_up"})
            save = {
                "ours": lambda path, p=posterior: p.save(path),
                "pickle": lambda path, p=posterior: dump(p, path),
                "joblib": lambda path, p=posterior: joblib.dump(p, path),
                "checkpoint": lambda path, p=posterior, c=checkpoint: c.save(p),
            }
            read = {"ours": Posterior.load, "pickle": undump, "joblib": joblib.load}
            paths["checkpoint"] = checkpoint.path
            spent = {
                name: shortest(call, paths[name], repeats=repeats, wall=True)
                for name, call in save.items()
            }
            loaded = {
                name: shortest(call, paths[name], repeats=repeats, wall=True)
                for name, call in read.items()
            }
            size = {name: path.stat().st_size for name, path in paths.items()}
        rows.append(
            {
                "N": n,
                "stored draws": posterior.n_stored,
                "MB": size["ours"] / 1e6,
                "size / pickle": size["ours"] / size["pickle"],
                "save / pickle": spent["ours"] / spent["pickle"],
                "save / joblib": spent["ours"] / spent["joblib"],
                "load / pickle": loaded["ours"] / loaded["pickle"],
                "load / joblib": loaded["ours"] / loaded["joblib"],
                "checkpoint, s": spent["checkpoint"],
            }
        )
    return rows


def made_up(n, n_draws):
    """Draws as a mixture of 8 clusters in 8 features keeps them."""
    rng = np.random.default_rng(0)

    def draw():
        return {
            "label": rng.integers(8, size=n, dtype=np.uint8),
            "concentration": rng.random(),
            "n_members": rng.integers(n, size=9),
            "mean": rng.normal(size=(9, 8)),
            "factor": rng.normal(size=(9, 8, 8)),
        }

    draws = [[draw() for _ in range(n_draws)] for _ in range(4)]
    return Posterior(draws, {"log_joint": rng.normal(size=(4, n_draws))})


def dump(value, path):
    """Pickle to a file that is then on the disk, as ours is."""
    with open(path, "wb") as file:
        pickle.dump(value, file, protocol=pickle.HIGHEST_PROTOCOL)


def undump(path):
    """Its inverse."""
    with open(path, "rb") as file:
        return pickle.load(file)


def backends(n, lengths):
    """The same fit by two chains at a time in threads, processes and one after the other."""
    X, _ = blobs(n, 4, 5)
    mixture = DirichletProcessMixture(**OPTIONS, **lengths)
    alone = seconds(mixture.fit, X)
    rows = []
    for backend in ("threading", "loky"):
        with joblib.parallel_config(backend=backend, n_jobs=2):
            mixture.fit(X[:200])  # starts the workers
            rows.append({"N": n, "backend": backend, "time / one job": seconds(mixture.fit, X)})
        rows[-1]["time / one job"] /= alone
    return rows


def main():
    """Run, print, write."""
    parser = command_line(__doc__, "short form", reads_data=False)
    quick = parser.parse_args().quick
    lengths = dict(n_warmup=50, n_draws=200) if quick else dict(n_warmup=100, n_draws=600)
    warnings.simplefilter("ignore")
    tables = {
        "Checkpoints": checkpoints(2_000, lengths, 2 if quick else 4),
        "Files": files([(1_000, 300)] if quick else [(100, 5_000), (10_000, 500)], 3),
        "Backends": backends(4_000, lengths),
    }
    for title, rows in tables.items():
        print(f"\n### {title}\n\n{markdown(rows)}")
    write(path_beside(__file__), quick, tables)


if __name__ == "__main__":
    main()
