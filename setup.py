"""Compile every .pyx of the package; everything else is said in pyproject.toml."""

import gc
import os
import sys
import sysconfig
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
from Cython.Build import cythonize
from Cython.Compiler import Options
from setuptools import Extension, setup

# SKBNP_DEBUG=1: bounds checks and assertions, hardly optimised. SKBNP_SANITIZE=address,undefined:
# the same C with the compiler's sanitizers. `make test-debug` builds and tests both.
SANITIZE = os.environ.get("SKBNP_SANITIZE", "")
DEBUG = bool(SANITIZE) or os.environ.get("SKBNP_DEBUG", "0") == "1"
ROOT = Path(__file__).parent

sources = sorted(path.relative_to(ROOT) for path in (ROOT / "skbnp").rglob("*.pyx"))
if not sources:
    # An sdist without its .pyx would otherwise build a wheel with no kernels in it.
    sys.exit("setup.py found no .pyx file below skbnp/: this source tree is incomplete.")

# Nobody looks at floating-point traps, and with them comparisons in loops are not vectorised.
# Without debug information, which Python's own flags ask for, compilers take much less time.
LINK, SEGMENTS, FASTEST, FASTER, COMPACT, OTHER = [], [], [], [], [], []
if sys.platform == "win32":
    COMPILE = ["/Od" if DEBUG else "/O2"]
elif SANITIZE:
    # Python's own flags make signed integers wrap around, and then UBSan has nothing to say.
    LINK = [f"-fsanitize={SANITIZE}"]
    COMPILE = ["-O0", "-g1", "-UNDEBUG", "-fno-wrapv", "-fno-omit-frame-pointer", *LINK]
elif DEBUG:
    COMPILE = ["-O0", "-g0", "-UNDEBUG"]
else:
    # No contracted products and sums: the same bits whatever the instruction set.
    COMPILE = ["-fno-trapping-math", "-ffp-contract=off", "-g0"]
    # Nothing is thrown through our C, and nobody asks a file of a wheel who compiled it.
    COMPILE += ["-fno-asynchronous-unwind-tables", "-fno-ident"]
    FASTEST, OTHER = ["-O3"], ["-Os"]
    # Loops in vectors as with -O3, but none in several versions.
    FASTER = ["-O2", "-ftree-vectorize"]
    # A sixth slower than these, and a quarter smaller: what is called once in a fit.
    COMPACT = ["-Os", "-ftree-vectorize"]
    if sys.platform.startswith("linux"):
        # GCC puts functions into their callers only where that makes the file no larger, or where
        # the code says so: a tenth less code, no slower.
        COMPILE += ["--param=inline-unit-growth=0"]
        # The linker would add a stub for each function of Python's.
        COMPILE += ["-fno-plt"]
        # In two thirds of the time of -Os, an eighth larger; equal ends of branches are joined.
        OTHER = ["-Og", "-fcrossjumping"]
        FASTER += ["-fvect-cost-model=dynamic"]
        # Code and constants in one segment: two pages less of each file are filled with zeros.
        SEGMENTS = ["-Wl,-z,noseparate-code"]
        # Nothing of ours runs when a file is loaded or unloaded, and so nothing has to call it.
        SEGMENTS += ["-nostartfiles"]
    # Names of what only the file itself uses: nobody reads them without debug information.
    # Nor is there debug information elsewhere, to be found by a digest of the file.
    LINK = ["-Wl,-x"] if sys.platform == "darwin" else ["-Wl,--strip-all", "-Wl,--build-id=none"]
    LINK += SEGMENTS

# Loops over rows, and the laws that they call for each. All other code is asked for once in a sweep
# or less: optimised for speed it takes about twice as long to compile.
FAST = {
    "numerics": ["*"],
    "likelihoods": ["dense_rows"],
    "likelihoods/conjugate": ["dirichlet_*", "ga*", "lanes", "normal_*"],
    "likelihoods/nonlinear_gaussian": ["*"],
    "likelihoods/sparse_loadings": ["cells", "scale_layer", "score_grid"],
    "dirichlet_process_mixture": ["_row_scores"],
    "dirichlet_process_mixture/families": ["*"],
    "dirichlet_process_mixture/moves": ["[!h]*"],
    "dirichlet_process_mixture/records": ["_slice"],
    "summaries": ["_losses", "_search"],
    "tree_factor_model": ["_leaf_laws", "_products", "_rows", "_system", "_threads"],
    "cibp_belief_net": ["_expansion", "_inner_chain", "_layer", "_predictive", "_proposals"],
    "icp_network": ["_child_regression", "_outputs"],
    "icp_network/convolution": ["_network", "_training"],
    "icp_network/moves": ["activations", "trajectories"],
    "infinite_factor_clusterer": ["_row_law", "_sides"],
    "deep_scale_model": ["_predictive"],
}

# Of these, what is smaller and as fast without all that -O3 does.
SMALLER = (
    *("likelihoods/conjugate", "dirichlet_process_mixture", "tree_factor_model"),
    "deep_scale_model",
)

# Neither Cython nor setuptools notices that options have changed: each kind of build has its own
# directory. In the source tree there is room for one kind of kernels only.
BASE = Path("build", *(["sanitize"] if SANITIZE else ["debug"] if DEBUG else []))
TRANSLATED = Path("build", *(["debug"] if DEBUG else []), "cython")
if DEBUG and {"--inplace", "-i", "develop", "editable_wheel"}.intersection(sys.argv):
    sys.exit(
        f"A debug build does not belong in the source tree: `setup.py build` puts it in {BASE}."
    )
# An sdist and metadata need no C: translating takes a minute, and the wheel's build does it again.
TRANSLATES = {"build", "build_ext", "bdist_wheel", "develop", "editable_wheel", "install"}


def options_for(source):
    """Of the compiler, for one file."""
    path = Path(source)
    folder = path.parent.relative_to("skbnp").as_posix()
    if not any(fnmatch(path.stem, name) for name in FAST.get(folder, [])):
        return COMPILE + OTHER
    if folder == "summaries":
        return COMPILE + COMPACT
    return COMPILE + (FASTER if folder.startswith(SMALLER) else FASTEST)


# Objects of Python are handled once in a sweep or less, there by Python's own functions: Cython's
# short cuts beside them are much code. Those that its types depend on stay: packages share these.
# A wheel is compressed, and its strings with it.
LEFT_OUT = ("FAST_THREAD_STATE", "UNPACK_METHODS", "USE_PYLONG_INTERNALS", "COMPRESS_STRINGS")
MACROS = [(f"CYTHON_{name}", "0") for name in LEFT_OUT]

# From CPython 3.12 on by the interface that stays: one wheel for it and all that follow, but for
# those without a global lock, which have none. It is as large and as fast.
STABLE = (
    sys.implementation.name == "cpython"
    and sys.version_info >= (3, 12)
    and not sysconfig.get_config_var("Py_GIL_DISABLED")
)
MACROS += [("Py_LIMITED_API", "0x030C0000")] if STABLE else []

extensions = [
    Extension(
        ".".join(source.with_suffix("").parts),
        [str(source)],
        include_dirs=[np.get_include(), "skbnp/numerics"],
        depends=["skbnp/numerics/vector_math.h"],
        library_dirs=[str(Path(np.get_include()).parents[1] / "random" / "lib")],
        libraries=["npyrandom"] + ([] if sys.platform == "win32" else ["m"]),
        extra_compile_args=options_for(source),
        extra_link_args=LINK,
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION"), *MACROS],
        py_limited_api=STABLE,
    )
    for source in sources
]
# Packages whose functions are documented for users.
PUBLIC = {"processes", "summaries", "mcmc", "numerics"}

# Cython's own code for memoryviews and functions, once and not in each extension: without it
# building takes twice as long and twice as much is installed. Cython writes its C.
SHARED = "skbnp._cyutility"
shared = Extension(
    SHARED,
    [f"{SHARED.replace('.', '/')}.c"],
    extra_compile_args=options_for(f"{SHARED.replace('.', '/')}.c"),
    define_macros=MACROS,
    extra_link_args=LINK,
    py_limited_api=STABLE,
)


def translated(extensions, **directives):
    """The C of some files, with directives besides those of all."""
    return cythonize(
        extensions,
        # Found before NumPy's own: the one struct that the kernels use. To read all else that NumPy
        # declares, for every file, took a third of the time.
        include_path=["skbnp/numerics/declarations"],
        shared_utility_qualified_name=SHARED,
        build_dir=str(TRANSLATED),
        nthreads=os.cpu_count() or 1,
        compiler_directives={
            "language_level": "3",
            "boundscheck": DEBUG,
            "initializedcheck": DEBUG,
            "show_performance_hints": not DEBUG,
            "wraparound": False,
            "cdivision": True,
            "embedsignature": True,
            # Nothing of ours is pickled as it is: states are plain data.
            "auto_pickle": False,
            **directives,
        },
    )


if TRANSLATES.intersection(sys.argv):
    # The tree of a file is there until its C is written: no garbage is to be found in it.
    gc.set_threshold(100_000, 50, 50)
    # What users may call has docstrings and signatures that Python can read; what our own Python
    # calls has them in the sources.
    public = [one for one in extensions if one.name.split(".")[1] in PUBLIC]
    inner = [one for one in extensions if one.name.split(".")[1] not in PUBLIC]
    extensions = translated([shared, *public])
    Options.docstrings = False
    # Class methods that are not bound are beyond the interface that stays.
    extensions += translated(inner, binding=STABLE, embedsignature=False)
    # The longest first: no core waits for one that began last.
    extensions.sort(key=lambda extension: -os.path.getsize(extension.sources[0]))

setup(
    options={
        "build": {"build_base": str(BASE), "build_lib": str(BASE / "lib")} if DEBUG else {},
        "build_ext": {"parallel": os.cpu_count() or 1},
        "bdist_wheel": {"py_limited_api": "cp312"} if STABLE else {},
    },
    ext_modules=extensions,
)
