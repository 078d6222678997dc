"""What methods are called with."""

import inspect
from functools import wraps
from numbers import Integral


def refuses_by_name(method):
    """Let a method that classes inherit refuse arguments in the name of the class it is called on.

    Python's own message names the class in which the method is written.
    """
    signature = inspect.signature(method)

    @wraps(method)
    def checked(self, *args, **kwargs):
        try:
            signature.bind(self, *args, **kwargs)
        except TypeError as error:
            hint = "; rows have no weights" if "sample_weight" in kwargs else ""
            kind = self if isinstance(self, type) else type(self)
            raise TypeError(f"{kind.__name__}.{method.__name__}(): {error}{hint}") from None
        return method(self, *args, **kwargs)

    return checked


def check_count(name, value):
    """Refuse what is no integer >= 1."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be an integer >= 1, got {value!r}")
