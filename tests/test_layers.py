"""The import directions of the package, read from its import and cimport lines.

A lower layer never imports an upper one, so that each folder can be read, tested and replaced
with nothing in mind but the folders listed beside it here.
"""

from pathlib import Path, PurePosixPath

import pytest

from checks.sources import code_of, imports

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "skbnp"

# layer -> the other layers it may import; within a layer everything may import everything.
MAY_IMPORT = {
    "numerics": set(),
    "processes": {"numerics"},
    "likelihoods": {"numerics", "processes", "units"},
    "summaries": {"numerics"},
    "mcmc": {"numerics", "markup"},
    "tables": set(),
    "laws": set(),
    "units": {"numerics"},
    "markup": set(),
    # Tables of which nobody holds all rows.
    "collections": {"mcmc", "tables", "units"},
    # What fitted estimators hand over, in words and pictures.
    "reports": {"markup", "mcmc", "plot", "summaries"},
    "estimators": {
        *("likelihoods", "mcmc", "numerics", "summaries", "tables", "units"),
        *("markup", "reports", "collections"),
    },
    "show_versions": set(),
    "plot": {"mcmc", "summaries", "tables"},
    "progress": {"mcmc"},
    "datasets": {"processes", "likelihoods"},
    # Around estimators of models, from which it chooses one where nobody does.
    "imputer": {
        *("estimators", "mcmc", "tables", "markup", "reports"),
        *("dirichlet_process_mixture", "tree_factor_model"),
    },
    # Above all: files in, an estimator, files out.
    "command_line": {
        *("imputer", "plot", "progress", "tables"),
        *("cibp_belief_net", "dirichlet_process_mixture", "tree_factor_model"),
    },
    "__main__": {"command_line"},
}
# Layers that offer an estimator which is no model.
OVER_MODELS = {"imputer"}
# Every other folder is a model; there it depends on the file. Siblings come beside these.
# A model of several estimators has a file for each, and one for what they share: `_*_estimator`.
MODEL_MAY_IMPORT = {
    # Beside the chains: the units that a likelihood takes columns in, and which of these follow
    # from others.
    "_estimator": {
        *("estimators", "mcmc", "summaries", "likelihoods", "units", "tables.dependence"),
        *("markup", "reports", "collections"),
    },
    # The slow reference, in plain NumPy; random draws are those of numerics.
    "_model": {"numerics", "processes", "likelihoods"},
    # How the columns of a table are read.
    "_table": {"tables", "mcmc.caller"},
    "__init__": set(),
}
# Of mcmc, kernels know what a chain is made of, and nothing of who runs it.
MODEL_KERNEL_MAY_IMPORT = {
    *("numerics", "processes", "likelihoods", "units"),
    *("mcmc.chain", "mcmc.fields", "mcmc.cell_moments"),
    # How cells of rows are added up.
    "collections.tree",
}

# Names that only these modules may touch: everybody else goes through its wrappers.
GUARDED = {
    "PyCapsule": {"skbnp/numerics/rng"},
    "cython_blas": {"skbnp/numerics/linalg", "skbnp/numerics/linalg_single"},
    "cython_lapack": {"skbnp/numerics/linalg"},
}
# Extras: import them where they are used, or `import skbnp` would need them.
OPTIONAL = {
    *("arviz", "dask", "distributed", "matplotlib", "networkx", "pandas", "PIL", "polars"),
    *("h5py", "pyarrow", "rich", "torch", "zarr"),
}


def allowed(path):
    """Layers that the file at ``path`` may import; its own folder is always among them."""
    layer = path.parts[1] if len(path.parts) > 2 else path.stem
    if layer in MAY_IMPORT:
        return layer, MAY_IMPORT[layer]
    if len(path.parts) == 2:
        raise ValueError(f"{path}: no layer of this name; add it to the table or to a folder")
    stem = "_estimator" if is_estimator(path.stem) else path.stem
    return layer, MODEL_MAY_IMPORT.get(stem, MODEL_KERNEL_MAY_IMPORT)


# Parts of a large estimator, in files of their own.
ESTIMATOR_PARTS = {
    *("_parameters", "_sampler_settings", "_standard_prior"),
    *("_clustering", "_unbounded", "_cells", "_detection_limits", "_collections"),
}
# What is offered at the top: names of models.
TOP = {"__init__", "_version", "samplers"}


def is_estimator(name):
    """Whether a module of a model holds a public estimator, or a part of one."""
    return name is not None and (name.endswith("_estimator") or name in ESTIMATOR_PARTS)


def violations(path, source):
    """What is wrong with the imports of one file; ``path`` starts at the package's parent."""
    path = PurePosixPath(path)
    code = code_of(source)
    found = []
    for name, owners in GUARDED.items():
        if name in code and str(path.with_suffix("")) not in owners:
            found.append(f"{path}: {name} belongs to {', '.join(sorted(owners))}")

    top = path.parent == PurePosixPath("skbnp") and path.stem in TOP
    layer, lower = ("", set()) if top else allowed(path)
    for at_module_level, module, name in imports(code):
        head, *rest = module.split(".")
        if head == "":
            found.append(f"{path}: relative import of {name}")
        elif head in OPTIONAL and at_module_level:
            found.append(f"{path}: {head} is optional, import it inside a function")
        elif head != "skbnp":
            continue
        elif not rest:
            found.append(f"{path}: imports the package itself: circles start there")
        elif rest[0] in ("_version", "laws"):
            continue  # a constant, and values, without imports
        elif top:
            # `import skbnp` offers the estimators and the version, nothing else.
            if rest[0] in MAY_IMPORT and rest[0] not in OVER_MODELS:
                found.append(f"{path}: {module} holds no estimator")
        elif rest[0] == layer:
            if layer not in MAY_IMPORT and path.stem != "__init__" and not is_estimator(path.stem):
                if any(map(is_estimator, (*rest[1:], name))):
                    found.append(f"{path}: a kernel imports its estimator")
        elif rest[0] not in lower and ".".join([*rest, name or ""][:2]) not in lower:
            found.append(f"{path}: {layer} may not import {module}")
    return found


FILES = sorted(path for suffix in ("py", "pyx", "pxd") for path in PACKAGE.rglob(f"*.{suffix}"))


def test_there_is_something_to_check():
    assert any(path.suffix == ".pyx" for path in FILES)
    assert any(path.suffix == ".pxd" for path in FILES)


def test_import_directions():
    found = []
    for path in FILES:
        found += violations(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))
    assert found == []


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("skbnp/numerics/rng.pyx", "from skbnp.processes.crp cimport log_weight"),
        ("skbnp/processes/crp.pyx", "from skbnp.likelihoods cimport conjugate"),
        ("skbnp/likelihoods/conjugate/family.pyx", "cimport skbnp.mcmc.chain as chain"),
        ("skbnp/summaries/partitions.py", "from skbnp.mcmc.posterior import Posterior"),
        ("skbnp/mcmc/runner.py", "from skbnp.processes.crp import sample"),
        ("skbnp/estimators/chains.py", "from skbnp.plot.traces import TraceDisplay"),
        ("skbnp/plot/traces.py", "    from skbnp.estimators.chains import BaseMCMCEstimator"),
        ("skbnp/plot/traces.py", "import matplotlib.pyplot as plt"),
        ("skbnp/a_model/_sampler.pyx", "from skbnp.another_model._sampler cimport Sampler"),
        ("skbnp/a_model/_sampler.pyx", "from skbnp.a_model._estimator import AModel"),
        ("skbnp/a_model/_sampler.pyx", "from skbnp.a_model._other_estimator import Other"),
        ("skbnp/a_model/_sampler.pyx", "from skbnp.mcmc.runner import run_chains"),
        ("skbnp/a_model/_other_estimator.py", "from skbnp.numerics.rng import uniform"),
        ("skbnp/a_model/_estimator.py", "from skbnp.numerics.rng import uniform"),
        ("skbnp/a_model/_estimator.py", "from skbnp import DirichletProcessMixture"),
        ("skbnp/a_model/_estimator.py", "import skbnp"),
        ("skbnp/a_model/_estimator.py", "from skbnp import (\n    base,\n)"),
        ("skbnp/a_model/_estimator.py", "from ._sampler import Sampler"),
        ("skbnp/a_model/_predictive.pyx", "from scipy.linalg.cython_blas cimport ddot"),
        ("skbnp/a_model/_predictive.pyx", "from scipy.linalg cimport cython_lapack"),
        ("skbnp/processes/crp.pyx", "from cpython.pycapsule cimport PyCapsule_GetPointer"),
        ("skbnp/__init__.py", "from skbnp.mcmc.posterior import Posterior"),
    ],
)
def test_a_violation_is_caught(path, line):
    assert len(violations(path, f'"""Docstring."""\n\nimport numpy as np\n{line}\n')) >= 1


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("skbnp/__init__.py", "from skbnp.a_model import AModel"),
        (
            "skbnp/estimators/chains.py",
            "from skbnp.summaries.partitions import minimise_expected_loss",
        ),
        ("skbnp/a_model/__init__.py", "from skbnp.a_model._estimator import AModel"),
        ("skbnp/a_model/_estimator.py", "from skbnp.estimators.chains import BaseMCMCEstimator"),
        ("skbnp/a_model/_estimator.py", "from skbnp.a_model._sampler import Sampler"),
        ("skbnp/a_model/_other_estimator.py", "from skbnp.a_model._base_estimator import Base"),
        (
            "skbnp/a_model/_other_estimator.py",
            "from skbnp.estimators.chains import BaseMCMCEstimator",
        ),
        ("skbnp/a_model/moves/labels.pyx", "from skbnp.mcmc.chain cimport Move"),
        ("skbnp/a_model/_state.pyx", "from skbnp.mcmc import fields"),
        (
            "skbnp/a_model/_sampler.pyx",
            "from skbnp.numerics.linalg cimport (\n    dot,\n    axpy,\n)",
        ),
        ("skbnp/plot/traces.py", "    import matplotlib.pyplot as plt"),
        ("skbnp/mcmc/runner.py", '"""\n    from skbnp import DirichletProcessMixture\n"""'),
        ("skbnp/mcmc/runner.py", "# from skbnp import DirichletProcessMixture"),
    ],
)
def test_what_is_allowed_passes(path, line):
    assert violations(path, f"import numpy as np\n{line}\n") == []


def test_a_file_of_no_layer_is_caught():
    with pytest.raises(ValueError, match="no layer"):
        violations("skbnp/utils.py", "")
