"""What is said in several places about a release is the same: versions, Pythons, requirements."""

import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import skbnp

ROOT = Path(__file__).resolve().parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
WHEELS = PYPROJECT["tool"]["cibuildwheel"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def script(name):
    """A module of the folder .ci, which is no package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


RELEASE, LOWEST, EXTRAS = script("release"), script("lowest"), script("extras")
PYTHONS = re.findall(r":: Python :: (3\.\d+)$", "\n".join(PROJECT["classifiers"]), re.M)

# -- versions


def test_the_version_is_one():
    assert RELEASE.version() == skbnp.__version__
    final = re.match(r"\d+\.\d+\.\d+", skbnp.__version__)[0]
    assert RELEASE.cited() == final
    assert RELEASE.newest()[0] == final
    assert f'version: "{skbnp.__version__}"' in read("conda/recipe.yaml")


@pytest.mark.parametrize(
    ("version", "cited", "newest", "tag", "wrong"),
    [
        ("1.2.3", "1.2.3", ("1.2.3", "2030-01-31"), "v1.2.3", ""),
        ("1.2.3rc1", "1.2.2", ("1.2.3", "unreleased"), "v1.2.3rc1", ""),
        ("1.2.3", "1.2.3", ("1.2.3", "2030-01-31"), "v1.2.4", "tag is v1.2.4"),
        ("1.2.3", "1.2.2", ("1.2.3", "2030-01-31"), "v1.2.3", "CITATION.cff says 1.2.2"),
        ("1.2.3", "1.2.3", ("1.2.3", "unreleased"), "v1.2.3", "begins with 1.2.3 unreleased"),
        ("1.2.3", "1.2.3", ("1.2.2", "2030-01-31"), "v1.2.3", "begins with 1.2.2 2030"),
    ],
)
def test_a_tag_that_is_no_release_is_refused(monkeypatch, version, cited, newest, tag, wrong):
    for name, value in [("version", version), ("cited", cited), ("newest", newest)]:
        monkeypatch.setattr(RELEASE, name, lambda value=value: value)
    found = "\n".join(RELEASE.wrong_with(tag))
    assert wrong in found if wrong else not found


def test_a_wheel_that_is_too_large_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(RELEASE, "MOST_BYTES", 10)
    for name, size in [("small.whl", 10), ("large.whl", 11)]:
        (tmp_path / name).write_bytes(bytes(size))
    (said,) = RELEASE.too_large(tmp_path.iterdir())
    assert said.startswith("large.whl has")


# -- Pythons


def test_classifiers_begin_with_the_python_that_is_required():
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"
    minors = [int(version.split(".")[1]) for version in PYTHONS]
    assert minors == list(range(minors[0], minors[-1] + 1))
    assert PYPROJECT["tool"]["ruff"]["target-version"] == f"py{PYTHONS[0].replace('.', '')}"


def test_there_is_a_wheel_for_each_python():
    built = {name.removesuffix("-*") for name in WHEELS["build"]}
    plain = {f"cp{version.replace('.', '')}" for version in PYTHONS}
    assert plain <= built
    assert built - plain <= {f"{name}t" for name in plain}


def test_the_workflow_tests_each_python():
    tested = set(re.findall(r'"(3\.\d+)"', read(".github/workflows/tests.yml")))
    assert tested == set(PYTHONS)


# -- requirements


def test_lowest_versions_are_unambiguous():
    # Pages are made with the newest alone.
    extras = [name for name in PROJECT["optional-dependencies"] if name != "doc"]
    assert len(LOWEST.lowest(extras)) > len(LOWEST.lowest()) >= len(PROJECT["dependencies"])


def test_a_requirement_without_a_lowest_version_is_refused(monkeypatch, tmp_path):
    path = tmp_path / "pyproject.toml"
    path.write_text('[project]\ndependencies = ["numpy"]\n[project.optional-dependencies]\n')
    monkeypatch.setattr(LOWEST, "PYPROJECT", path)
    with pytest.raises(ValueError, match="'numpy' is not of the form"):
        LOWEST.lowest()


def test_every_extra_of_users_is_tried_alone():
    for_work = {"test", "lint", "bench", "doc"}
    assert set(EXTRAS.USES) == {""} | set(PROJECT["optional-dependencies"]) - for_work


def test_conda_requires_the_same():
    recipe = read("conda/recipe.yaml")
    run = re.search(r"  run:\n    - python\n((?:    - .*\n)+)", recipe)[1]
    found = [line.strip(" -").replace(" ", "") for line in run.splitlines()]
    assert found == PROJECT["dependencies"]
    host = re.search(r"  host:\n    - python\n    - pip\n((?:    - .*\n)+)", recipe)[1]
    found = [line.strip(" -").replace(" ", "") for line in host.splitlines()]
    assert found == [name.lower() for name in PYPROJECT["build-system"]["requires"]]
    constraints = re.search(r"  run_constraints:\n((?:    - .*\n)+)", recipe)[1]
    found = dict(re.findall(r"- ([\w-]+?)(?:-base|-core)? >=([\d.]+)", constraints))
    lowest = LOWEST.lowest(["plot", "progress", "dask", "cli"])
    assert {name: lowest.get(name, lowest.get(name.title())) for name in found} == found


# -- workflows and policy


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_run_targets_and_files_that_are_there(path):
    text = path.read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", read("Makefile"), re.M))
    assert set(re.findall(r"run: make ([a-z-]+)", text)) <= targets
    for name in re.findall(r"(?<![\w/])(?:\.\./)?((?:tests|\.ci|doc)/[\w/]+(?:\.py)?)", text):
        assert name.startswith("doc/_build") or (ROOT / name).exists(), name
    # Nothing may write to the repository, and nothing runs for ever.
    assert "permissions:\n  contents: read\n" in text
    assert text.count("timeout-minutes:") == len(re.findall(r"^    runs-on:", text, re.M))
    assert text.count("actions/checkout@") == text.count("persist-credentials: false")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_parse(path):
    yaml = pytest.importorskip("yaml")
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert found["name"] and found["jobs"]
    # The word "on" is true in YAML 1.1.
    assert found[True]


def test_workflows_are_on_the_page_of_releases():
    page = read("doc/developers/releases.rst")
    for path in WORKFLOWS:
        name = re.match(r"name: (.+)\n", path.read_text(encoding="utf-8"))[1]
        assert f"* - ``{name}``" in page, name


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md"])
def test_files_that_the_policies_name_are_there(name):
    for path in re.findall(r"`([\w./]+\.(?:md|rst|jsonl|py))`", read(name)):
        assert (ROOT / path).is_file(), path


def test_the_checks_are_commands():
    asked = [sys.executable, ROOT / ".ci" / "lowest.py", "plot"]
    printed = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    assert "matplotlib==" in printed
    asked = [sys.executable, ROOT / ".ci" / "release.py", "v0"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "the tag is v0" in done.stderr
    asked = [sys.executable, ROOT / ".ci" / "release.py", "--sizes", ROOT / "LICENSE"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and not done.stderr
