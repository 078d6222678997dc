"""Errors that say the parameter, the rule and the value."""

import re

import pytest

# Of every estimator: parameters, the one that is named, words of the rule, the value as shown.
OF_CHAINS = [
    ({"n_chains": 0}, "n_chains", "[1, inf)", "0"),
    ({"n_warmup": -1}, "n_warmup", "[0, inf)", "-1"),
    ({"n_draws": 0}, "n_draws", "[1, inf)", "0"),
    ({"thin": 0}, "thin", "[1, inf)", "0"),
    ({"n_jobs": 0}, "n_jobs", "[1, inf)", "0"),
    ({"random_state": -1}, "random_state", "[0, 4294967295]", "-1"),
    ({"warm_start": 1.5}, "warm_start", "bool", "1.5"),
    ({"checkpoint": 3}, "checkpoint", "PathLike", "3"),
    ({"checkpoint_every": -1.0}, "checkpoint_every", "[0.0, inf)", "-1.0"),
    ({"store": 0.0}, "store", "(0.0, inf)", "0.0"),
    ({"missing_values": {1, 2}}, "missing_values", "'dict'", "{1, 2}"),
    ({"missing_values": [True]}, "missing_values", "numbers or strings", "True"),
    ({"predict_draws": 0}, "predict_draws", "[1, inf)", "0"),
    ({"verbose": -1}, "verbose", "[0, inf)", "-1"),
]


def over(table):
    """A test over the rows of such a table."""
    return pytest.mark.parametrize(
        "parameters, name, rule, value", table, ids=[f"{row[1]}-{i}" for i, row in enumerate(table)]
    )


def assert_refused(ask, name, rule, value):
    """What is asked for raises a ValueError that says all three."""
    with pytest.raises(ValueError) as caught:
        ask()
    message = str(caught.value)
    assert re.search(rf"\b{name}\b", message), message
    said, _, got = re.split(r"([Gg]ot )", message, maxsplit=1)
    assert rule in said, message
    assert value in got, message
