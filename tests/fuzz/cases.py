"""Random cases: an estimator with random options, and a table that may be anything.

A case follows from the name of its class and its seed alone.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass, fields
from numbers import Integral

import numpy as np
import pandas as pd
from sklearn.base import is_classifier, is_regressor
from sklearn.utils._param_validation import Interval, StrOptions

from contract.registry import DEFAULTS, SETTINGS
from skbnp.estimators.chains import BaseMCMCEstimator
from skbnp.estimators.settings import SamplerSettings
from skbnp.laws import Gamma, Grid, Law

try:
    import polars
except ImportError:
    polars = None

KINDS = {setting.kind.__name__: setting.kind for setting in DEFAULTS}

# Options that are work and nothing else: as little of it as finds a fault.
_WORK = {
    "n_activation_passes": 2,
    "n_tries": 4,
    "n_temperatures": 5,
    "n_particles": 3,
    "n_fantasies": 30,
    "n_importance": 20,
    "n_leapfrog": 4,
    "n_births": 4,
    "n_hmc": 2,
    "n_noise_slices": 2,
    "n_affine": 2,
    "n_rotations": 2,
    "n_split_merge": 5,
    "n_init_units": 8,
    "n_init_factors": 6,
    "n_init_clusters": 8,
    "max_layers": 3,
    "max_depth": 30,
}
_CHAIN_PARAMETERS = set(BaseMCMCEstimator._parameter_constraints)


@dataclass(frozen=True)
class Case:
    """What one seed stands for."""

    kind: type
    seed: int
    options: dict
    X: object
    y: object
    X_new: object
    # How to start the second fit, whose draws must be those of the first.
    n_jobs: int
    # Which of the longer checks this case makes.
    goes_on: bool
    pickles: bool
    saves: bool

    def make(self, **changes):
        """The estimator, not fitted."""
        return self.kind(**(self.options | changes))

    def __str__(self):
        return f"{self.kind.__name__} seed {self.seed}"


def case(name, seed):
    """The case of a class and a seed."""
    random = np.random.default_rng([zlib.crc32(name.encode()), seed])
    kind = KINDS[name]
    settings = [setting for setting in SETTINGS if setting.kind is kind]
    options = dict(settings[random.integers(len(settings))].options)
    for name in _of_the_kind(kind):
        if name in _WORK and not isinstance(getattr(kind(), name), str | tuple):
            options.setdefault(name, min(_WORK[name], getattr(kind(), name)))
    if kind._settings_type is not None:
        options.setdefault("sampler", _sampler(random, kind._settings_type))
    table = _table(random)
    names = [name for name in _of_the_kind(kind) if name not in settings[0].options]
    n_changed = min(len(names), random.choice([0, 1, 1, 2, 3, 5]))
    for name in random.choice(names, n_changed, replace=False):
        options[str(name)] = _option(random, kind, str(name), table.shape[1])
    options |= {
        "n_chains": int(random.integers(1, 3)),
        "n_warmup": int(random.integers(0, 4)),
        "n_draws": int(random.integers(1, 5)),
        "thin": int(random.integers(1, 3)),
        "predict_draws": int(random.integers(1, 6)),
        "random_state": int(random.integers(2**31)),
        "store": ["auto", "all", 1e-6][random.choice(3, p=[0.8, 0.1, 0.1])],
    }
    return Case(
        kind=kind,
        seed=seed,
        options=options,
        X=_contained(random, table),
        y=_target(random, kind, table),
        X_new=_contained(random, _new_rows(random, table)),
        n_jobs=int(random.integers(1, 3)),
        goes_on=random.random() < 0.3,
        pickles=random.random() < 0.3,
        saves=random.random() < 0.3,
    )


# -- options


def _of_the_kind(kind):
    return sorted(set(kind._parameter_constraints) - _CHAIN_PARAMETERS)


def _option(random, kind, name, n_features):
    """A value of one parameter: mostly one that its constraints allow."""
    if random.random() < 0.05:
        return [None, -1, 0, "nothing", 1.5, np.nan, np.inf, True, [], (1, 2), {}, 10**30, b"1"][
            random.integers(13)
        ]
    default = getattr(kind(), name)
    rules = kind._parameter_constraints[name]
    rule = rules[random.integers(len(rules))]
    if isinstance(rule, Interval):
        return _within(random, rule, _WORK.get(name))
    if isinstance(rule, StrOptions):
        return str(random.choice(sorted(rule.options)))
    if isinstance(rule, str) and rule == "boolean":
        return bool(random.random() < 0.5)
    if rule is None:
        return None
    if rule in (list, tuple):
        return rule(_numbers(random, default, n_features))
    if isinstance(rule, str) and rule == "array-like":
        return _scaled(random, random.gamma(1.0, size=n_features))
    if isinstance(rule, type) and issubclass(rule, Law):
        return _law(random, rule, default)
    if isinstance(rule, type) and issubclass(rule, SamplerSettings):
        return _sampler(random, rule)
    if rule is dict:
        return {j: str(random.choice(["gaussian", "poisson", "bernoulli"])) for j in range(2)}
    return _scaled(random, random.gamma(1.0))


def _law(random, kind, default):
    """A law with any numbers that it takes, and a law for one of them where the default has one."""
    is_hierarchical = any(isinstance(x, Law) for x in getattr(default, "__dict__", {}).values())
    if kind is Grid:
        return Grid(tuple(random.gamma(1.0, size=3)))
    while True:
        numbers = [float(_scaled(random, random.gamma(1.0))) for _ in fields(kind)]
        if is_hierarchical is not (random.random() < 0.05):
            numbers[-1] = Gamma(1.0, 1.0)
        try:
            return kind(*numbers)
        except (TypeError, ValueError):
            continue


def _sampler(random, kind):
    """Settings of a sampler: as little work as finds a fault, and some that are changed."""
    defaults = kind().get_params()
    chosen = {}
    for name, default in defaults.items():
        if name in _WORK and not isinstance(default, str | tuple):
            chosen[name] = min(_WORK[name], default)
        elif random.random() < 0.15:
            chosen[name] = _option(random, kind, name, 1)
    return kind(**chosen)


def _within(random, rule, work):
    """A number of an interval: at its ends, near them, or anywhere."""
    low = -1e308 if rule.left is None else rule.left
    high = 1e308 if rule.right is None else rule.right
    if rule.type is Integral:
        high = work if work is not None else min(high, 10 ** random.integers(1, 4))
        low = max(low, -10)
        if random.random() < 0.2:
            return int(random.choice([low, max(low, high)]))
        return int(random.integers(low, max(low, high) + 1))
    if random.random() < 0.15:
        return float(random.choice([low, high]))
    if random.random() < 0.3 and low > 0 and high / low < 1e300:
        return float(np.exp(random.uniform(np.log(low), np.log(high))))
    return float(np.clip(random.gamma(1.0) * 10 ** random.normal(), low, high))


def _numbers(random, default, n_features):
    """Numbers as many as the default has, or as there might be."""
    if default is not None and np.ndim(default) == 2:
        return [tuple(_scaled(random, random.gamma(1.0, size=2))) for _ in default]
    n = len(default) if isinstance(default, list | tuple) else int(random.choice([2, n_features]))
    values = random.gamma(1.0, size=n)
    if random.random() < 0.3:
        return [int(value) for value in 1 + values]
    return [float(value) for value in _scaled(random, values)]


def _scaled(random, values):
    """Mostly near one, sometimes anywhere."""
    return values * 10.0 ** (random.normal() if random.random() < 0.8 else random.uniform(-12, 12))


# -- tables


def _table(random):
    """Float64 numbers of any kind, NaN where missing."""
    n = int(random.choice([1, 2, 3, 5, 8, 13, 21, 34, 60], p=[0.04, 0.06] + [0.9 / 7] * 7))
    d = int(random.choice([1, 2, 3, 4, 6, 9, 12], p=[0.14, 0.2, 0.2, 0.16, 0.12, 0.1, 0.08]))
    X = [_normal, _normal, _clusters, _heavy, _counts, _levels, _correlated][random.integers(7)](
        random, n, d
    )
    for change, share in (
        (_duplicated_rows, 0.1),
        (_duplicated_columns, 0.1),
        (_constant_column, 0.1),
        (_scaled_columns, 0.2),
        (_any_scale, 0.2),
        (_offset, 0.1),
        (_outlier, 0.1),
        (_holes, 0.4),
        (_infinite, 0.02),
    ):
        if random.random() < share:
            with np.errstate(all="ignore"):
                X = change(random, X)
    return X


def _normal(random, n, d):
    return random.normal(size=(n, d))


def _clusters(random, n, d):
    X = random.normal(size=(n, d))
    X[random.random(n) < 0.5] += 10.0 ** random.uniform(0, 8)
    return X


def _heavy(random, n, d):
    return random.standard_cauchy(size=(n, d)) ** int(random.choice([1, 3]))


def _counts(random, n, d):
    return random.poisson(10.0 ** random.uniform(-1, 4), size=(n, d)).astype(float)


def _levels(random, n, d):
    return random.integers(0, random.integers(2, 5), size=(n, d)).astype(float)


def _correlated(random, n, d):
    k = int(random.integers(1, d + 1))
    X = random.normal(size=(n, k)) @ random.normal(size=(k, d))
    return X + random.choice([0.0, 1e-12, 1e-3, 0.3]) * random.normal(size=(n, d))


def _duplicated_rows(random, X):
    return X[random.integers(len(X), size=len(X))]


def _duplicated_columns(random, X):
    return X[:, random.integers(X.shape[1], size=X.shape[1])]


def _constant_column(random, X):
    X = X.copy()
    X[:, random.integers(X.shape[1])] = random.choice([0.0, 1.0, -3.5, 1e6])
    return X


def _scaled_columns(random, X):
    return X * 10.0 ** random.uniform(-6, 6, size=X.shape[1])


def _any_scale(random, X):
    power = random.choice([-300, -200, -160, -150, -100, -30, 30, 100, 150, 160, 200, 300, 307])
    return X * 10.0 ** float(power)


def _offset(random, X):
    return X + 10.0 ** random.uniform(1, 16)


def _outlier(random, X):
    X = X.copy()
    X[random.integers(len(X)), random.integers(X.shape[1])] = 10.0 ** random.uniform(2, 300)
    return X


def _holes(random, X):
    X = np.where(random.random(X.shape) < random.uniform(0, 0.6), np.nan, X)
    if random.random() < 0.8:
        # A column without a value is refused: mostly that is not what this case is about.
        X[random.integers(len(X))] = random.normal(size=X.shape[1])
    if random.random() < 0.2:
        X[random.integers(len(X))] = np.nan
    return X


def _infinite(random, X):
    X = X.copy()
    X[random.integers(len(X)), random.integers(X.shape[1])] = random.choice([np.inf, -np.inf])
    return X


def _new_rows(random, X):
    """Rows to predict for: those of the table, others, far ones, with holes."""
    rows = X[random.integers(len(X), size=random.integers(1, 6))].copy()
    how = random.integers(5)
    with np.errstate(all="ignore"):
        if how == 1:
            rows = np.where(random.random(rows.shape) < 0.5, np.nan, rows)
        elif how == 2:
            noise = random.normal(size=rows.shape)
            rows += noise * (np.nan_to_num(np.nanstd(X)) if np.isfinite(X).any() else 0.0)
        elif how == 3:
            rows = rows * 10.0 ** random.uniform(0, 300)
        elif how == 4:
            rows[random.integers(len(rows))] = np.nan
    return rows


# -- what they come in


def _contained(random, X):
    """The table as another type of number, in another container."""
    make = _MAKERS[random.integers(len(_MAKERS))]
    with np.errstate(all="ignore"):
        return make(random, X)


def _strided(random, X):
    wide = np.full((2 * len(X), 3 * X.shape[1]), 7.0)
    wide[::2, ::3] = X
    return wide[::2, ::3]


def _read_only(random, X):
    X = X.copy()
    X.flags.writeable = False
    return X


def _integers(random, X):
    if not np.all(np.abs(X) < 1e18):
        return X
    return X.astype(random.choice(["int64", "int32", "int8", "uint16"]))


def _frame(random, X):
    # Another index than that of the rows, as after a split.
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    frame.index = random.permutation(len(X)) + 5
    return frame


def _nullable(random, X):
    frame = _frame(random, X)
    return frame.astype("Float64")


def _polars(random, X):
    if polars is None:
        return _frame(random, X)
    return polars.DataFrame({f"x{j}": X[:, j] for j in range(X.shape[1])})


_MAKERS: list[Callable] = [
    lambda random, X: X,
    lambda random, X: X,
    lambda random, X: np.asfortranarray(X),
    _strided,
    _read_only,
    lambda random, X: X.astype(np.float32),
    _integers,
    lambda random, X: X.astype(object),
    lambda random, X: X > 0,
    lambda random, X: X.tolist(),
    lambda random, X: np.ma.masked_invalid(X),
    _frame,
    _frame,
    _nullable,
    _polars,
]


def _target(random, kind, X):
    """Targets of the rows, where the estimator predicts them."""
    signal = np.nan_to_num(X[:, 0], posinf=0.0, neginf=0.0)
    if is_classifier(kind()):
        labels = (signal > np.median(signal)).astype(int) + (signal > np.quantile(signal, 0.8))
        return [labels, labels > 0, np.array(["a", "bc", "d"])[labels], labels.tolist()][
            random.integers(4)
        ]
    if is_regressor(kind()):
        y = [signal, np.column_stack([signal, random.normal(size=len(X))]), np.ones(len(X))][
            random.choice(3, p=[0.6, 0.3, 0.1])
        ]
        with np.errstate(over="ignore"):
            return y * 10.0 ** random.choice([0, 0, 0, 5, -5, 100])
    return None
