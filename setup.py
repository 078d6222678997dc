"""Compile every .pyx of the package; everything else is said in pyproject.toml."""

import os
import sys
from pathlib import Path

import numpy as np
from Cython.Build import cythonize
from setuptools import Extension, setup

DEBUG = os.environ.get("SKBNP_DEBUG", "0") == "1"  # bounds checks and annotated sources
ROOT = Path(__file__).parent

sources = sorted(path.relative_to(ROOT) for path in (ROOT / "skbnp").rglob("*.pyx"))
if not sources:
    # An sdist without its .pyx would otherwise build a wheel with no kernels in it.
    sys.exit("setup.py found no .pyx file below skbnp/: this source tree is incomplete.")

# Nobody looks at floating-point traps, and with them comparisons in loops are not vectorised.
# Without debug information, which Python's own flags ask for, compilers take much less time.
COMPILE = ["/O2"] if sys.platform == "win32" else ["-O3", "-fno-trapping-math"]
if not DEBUG and sys.platform != "win32":
    COMPILE.append("-g0")
# An sdist and metadata need no C: translating takes a minute, and the wheel's build does it again.
TRANSLATES = {"build", "build_ext", "bdist_wheel", "develop", "editable_wheel", "install"}

extensions = [
    Extension(
        ".".join(source.with_suffix("").parts),
        [str(source)],
        include_dirs=[np.get_include()],
        library_dirs=[str(Path(np.get_include()).parents[1] / "random" / "lib")],
        libraries=["npyrandom"] + ([] if sys.platform == "win32" else ["m"]),
        extra_compile_args=COMPILE,
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION")],
    )
    for source in sources
]

if TRANSLATES.intersection(sys.argv):
    extensions = cythonize(
        extensions,
        build_dir="build/cython",
        force=DEBUG,
        annotate=DEBUG,
        nthreads=os.cpu_count() or 1,
        compiler_directives={
            "language_level": "3",
            "boundscheck": DEBUG,
            "initializedcheck": DEBUG,
            "wraparound": False,
            "cdivision": True,
            "embedsignature": True,
            "freethreading_compatible": True,
        },
    )

setup(
    options={"build_ext": {"parallel": os.cpu_count() or 1}},
    ext_modules=extensions,
)
