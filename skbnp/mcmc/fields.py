"""Fields of a state, declared once: from the declaration they are read, checked and written."""

from dataclasses import dataclass

import numpy as np

from skbnp.numerics.states import entry


@dataclass(frozen=True)
class Field:
    """A number or an array that the next sweep depends on, an attribute of its owner.

    Attributes
    ----------
    name : str
        Of the attribute, and of the entry of a state.
    kind : {int, float, numpy.uint8}
        Of the number, or of the elements.
    shape : tuple
        Of the array; () for a number. Each length is a number, the name of another field or of an
        attribute of the owner, or None for any length.
    at_least, above, below : number or str, optional
        What values are held to; a number, or a name as in ``shape``. All floats are finite.
    """

    name: str
    kind: type = float
    shape: tuple = ()
    at_least: float | str | None = None
    above: float | str | None = None
    below: float | str | None = None

    def read(self, owner):
        """A copy of what the owner has."""
        value = getattr(owner, self.name)
        return np.array(value, dtype=self.dtype) if self.shape else self.kind(value)

    def checked(self, owner, state, values):
        """The entry of a state as the owner takes it; ``values`` are those of earlier fields."""
        value = entry(state, self.name)
        return (
            self._array(value, owner, values) if self.shape else self._number(value, owner, values)
        )

    @property
    def dtype(self):
        """Of the elements of an array."""
        return {int: np.intp, float: np.float64}.get(self.kind, self.kind)

    def _number(self, value, owner, values):
        kinds = (int, np.integer) if self.kind is int else (float, np.floating)
        if not isinstance(value, kinds) or isinstance(value, bool):
            a = "an integer" if self.kind is int else "a number"
            raise ValueError(f"{self.name} of the state must be {a}, got {value!r}")
        if self.kind is int and abs(value) >= 2**62:
            raise ValueError(f"{self.name} of the state is too large: {value!r}")
        self._check_range(np.asarray(value), owner, values)
        return self.kind(value)

    def _array(self, value, owner, values):
        value = np.asarray(value)
        if value.dtype.kind not in ("f" if self.kind is float else "iu"):
            raise ValueError(f"{self.name} of the state must not have dtype {value.dtype}")
        shape = tuple(n if n is None else _resolve(n, owner, values) for n in self.shape)
        if value.ndim != len(shape) or any(
            want not in (None, got) for want, got in zip(shape, value.shape, strict=True)
        ):
            words = "(" + ", ".join(map(str, self.shape)) + ")"
            raise ValueError(
                f"{self.name} of the state must have shape {words} = {shape}, got {value.shape}"
            )
        self._check_range(value, owner, values)
        return np.array(value, dtype=self.dtype, order="C")

    def _check_range(self, value, owner, values):
        if self.kind is float and not np.isfinite(value).all():
            raise ValueError(f"{self.name} of the state must be finite")
        for bound, holds, sign in (
            (self.at_least, np.greater_equal, ">="),
            (self.above, np.greater, ">"),
            (self.below, np.less, "<"),
        ):
            if bound is None:
                continue
            number = _resolve(bound, owner, values)
            if not holds(value, number).all():
                raise ValueError(f"{self.name} of the state must be {sign} {number}")


def read(owner, fields):
    """Name -> copy of what the owner has, for all fields."""
    return {field.name: field.read(owner) for field in fields}


def checked(owner, fields, state):
    """Name -> what the owner takes, for all fields; a ValueError that names the wrong one.

    A field may refer to those before it.
    """
    values = {}
    for field in fields:
        values[field.name] = field.checked(owner, state, values)
    return values


def write(owner, fields, values):
    """Let the owner have these values.

    An array of the same shape is written in place: others may share it.
    """
    for field in fields:
        value = values[field.name]
        if field.shape:
            old = np.asarray(getattr(owner, field.name))
            if old.shape == value.shape:
                old[...] = value
                continue
        setattr(owner, field.name, value)


def _resolve(bound, owner, values):
    """A number, or what the field or attribute of that name has."""
    if not isinstance(bound, str):
        return bound
    return values[bound] if bound in values else getattr(owner, bound)
