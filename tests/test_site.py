"""What the pages promise and Sphinx would find out late: names, links and examples exist.

The build itself is strict (``make doc``); these tests read the sources of the pages alone.
"""

import importlib
import re
import warnings
from pathlib import Path

import pytest

import skbnp
from checks.callbacks import NEEDS_CALLBACKS

ROOT = Path(__file__).resolve().parents[1]
DOC, EXAMPLES = ROOT / "doc", ROOT / "examples"
GENERATED = {"_build", "_templates", "auto_examples", "generated", "sg_execution_times.rst"}
PAGES = sorted(
    path for path in DOC.rglob("*.rst") if not GENERATED & set(path.relative_to(DOC).parts)
)
SCRIPTS = sorted(EXAMPLES.glob("*/*.py"))
API = sorted((DOC / "api").rglob("*.rst"))

# Modules whose ``__all__`` is a promise to users.
PUBLIC = (
    "skbnp",
    "skbnp.laws",
    "skbnp.plot",
    "skbnp.processes.cibp",
    "skbnp.processes.crp",
    "skbnp.processes.ibp",
    "skbnp.processes.icp",
    "skbnp.processes.mfm",
    "skbnp.processes.multiplicative_gamma",
    "skbnp.processes.ncrp",
    "skbnp.progress",
    "skbnp.reports",
    "skbnp.samplers",
    "skbnp.summaries",
)


def read(path):
    return path.read_text(encoding="utf-8")


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def documented():
    """(module, name) of all that the pages of the API list."""
    found, module = [], None
    for line in "\n".join(map(read, API)).splitlines():
        if match := re.match(r"\.\. (?:currentmodule:: (\S+)|toctree::)", line):
            module = match[1]  # none where pages are listed
        elif (match := re.fullmatch(r"    (\w+)", line)) and module:
            found.append((module, match[1]))
    return found


@NEEDS_CALLBACKS
@pytest.mark.parametrize("module", PUBLIC)
def test_public_names_are_documented(module):
    listed = {id(getattr(importlib.import_module(where), name)) for where, name in documented()}
    public = importlib.import_module(module)
    missing = [
        name
        for name in public.__all__
        if callable(getattr(public, name))  # not modules and constants
        and id(getattr(public, name)) not in listed
    ]
    assert missing == []


@NEEDS_CALLBACKS
def test_documented_names_have_docstrings():
    names = documented()
    assert len(names) == len(set(names)) > 100
    for module, name in names:
        assert getattr(importlib.import_module(module), name).__doc__, (module, name)


# -- links

LABEL = re.compile(r"^ *\.\. _([\w-]+):", re.M)
LABELS = {label for path in PAGES for label in LABEL.findall(read(path))}
TERMS = {
    term.strip()
    for term in re.findall(r"^    (\S.*)\n        ", read(DOC / "get_started/glossary.rst"), re.M)
}


def page(target, origin):
    """The source of a page that a text names, relative to the page it stands on."""
    base = DOC if target.startswith("/") else origin.parent
    path = Path(base, target.lstrip("/"))
    if "auto_examples" in path.parts:
        path = EXAMPLES.joinpath(*path.parts[path.parts.index("auto_examples") + 1 :])
        return path.parent / "GALLERY_HEADER.rst" if path.name == "index" else Path(f"{path}.py")
    return Path(f"{path}.rst")


def target_of(role):
    """``text <target>`` or ``target``."""
    match = re.fullmatch(r".*<(.+)>", role, re.S)
    return match[1] if match else role


def links(path):
    """(kind, target) of every link within the site."""
    text = read(path)
    if path.suffix == ".py":
        text = re.sub(r"\n# ?", "\n", text)
    for kind, role in re.findall(r":(doc|ref|term):`([^`]+)`", text):
        yield kind, " ".join(target_of(role).split())
    if path.suffix == ".rst":
        for block in re.findall(r"^\.\. toctree::\n((?:    .*\n|\n)*)", text + "\n", re.M):
            for line in block.splitlines():
                if line.strip() and not line.strip().startswith(":"):
                    yield "toctree", target_of(line.strip())
        for target in re.findall(r"^ +:link: (\S+)\n +:link-type: doc", text, re.M):
            yield "doc", target
        for target in re.findall(r"^ *(?::img-top:|\.\. image::|\.\. figure::) (\S+)", text, re.M):
            yield "image", target


def exists(kind, target, origin):
    if kind in ("doc", "toctree"):
        # Text of a script stands on a page beside the others of its folder.
        where = (
            DOC / "auto_examples" / origin.parent.name / "x" if origin.suffix == ".py" else origin
        )
        return page(target, where).is_file()
    if kind == "ref":
        example = re.fullmatch(r"sphx_glr_auto_examples_(.+)\.py", target)
        if example:
            known = {"_".join(path.relative_to(EXAMPLES).with_suffix("").parts) for path in SCRIPTS}
            return example[1] in known
        return target in LABELS or target in ("genindex", "modindex", "search")
    if kind == "term":
        return target in TERMS
    match = re.fullmatch(
        r"/?auto_examples/(\w+)/images/(?:thumb/)?sphx_glr_(\w+)_(?:\d{3}|thumb)\.png", target
    )
    return bool(match) and Path(EXAMPLES, match[1], f"{match[2]}.py").is_file()


@pytest.mark.parametrize("path", PAGES + SCRIPTS, ids=name_of)
def test_links_resolve(path):
    broken = [(kind, target) for kind, target in links(path) if not exists(kind, target, path)]
    assert broken == []


def test_links_are_seen():
    found = [kind for path in PAGES + SCRIPTS for kind, _ in links(path)]
    for kind in ("doc", "ref", "term", "toctree", "image"):
        assert found.count(kind) >= 4, kind
    origin = DOC / "index.rst"
    assert not exists("doc", "nowhere", origin) and not exists("ref", "nowhere", origin)


def test_every_page_is_in_a_table_of_contents():
    listed = {
        page(target, path).resolve()
        for path in PAGES
        for kind, target in links(path)
        if kind == "toctree"
    }
    assert [name_of(p) for p in PAGES if p != DOC / "index.rst" and p not in listed] == []


# -- what is told in two places


def test_the_gallery_has_an_order():
    """Each folder of examples has its place and its header."""
    order = re.findall(r'^            "(\w+)",$', read(DOC / "conf.py"), re.M)
    assert sorted(order) == sorted({path.parent.name for path in SCRIPTS})
    assert all((EXAMPLES / folder / "GALLERY_HEADER.rst").is_file() for folder in order)


@pytest.mark.parametrize("name", ["which_estimator.rst", "estimator_map.py"])
def test_the_map_has_all_estimators(name):
    text = read(DOC / "get_started" / name)
    assert [each for each in skbnp.__all__ if each[0].isupper() and each not in text] == []


def test_the_citation_is_that_of_the_file():
    title = re.search(r'^title: "(.+)"$', read(ROOT / "CITATION.cff"), re.M)[1]
    assert title in read(DOC / "get_started" / "citing.rst")


def test_the_code_of_the_first_page_runs(capsys):
    (code,) = re.findall(
        r"^\.\. code-block:: python\n\n((?:    .*\n|\n)+)", read(DOC / "index.rst"), re.M
    )
    code = re.sub("^    ", "", code, flags=re.M).replace("n_jobs=-1", "n_warmup=20, n_draws=20")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so short a run has not converged
        exec(compile(code, "index.rst", "exec"), {})
    assert "clusters" in capsys.readouterr().out
