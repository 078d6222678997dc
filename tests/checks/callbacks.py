"""What only a scikit-learn with callbacks can be asked."""

from importlib.util import find_spec

import pytest

HAS_CALLBACKS = find_spec("sklearn.callback") is not None
NEEDS_CALLBACKS = pytest.mark.skipif(
    not HAS_CALLBACKS, reason="callbacks came with scikit-learn 1.9"
)
