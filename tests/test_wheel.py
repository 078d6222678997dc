"""The distribution is whole: every kernel compiled, every declaration shipped, nothing generated.

`make test` sets SKBNP_TEST_INSTALLED: then the package under test must be the installed wheel.
"""

import importlib.metadata
import importlib.util
import os
import tarfile
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

import skbnp

ROOT = Path(__file__).resolve().parents[1]
INSTALLED = Path(skbnp.__file__).resolve().parent
KERNELS = sorted(path.relative_to(ROOT) for path in (ROOT / "skbnp").rglob("*.pyx"))
DECLARATIONS = sorted(path.relative_to(ROOT) for path in (ROOT / "skbnp").rglob("*.pxd"))

by_make = pytest.mark.skipif(
    "SKBNP_TEST_INSTALLED" not in os.environ,
    reason="asks about the wheel and the sdist that `make test` builds",
)


@by_make
def test_the_package_under_test_is_the_installed_one():
    assert INSTALLED != ROOT / "skbnp"
    assert "site-packages" in INSTALLED.parts


def test_there_are_kernels():
    assert KERNELS and DECLARATIONS


@pytest.mark.parametrize("source", KERNELS, ids=Path.as_posix)
def test_every_kernel_is_compiled(source):
    module = ".".join(source.with_suffix("").parts)
    spec = importlib.util.find_spec(module)
    assert spec is not None, f"{module} is missing"
    assert spec.origin.endswith(tuple(EXTENSION_SUFFIXES))
    assert Path(spec.origin).is_relative_to(INSTALLED)
    importlib.import_module(module)  # an unresolved symbol shows only now


def test_every_python_module_is_installed():
    sources = {path.relative_to(ROOT / "skbnp") for path in (ROOT / "skbnp").rglob("*.py")}
    assert sources == {path.relative_to(INSTALLED) for path in INSTALLED.rglob("*.py")}


def test_declarations_are_installed():
    # A package that cimports ours needs them.
    assert [path for path in DECLARATIONS if not (INSTALLED.parent / path).is_file()] == []


def test_no_generated_source_is_installed():
    assert list(INSTALLED.rglob("*.c")) == []


@by_make
def test_version_is_the_distribution_s():
    assert importlib.metadata.version("skbnp") == skbnp.__version__


@by_make
def test_wheel_has_the_licence():
    assert any(path.name == "LICENSE" for path in importlib.metadata.files("skbnp"))


@by_make
def test_sdist_has_the_sources_and_nothing_generated():
    (sdist,) = (ROOT / "dist").glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {path.as_posix() for path in KERNELS + DECLARATIONS}
    wanted |= {"setup.py", "pyproject.toml", "LICENSE", "README.md", "Makefile"}
    assert wanted - names == set()
    assert [name for name in names if name.endswith((".c", ".so", ".pyc"))] == []
