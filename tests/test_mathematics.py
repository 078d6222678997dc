"""The pages of mathematics and those who cite them.

Equations are numbered by hand, so that code, tests and texts can name them: M4.3 is the third of
section 4 of the page whose letter is M. A cited equation exists, a number is given once, and every
section that has equations has them under its own number.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = {
    "M": "dirichlet_process_mixture",
    "T": "tree_factor_model",
    "B": "cibp_belief_net",
    "I": "icp_network",
    "F": "infinite_factor_clusterer",
    "D": "deep_scale_model",
}
MATHEMATICS = ROOT / "doc" / "mathematics"

LABEL = re.compile(r"^ +:label: (\S+)$", re.M)
NUMBER = re.compile(rf"[{''.join(PAGES)}](\d+)\.\d+")
# "(T4.2)", "(T4.2 to T4.4)", "(T4.2, T4.3)" and ":eq:`T4.2`".
CITED = re.compile(rf"[(`](?:equations? )?((?:{NUMBER.pattern}(?:, | and | to )?)+)[)`]")
SECTION = re.compile(r"^(\d+)\. .+\n(-+)$", re.M)
# A page of the library, named with a section.
SECTION_CITED = re.compile(
    rf"(?:mathematics/)?\b({'|'.join(PAGES.values())}),\s+(?:#\s+)?sections?\s+(\d+)"
)
# Documents that are not part of the library. "spec" alone is a word of Python's import system.
ELSEWHERE = re.compile(
    r"\bspecs?(?:ification)?s?(?:'s)?,? (?:item |section |processes |equation )?\d"
    r"|\b(?:the|its|clusterer's|mixture's) spec\b|\bspec's\b|\berrat(?:um|a)\b",
    re.I,
)

FILES = sorted(
    path
    for folder in ("skbnp", "tests", "benchmarks", "examples", "doc")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in (".py", ".pyx", ".pxd", ".rst", ".md")
    and not {"_build", "auto_examples", "generated", "__pycache__"} & set(path.parts)
    and path != Path(__file__).resolve()
) + sorted(ROOT.glob("*.md"))


def read(path):
    return path.read_text(encoding="utf-8")


def labels(text):
    """Labels of the equations of a page, in order."""
    return LABEL.findall(text)


def cited(text):
    """Numbers of equations that a text names."""
    found = []
    for match in CITED.finditer(text):
        found += [number.group() for number in NUMBER.finditer(match.group(1))]
    return found


EQUATIONS = {label for page in sorted(MATHEMATICS.glob("*.rst")) for label in labels(read(page))}


def unknown(text):
    """Equations and sections that a text names and no page has."""
    found = [number for number in cited(text) if number not in EQUATIONS]
    for page, section in SECTION_CITED.findall(text):
        path = MATHEMATICS / f"{page}.rst"
        if not path.exists() or section not in dict(SECTION.findall(read(path))):
            found.append(f"{page}, section {section}")
    return found


@pytest.mark.parametrize("letter", PAGES)
def test_a_page_numbers_its_equations(letter):
    text = read(MATHEMATICS / f"{PAGES[letter]}.rst")
    sections = [(match.start(), match.group(1)) for match in SECTION.finditer(text)]
    assert [number for _, number in sections] == [str(i + 1) for i in range(len(sections))]
    found = list(LABEL.finditer(text))
    assert found and len({match.group(1) for match in found}) == len(found)
    counts = {}
    for match in found:
        number = [number for start, number in sections if start < match.start()][-1]
        counts[number] = counts.get(number, 0) + 1
        assert match.group(1) == f"{letter}{number}.{counts[number]}"


def test_pages_are_linked():
    linked = read(MATHEMATICS / "index.rst")
    for page in MATHEMATICS.glob("*.rst"):
        assert page.stem == "index" or f"\n    {page.stem}\n" in linked, page.stem


def test_something_is_cited():
    by_kernels = [path for path in FILES if path.suffix == ".pyx" and cited(read(path))]
    assert len(by_kernels) >= 10


def test_what_is_cited_exists():
    found = {path: unknown(read(path)) for path in FILES}
    assert {path: names for path, names in found.items() if names} == {}


def test_no_outer_document_is_cited():
    found = {path: ELSEWHERE.search(read(path)) for path in FILES}
    assert {path: match.group() for path, match in found.items() if match} == {}


@pytest.mark.parametrize(
    "text",
    [
        "see equation (M99.1)",
        ":eq:`T1.99`",
        "(M4.1, M99.2)",
        "(M4.1 to M99.2)",
        "mathematics/icp_network, section 99",
    ],
)
def test_an_unknown_equation_is_caught(text):
    assert unknown(text)


@pytest.mark.parametrize(
    "text", ["(spec 4.3)", "Spec 8.1", "erratum 3", "the spec's vectors", "spec processes 1.1"]
)
def test_an_outer_document_is_caught(text):
    assert ELSEWHERE.search(text)


@pytest.mark.parametrize(
    "text", ["importlib.util.spec_from_file_location", "spec = find_spec(module)", "a specific 4"]
)
def test_innocent_words_pass(text):
    assert not ELSEWHERE.search(text)
