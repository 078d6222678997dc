"""Beside a scikit-learn without callbacks: fits go on, and who wants callbacks is told."""

import sys
from importlib.util import module_from_spec, spec_from_file_location

import pytest

from skbnp.estimators import callbacks


@pytest.fixture
def older(monkeypatch):
    """The module as it is where scikit-learn has none."""
    monkeypatch.setitem(sys.modules, "sklearn.callback", None)
    spec = spec_from_file_location("callbacks_of_older_ones", callbacks.__file__)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_tasks_lead_nowhere(older):
    class Model(older.CallbackSupportMixin):
        @older.with_callbacks
        def fit(self):
            context = self._init_callback_context(max_subtasks=1)
            context.call_on_fit_task_begin(estimator=self)
            task = self._callback_fit_ctx.subcontext(task_name="chain")
            with task.propagate_callback_context(Model().set_callbacks()):
                task.call_on_fit_task_begin(estimator=self)
            return task.call_on_fit_task_end(estimator=self)

    assert Model().fit() is False


def test_callbacks_are_refused(older):
    with pytest.raises(ImportError, match="scikit-learn 1.9"):
        older.CallbackSupportMixin().set_callbacks(object())
