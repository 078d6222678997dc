"""Stubs of compiled modules, for editors and type checkers that cannot look into them.

    python tests/checks/stubs.py    # writes them all

Names, parameters, defaults and the first line of the documentation come from the modules; types
from the documentation as far as its words say them. A test compares what is there with what would
be written.
"""

import importlib
import inspect
import re
from pathlib import Path

import skbnp

PACKAGE = Path(skbnp.__file__).parent
MODULES = (
    *(f"skbnp.processes.{name}" for name in ("cibp", "crp", "ibp", "icp", "mfm", "ncrp")),
    "skbnp.processes.multiplicative_gamma",
    "skbnp.summaries.partitions",
    "skbnp.mcmc.chain",
)

# Words of numpydoc's types, and what they are to Python.
WORDS = (
    (r"\bbools?\b", "bool"),
    (r"\bints?\b", "int"),
    (r"\bfloats?\b", "float"),
    (r"\"|\{|\bstr\b", "str"),
    (r"\btuple\b|\bpair\b", "tuple[Any, ...]"),
    (r"\blist\b|\bsequence\b", "Sequence[Any]"),
    (r"\bdict\b", "dict[str, Any]"),
    (r"array-like", "ArrayLike"),
    (r"ndarray", "NDArray[Any]"),
    (r"\bRandomState\b", "np.random.RandomState"),
    (r"\bGenerator\b", "np.random.Generator"),
    (r"\bNone\b", "None"),
)


def type_of(words):
    """The type that numpydoc's words say, Any where they say something else."""
    words = re.sub(r",? *default=.*$| of shape \([^)]*\)| of \([^)]*\)", "", words)
    if words.startswith("list of "):
        return "Sequence[Any]" if "array-like" in words else "list[Any]"
    words = re.sub(r" of (?:ints?|floats?|bools?|str)\b", "", words)
    found = [kind for pattern, kind in WORDS if re.search(pattern, words)]
    if "ArrayLike" in found:
        found = [kind for kind in found if kind not in ("int", "float", "bool", "Sequence[Any]")]
    return " | ".join(dict.fromkeys(found)) or "Any"


def sections(text):
    """Name of each entry of Parameters and Returns -> the words of its type."""
    found = {"Parameters": {}, "Returns": {}}
    for title in found:
        match = re.search(rf"^{title}\n-+\n(.*?)(?=^\w[^\n]*\n-+$|\Z)", text, re.M | re.S)
        if title == "Returns" and match and re.search(r"^ +Only ", match[1], re.M):
            # What comes back depends on an argument.
            return found
        for names, words in re.findall(r"^(\S[^:\n]*?) : (.+)$", match[1] if match else "", re.M):
            for name in names.split(","):
                found[title][name.strip()] = words
    return found


def function_stub(name, function, indent=""):
    """``def`` of one function or method."""
    text = inspect.getdoc(function) or ""
    documented = sections(text)
    shown, star = [], False
    for key, one in inspect.signature(function).parameters.items():
        if one.kind is one.KEYWORD_ONLY and not star:
            shown.append("*")
            star = True
        kind = documented["Parameters"].get(key)
        part = key
        if kind is not None:
            said = type_of(kind)
            if one.default is None and "None" not in said and said != "Any":
                said += " | None"
            part = f"{key}: {said}"
        if one.default is not one.empty:
            part += (" = " if kind else "=") + repr(one.default)
        shown.append(part)
    returns = [type_of(words) for words in documented["Returns"].values()]
    result = f"tuple[{', '.join(returns)}]" if len(returns) > 1 else (*returns, "Any")[0]
    return f"{indent}def {name}({', '.join(shown)}) -> {result}: ...\n"


def class_stub(name, kind):
    """Public methods of a class, and what it has beside them."""
    lines = [f"class {name}:\n"]
    for key, value in sorted(vars(kind).items()):
        if key.startswith("_"):
            continue
        if callable(value) and not isinstance(value, type):
            try:
                lines.append(function_stub(key, value, "    "))
            except ValueError:
                lines.append(f"    def {key}(self, *args: Any, **kwargs: Any) -> Any: ...\n")
        else:
            lines.append(f"    {key}: Any\n")
    return "".join(lines) if len(lines) > 1 else f"class {name}: ...\n"


def public_names(module):
    """``__all__``, or what the module itself defines."""
    names = getattr(module, "__all__", None)
    return names or sorted(
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    )


def stub_of(name):
    """The text of a module's stub."""
    module = importlib.import_module(name)
    parts = [
        f'"""{inspect.getdoc(module).splitlines()[0]}"""\n\n'
        "# Written by tests/checks/stubs.py.\n\n"
        "from collections.abc import Sequence\nfrom typing import Any\n\n"
        "import numpy as np\nfrom numpy.typing import ArrayLike, NDArray\n\n"
    ]
    for key in sorted(public_names(module)):
        value = getattr(module, key)
        if isinstance(value, type):
            parts.append(class_stub(key, value))
        elif callable(value):
            parts.append(function_stub(key, value))
        else:
            parts.append(f"{key}: Any\n")
    return "".join(parts)


def place_of(name):
    """Where a module's stub stands."""
    return PACKAGE.joinpath(*name.split(".")[1:]).with_suffix(".pyi")


if __name__ == "__main__":
    for name in MODULES:
        place_of(name).write_text(stub_of(name), encoding="utf-8")
