"""Wrong formulas: small kernels that override a method of the shipped ones, compiled when needed.

A test that a sampler is right is worth what it sees of a sampler that is wrong. The shipped kernels
know nothing of these: `tests/mutants` subclasses them by their .pxd files. In the same way
`tests/faces` calls C methods that no Python code of the library needs.

``python tests/checks/mutants.py faces`` compiles those of a folder, so that no test has to.
"""

import hashlib
import importlib.util
import os
import sys
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

SOURCES = Path(__file__).parents[1]
PACKAGE = Path(importlib.util.find_spec("skbnp").origin).parent


def _key(source):
    """Of all that the compiled module depends on."""
    hasher = hashlib.sha256(f"{sys.version} {np.__version__}".encode())
    for path in (source, *sorted(source.parent.glob("*.pxi")), *sorted(PACKAGE.rglob("*.pxd"))):
        hasher.update(path.read_bytes())
    return hasher.hexdigest()[:16]


@cache
def compiled(name, folder="mutants"):
    """The module of ``tests/folder/name.pyx``, built at the first call of any process."""
    from Cython.Build import cythonize
    from setuptools import Distribution, Extension

    source = SOURCES / folder / f"{name}.pyx"
    module = f"{Path(folder).name}_of_{name}"
    directory = Path(tempfile.gettempdir()) / f"skbnp-mutants-{os.getuid()}" / _key(source)
    found = sorted(directory.glob(f"{module}.*.so"))
    if not found:
        directory.mkdir(parents=True, exist_ok=True)
        # Test processes may build at the same time: each on its own, the last rename wins.
        with tempfile.TemporaryDirectory(dir=directory) as work:
            copy = Path(work) / f"{module}.pyx"
            copy.write_text(source.read_text())
            extension = Extension(
                module,
                [str(copy)],
                include_dirs=[np.get_include()],
                library_dirs=[str(Path(np.get_include()).parents[1] / "random" / "lib")],
                libraries=["npyrandom", "m"],
                extra_compile_args=["-O1", "-g0"],
                define_macros=[("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION")],
            )
            modules = cythonize(
                [extension],
                include_path=[str(PACKAGE.parent), str(source.parent)],
                quiet=True,
                compiler_directives={
                    "language_level": "3",
                    "boundscheck": False,
                    "initializedcheck": False,
                    "wraparound": False,
                    "cdivision": True,
                },
            )
            command = Distribution({"ext_modules": modules}).get_command_obj("build_ext")
            command.build_lib = command.build_temp = work
            command.ensure_finalized()
            command.run()
            built = Path(command.get_ext_fullpath(module))
            found = [directory / built.name]
            os.replace(built, found[0])
    spec = importlib.util.spec_from_file_location(module, found[0])
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def with_moves(sampler, **moves):
    """A subclass of a sampler some of whose moves are others: name -> class."""
    return type(f"{sampler.__name__}Mutant", (sampler,), {"MOVES": sampler.MOVES | moves})


def with_state(sampler, **attributes):
    """A subclass of a sampler whose state has other parts, or methods."""
    state = type(f"{sampler.STATE.__name__}Mutant", (sampler.STATE,), attributes)
    return type(f"{sampler.__name__}Mutant", (sampler,), {"STATE": state})


if __name__ == "__main__":
    for _folder in sys.argv[1:]:
        for _source in sorted((SOURCES / _folder).glob("*.pyx")):
            compiled(_source.stem, _folder)
