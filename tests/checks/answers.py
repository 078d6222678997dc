"""Everything that any fitted estimator says, by name."""

import inspect

import numpy as np

# With the table to ask for. A method that an estimator does not have is not asked.
METHODS = {
    "score_samples": lambda e, X: e.score_samples(X),
    "predict": lambda e, X: e.predict(X),
    "predict_proba": lambda e, X: e.predict_proba(X),
    "transform": lambda e, X: e.transform(X),
    "novelty_proba": lambda e, X: e.novelty_proba(X),
    "impute": lambda e, X: e.impute(X, **_short_imputation(e)),
    "impute std": lambda e, X: e.impute(X, return_std=True, **_short_imputation(e))[1],
    "sample_y": lambda e, X: e.sample_y(X, 2, random_state=1),
    "sample_y std": lambda e, X: e.predict(X, return_std=True)[1],
    "sample": lambda e, X: _first(e.sample(5, random_state=1)),
    "sample_missing": lambda e, X: e.sample_missing(X, 1, random_state=1)[0],
    "sample_prior": lambda e, X: _first(e.sample_prior(5, random_state=1)),
    "edge_probabilities": lambda e, X: e.edge_probabilities(),
    "ancestor_probabilities": lambda e, X: e.ancestor_probabilities(),
    "coclustering": lambda e, X: e.coclustering(),
}
# Parameters that make answers of some estimators cheap.
CHEAP = {"n_importance": 5, "n_fantasies": 20, "n_temperatures": 3, "n_particles": 2}


def methods_of(estimator):
    """The entries of `METHODS` that an estimator with these options answers."""
    for name, ask in METHODS.items():
        method = name.split()[0]
        if hasattr(estimator, method):
            yield name, ask


def cheap_options(kind):
    """Those of `CHEAP` that an estimator has."""
    return {name: CHEAP[name] for name in CHEAP.keys() & kind._parameter_constraints.keys()}


def _short_imputation(estimator):
    # The chains of the belief net's imputation have their own lengths.
    takes = inspect.signature(estimator.impute).parameters
    return {"n_burn_in": 1, "n_passes": 2} if "n_passes" in takes else {}


def _first(answer):
    return answer[0] if isinstance(answer, tuple) else answer


def draws(estimator):
    """All that the chains have kept, by name."""
    posterior = estimator.posterior_
    found = dict(posterior.traces)
    for move, counts in posterior.acceptance.items():
        found |= {f"{move} {name}": counts[name] for name in ("accepted", "proposed")}
    for place, draw in enumerate(posterior):
        found |= {f"draw {place} {name}": value for name, value in draw.items()}
    found["stored"] = posterior.stored
    return found


def attributes(estimator):
    """The fitted attributes that are numbers, texts or arrays, by name."""
    found = {
        name: value
        for name, value in vars(estimator).items()
        if name.endswith("_") and isinstance(value, int | float | str | np.ndarray)
    }
    for name in ("X_imputed_", "X_imputed_std_"):
        if hasattr(estimator, name):
            found[name] = getattr(estimator, name)
    return found


def answers(estimator, X):
    """Everything that two equal fits must have in common, by name."""
    found = draws(estimator) | attributes(estimator)
    return found | {name: ask(estimator, X) for name, ask in methods_of(estimator)}


def difference(one, other):
    """The name of the first answer that is another one; None if all are the same."""
    for name in one.keys() | other.keys():
        if name not in one or name not in other:
            return name
        try:
            np.testing.assert_array_equal(np.asarray(one[name]), np.asarray(other[name]))
        except AssertionError:
            return name
    return None


def assert_same_answers(one, other):
    """Equal to the last bit."""
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)
