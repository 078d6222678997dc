"""Stubs of compiled modules say what the modules have, and type checkers are told of them."""

import ast

import pytest

from checks.stubs import MODULES, PACKAGE, place_of, stub_of, type_of


@pytest.mark.parametrize("name", MODULES)
def test_stubs_are_true(name):
    """If not: python tests/checks/stubs.py"""
    stub = place_of(name).read_text(encoding="utf-8")
    assert stub == stub_of(name)
    ast.parse(stub)


def test_the_package_is_typed():
    assert (PACKAGE / "py.typed").exists()


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("int or None, default=None", "int | None"),
        ("array-like of shape (n_blocks,)", "ArrayLike"),
        ("float or ndarray of shape (n,)", "float | NDArray[Any]"),
        ('{"arrival", "lof"}, default="lof"', "str"),
        ("Posterior", "Any"),
    ],
)
def test_types_from_words(words, kind):
    assert type_of(words) == kind
