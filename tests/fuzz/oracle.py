"""What every fit must do: refuse by name before any sampling, or answer with numbers."""

import pickle
import re
import tempfile
import warnings
from dataclasses import astuple
from pathlib import Path
from unittest import mock

import joblib
import numpy as np
import pandas as pd

from checks.answers import attributes, difference, draws, methods_of
from skbnp.estimators import chains
from skbnp.laws import Law
from skbnp.mcmc import NonFiniteLogJointError


def faults(case):
    """What is wrong with a case, each in words; nothing if all is well."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        estimator = _fitted(case, found)
        if estimator is not None:
            try:
                _examine(case, estimator, found)
            except Exception as error:
                found.append(f"answers: {said(error)}")
    return found


def said(error):
    """An error and the place in the library that it comes from."""
    place, trace = "", error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if "skbnp" in code.co_filename and "fuzz" not in code.co_filename:
            place = f"{Path(code.co_filename).name}:{trace.tb_lineno} {code.co_name}"
        trace = trace.tb_next
    return f"{type(error).__name__}: {str(error)[:300]} [{place}]"


# -- fit


def _fitted(case, found):
    """The fitted estimator, None if it refuses the case."""
    sampling = []

    def run(*args, **options):
        sampling.append(True)
        return run_chains(*args, **options)

    run_chains = chains.run_chains
    with mock.patch.object(chains, "run_chains", run):
        try:
            return case.make().fit(case.X, case.y)
        except (ValueError, TypeError) as error:
            if sampling:
                found.append(f"fit refuses after sampling has begun: {said(error)}")
            elif not _names_what(error, case):
                found.append(f"fit does not say what is wrong: {said(error)}")
        except NonFiniteLogJointError as error:
            if not _is_at_an_end(case):
                found.append(f"fit: {said(error)}")
        except Exception as error:
            found.append(f"fit: {said(error)}")
    return None


# Options that say how much, not what; so do those that begin with "n_" and "max_".
_AMOUNTS = {"random_state", "thin", "store", "predict_draws", "checkpoint_every", "verbose"}


def _is_at_an_end(case):
    """Whether a prior is so extreme that a chain may say that it has left the range of floats."""
    numbers = []
    for name, value in case.options.items():
        if name in _AMOUNTS or name.startswith(("n_", "max_")):
            continue
        if isinstance(value, Law):
            value = [x for x in astuple(value) if not isinstance(x, Law)]
        try:
            numbers += list(np.abs(np.asarray(value, dtype=float)).ravel())
        except (TypeError, ValueError):
            continue
    return any(number > 0 and not 1e-5 < number < 1e5 for number in numbers)


def _names_what(error, case):
    """Whether a message names X, y or a parameter."""
    parameters = {name.removeprefix("sampler__") for name in case.make().get_params()}
    names = {"X", "y", "feature", "features", "sample", "samples", *parameters}
    words = set(re.findall(r"\w+", str(error)))
    return bool(names & words) or "Unknown label type" in str(error)


# -- answers


def _examine(case, estimator, found):
    answers = _answers(case, estimator, found)
    again = case.make(n_jobs=case.n_jobs)
    # Other processes take seconds to start, so few cases use them.
    backend = "loky" if case.n_jobs == 2 and case.seed % 200 == 0 else "threading"
    with joblib.parallel_config(backend=backend):
        again.fit(case.X, case.y)
    _compare(answers, _answers(case, again, []), f"n_jobs={case.n_jobs}", found)
    if case.pickles:
        other = pickle.loads(pickle.dumps(estimator))
        _compare(answers, _answers(case, other, []), "pickle", found)
    if case.saves:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "fitted.skbnp"
            estimator.save(path)
            other = case.kind.load(path)
        _compare(answers, _answers(case, other, []), "save and load", found)
    if case.goes_on:
        with tempfile.TemporaryDirectory() as directory:
            kept = {"checkpoint": directory}
            case.make(**kept, n_draws=1).fit(case.X, case.y)
            other = case.make(**kept).fit(case.X, case.y)
        _compare(answers, _answers(case, other, []), "checkpoint", found)


def _answers(case, estimator, found):
    """All that an estimator says, by name."""
    answers = draws(estimator)
    for name, value in answers.items():
        _no_nan(name, value, found)
    for what, X in (("X", case.X), ("X_new", case.X_new)):
        for name, ask in methods_of(estimator):
            try:
                answer = ask(estimator, X)
            except (ValueError, TypeError) as error:
                # A prior may be so wide that rows drawn from it are beyond floats.
                if what == "X" and not name.startswith("sample"):
                    found.append(f"{name} of the training rows: {said(error)}")
                elif not _names_what(error, case):
                    found.append(f"{name} does not say what is wrong: {said(error)}")
                answer = str(error)
            except Exception as error:
                found.append(f"{name} of {what}: {said(error)}")
                answer = str(error)
            else:
                check = _CHECKS.get(name, _finite)
                if name == "impute std" and _has_heavy_tails(estimator):
                    check = _spread_or_infinite
                for fault in check(_floats(answer), _floats(X)):
                    found.append(f"{name} of {what} {fault}")
            answers[f"{name} of {what}"] = answer
    for name, value in attributes(estimator).items():
        answers[name] = value
        _no_nan(name, value, found)
    return answers


def _has_heavy_tails(estimator):
    """Whether predictive laws may lack a second moment: then the documented std is inf."""
    return hasattr(estimator, "covariance_type") or (getattr(estimator, "tails", "gaussian") == "t")


# -- what answers must be


def _floats(value):
    """An answer, or a table, as floats; None where it is no number."""
    if hasattr(value, "to_numpy"):
        value = (
            value.to_numpy(dtype=float, na_value=np.nan)
            if _is_pandas(value)
            else (value.to_numpy())
        )
    if isinstance(value, np.ma.MaskedArray):
        value = value.astype(float).filled(np.nan)
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        return None


def _is_pandas(value):
    return isinstance(value, pd.DataFrame | pd.Series)


def _no_nan(name, value, found):
    value = _floats(value)
    if value is not None and np.isnan(value).any():
        found.append(f"{name} is NaN")


def _finite(answer, X):
    if answer is not None and not np.isfinite(answer).all():
        yield f"is not finite: {answer[~np.isfinite(answer)][:5]}"


def _log_density(answer, X):
    if np.isnan(answer).any() or (answer == np.inf).any():
        yield f"is {answer[~np.isfinite(answer)][:5]}"


def _probability(answer, X):
    if not ((answer >= 0.0) & (answer <= 1.0 + 1e-9)).all():
        yield f"is no probability: {answer.ravel()[:5]}"


def _rows_of_probabilities(answer, X):
    yield from _probability(answer, X)
    if not np.allclose(answer.sum(axis=1), 1.0, atol=1e-6):
        yield f"has rows that sum to {answer.sum(axis=1)[:5]}"


def _filled(answer, X):
    if answer is None or X is None:
        return
    yield from _finite(np.where(np.isnan(X), answer, 0.0), X)
    observed = ~np.isnan(X)
    if answer.shape != X.shape:
        yield f"has shape {answer.shape}, not {X.shape}"
    elif not (answer[observed] == X[observed]).all():
        yield "changes observed cells"


def _spread(answer, X):
    yield from _finite(answer, X)
    yield from _spread_or_infinite(answer, X)


def _spread_or_infinite(answer, X):
    if answer is not None and not (answer >= 0.0).all():
        yield f"is negative or NaN: {answer[~(answer >= 0)][:5]}"


_CHECKS = {
    "score_samples": _log_density,
    "predict_proba": _rows_of_probabilities,
    "novelty_proba": _probability,
    "coclustering": _probability,
    "edge_probabilities": _probability,
    "ancestor_probabilities": _probability,
    "impute": _filled,
    "impute std": _spread,
    "sample_y std": _spread,
}


def _compare(one, other, how, found):
    name = difference(one, other)
    if name is not None:
        found.append(f"{how}: another {name}")
