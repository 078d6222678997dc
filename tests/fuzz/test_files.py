"""Saved estimators and checkpoints, damaged in every estimator: refused, or the same answers."""

import pytest

from fuzz.cases import KINDS
from fuzz.search import findings

LOOKS = ["files", "checkpoints", "forgeries", "forged checkpoints"]


def check(name, look, seeds):
    found = findings(name, seeds, look)
    assert not found, "\n".join(f"{name}, {look}, seed {seed}: {words}" for seed, words in found)


@pytest.mark.slow
@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("name", KINDS)
def test_a_few(name, look):
    check(name, look, range(20))


@pytest.mark.fuzz
@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("name", KINDS)
def test_hundreds(name, look):
    check(name, look, range(200))
