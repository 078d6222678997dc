"""Constructor parameters, each declared once: name, default, type, rules and text in one place.

The constructor, ``_parameter_constraints`` and the Parameters section of the class docstring follow
from the declarations.
"""

import inspect
import re
import textwrap
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from typing import Any, ClassVar, dataclass_transform

import numpy as np
from sklearn.utils._param_validation import Interval, Options

from skbnp.laws import Law


@dataclass(frozen=True)
class Parameter:
    """A declared parameter: its default, type in words, scikit-learn's rules, and text.

    ``of_chains`` says whether draws depend on it: see `parameter`.
    """

    default: Any
    kind: str
    rules: list
    text: str
    of_chains: bool

    def after(self, inherited):
        """This one, with what it leaves out as a base of its class has it."""
        missing = {x.name for x in fields(self) if getattr(self, x.name) is None} - {"default"}
        if inherited is None and missing <= {"of_chains"}:
            return replace(self, of_chains=self.of_chains is not False)
        return replace(self, **{name: getattr(inherited, name) for name in missing})

    @property
    def may_be_bool(self):
        """Whether True and False are among its values."""
        return any(
            rule in ("boolean", "verbose")
            if isinstance(rule, str)
            else isinstance(rule, Options) and rule.type is bool
            for rule in self.rules
        )

    def documented(self, name):
        """Its entry in a numpydoc section."""
        default = f'"{self.default}"' if isinstance(self.default, str) else repr(self.default)
        text = textwrap.indent(inspect.cleandoc(self.text), "    ")
        return f"{name} : {self.kind}, default={default}\n{text}"


def parameter(*, default, kind=None, rules=None, text=None, of_chains=None) -> Any:
    """Declare a constructor parameter as an attribute of an estimator's class.

    What is None beside the default is that of the class it inherits from.

    Parameters
    ----------
    default : object
        Immutable: all instances share it.
    kind : str
        The type in words, as numpydoc has it.
    rules : list
        What a value must be, one of these: see ``sklearn.utils._param_validation``.
    text : str
        What the parameter does; docstring markup.
    of_chains : bool
        Whether draws depend on it, True where nothing is inherited. If they do not, it may be
        another one when chains go on.
    """
    return Parameter(default, kind, rules, text, of_chains)


def in_lines(*texts):
    """One paragraph of a parameter's text, of what several places say."""
    whole = " ".join(inspect.cleandoc(text) for text in texts)
    return textwrap.fill(whole, 96, break_long_words=False, break_on_hyphens=False)


@dataclass_transform(kw_only_default=True, field_specifiers=(parameter,))
class Declared:
    """Base of classes whose keyword-only constructor parameters are declared as attributes.

    A class has its own parameters first, then those of the classes it inherits from; one that it
    declares again is its own, and stands where it was. A class that writes its own
    ``__init__`` keeps that, and so do those below it.

    ``_renamed`` maps a name that a parameter had once to a sentence that says what it is now.
    """

    _declared: ClassVar[dict] = {}
    _declared_here: ClassVar[dict] = {}
    _renamed: ClassVar[dict] = {}

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        own = {name: x for name, x in vars(cls).items() if isinstance(x, Parameter)}
        for name in own:
            delattr(cls, name)
        inherited, layers = {}, [vars(base).get("_declared_here", {}) for base in cls.__mro__[1:]]
        for layer in layers:
            inherited = layer | inherited
        own = {name: one.after(inherited.get(name)) for name, one in own.items()}
        cls._declared_here, cls._declared = own, {}
        for layer in (*reversed(layers), own):
            # Each where the first class that has it has it, with the value of the last.
            new = {name: x for name, x in layer.items() if name not in cls._declared}
            cls._declared = new | {n: layer.get(n, x) for n, x in cls._declared.items()}
        if not getattr(cls.__init__, "is_declared", cls.__init__ is object.__init__):
            return
        if "_parameter_constraints" in vars(cls):
            raise TypeError(f"{cls.__name__} must declare its parameters, rules included")
        cls._parameter_constraints = {name: x.rules for name, x in cls._declared.items()}
        cls.__init__ = _constructor(cls)
        if "__doc__" in vars(cls) and cls.__doc__:
            cls.__doc__ = _with_section(cls.__doc__, cls._declared)

    def __setattr__(self, name, value):
        # Sums and products of NumPy's small integers overflow.
        is_number = name in self._declared and isinstance(value, (np.integer, np.floating))
        super().__setattr__(name, value.item() if is_number else value)

    def set_params(self, **params):
        """Set parameters of this estimator, those of a nested value as ``name__parameter``.

        A nested value that is None becomes its default first, so that ``sampler__x`` can be set and
        searched over.

        Parameters
        ----------
        **params : dict

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If there is no such parameter, or it is one of a law, which is replaced as a whole.
        """
        for name in params:
            first, _, nested = name.partition("__")
            if first in self._renamed:
                raise ValueError(
                    f"Invalid parameter {first!r} for {type(self).__name__}: {self._renamed[first]}"
                )
            value = getattr(self, first, None) if first in self._declared else None
            if nested and isinstance(params.get(first, value), Law):
                raise ValueError(
                    f"{name} cannot be set: a law is replaced as a whole, {first}={value!r} for one"
                )
            if nested and value is None and first not in params:
                kind = next(filter(_is_nested, self._parameter_constraints.get(first, ())), None)
                if kind is not None:
                    setattr(self, first, kind())
        return super().set_params(**params)

    def _validate_params(self):
        """Raise an error that names the parameter, the rule and the value."""
        for name, value in self.get_params(deep=False).items():
            laws = [x for x in self._parameter_constraints[name] if _is_law(x)]
            if laws:
                self._refuse_numbers_of_a_law(name, value, laws)
            is_other = isinstance(value, Law) and not isinstance(value, tuple(laws))
            if is_other and "array-like" in self._parameter_constraints[name]:
                # That rule takes whatever has a shape.
                wanted = " or ".join(x.__name__ for x in laws)
                rule = f"a law must be {wanted}" if laws else "must not be a law"
                raise ValueError(f"{name}: {rule}, got {value!r}")
        super()._validate_params()

    def _refuse_numbers_of_a_law(self, name, value, laws):
        """What older versions took, and what other libraries take, for a law."""
        takes_numbers = any(isinstance(x, Interval) for x in self._parameter_constraints[name])
        what = "a number or a law" if takes_numbers else "a law"
        rule = f"{name} must be {what}, got {value!r}"
        if isinstance(value, str) and value == "sample":
            default = self._declared[name].default
            shown = default if isinstance(default, Law) else _form_of(laws[0])
            raise ValueError(f"{rule}: write {name}={shown}, from skbnp.laws, to have it sampled")
        # Where a sequence may stand its items are laws or numbers for the model to check.
        if type(value) in (tuple, list) and type(value) not in self._parameter_constraints[name]:
            shown = ", ".join(map(repr, value))
            n_fields = len(fields(laws[0]))
            if n_fields == 1:
                shown = f"{laws[0].__name__}(({shown}))"
            elif len(value) == n_fields and not self._declared_with_a_law_of_a_law(name):
                shown = f"{laws[0].__name__}({shown})"
            else:
                default = self._declared[name].default
                shown = default if isinstance(default, Law) else _form_of(laws[0])
            raise ValueError(f"{rule}: write {name}={shown}, from skbnp.laws")

    def _declared_with_a_law_of_a_law(self, name):
        default = self._declared[name].default
        return isinstance(default, Law) and any(
            isinstance(getattr(default, field.name), Law) for field in fields(default)
        )

    def _refuse_bools(self):
        """True is an integer to Python, hence to the rules of single parameters."""
        for name, value in self.get_params(deep=False).items():
            one = self._declared.get(name)
            if isinstance(value, bool) and not (one and one.may_be_bool):
                raise ValueError(f"{name} must not be a bool, got {value!r}")


def _is_law(rule):
    return isinstance(rule, type) and issubclass(rule, Law)


def _form_of(law):
    """How a law is written: its name and those of its fields."""
    return f"{law.__name__}({', '.join(field.name for field in fields(law))})"


def _is_nested(rule):
    """Whether values of this type have parameters of their own, all with defaults."""
    return isinstance(rule, type) and issubclass(rule, Declared)


def _constructor(cls):
    """``__init__`` of a class: keyword-only, stores what it is given and checks nothing."""
    declared, renamed = cls._declared, cls._renamed

    def __init__(self, **given):
        for name in given:
            if name not in declared:
                raise TypeError(
                    f"{cls.__name__}.__init__() got an unexpected keyword argument {name!r}"
                    + _hint(name, declared, renamed)
                )
        for name, one in declared.items():
            setattr(self, name, given.get(name, one.default))

    __init__.is_declared = True
    __init__.__qualname__ = f"{cls.__qualname__}.__init__"
    __init__.__module__ = cls.__module__
    __init__.__signature__ = inspect.Signature(
        [
            inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD),
            *(
                inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=one.default)
                for name, one in declared.items()
            ),
        ]
    )
    return __init__


def _hint(name, declared, renamed):
    """What to write instead of a name that is no parameter."""
    if name in renamed:
        return f": {renamed[name]}"
    close = get_close_matches(name, declared, n=1)
    return f". Did you mean {close[0]!r}?" if close else ""


def _with_section(text, declared):
    """A docstring with its Parameters section, before all others."""
    text = inspect.cleandoc(text)
    entries = "\n".join(one.documented(name) for name, one in declared.items())
    section = f"Parameters\n----------\n{entries}\n\n"
    place = re.search(r"^\w[\w ]*\n-+$", text, re.M)
    if place is None:
        return f"{text}\n\n{section}"
    return text[: place.start()] + section + text[place.start() :]
