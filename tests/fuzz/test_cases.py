"""Random cases of every estimator: each refuses by name, or answers with numbers."""

import os

import pytest

from fuzz.cases import KINDS
from fuzz.search import findings

# ``make fuzz FUZZ_FIRST=...`` looks at other cases than last time.
FIRST = int(os.environ.get("SKBNP_FUZZ_FIRST", "0"))
CHUNK = 100


def check(name, seeds):
    found = findings(name, seeds)
    assert not found, "\n".join([f"cases of {name}:", *(f"{s}: {words}" for s, words in found)])


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_a_few_cases(name):
    check(name, range(20))


@pytest.mark.fuzz
@pytest.mark.parametrize("first", range(FIRST, FIRST + 1000, CHUNK), ids=lambda x: f"seeds-{x}")
@pytest.mark.parametrize("name", KINDS)
def test_a_thousand_cases(name, first):
    check(name, range(first, first + CHUNK))
