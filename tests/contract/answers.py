"""All that a fitted estimator says, for comparisons of one estimator with another."""

import numpy as np

# Methods of one table; those that an estimator does not have are left out.
_OF_A_TABLE = (
    *("score_samples", "predict", "predict_proba", "transform", "novelty_proba", "novelty_score"),
)


def answers(estimator, X):
    """Everything that two equal fits must have in common, by name."""
    found = {}
    for name, value in vars(estimator).items():
        if name.endswith("_") and isinstance(value, (int, float, str, np.ndarray)):
            found[name] = value
    posterior = estimator.posterior_
    found |= posterior.traces
    for place, draw in enumerate(posterior):
        found |= {f"draw {place} {name}": value for name, value in draw.items()}
    for name in _OF_A_TABLE:
        # The scale model of one class has no clusters to be new.
        if _has(estimator, name) and (name != "novelty_score" or estimator._is_mixture):
            found[name] = getattr(estimator, name)(X)
    if _has(estimator, "impute"):
        found["impute"], found["std"] = estimator.impute(X, return_std=True)
    if _has(estimator, "sample"):
        rows = estimator.sample(3, random_state=0)
        found["sample"] = rows[0] if isinstance(rows, tuple) else rows
    if _has(estimator, "X_imputed_"):
        found["X_imputed_"] = estimator.X_imputed_
    return found


def assert_same_answers(one, other):
    """Equal to the last bit."""
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


def _has(estimator, name):
    return getattr(estimator, name, None) is not None
