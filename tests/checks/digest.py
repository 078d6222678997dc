"""Digests of what the samplers draw, to compare before and after a change that may not change it.

    python tests/checks/digest.py --write FILE              # before
    python tests/checks/digest.py --compare FILE [NAME...]  # after: exits with 1 if one differs

50 sweeps of every main setting of every estimator (`contract.registry`), on a small table with
holes and on one of more rows than a block of a sum has; a digest of all traces, all stored draws
and the counts of accepted moves. NAME restricts it to settings that begin so. --without leaves out
traces that look at the draws and change nothing, such as log_density.
"""

import argparse
import hashlib
import json
import sys
import warnings
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
SWEEPS = dict(n_chains=2, n_warmup=30, n_draws=20, thin=1, random_state=0)
MIXED = ["gaussian", "gaussian", "categorical", "poisson"]


def tables(setting):
    """Small with holes; large where the rows of a sum are cut into blocks."""
    rng = np.random.default_rng(1)
    for n, name in ((60, "small"), (1300, "large")):
        X = rng.standard_t(5, size=(n, 4)) + 3.0 * rng.integers(0, 3, size=(n, 1))
        X[:, 3] += X[:, 0]
        if setting.options.get("family") == MIXED:
            X[:, 2] = rng.integers(0, 3, size=n)
            X[:, 3] = rng.poisson(4.0, size=n)
        if setting.takes_holes:
            X[rng.random(X.shape) < (0.1 if n < 100 else 0.01)] = np.nan
            X[np.isnan(X).all(axis=1), 0] = 0.0
        yield name, X


def put(hasher, value):
    """Feed a tree of plain data and arrays."""
    if isinstance(value, dict):
        for key in sorted(value):
            hasher.update(str(key).encode())
            put(hasher, value[key])
    elif isinstance(value, (list, tuple)):
        for item in value:
            put(hasher, item)
    else:
        array = np.asarray(value)
        if array.dtype.kind in "iub":
            array = array.astype(np.int64)
        if array.dtype.kind == "O":
            put(hasher, list(array))
            return
        hasher.update(str(array.shape).encode())
        hasher.update(np.ascontiguousarray(array).tobytes())


def digest(setting, X, without=()):
    """Hexadecimal digest of all that a fit draws."""
    posterior = setting.fit(X, **SWEEPS).posterior_
    hasher = hashlib.sha256()
    put(hasher, {name: x for name, x in posterior.traces.items() if name not in without})
    put(hasher, list(posterior))
    put(hasher, posterior.acceptance)
    return hasher.hexdigest()[:32]


def main():
    """Write or compare."""
    sys.path.insert(0, str(ROOT))
    from contract.registry import SETTINGS, Setting
    from skbnp import DirichletProcessMixture
    from skbnp.laws import Beta
    from skbnp.samplers import MixtureSampler

    settings = [
        *SETTINGS,
        Setting("mixture-mixed", DirichletProcessMixture, {"family": MIXED}),
        Setting("mixture-fixed", DirichletProcessMixture, {"degrees_of_freedom_prior": 8.0}),
        Setting("mixture-discount", DirichletProcessMixture, {"discount": Beta(1.0, 9.0)}),
        Setting(
            "mixture-gibbs-split",
            DirichletProcessMixture,
            {"sampler": MixtureSampler(split_merge="restricted_gibbs")},
        ),
    ]
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", type=Path)
    parser.add_argument("--compare", type=Path)
    parser.add_argument("--without", nargs="+", default=(), help="traces")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    before = json.loads(arguments.compare.read_text()) if arguments.compare else {}
    found, n_differ = {}, 0
    warnings.simplefilter("ignore")
    for setting in settings:
        if arguments.names and not any(map(setting.name.startswith, arguments.names)):
            continue
        for size, X in tables(setting):
            key = f"{setting.name} {size}"
            found[key] = digest(setting, X, arguments.without)
            same = before.get(key) == found[key]
            n_differ += not same
            print(key, found[key], "" if not before else "same" if same else "DIFFERS", flush=True)
    if arguments.write:
        arguments.write.write_text(json.dumps(found, indent=1) + "\n")
    sys.exit(bool(before) and n_differ > 0)


if __name__ == "__main__":
    main()
