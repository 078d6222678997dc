"""What waits for ``make test-slow`` is on the page for developers, and nothing else is."""

import re
from pathlib import Path

TESTS = Path(__file__).resolve().parent
PAGE = TESTS.parent / "doc" / "developers" / "suite.rst"
# The helpers that give the mark to some parameters, and this file, which names it.
APART = {TESTS / "checks" / "slow.py", TESTS / "contract" / "registry.py", Path(__file__).resolve()}
GIVEN = re.compile(r"mark\.slow\b|slow_where\(|others_slow\(")


def test_the_list_is_that_of_the_marks():
    marked = {
        path.relative_to(TESTS.parent).as_posix()
        for path in TESTS.rglob("*.py")
        if path not in APART and GIVEN.search(path.read_text())
    }
    listed = set(re.findall(r"``(tests/[\w/]+\.py)``", PAGE.read_text())) - {"tests/test_suite.py"}
    assert marked == listed
