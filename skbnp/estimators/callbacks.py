"""The callbacks of scikit-learn, and what stands for them before version 1.9, which has none."""

from contextlib import nullcontext
from functools import wraps

from skbnp.estimators.arguments import refuses_by_name

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class _NoContext:
        """A task that nobody follows."""

        def subcontext(self, **options):
            return self

        def propagate_callback_context(self, estimator):
            return nullcontext()

        def call_on_fit_task_begin(self, **options):
            return self

        def call_on_fit_task_end(self, **options):
            return False

    class CallbackSupportMixin:
        """An estimator that takes no callbacks, and says why."""

        @refuses_by_name
        def set_callbacks(self, *callbacks):
            """Take none.

            Parameters
            ----------
            callbacks : callbacks of scikit-learn
                None, since there are none before version 1.9.

            Returns
            -------
            self : estimator

            Raises
            ------
            ImportError
                If there is one.
            """
            if callbacks:
                raise ImportError("callbacks need scikit-learn 1.9 or newer")
            return self

        def _init_callback_context(self, **options):
            self._callback_fit_ctx = _NoContext()
            return self._callback_fit_ctx

    def with_callbacks(fit):
        """The method, after which the estimator is as if there were no tasks."""

        @wraps(fit)
        def followed(self, *args, **kwargs):
            try:
                return fit(self, *args, **kwargs)
            finally:
                vars(self).pop("_callback_fit_ctx", None)

        return followed


__all__ = ["CallbackSupportMixin", "with_callbacks"]
