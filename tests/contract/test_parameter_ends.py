"""Whatever a parameter allows fits, with finite answers, or is refused by name before any sweep."""

import warnings
from numbers import Integral

import numpy as np
import pytest

from checks.answers import answers
from contract.parameters import ends
from contract.registry import DEFAULTS, SETTINGS, VARIED, others_slow
from skbnp import (
    DeepScaleModel,
    DirichletProcessMixture,
    InfiniteFactorClusterer,
    TreeFactorModel,
)
from skbnp.laws import Gamma

# How long a run is, how many files and threads: any number is right, if it takes its time.
OF_THE_RUN = {"n_chains", "n_warmup", "n_draws", "thin", "n_jobs", "checkpoint_every", "store"}
OF_THE_RUN |= {"predict_draws"}
SCALES = [1e-300, 1e-8, 1.0, 1e8, 1e300]
TINY = {"n_chains": 1, "n_warmup": 2, "n_draws": 2}


def table(scale):
    random = np.random.default_rng(0)
    X = random.normal(size=(16, 3))
    X[:8] += 3.0
    return X * scale


def values_at_ends(kind):
    """(name, value): numbers at both ends, integers at the lower one, as the other is for work."""
    for name in sorted(kind._parameter_constraints.keys() - OF_THE_RUN):
        for value in dict.fromkeys(ends(kind, name)):
            if not isinstance(value, Integral) or value == ends(kind, name)[0]:
                yield name, value
    settings = getattr(kind, "_settings_type", None)
    if settings is not None:
        for name, value in values_at_ends(settings):
            yield "sampler", settings(**{name: value})


def named(changes):
    """The parameters that a message may name, those of a sampler's settings among them."""
    settings = changes.get("sampler")
    return [*changes, *(settings.get_params() if settings is not None else ())]


def fits_or_is_refused(setting, changes, scale):
    """Fit and ask for everything, without a RuntimeWarning and NaN, or a ValueError by name."""
    X = table(scale)
    model = setting.make(**(TINY | changes))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        try:
            model.fit(X, setting.target(X))
        except ValueError as error:
            assert type(error).__name__ in ("ValueError", "InvalidParameterError"), error
            assert any(name in str(error) for name in (*named(changes), "X ")), error
            return
        try:
            found = answers(model, X)
        except ValueError as error:
            # Draws from a prior that floats do not hold.
            assert "the prior is so wide" in str(error)
            return
    for name, value in found.items():
        value = np.asarray(value)
        if value.dtype.kind == "f":
            assert not np.isnan(value).any(), (name, changes, scale)


@pytest.mark.parametrize("setting", others_slow(VARIED, DEFAULTS), ids=str)
def test_every_end_alone(setting):
    for turn, (name, value) in enumerate(values_at_ends(setting.kind)):
        fits_or_is_refused(setting, {name: value}, SCALES[turn % len(SCALES)])


@pytest.mark.parametrize("setting", VARIED, ids=str)
def test_some_ends_together(setting):
    random, every = np.random.default_rng(0), list(values_at_ends(setting.kind))
    for _ in range(4):
        chosen = random.choice(len(every), min(3, len(every)), replace=False)
        fits_or_is_refused(setting, dict(every[k] for k in chosen), random.choice(SCALES))


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_every_end_at_every_scale(setting):
    random, every = np.random.default_rng(1), list(values_at_ends(setting.kind))
    for scale in SCALES:
        for name, value in every:
            fits_or_is_refused(setting, {name: value}, scale)
        for _ in range(20):
            chosen = random.choice(len(every), min(3, len(every)), replace=False)
            fits_or_is_refused(setting, dict(every[k] for k in chosen), scale)


@pytest.mark.parametrize(
    "model, rule",
    [
        (InfiniteFactorClusterer(concentration=Gamma(1000, 0.1)), "concentration must have"),
        (InfiniteFactorClusterer(detection_limit=-1e300), "detection_limit must be within"),
        (DeepScaleModel(noise_variance=1e300), "noise_variance must be"),
        (TreeFactorModel(max_depth=1001), "max_depth"),
        (TreeFactorModel(concentration_decay=5e-324), "concentration_decay"),
        (
            TreeFactorModel(
                max_depth=64, branch_levels=tuple(range(1, 64)), concentration_decay=1e-6
            ),
            "concentration_decay must leave",
        ),
        (TreeFactorModel(score_precision_shape=5e-324), "score_precision_shape"),
        (DirichletProcessMixture(degrees_of_freedom_prior=5e-324), "degrees_of_freedom_prior"),
    ],
)
def test_what_failed_late_is_refused(model, rule):
    with pytest.raises(ValueError, match=rule):
        model.fit(table(1.0))


def test_integers_that_no_float_holds_in_a_table_of_several_kinds():
    rows = np.array([["a", i % 5, i] for i in range(12)], dtype=object)
    rows[3, 2] = -(2**60) - 1
    model = DirichletProcessMixture(family=["categorical", "poisson", "gaussian"], **TINY)
    with pytest.raises(ValueError, match=r"X must hold integers up to 2\^53 .* in column 2"):
        model.fit(rows)


@pytest.mark.parametrize("setting", VARIED, ids=str)
@pytest.mark.parametrize("make", [np.array, list, lambda x: np.array(x, dtype=object)])
def test_integers_that_no_float_holds_are_refused(setting, make):
    rows = [[i, -i, 3 * i % 7] for i in range(12)]
    rows[3][1] = 2**53 + 1
    with pytest.raises(ValueError, match=r"X must hold integers up to 2\^53 .* in column 1"):
        setting.fit(make(rows))
