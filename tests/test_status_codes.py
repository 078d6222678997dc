"""No kernel may overlook that a draw or a factorisation has failed.

Kernels run without the GIL and raise nothing: these functions answer 0, or non-zero where there
is no result. A call that stands alone, or inside an expression that is no condition, would go on
with what is left in memory.
"""

import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "skbnp"
STATUS = (
    "categorical_from_logs",
    "categorical_at",
    "redraw_rows",
    "cholesky",
    "_factor",
    "_find_mode",
)

STRING = re.compile(r'"""[\s\S]*?"""|' + r"'''[\s\S]*?'''")
CALL = re.compile(r"\b(" + "|".join(STATUS) + r")\(")
# Conditions, and a status that is handed on under its own name.
ASKED = ("if ", "elif ", "while ", "return ", "failed = ")


def statements(source):
    """The lines of the code, each with all that stands in its brackets."""
    code = re.sub(r"#[^\n]*", "", STRING.sub('""', source)).replace("\\\n", " ")
    depth, out = 0, []
    for character in code:
        depth += (character in "([{") - (character in ")]}")
        out.append(" " if character == "\n" and depth > 0 else character)
    return [line.strip() for line in "".join(out).split("\n")]


def overlooked(source):
    """Statements that call one of these functions and do not ask how it went."""
    return [
        line
        for line in statements(source)
        if CALL.search(line) and not line.startswith(("cdef ", "def ", *ASKED))
    ]


FILES = sorted(path for suffix in ("pyx", "pxd") for path in PACKAGE.rglob(f"*.{suffix}"))


def test_there_is_something_to_check():
    calls = sum(len(CALL.findall(path.read_text(encoding="utf-8"))) for path in FILES)
    assert calls > 30


def test_every_status_is_asked_for():
    found = {path: overlooked(path.read_text(encoding="utf-8")) for path in FILES}
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "line",
    [
        "k = draws.categorical_from_logs(self._rng, &self.log_weight[0], n, &k)",
        "draws.categorical_from_logs(\n    self._rng, &self.log_weight[0], n, &k\n)",
        "self._set_label(i, random.categorical_at(u, w, n, &k))",
        "linalg.cholesky(&self.factor[0], K)",
    ],
)
def test_an_overlooked_status_is_caught(line):
    assert len(overlooked(f"cdef void f() noexcept nogil:\n    {line}\n")) == 1


@pytest.mark.parametrize(
    "line",
    [
        "if draws.categorical_from_logs(\n    rng, w, n, &k\n) != 0:\n    return 1",
        "return draws.categorical_at(u, w, n, chosen)",
        "# linalg.cholesky(a, n)",
    ],
)
def test_what_is_allowed_passes(line):
    assert overlooked(f"cdef int f() noexcept nogil:\n    {line}\n") == []
