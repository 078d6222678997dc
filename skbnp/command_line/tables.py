"""Tables in and out: CSV and Parquet, the columns that a model sees, cells put back."""

import bz2
import codecs
import csv
import gzip
import itertools
import lzma
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from skbnp.command_line.arguments import check_is_there
from skbnp.command_line.cells import (
    MARKS,
    code_among,
    refuse_lists,
    refuse_marks,
    refuse_slips,
    with_words,
)
from skbnp.command_line.errors import BadInput, require
from skbnp.command_line.fitting import note

_TEXTS, _PARQUETS = (".csv", ".tsv", ".txt"), (".parquet", ".pq")
_PACKED = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_SEPARATORS = "\t;,|"
_BLANKS = r"\s+"  # any number of them, between the cells of an aligned table
# Lines that the separator is read from.
_LINES_LOOKED_AT = 50


def add_table_options(parser):
    """What is read, and as what."""
    parser.add_argument(
        "file", type=Path, metavar="FILE", help=".csv, .tsv, .txt (also .gz, .bz2, .xz), .parquet"
    )
    group = parser.add_argument_group("the table")
    group.add_argument(
        "--columns", nargs="+", metavar="COLUMN", help="what the model sees (default: all)"
    )
    group.add_argument(
        "--drop", nargs="+", default=[], metavar="COLUMN", help="what the model does not see"
    )
    group.add_argument("--index", metavar="COLUMN", help="names of the rows, which no model sees")
    group.add_argument(
        "--text",
        nargs="+",
        default=[],
        metavar="COLUMN",
        help="columns of names, also if they look like numbers",
    )
    group.add_argument(
        "--na",
        "--missing-values",
        nargs="+",
        default=[],
        metavar="MARK",
        dest="marks",
        help="further marks of missing cells, -999 say, beside empty cells and NA",
    )
    group.add_argument(
        "--sep", metavar="TEXT", help="between the cells of a text file (default: found out)"
    )
    group.add_argument(
        "--no-header",
        action="store_true",
        help="the first line of a text file is data; its columns are column1, column2, ...",
    )
    group.add_argument(
        "--decimal",
        choices=[".", ","],
        default=".",
        metavar="MARK",
        help="point or comma, in numbers of a text file (default: .)",
    )
    group.add_argument(
        "--thousands",
        choices=MARKS,
        metavar="MARK",
        help="before each three digits of a number in a text file, as in 1,234 (default: none)",
    )
    group.add_argument("--encoding", default="utf-8", help="of a text file (default: utf-8)")


@dataclass(frozen=True)
class Table:
    """A table as it came, and the part that a model sees.

    Parameters
    ----------
    path : Path
    frame : DataFrame
        All columns. Of a text file the text of each cell, so that what no model fills goes out
        as it came in.
    data : DataFrame
        The columns for the model by their dtypes, missing where a mark says so; its index holds
        the names of the rows, where a column with them is given.
    sep, decimal, encoding : str
        How numbers and cells are written in a text file.
    has_header : bool
        Whether the first line of a text file names its columns.
    """

    path: Path
    frame: object
    data: object
    sep: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    has_header: bool = True

    @property
    def is_text(self):
        return kind_of(self.path) == "text"


def kind_of(path, option=""):
    """How a table is stored, "text" or "parquet", by the name of its file."""
    if unpacked(path).suffix.lower() in _TEXTS:
        return "text"
    if path.suffix.lower() in _PARQUETS:
        return "parquet"
    raise BadInput(
        f"{option} {path}: the name of a table must end in {', '.join(_TEXTS)} (maybe with "
        f"{', '.join(_PACKED)} behind it), or in {', '.join(_PARQUETS)}".lstrip()
    )


def unpacked(path):
    """A path without the ending of a packed file."""
    return path.with_suffix("") if path.suffix.lower() in _PACKED else path


# -- in


def read_table(arguments, families=None):
    """The table that the command line names.

    Parameters
    ----------
    arguments : argparse.Namespace
        With the options of `add_table_options`.
    families : dict of str to str or None
        Families of columns. In a categorical one numbers beside text are no slip.

    Returns
    -------
    table : Table

    Raises
    ------
    BadInput
        If the file cannot be read, has no rows, or not the columns that are named, or if a column
        of numbers holds text.
    """
    path = arguments.file
    is_text = kind_of(path) == "text"
    check_is_there(path)
    require("pandas") if is_text else require("pandas", "pyarrow")
    import pandas as pd

    if is_text:
        if arguments.thousands == arguments.decimal:
            raise BadInput(
                f"--thousands must differ from --decimal, got {arguments.decimal} for both: "
                "--thousands . goes with --decimal ,"
            )
        typed, frame, sep = _read_text(arguments)
        written = {"sep": "\t" if sep == _BLANKS else sep, "decimal": arguments.decimal}
        written |= {"encoding": arguments.encoding, "has_header": not arguments.no_header}
    else:
        typed, written = _read_parquet(path), {}
        frame = typed
    if not len(typed):
        raise BadInput(f"{path} has no rows")
    chosen = _chosen(typed, arguments)
    if is_text:
        typed = with_words(typed, frame, chosen, arguments.marks)
    data = typed[chosen]
    for name in data.columns:
        refuse_lists(data[name], path)
    from skbnp.tables.parts import without_marks  # it brings scikit-learn, which takes seconds

    marks = [*itertools.chain.from_iterable(map(_mark_as_both, arguments.marks))]
    data = without_marks(data, {None: marks} if marks else {})
    families = families or {}
    nominal = {name for name, family in families.items() if family == "categorical"}
    # Names stay names, also if they are all numbers once the marks are gone.
    names = [name for name in data.columns if name in {*arguments.text, *nominal}]
    data = data.assign(**{name: typed[name].where(data[name].notna()) for name in names})
    marks = (arguments.decimal, arguments.thousands) if is_text else (".", None)
    for name in data.columns.difference(names, sort=False):
        texts = frame[name].reset_index(drop=True)[data[name].notna().to_numpy()]
        if pd.api.types.is_string_dtype(data[name].dtype):
            refuse_slips(texts, path, *marks)
        elif is_text:
            refuse_marks(texts, path, *marks)
            code = None if name in families else code_among(texts)
            if code is not None:
                data = data.assign(**{name: texts})
                note(
                    f"column {name!r} holds codes such as {code!r}, which are taken as names: "
                    "write them without the first 0 if they are numbers"
                )
    if arguments.index is not None:
        # As written: NA may be a name.
        names = frame[arguments.index].fillna("") if is_text else typed[arguments.index]
        data = data.set_axis(names, axis="index")
    return Table(path, frame, data, **written)


def _read_parquet(path):
    import pandas as pd

    try:
        return pd.read_parquet(path)
    except Exception as error:  # pyarrow has many
        raise BadInput(f"cannot read {path}: {error}") from error


def _read_text(arguments):
    """A text file by the dtypes of its columns, by the text of its cells, and its separator."""
    import pandas as pd

    path = arguments.file
    names, sep = _header(arguments)
    # The header's own words: pandas would change names that are missing.
    options = {"sep": sep, "names": names, "header": None if arguments.no_header else 0}
    options |= {"encoding": arguments.encoding, "skipinitialspace": not sep.isspace()}
    # In a single column a line without text is a row without a value.
    options |= {"skip_blank_lines": len(names) > 1}
    known = {name: str for name in (*arguments.text, arguments.index) if name in names}
    try:
        typed = pd.read_csv(
            path,
            na_values=arguments.marks,
            decimal=arguments.decimal,
            thousands=arguments.thousands,
            dtype=known,
            low_memory=False,
            **options,
        )
        cells = pd.read_csv(path, dtype=str, keep_default_na=False, **options)
    except (ValueError, OSError, EOFError) as error:
        if opened := re.search(r"EOF inside string starting at row (\d+)", str(error)):
            raise BadInput(
                f"cannot read {path}: a quote is opened in line {int(opened[1]) + 1} or in the "
                "next, and never closed"
            ) from error
        raise BadInput(f"cannot read {path}: {error}") from error
    return typed, cells, sep


def _header(arguments):
    """Names of the columns of a text file, and what stands between cells."""
    path = arguments.file
    csv.field_size_limit(2**31 - 1)  # a cell may hold a whole text
    read = _PACKED.get(path.suffix.lower(), open)
    try:
        with read(path, "rt", encoding=arguments.encoding, newline="") as file:
            # A mark that some editors put before the first character is no part of a name.
            lines = [line.lstrip("\ufeff") for line in itertools.islice(file, _LINES_LOOKED_AT)]
    except UnicodeDecodeError as error:
        with read(path, "rb") as file:
            is_wide = file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        raise BadInput(
            f"cannot read {path} as {arguments.encoding}: {error.reason}; is it --encoding "
            f"{'utf-16' if is_wide else 'latin-1'}?"
        ) from error
    except (OSError, EOFError, LookupError) as error:
        raise BadInput(f"cannot read {path}: {error}") from error
    lines = [line for line in lines if line.strip()]
    if not lines:
        raise BadInput(f"{path} is empty")
    sep = (arguments.sep or separator_of(lines)).replace("\\t", "\t")
    if len(sep) != 1 and sep != _BLANKS:
        raise BadInput(f"--sep must be one character, got {sep!r}")
    names, *rows = _cells_of(lines, sep)
    longer = next((n for n, row in enumerate(rows, 2) if len(row) > len(names)), None)
    if longer is not None:
        # Of the first of them pandas would make names of rows.
        why = ": quote cells that hold the separator, and leave out lines above the header"
        raise BadInput(
            f"{path} has rows with more cells than its header, which has {len(names)}, the first "
            f"in line {longer}{why}"
        )
    if arguments.no_header:
        return [f"column{j + 1}" for j in range(len(names))], sep
    advice = ": --no-header, if the first row is data" if all(map(_is_number, names)) else ""
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise BadInput(f"{path} has more than one column {twice[0]!r}{advice}")
    if advice:
        note(f"the names of the columns are numbers{advice}")
    if len(names) == 1 and arguments.sep is None:
        note(f"one column is found, {names[0]!r}: --sep cuts the rows if there are more")
    return names, sep


def _cells_of(lines, sep):
    """The cells of each of these lines."""
    if sep == _BLANKS:
        lines, sep = [" ".join(line.split()) for line in lines], " "
    return csv.reader(lines, delimiter=sep, skipinitialspace=not sep.isspace())


def separator_of(lines):
    """What stands between the cells of lines of text: what cuts all of them into as many parts.

    Parameters
    ----------
    lines : list of str
        The first of them the header.

    Returns
    -------
    sep : str
        A pattern of blanks where nothing else cuts lines, a comma where there is a single column.
    """
    n_cells = {sep: [len(row) for row in _cells_of(lines, sep)] for sep in [*_SEPARATORS, _BLANKS]}
    by_blanks = n_cells.pop(_BLANKS)
    found = max(_SEPARATORS, key=lambda sep: (len(set(n_cells[sep])) == 1, n_cells[sep][0]))
    if n_cells[found][0] == 1:
        # Ragged lines, if they are lines of cells at all.
        found = max(_SEPARATORS, key=lambda sep: n_cells[sep][0])
    if n_cells[found][0] > 1:
        return found
    # Rows of more cells than names are refused, rows of fewer, or without a number, are words.
    is_even = len(set(by_blanks[1:])) == 1 < by_blanks[0] <= by_blanks[-1]
    return _BLANKS if is_even and any(map(_is_number, lines[-1].split())) else ","


def _chosen(frame, arguments):
    """Names of the columns that the model sees, in their order."""
    names = [*(arguments.columns or []), *arguments.drop, *arguments.text]
    names += [] if arguments.index is None else [arguments.index]
    check_columns(names, frame, arguments.file)
    left_out = {*arguments.drop, arguments.index}
    wanted = frame.columns if arguments.columns is None else set(arguments.columns)
    chosen = [name for name in frame.columns if name in wanted and name not in left_out]
    if not chosen:
        raise BadInput(f"{arguments.file}: there is no column left for the model")
    return chosen


def check_columns(names, frame, path):
    """Raise a BadInput unless a frame has columns of these names."""
    for name in names:
        if name not in frame.columns:
            raise BadInput(
                f"{path} has no column {name!r}; it has {', '.join(map(repr, frame.columns))}"
            )


def _mark_as_both(mark):
    """A mark as text and, if it is one, as a number."""
    return (mark, float(mark)) if _is_number(mark) else (mark,)


def _is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


# -- out


def default_output(path, addition):
    """The name of a table beside another, of its format.

    Raises
    ------
    BadInput
        If the other has a name of no format.
    """
    kind_of(path)
    stem = unpacked(path).stem
    return path.with_name(f"{stem}_{addition}{path.name.removeprefix(stem)}")


def check_output_table(option, path):
    """Raise a BadInput unless a table can be written under this name."""
    if kind_of(path, option) == "parquet":
        require("pyarrow")


def with_cells(table, filled, path):
    """The whole table with the missing cells of some columns filled.

    Parameters
    ----------
    table : Table
    filled : DataFrame
        Columns of `table.data`, filled.
    path : Path
        The file that it is for: text files keep the text of all other cells.

    Returns
    -------
    frame : DataFrame
    """
    if not table.is_text or kind_of(path) != "text":
        return _typed(table).assign(**{name: filled[name].array for name in filled.columns})
    frame = table.frame.copy()
    for name in filled.columns:
        missing = table.data[name].isna().to_numpy()
        if missing.any():
            cells = frame[name].to_numpy(dtype=object, copy=True)
            # True may be written in several ways.
            words = dict(zip(table.data[name][~missing], cells[~missing], strict=True))
            spread = _spread(table.data[name])
            cells[missing] = [
                _as_text(x, spread, words, table.decimal) for x in filled[name][missing]
            ]
            frame[name] = cells
    return frame


def with_columns(table, columns, path):
    """The whole table with further columns on its right.

    Parameters
    ----------
    table : Table
    columns : dict of str to ndarray
    path : Path
        The file that it is for.
    """
    whole = table.frame if kind_of(path) == "text" else _typed(table)
    return whole.assign(**columns)


def _typed(table):
    """All columns by their dtypes; of a text file those that no model sees are text."""
    if not table.is_text:
        return table.frame
    return table.frame.assign(**{name: table.data[name].array for name in table.data.columns})


def _spread(column):
    """The standard deviation of a column of numbers, NaN for any other."""
    return column.std() if column.dtype.kind == "f" else np.nan


def _as_text(cell, spread, words, decimal):
    """A filled cell as text: of a number no more digits than anyone can know."""
    if not isinstance(cell, (float, np.floating)):
        return words.get(cell, str(cell))
    if np.isfinite(cell) and cell != 0.0 and spread > 0.0:
        # To a ten-thousandth of the spread, and to six digits at least: some columns are far from
        # 0 beside their spread, others have cells of many sizes.
        size = min(np.log10(spread) - 4, np.log10(abs(cell)) - 5)
        cell = round(float(cell), -int(np.floor(size)))
    return str(cell).replace(".", decimal)


def write_table(frame, path, table):
    """Write a frame; text as in the file that it comes from.

    Parameters
    ----------
    frame : DataFrame
    path : Path
    table : Table
        Where the frame comes from.
    """
    import pandas as pd

    try:
        if kind_of(path) == "parquet":
            frame.to_parquet(path)
            return
        kinds = [unpacked(one).suffix.lower() for one in (table.path, path)]
        sep = "\t" if kinds[1] == ".tsv" else "," if kinds == [".tsv", ".csv"] else table.sep
        frame.to_csv(
            path,
            sep=sep,
            decimal=table.decimal,
            encoding=table.encoding,
            header=table.has_header,
            index=not isinstance(frame.index, pd.RangeIndex),
        )
    except (OSError, ValueError) as error:
        raise BadInput(f"cannot write {path}: {error}") from error
