"""How large a part may be: files, classes of kernels, towers of classes. Read from the sources.

What is larger today stands in the tables below, with its size: it may shrink and not grow, and
nothing may join it.
"""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted(
    path for suffix in ("py", "pyx", "pxd") for path in (ROOT / "skbnp").rglob(f"*.{suffix}")
)
MOST_LINES, MOST_METHODS, MOST_FIELDS, MOST_DEEP = 600, 50, 40, 2

TOO_LONG = {}
TOO_MANY_METHODS = {}
TOO_MANY_FIELDS = {}
TOO_DEEP = {
    # A state of the mixture, for all of its moves, most of whose rows are elsewhere.
    "skbnp/dirichlet_process_mixture/records/_at_hand.pyx RowsAtHand": 3,
    # Proposals of a chain, made elsewhere and without their law.
    "skbnp/dirichlet_process_mixture/records/_start_search.pyx StartSearch": 3,
}

CLASS = re.compile(r"^cdef class (\w+)(?:\(([\w.]+)\))?:", re.M)
METHOD = re.compile(r"^    (?:cdef|cpdef|def) (?:inline )?[^=\n]*?(\w+)\(", re.M)


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def bodies(source):
    """Name, base and body of each extension class of a source."""
    starts = list(CLASS.finditer(source))
    for one in starts:
        rest = source[one.end() :]
        end = re.search(r"^\S", rest, re.M)
        yield one[1], one[2], rest[: end.start()] if end else rest


# ``readonly double[:, ::1] first, second`` and the like, within a ``cdef:`` block or after cdef.
FIELD = re.compile(
    r"^    (?:    |cdef )(?:readonly |public |const |unsigned )*[\w.]+(?:\[[^\]]*\])?\*? +"
    r"(\*?\w+(?:\[\w+\])?(?:, *\*?\w+(?:\[\w+\])?)*)$"
)


def fields_of(body):
    """Names of the C attributes of a class, from a ``cdef:`` block or single lines."""
    found = []
    for line in body.split("\n"):
        one = FIELD.match(line.split("#")[0].rstrip())
        if one and not line.strip().startswith(("return ", "raise ", "del ")):
            found += one[1].replace(" ", "").split(",")
    return found


def kernel_classes():
    """(file of the .pyx, class) -> base, methods, fields."""
    found = {}
    for path in FILES:
        if path.suffix != ".pyx":
            continue
        declared = {}
        twin = path.with_suffix(".pxd")
        if twin.exists():
            declared = {name: body for name, _, body in bodies(twin.read_text(encoding="utf-8"))}
        for name, base, body in bodies(path.read_text(encoding="utf-8")):
            methods = set(METHOD.findall(body))
            block = declared.get(name)
            if block is None:
                found_fields = re.findall(r"^    cdef:\n((?:        .*\n|\n)+)", body, re.M)
                found_fields += re.findall(r"^    cdef [^(\n]+$", body, re.M)
                block = "\n".join(found_fields)
            found[name_of(path), name] = (base, len(methods), len(fields_of(block)))
    return found


CLASSES = kernel_classes()


def depth(name, bases, seen=()):
    """How many classes of the package stand over each other, this one included."""
    base = bases.get(name)
    if base is None or base in seen:
        return 1
    return 1 + depth(base, bases, (*seen, name))


def over(sizes, most):
    return {key: size for key, size in sizes.items() if size > most}


def test_there_is_something_to_count():
    assert len(FILES) > 100
    assert len(CLASSES) > 30
    path = "skbnp/dirichlet_process_mixture/_state.pyx"
    base, n_methods, n_fields = CLASSES[path, "State"]
    assert base == "BaseState" and 20 <= n_methods <= 40 and n_fields == 18


def test_files_are_short():
    sizes = {name_of(path): len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}
    check(over(sizes, MOST_LINES), TOO_LONG, "lines")


def test_classes_have_few_methods():
    sizes = {f"{path} {name}": n for (path, name), (_, n, _) in CLASSES.items()}
    check(over(sizes, MOST_METHODS), TOO_MANY_METHODS, "methods")


def test_classes_have_few_fields():
    sizes = {f"{path} {name}": n for (path, name), (_, _, n) in CLASSES.items()}
    check(over(sizes, MOST_FIELDS), TOO_MANY_FIELDS, "fields")


def test_towers_are_low():
    """Of one folder: the base classes of other folders are contracts."""
    found = {}
    for folder in {path.rsplit("/", 1)[0] for path, _ in CLASSES}:
        here = {n: base for (path, n), (base, _, _) in CLASSES.items() if path.startswith(folder)}
        for (path, name), _ in CLASSES.items():
            if path.startswith(folder):
                # A folder within another counts alone and as a part of that.
                key = f"{path} {name}"
                found[key] = max(found.get(key, 0), depth(name, here))
    check(over(found, MOST_DEEP), TOO_DEEP, "classes over each other")


def check(found, known, what):
    """What is too large is known, and no larger than it was."""
    new = {key: size for key, size in found.items() if size > known.get(key, 0)}
    assert not new, f"too many {what}: {new}"
    gone = {key: known[key] for key in known if found.get(key) != known[key]}
    assert not gone, f"smaller now, say so in this test: {gone} are {found}"


def test_no_formula_is_wrong_on_purpose():
    has_faults = {
        name_of(path)
        for path in FILES
        if path.suffix != ".py"
        and re.search(r"\b_?[Ff]aults?\b|\bFAULTS\b", path.read_text(encoding="utf-8"))
    }
    assert has_faults == set()
