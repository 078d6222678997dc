"""The report that people paste into an issue."""

import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np

import skbnp
from skbnp.show_versions import OPTIONAL, REQUIRED


def test_as_a_command():
    done = subprocess.run(
        [sys.executable, "-m", "skbnp.show_versions"], capture_output=True, text=True, check=True
    )
    found = dict(line.split(":", 1) for line in done.stdout.splitlines())
    assert found["skbnp"].strip() == skbnp.__version__
    assert found["numpy"].strip() == np.__version__
    assert found["python"].strip() == sys.version.split()[0]
    assert int(found["cores"]) >= 1
    assert "threads" in found["blas"]
    assert not any("not installed" in found[name] for name in REQUIRED)


def test_nothing_declared_is_forgotten():
    pyproject = Path(__file__).parents[1] / "pyproject.toml"
    project = tomllib.loads(pyproject.read_text())["project"]
    declared = {line.split(">")[0] for line in project["dependencies"]}
    assert declared == set(REQUIRED)
    extras = project["optional-dependencies"]
    of_users = {
        line.split(">")[0]
        for name, lines in extras.items()
        if name not in ("test", "lint", "bench", "doc")
        for line in lines
    }
    assert of_users <= set(OPTIONAL)
