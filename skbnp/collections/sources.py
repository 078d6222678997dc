"""Where rows come from: slices of one object, or the blocks of a Dask collection."""

import logging
from dataclasses import dataclass

import numpy as np

from skbnp.collections.kinds import DASK_FRAME, SLICED, kind_of
from skbnp.collections.reading import refuse_dtype
from skbnp.collections.tree import CELL
from skbnp.collections.work import Failed, Where, n_rows_of_block

_LOG = logging.getLogger("skbnp")
# Tasks for each thread, so that all come to an end at about the same time; most bytes of a block.
_TASKS_PER_THREAD, _MOST_BYTES = 4, 256 * 2**20
# Up to so many blocks for each thread come as they are: joining takes memory in all workers, and to
# run a task takes less than its rows.
_FEW_BLOCKS_PER_THREAD = 32


@dataclass(frozen=True)
class Source:
    """Rows in blocks.

    Attributes
    ----------
    n_samples, n_features : int
    row_bytes : float
        Bytes of a row as it is stored.
    places : tuple of Where
        Of the blocks, in order and without gaps; blocks without rows are left out.
    blocks : tuple
        What each is read from: a `Slice`, or a Delayed of Dask.
    lengths : tuple of int
        Of the blocks as the collection has them.
    """

    n_samples: int
    n_features: int
    row_bytes: float
    places: tuple
    blocks: tuple
    lengths: tuple

    @classmethod
    def of(cls, blocks, lengths, n_features, row_bytes, given=None):
        """Rows in blocks of these lengths, cut from such as are ``given``."""
        ends = np.cumsum(lengths).tolist()
        found = [
            (Where(number, end - length, end), block)
            for number, (block, length, end) in enumerate(zip(blocks, lengths, ends, strict=True))
            if length
        ]
        if not found:
            raise ValueError(f"X must have at least one row, got {len(lengths)} blocks without any")
        places, blocks = zip(*found, strict=True)
        given = tuple(int(n) for n in (lengths if given is None else given))
        return cls(ends[-1], n_features, row_bytes, places, blocks, given)

    @property
    def n_bytes(self):
        return self.n_samples * self.row_bytes

    @property
    def block_bytes(self):
        """Of the largest block."""
        return max(one.stop - one.start for one in self.places) * self.row_bytes


class Slice:
    """Some rows of an object that has shape, dtype and slices."""

    def __init__(self, X, where):
        self._X, self._where = X, where

    def read(self):
        return np.asarray(self._X[self._where.start : self._where.stop])


def opened(X, executor):
    """The rows of a collection as they are stored, before their columns are read.

    Parameters
    ----------
    X : collection
    executor : object
        `skbnp.collections.here.Here` or `skbnp.collections.cluster.Cluster`.

    Returns
    -------
    source : Source
        A frame has its partitions for blocks; all others are cut at multiples of `CELL` rows.
    """
    kind = kind_of(X)
    if kind == SLICED:
        return _of_slices(X, executor)
    if kind == DASK_FRAME:
        return _of_frame(X, executor)
    return _of_array(X, executor)


def of_encoded(source, encode, executor):
    """The partitions of a frame as blocks of floats, cut at multiples of `CELL` rows.

    Parameters
    ----------
    source : Source
        Of the frame.
    encode : callable
        ``encode(frame)`` returns float64 (n_rows, n_features); it pickles.
    executor : object

    Returns
    -------
    source : Source
    """
    import dask
    import dask.array as da

    encoded = dask.delayed(_encoded, pure=False)
    arrays = [
        da.from_delayed(
            encoded(block, where, encode),
            (where.stop - where.start, source.n_features),
            dtype=np.float64,
        )
        for where, block in zip(source.places, source.blocks, strict=True)
    ]
    return _of_array(da.concatenate(arrays), executor)


def _encoded(frame, where, encode):
    """A partition as floats; the error of a cell names the partition and its rows."""
    if len(frame) != where.stop - where.start:
        raise ValueError(f"X must stay as it is, but {where} has {len(frame)} rows now")
    try:
        return encode(frame)
    except (ValueError, TypeError) as error:
        kind = ValueError if isinstance(error, ValueError) else TypeError
        raise kind(f"{error}, in {where}") from error


def _checked_shape(X):
    if len(X.shape) != 2:
        raise ValueError(f"X must have 2 dimensions, got {len(X.shape)}")
    if X.shape[1] == 0:
        raise ValueError("X must have at least one feature, got 0")
    refuse_dtype(X.dtype)


# -- slices


def _of_slices(X, executor):
    _checked_shape(X)
    n_samples, n_features = X.shape
    row_bytes = n_features * X.dtype.itemsize
    chunks = getattr(X, "chunks", None)
    if chunks is None:
        # A view: nothing is read before a cell is.
        size = _block_rows(n_samples, row_bytes, executor.n_threads)
    else:
        size = min(max(chunks[0], CELL), max(CELL, int(_MOST_BYTES // row_bytes)))
        size = -(-size // CELL) * CELL
    starts = range(0, n_samples, size)
    lengths = [min(size, n_samples - start) for start in starts]
    slices = [Slice(X, Where(b, start, start + lengths[b])) for b, start in enumerate(starts)]
    return Source.of(slices, lengths, n_features, row_bytes)


def _block_rows(n_samples, row_bytes, n_threads):
    """Rows of a block, a multiple of `CELL`: a few blocks a thread, none too large."""
    wanted = n_samples / (_TASKS_PER_THREAD * n_threads)
    most = _MOST_BYTES / row_bytes
    n_cells = min(-(-wanted // CELL), most // CELL)
    return int(max(1, n_cells)) * CELL


# -- Dask


def _of_frame(X, executor):
    if not len(X.columns):
        raise ValueError("X must have at least one feature, got 0")
    _refuse_unknown_categories(X)
    blocks = executor.delayed(X)
    lengths = _lengths(blocks, executor)
    # For what is held in memory, they become floats.
    return Source.of(blocks, lengths, len(X.columns), 8.0 * len(X.columns))


def _refuse_unknown_categories(X):
    from dask.dataframe.utils import has_known_categories

    for name, dtype in X.dtypes.items():
        if str(dtype) == "category" and not has_known_categories(X._meta[name]):
            raise TypeError(
                f"X must have known categories in column {name!r}, so that all of its partitions "
                "agree on them: use X.categorize()"
            )


def _of_array(X, executor):
    import dask.array as da

    _checked_shape(X)
    _refuse_sparse(X)
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    lengths, n_features = X.chunks[0], int(X.shape[1])
    given = lengths
    if np.isnan(lengths).any():
        blocks = executor.delayed(X)
        given = lengths = _lengths(blocks, executor)
        known = [
            da.from_delayed(block, (length, n_features), dtype=X.dtype)
            for block, length in zip(blocks, lengths, strict=True)
            if length
        ]
        if known:
            X = da.concatenate(known)
            lengths = X.chunks[0]
    if not sum(lengths):
        raise ValueError(f"X must have at least one row, got {len(lengths)} blocks without any")
    row_bytes = n_features * X.dtype.itemsize
    few = len(lengths) <= _FEW_BLOCKS_PER_THREAD * executor.n_threads
    most = 0 if few else _block_rows(X.shape[0], row_bytes, executor.n_threads)
    cut = grid_chunks(lengths, most)
    if cut != tuple(lengths):
        moved = np.setdiff1d(np.cumsum(cut), np.cumsum(lengths)).size
        _LOG.info(
            "X comes in %d blocks and is sampled in %d, %d of whose edges are new: blocks with a "
            "multiple of 65,536 rows need no new ones",
            len(lengths), len(cut), moved,
        )  # fmt: skip
        X = X.rechunk({0: cut})
    return Source.of(executor.delayed(X), cut, n_features, row_bytes, given)


def _refuse_sparse(X):
    """Blocks of scipy.sparse or sparse, as far as the collection knows."""
    package = type(X._meta).__module__.partition(".")[0]
    if package in ("scipy", "sparse"):
        raise TypeError(
            f"X must have dense blocks, NumPy arrays, got {type(X._meta).__name__} of {package}: "
            "use X.map_blocks(lambda block: block.toarray())"
        )


def grid_chunks(lengths, most):
    """Lengths of blocks whose edges are multiples of `CELL`, neighbours being joined.

    Parameters
    ----------
    lengths : sequence of int
        Of the blocks as they come.
    most : int
        Rows up to which neighbours are joined.

    Returns
    -------
    cut : tuple of int
    """
    n_samples = int(sum(lengths))
    # The end of the last block is the end of all rows, on the grid or not.
    edges = [round(int(end) / CELL) * CELL for end in np.cumsum(lengths)[:-1]]
    edges = sorted({edge for edge in edges if 0 < edge < n_samples} | {n_samples})
    kept, start = [], 0
    for edge, following in zip(edges, [*edges[1:], None], strict=True):
        if following is None or following - start > most:
            kept.append(edge)
            start = edge
    return tuple(np.diff([0, *kept]).tolist())


def _lengths(blocks, executor):
    """Numbers of rows of blocks, in one pass."""
    places = [Where(number, 0, 0) for number in range(len(blocks))]
    found = executor.map(n_rows_of_block, places, blocks, [()] * len(blocks))
    for one in found:
        if isinstance(one, Failed):
            raise one.raised()
    return [int(n) for n in found]
