"""Answers for the rows of collections: lazy ones for Dask, by blocks for all that has slices."""

from copy import copy
from functools import wraps

import numpy as np
from sklearn.utils.validation import _check_feature_names, _check_n_features, check_is_fitted

from skbnp.collections.kinds import DASK_FRAME, SLICED, is_collection, kind_of
from skbnp.collections.tree import CELL

# Rows that are answered for at a time where a collection says nothing better.
_ROWS_AT_A_TIME = 4 * CELL
# What an answer has for a row: a number, a share for each cluster, or its own cells.
_NUMBER, _SHARES, _CELLS = "number", "shares", "cells"
_ANSWERS = {
    "predict": (_NUMBER, np.dtype(np.intp)),
    "predict_proba": (_SHARES, np.dtype(float)),
    "novelty_proba": (_NUMBER, np.dtype(float)),
    "score_samples": (_NUMBER, np.dtype(float)),
    "transform": (_SHARES, np.dtype(float)),
    "impute": (_CELLS, None),
}
# Labels of no rows.
_LABELS = np.empty(0, np.intp)
# Attributes that workers do without.
_AT_HOME = ("_collection", "_skl_callbacks")


class CollectionsMixin:
    """Lets the methods that answer row by row take collections; leftmost among the bases."""

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        for name in (*_ANSWERS, "score"):
            method = getattr(cls, name, None)  # None in a mixin
            if method is not None and not getattr(method, "_takes_collections", False):
                setattr(cls, name, _taking_collections(method))

    def _ready_for_workers(self):
        """Called before blocks are answered for, elsewhere and one after the other."""


def _taking_collections(method):
    """The method, with an answer of its own for collections."""

    @wraps(method)
    def answered(self, *args, **kwargs):
        given = args[0] if args else kwargs.get("X")
        if not is_collection(given):
            return method(self, *args, **kwargs)
        return _answer(self, method.__name__, *args, **kwargs)

    answered._takes_collections = True
    return answered


def _answer(estimator, name, X, y=None, **options):
    check_is_fitted(estimator, "posterior_")
    estimator._validate_params()
    _check_columns(estimator, X)
    if name == "score":
        return float(np.mean(np.asarray(_answer(estimator, "score_samples", X))))
    if y is not None:  # the second argument by position
        options["return_std"] = y
    call = _Call(name, tuple(sorted(options.items())), options.get("return_std", False))
    kind = kind_of(X)
    estimator._ready_for_workers()
    if kind == SLICED:
        return _by_slices(_for_workers(estimator, estimator.n_jobs), call, X)
    state = _state(estimator)
    return (_lazy_frame if kind == DASK_FRAME else _lazy_array)(estimator, state, call, X)


def _check_columns(estimator, X):
    """Refuse at once what would be refused in every block of an array, a frame or a collection."""
    if hasattr(X, "columns"):
        columns = getattr(X, "_meta", X)
        _check_feature_names(estimator, columns, reset=False)
        estimator._form.check_names(columns)
        _check_n_features(estimator, columns, reset=False)
        return
    if len(X.shape) != 2:
        raise ValueError(f"X must have 2 dimensions, got {len(X.shape)}")
    _check_n_features(estimator, np.empty((1, X.shape[1])), reset=False)


class _Call:
    """A method and its options, for one block."""

    def __init__(self, name, options, is_pair):
        self.name, self.options, self.is_pair = name, options, is_pair

    def __call__(self, estimator, block):
        """The answer for the rows of a block in memory."""
        if not len(block):
            return self._of_no_rows(estimator, block)
        return getattr(estimator, self.name)(block, **dict(self.options))

    def _of_no_rows(self, estimator, block):
        what, dtype = _ANSWERS[self.name]
        if what == _CELLS:
            return (block, block.astype(float)) if self.is_pair else block
        shape = (0,) if what == _NUMBER else (0, estimator.n_clusters_)
        return np.empty(shape, dtype)


def _for_workers(estimator, n_jobs=1):
    """The estimator without what only the process that fitted it can use."""
    found = copy(estimator)
    for name in _AT_HOME:
        vars(found).pop(name, None)
    # Shares are asked for by number; whoever asked says in what they go.
    vars(found).pop("_sklearn_output_config", None)
    found.n_jobs = n_jobs
    return found


def _state(estimator):
    """The fitted estimator as one task, on which those of all blocks depend."""
    import dask

    return dask.delayed(_for_workers(estimator), pure=False, traverse=False)


def _by_slices(estimator, call, X):
    """Answers in memory, for what hands out its rows as slices."""
    size = _rows_at_a_time(X)
    parts = [
        call(estimator, np.asarray(X[start : start + size]))
        for start in range(0, max(1, X.shape[0]), size)
    ]
    if call.is_pair:
        return tuple(np.concatenate(one) for one in zip(*parts, strict=True))
    return np.concatenate(parts)


def _rows_at_a_time(X):
    """A multiple of `CELL`, so that blocks of rows are those of a table in memory."""
    chunks = getattr(X, "chunks", None)
    return _ROWS_AT_A_TIME if chunks is None else max(1, -(-chunks[0] // CELL)) * CELL


def _lazy_array(estimator, state, call, X):
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    what, dtype = _ANSWERS[call.name]
    options = {"dtype": X.dtype if what == _CELLS else dtype, "call": call, "estimator": state}
    if what == _CELLS:
        options["dtype"] = X.dtype if X.dtype.kind in "biuf" else np.dtype(float)
        if not call.is_pair:
            return X.map_blocks(_of_array_block, meta=_like(options["dtype"], 2), **options)
        pair = [
            X.map_blocks(
                _of_array_block, which=which, meta=_like(dtype, 2), **options | {"dtype": dtype}
            )
            for which, dtype in enumerate((options["dtype"], np.dtype(float)))
        ]
        return tuple(pair)
    if what == _NUMBER:
        return X.map_blocks(_of_array_block, drop_axis=1, meta=_like(dtype, 1), **options)
    chunks = (X.chunks[0], (estimator.n_clusters_,))
    found = X.map_blocks(_of_array_block, chunks=chunks, meta=_like(dtype, 2), **options)
    return _named(found, estimator) if _wants_frame(estimator, call) else found


def _like(dtype, n_dimensions):
    return np.empty((0,) * n_dimensions, dtype)


def _of_array_block(block, call, estimator, which=None):
    found = call(estimator, np.asarray(block))
    return found if which is None else found[which]


def _lazy_frame(estimator, state, call, X):
    import pandas as pd

    what, dtype = _ANSWERS[call.name]
    if what == _NUMBER:
        name = "cluster" if call.name == "predict" else call.name
        meta = pd.Series(np.empty(0, dtype), index=X._meta.index, name=name)
    elif what == _SHARES:
        names = estimator.get_feature_names_out()
        meta = pd.DataFrame(np.empty((0, len(names))), index=X._meta.index, columns=names)
    else:
        meta = _filled_meta(X._meta)
        if call.is_pair:
            metas = meta, _deviations_meta(X._meta)
            return tuple(
                X.map_partitions(_of_partition, call, state, one, which, meta=one)
                for which, one in enumerate(metas)
            )
    return X.map_partitions(_of_partition, call, state, meta, None, meta=meta)


def _filled_meta(meta):
    """What a filled partition looks like whether it has missing cells or not.

    Nullable integers and booleans become floats in it, as the mean of a cell is none of them.
    """
    import pandas as pd

    wide = {
        name: pd.Float64Dtype()
        for name, dtype in meta.dtypes.items()
        if pd.api.types.is_extension_array_dtype(dtype)
        and (pd.api.types.is_integer_dtype(dtype) or pd.api.types.is_bool_dtype(dtype))
    }
    return meta.astype(wide)


def _deviations_meta(meta):
    import pandas as pd

    values = np.empty((0, meta.shape[1]))
    return pd.DataFrame(values, index=meta.index, columns=meta.columns)


def _of_partition(frame, call, estimator, meta, which):
    """The answer for a partition, with its index, in the form that was promised."""
    import pandas as pd

    if not len(frame):
        return meta
    found = call(estimator, frame)
    found = found if which is None else found[which]
    if isinstance(meta, pd.Series):
        return pd.Series(found, index=frame.index, name=meta.name)
    if not isinstance(found, pd.DataFrame):
        return pd.DataFrame(found, index=frame.index, columns=meta.columns)
    changed = {name: dtype for name, dtype in meta.dtypes.items() if found.dtypes[name] != dtype}
    return found.astype(changed) if changed else found


def _wants_frame(estimator, call):
    """Whether `set_output` asks for frames of what `transform` answers."""
    config = getattr(estimator, "_sklearn_output_config", {})
    return call.name == "transform" and config.get("transform", "default") != "default"


def _named(shares, estimator):
    """An array of shares as a frame of Dask with the names of its columns."""
    import dask.dataframe as dd

    return dd.from_dask_array(shares, columns=list(estimator.get_feature_names_out()))


class LabelsOfRows:
    """Clusters of all rows of a collection: those of the rows in memory, and what follows.

    Parameters
    ----------
    X : collection
    kept : ndarray of int of shape (n_kept,)
        Numbers of the rows in memory, ascending.
    lengths : tuple of int
        Of the blocks of X.
    """

    def __init__(self, X, kept, lengths):
        self._X, self._kept, self._lengths = X, kept, lengths
        self._found = None

    def rows(self):
        """X and the lengths of its blocks."""
        if self._X is None:
            raise ValueError("X must be given: an array of which fit has kept some rows alone")
        return self._X, self._lengths

    @property
    def travels(self):
        """Whether X can go to another process as a description of its rows."""
        return self._X is None or kind_of(self._X) != SLICED

    def settle(self, estimator, labels):
        """Find those of an array in memory at once, and drop the array."""
        if isinstance(self._X, np.memmap) and self._X.filename is None:
            self._X, self._found = None, self.of(estimator, labels)

    def of(self, estimator, labels):
        """Clusters of all rows: an array of Dask that is lazy, or an array in memory.

        Parameters
        ----------
        estimator : object
            Fitted.
        labels : ndarray of int of shape (n_kept,)
        """
        if self._found is None and kind_of(self._X) != SLICED:
            return self._lazy(estimator, labels)
        if self._found is None:
            found = estimator.predict(self._X) if len(labels) < sum(self._lengths) else labels
            found = found.astype(np.intp)
            found[self._kept] = labels
            self._found = found
        return self._found

    def _lazy(self, estimator, labels):
        estimator._ready_for_workers()
        state = _state(estimator)

        def arguments(start, length):
            first, last = np.searchsorted(self._kept, [start, start + length])
            known = self._kept[first:last] - start, labels[first:last]
            return length, state, known

        return _lazily(self._X, self._lengths, _labels_of_block, arguments)


def given_rows(estimator, X):
    """X, a list as an array; refused where its columns are not those that `fit` saw."""
    if not is_collection(X) and not hasattr(X, "columns"):
        X = np.asarray(X)
    _check_columns(estimator, X)
    return X


def by_blocks(X, answer, n_samples, lengths=None, like=_LABELS):
    """What there is to say of all rows, lazily where blocks are lazy.

    Parameters
    ----------
    X : collection or array-like
    answer : callable
        ``answer(block, start)`` of the rows from number ``start`` on; it pickles.
    n_samples : int
        Rows that there must be.
    lengths : tuple of int, default=None
        Of the blocks, where somebody knows.
    like : ndarray
        An answer for no rows: its dtype and the shape of a row.
    """
    if kind_of(X) in (None, SLICED):
        check_n_rows(X.shape[0] if hasattr(X, "shape") else len(X), n_samples)
        size = _rows_at_a_time(X)
        rows = getattr(X, "iloc", X if kind_of(X) == SLICED else np.asarray(X))
        parts = range(0, n_samples, size)
        return np.concatenate([answer(rows[start : start + size], start) for start in parts])
    import dask

    if lengths is None:
        is_frame = kind_of(X) == DASK_FRAME
        lengths = tuple(X.map_partitions(len).compute()) if is_frame else X.chunks[0]
    if np.isnan(lengths).any():
        raise ValueError("X must have blocks of known length: call X.compute_chunk_sizes()")
    check_n_rows(sum(lengths), n_samples)
    answer = dask.delayed(answer, pure=False, traverse=False)
    return _lazily(X, lengths, _called, lambda start, length: (start, answer), like)


def check_n_rows(n_given, n_samples):
    """Refuse another number of rows than `fit` has seen."""
    if n_given != n_samples:
        raise ValueError(f"X must have the {n_samples} rows that fit saw, got {n_given}")


def _called(block, start, answer):
    return answer(block, start)


def _lazily(X, lengths, function, arguments, like=_LABELS):
    """``function(block, *arguments(start, length))`` of each block as one lazy array."""
    import dask
    import dask.array as da

    if kind_of(X) != DASK_FRAME and X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    blocks = np.ravel(X.to_delayed(optimize_graph=False)).tolist()
    of_block, parts, start = dask.delayed(function, pure=False), [], 0
    for block, length in zip(blocks, lengths, strict=True):
        found = of_block(block, *arguments(start, length))
        parts.append(da.from_delayed(found, (length, *like.shape[1:]), meta=like))
        start += length
    return da.concatenate(parts)


def _labels_of_block(block, length, estimator, known):
    """Clusters of the rows of a block; those that are known are not asked for."""
    places, labels = known
    if len(places) == length:
        return labels.astype(np.intp)
    found = estimator.predict(block).astype(np.intp)
    found[places] = labels
    return found
