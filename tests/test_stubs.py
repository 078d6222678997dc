"""What type checkers and editors are told: stubs of compiled modules, types of parameters."""

import ast
import os
import types
import typing
from numbers import Integral, Real

import numpy as np
import pandas as pd
import pytest
from sklearn.utils._param_validation import Interval, MissingValues, Options

import skbnp
from checks.stubs import MODULES, PACKAGE, function_stub, place_of, stub_of, type_of
from skbnp import samplers
from skbnp.laws import Gamma, Law

DECLARED = [
    *(getattr(skbnp, name) for name in skbnp.__all__ if isinstance(getattr(skbnp, name), type)),
    *(getattr(samplers, name) for name in samplers.__all__),
]
# A value that a rule of scikit-learn's allows; words of rules that have none are left out.
EXAMPLES = {
    "boolean": True,
    "verbose": 1,
    "array-like": np.zeros(2),
    "random_state": np.random.RandomState(0),
    list: [1],
    tuple: (1,),
    dict: {"a": 1},
    str: "a",
    os.PathLike: PACKAGE,
    Integral: 1,
    Real: 0.5,
    None: None,
}


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
        ("list of ndarrays of shape (n,)", "list[Any]"),
    ],
)
def test_types_from_words(words, kind):
    assert type_of(words) == kind


@pytest.mark.parametrize(
    ("returned", "kind"),
    [
        ("a : int\n    One.", "int"),
        ("a, b : ndarrays of shape (n,)\n    Two.", "tuple[NDArray[Any], NDArray[Any]]"),
        ("a : int\nb : float\n    Two.", "tuple[int, float]"),
        ("a : int\nb : float\n    Only with an option.", "Any"),
    ],
)
def test_what_a_function_returns(returned, kind):
    def function():
        pass

    function.__doc__ = f"Title.\n\nReturns\n-------\n{returned}\n"
    assert function_stub("function", function) == f"def function() -> {kind}: ...\n"


def allowed_by(rule):
    """Values that a rule allows, or for a law or another class the class itself."""
    if isinstance(rule, Interval):
        return [EXAMPLES[rule.type]]
    if isinstance(rule, Options):
        return rule.options
    if isinstance(rule, MissingValues):
        return [1, np.nan, "?", None, pd.NA]
    return [rule if isinstance(rule, type) and rule not in EXAMPLES else EXAMPLES[rule]]


def admits(hint, value):
    """Whether a type takes a value, or a class of values; what sequences hold is not looked at."""
    named = typing.get_origin(hint) or hint
    if hasattr(named, "__value__"):  # ``type name[...] = ...`` of 3.12 and newer
        arguments = typing.get_args(hint)
        return admits(named.__value__[arguments] if arguments else named.__value__, value)
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return any(admits(one, value) for one in typing.get_args(hint))
    kind = typing.get_origin(hint) or hint
    if kind is typing.Any:
        return True
    if isinstance(value, type):
        return isinstance(kind, type) and issubclass(value, kind)
    if kind in (float, complex) and isinstance(value, (int, float)):
        return True
    if isinstance(value, tuple) and getattr(kind, "_is_protocol", False):
        # Of a sequence a tuple lacks only ``__reversed__``, which type checkers say it has.
        value = list(value)
    # To type checkers a text is a sequence, but no parameter is given one as such.
    return isinstance(value, kind) and not (isinstance(value, str) and kind is not str)


@pytest.mark.parametrize("kind", DECLARED, ids=lambda kind: kind.__name__)
def test_types_of_parameters_admit_what_their_rules_do(kind):
    hints = typing.get_type_hints(kind)
    for name, one in kind._declared.items():
        assert admits(hints[name], one.default), (name, one.default)
        for rule in one.rules:
            for value in allowed_by(rule):
                assert admits(hints[name], value), (name, value)


@pytest.mark.parametrize("kind", DECLARED, ids=lambda kind: kind.__name__)
def test_type_checkers_take_nothing_else_for_a_parameter(kind):
    """An attribute of the class with a type is a parameter to them, unless it is a ClassVar."""
    for base in kind.__mro__:
        if base.__module__.startswith("skbnp."):
            for name, hint in base.__dict__.get("__annotations__", {}).items():
                is_class_variable = typing.get_origin(hint) is typing.ClassVar
                assert is_class_variable or name in kind._declared, (base, name)


def test_a_wrong_type_is_noticed():
    assert not admits(int | str, (1,)) and not admits(float, None) and not admits(list, (1,))
    assert admits(float | Law, Gamma) and not admits(float | Law, DECLARED[0])
