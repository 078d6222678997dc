"""What the README shows runs as it stands."""

import contextlib
import io
import re
from pathlib import Path

import numpy as np

README = Path(__file__).resolve().parents[1] / "README.md"


def test_the_example_runs():
    text = README.read_text(encoding="utf-8")
    ((example, shown),) = re.findall(r"```python\n(.*?)```.*?```\n(.*?)```", text, re.S)
    # One process: another would import the library again.
    example = example.replace("n_jobs=-1", "n_jobs=1")
    names, printed = {}, io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(example, str(README), "exec"), names)
    assert np.isfinite(names["X_filled"]).all()
    # Not the digits: elsewhere rounding may part the chains from the printed ones.
    assert len(printed.getvalue().splitlines()) == len(shown.splitlines())
