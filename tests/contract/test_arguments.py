"""Arguments that nobody has are refused in the name of the class that was called."""

import inspect

import numpy as np
import pytest

from contract.registry import DEFAULTS

X = np.random.default_rng(0).normal(size=(12, 2))


@pytest.mark.parametrize("setting", DEFAULTS, ids=str)
def test_constructor(setting):
    with pytest.raises(TypeError, match=rf"^{setting.kind.__name__}.__init__\(\).*'n_chain'"):
        setting.kind(n_chain=3)


@pytest.mark.parametrize("setting", DEFAULTS, ids=str)
def test_weights_of_rows(setting):
    name = setting.kind.__name__
    with pytest.raises(TypeError, match=rf"^{name}.fit\(\).*'sample_weight'; rows have no weights"):
        setting.make().fit(X, setting.target(X), sample_weight=np.ones(12))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("setting", DEFAULTS, ids=str)
def test_all_public_methods(setting):
    """Those of scikit-learn's mixins aside, whose messages are its own."""
    fitted = setting.fit(X)
    for name, method in inspect.getmembers(fitted, inspect.ismethod):
        if name.startswith("_") or "skbnp" not in inspect.unwrap(method).__module__:
            continue
        if name == "set_callbacks":
            continue  # scikit-learn's, or what stands for it before 1.9
        if any(p.kind is p.VAR_KEYWORD for p in inspect.signature(method).parameters.values()):
            continue
        with pytest.raises(TypeError) as raised:
            method(nonsense=1)
        assert str(raised.value).startswith(f"{setting.kind.__name__}.{name}()")
