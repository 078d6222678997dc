"""What a source file says, without its comments, and which other sources it stands on.

Imports are read from the import and cimport lines, as a compiler finds them: nothing is executed.
"""

import ast
import hashlib
import re
from functools import cache
from pathlib import Path

SUFFIXES = (".py", ".pyx", ".pxd", ".pxi")

STRING = re.compile(r'"""[\s\S]*?"""|' + r"'''[\s\S]*?'''")
FROM = re.compile(r"^([ \t]*)from[ \t]+([.\w]+)[ \t]+c?import[ \t]*(\([^)]*\)|[^\n]*)", re.M)
IMPORT = re.compile(r"^([ \t]*)c?import[ \t]+([^\n(]+)$", re.M)

TOKEN = re.compile(
    r"""(?P<string>[a-zA-Z]{0,2}(?:
            \"{3}(?:\\.|[^\\])*?\"{3} | '{3}(?:\\.|[^\\])*?'{3}
          | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'))
      | (?P<comment>\#[^\n]*)
      | (?P<opening>[(\[{])
      | (?P<closing>[)\]}])""",
    re.S | re.X,
)
# What comes before the documentation of a parameter.
TEXT = re.compile(r"\btext=$")
# Comments that a compiler reads.
DIRECTIVE = re.compile(r"#\s*(cython|distutils)\s*:")

# What tests read beside modules: kernels of their own, by name and folder, and tables.
COMPILED = re.compile(r"\bcompiled\(\s*[\"'](\w+)[\"'](?:,\s*[\"'](\w+)[\"'])?")
INCLUDED = re.compile(r"^(?:include|cdef extern from)[ \t]+[\"']([\w./]+)[\"']", re.M)
TABLE = re.compile(r"[\"']([\w.-]+\.(?:json|npz|npy|csv|txt))[\"']")


def code_of(source):
    """The source without docstrings, comments and line continuations."""
    return re.sub(r"#[^\n]*", "", STRING.sub('""', source)).replace("\\\n", " ")


def imports(code):
    """Yield (is at module level, module, name or None) for each import and cimport."""
    for indent, module, names in FROM.findall(code):
        for name in names.strip("() \t\n").split(","):
            if name.strip():
                yield not indent, module, name.split()[0]
    for indent, modules in IMPORT.findall(code):
        for module in modules.split(","):
            yield not indent, module.split()[0], None


def stripped(source):
    """The source without comments, docstrings and blank lines; a formula loses nothing.

    A docstring is a string of three quotes that begins a line, outside of brackets, after a colon
    or after nothing, or what stands in three quotes as the ``text`` of a parameter. Other strings
    stay as they are.
    """
    pieces, end, depth, last = [], 0, 0, ":"
    for token in TOKEN.finditer(source):
        start, text = token.start(), token.group()
        between = source[end:start]
        end = token.end()
        pieces.append(between)
        last = (between.rstrip() or last)[-1]
        if token.lastgroup == "comment":
            if DIRECTIVE.match(text):
                pieces.append(text)
            continue
        if token.lastgroup == "string":
            begins_line = not source[source.rfind("\n", 0, start) + 1 : start].strip()
            has_three_quotes = text.endswith(('"""', "'''"))
            is_docstring = has_three_quotes and depth == 0 and last == ":" and begins_line
            if is_docstring or (has_three_quotes and TEXT.search(between)):
                last = '"'
                continue
        else:
            depth += 1 if token.lastgroup == "opening" else -1
        pieces.append(text)
        last = text[-1]
    pieces.append(source[end:])
    lines = "".join(pieces).splitlines()
    return "\n".join(line.rstrip() for line in lines if line.strip())


def without_other_tests(source, name):
    """A test file with all of its test functions cut out but one."""
    lines = source.splitlines()
    for node in ast.parse(source).body:
        is_test = isinstance(node, ast.FunctionDef) and node.name.startswith("test")
        if is_test and node.name != name:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            lines[first - 1 : node.end_lineno] = [""] * (node.end_lineno - first + 1)
    return "\n".join(lines)


class Sources:
    """The sources below a root: packages stand in it, modules of tests in its folder ``tests``.

    Files are read once; make another object when they may have changed.
    """

    def __init__(self, root, build=None):
        self.root = Path(root).resolve()
        self.build = self.root / "setup.py" if build is None else build
        self.tests = self.root / "tests"
        # They keep the ledger; no figure depends on them.
        self.apart = {self.tests / "checks" / name for name in ("proofs.py", "sources.py")}
        self.module = cache(self._module)
        self.imported = cache(self._imported)
        self.digest = cache(self._digest)
        self.tables = cache(self._tables)
        self.test = cache(self._test)

    def _module(self, name):
        """The files of a module by its full name: all suffixes, or a package's `__init__`."""
        stem = Path(*name.split("."))
        for folder in (self.root, self.tests):
            path = folder / stem
            found = [path.with_name(path.name + suffix) for suffix in SUFFIXES]
            found = [file for file in found if file.is_file()]
            if not found:
                found = [file for s in SUFFIXES if (file := path / f"__init__{s}").is_file()]
            if found:
                return found
        return []

    def _imported(self, path):
        """Our files that a file stands on at once, its declarations and itself among them."""
        beside = {file for suffix in SUFFIXES if (file := path.with_suffix(suffix)).is_file()}
        if path.suffix not in SUFFIXES:
            return beside
        is_test, source = self.tests in path.parents, path.read_text(encoding="utf-8")
        included = {path.with_name(name) for name in INCLUDED.findall(source)}
        return beside | included | self.named_in(source, is_test)

    def named_in(self, source, is_test=True):
        """Our files that a source names; tests name their own kernels and tables too."""
        found = set()
        for _, module, name in imports(code_of(source)):
            found.update(self._named(module, name))
        if is_test:
            for name, folder in COMPILED.findall(source):
                found.add(self.tests / (folder or "mutants") / f"{name}.pyx")
            for name in TABLE.findall(source):
                found.update(self.tables().get(name, ()))
        return {file for file in found if file.is_file()}

    def _named(self, module, name):
        """The files behind ``from module import name``, or ``import module``."""
        if name is not None and (found := self.module(f"{module}.{name}")):
            return found
        files = self.module(module)
        if name is not None and files and files[0].name == "__init__.py":
            # A name that a package hands on stands for the module that it comes from.
            for _, of, handed_on in imports(code_of(files[0].read_text(encoding="utf-8"))):
                if handed_on == name and (found := self._named(of, name)):
                    return found
        return files

    def _tables(self):
        found = {}
        for path in self.tests.rglob("*.*"):
            found.setdefault(path.name, []).append(path)
        return found

    def reached(self, source):
        """All our files that a source stands on, sorted."""
        seen = set()
        waiting = self.named_in(source)
        while waiting:
            seen |= waiting
            waiting = set().union(*map(self.imported, waiting)) - seen
        return sorted(seen)

    def _digest(self, path):
        """Of what a file says; comments and docstrings of sources say nothing here."""
        if path.suffix in SUFFIXES:
            content = stripped(path.read_text(encoding="utf-8")).encode()
        else:
            content = path.read_bytes()
        return hashlib.sha256(content).hexdigest()

    def _test(self, path, name):
        """What a test function stands on: the files, and a digest of them and of its own file."""
        # What stands beside other tests alone is not of this one.
        source = without_other_tests(Path(path).read_text(encoding="utf-8"), name)
        files = [file for file in self.reached(source) if file not in self.apart]
        hasher = hashlib.sha256(stripped(source).encode())
        # How kernels are compiled is part of what they compute.
        named = [(file.relative_to(self.root).as_posix(), file) for file in files]
        if self.build.is_file():
            named.append(("setup.py", self.build))
        for name, file in named:
            hasher.update(f"{name} {self.digest(file)}\n".encode())
        return files, hasher.hexdigest()

    def key(self, path, test, *values):
        """Digest of all that a test function stands on, and of values beside it."""
        _, digest = self.test(path, test)
        return hashlib.sha256(repr((digest, *values)).encode()).hexdigest()[:32]
