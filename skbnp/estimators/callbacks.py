"""The callbacks of scikit-learn, and what stands for them before version 1.9, which has none."""

from contextlib import nullcontext

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
        """The method as it is."""
        return fit


__all__ = ["CallbackSupportMixin", "with_callbacks"]
