"""Columns by the look of their cells: which of them are refused, and which hold codes."""

import re
import shlex

from skbnp.command_line.errors import BadInput
from skbnp.command_line.fitting import note

DATES = (
    "holds dates or times: --drop it, set it as the --index, or give it as --text if they are "
    "names of a few groups"
)
MARKS = [",", ".", "'", " "]  # of thousands, those that pandas reads
# Share of numbers from which on a column is one of numbers, and its text a slip; of dates too.
_MOSTLY = 0.5
# 1,234 and 1.234.567,8. The first digit is no 0: 0,123 has a comma in the place of a point.
_THOUSANDS = re.compile(
    r"[-+]?[1-9]\d{0,2}(?P<mark>[,.' ])\d{3}(?:(?P=mark)\d{3})*(?:(?!(?P=mark))(?P<point>[.,])\d+)?"
)
_COMMA = re.compile(r"[-+]?\d*,\d+")
_WITH_SIGN = re.compile(r"[-+]?[$€£¥]\s*[-+]?\d[\d.,' ]*|[-+]?\d[\d.,' ]*[$€£¥%]")
# 5.6 kg, 12 m2: a number, and in all cells the same behind it.
_WITH_UNIT = re.compile(r"[-+]?\d[\d.,' ]*?\s*(?P<unit>(?:[^\W\d_]|°)[^\d.,]{0,7}[23]?)")
_FEWEST_OF_UNIT = 3  # different numbers with it
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"  # or month
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_TIME = r"\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?: ?[ap]m)?"
_DATE = re.compile(
    # 10.10.10 is as likely the number of a section.
    rf"(?:{_DAY}([./-]){_DAY}\1\d{{4}}|{_DAY}([/-]){_DAY}\2\d{{2}}|\d{{4}}([./]){_DAY}\3{_DAY}"
    rf"|(?:{_DAY}\.?[ -])?{_MONTH}[ -](?:{_DAY},? )?\d{{2,4}})(?:[ T]\d.*)?|{_TIME}",
    re.IGNORECASE,
)


def refuse_lists(column, path):
    """Raise a BadInput if a column of Parquet has lists or records for cells."""
    if column.dtype == object and any(
        hasattr(cell, "__len__") and not isinstance(cell, (str, bytes)) for cell in column
    ):
        raise BadInput(
            f"{path}, column {column.name!r} must hold numbers or names, got lists: --drop it"
        )


def with_words(typed, cells, columns, marks):
    """Columns of names with cells such as None and null, which pandas takes for missing.

    In a column of numbers they are.

    Parameters
    ----------
    typed, cells : DataFrame
        By dtypes, and the text of each cell.
    columns : list of str
    marks : list of str
        What the user says is missing, beside empty cells and NA.
    """
    import pandas as pd

    out = {}
    for name in columns:
        column = typed[name]
        if pd.api.types.is_string_dtype(column.dropna().infer_objects().dtype):
            words = cells[name][column.isna() & ~cells[name].isin(["", "NA", *marks])].dropna()
            for word in words.unique():
                note(
                    f"column {name!r} has the name {word!r}: --na {shlex.quote(word)} if that "
                    "means missing"
                )
            if len(words):
                out[name] = column.where(~column.index.isin(words.index), cells[name])
    return typed.assign(**out)


def refuse_slips(texts, path, decimal, thousands):
    """Raise a BadInput if a column of text holds dates or, for the most part, numbers.

    Parameters
    ----------
    texts : Series
        The cells that are not missing, by the numbers of their rows.
    path : Path
    decimal, thousands : str or None
        What stands in numbers.
    """
    import pandas as pd

    texts = texts.astype(str).str.strip()
    is_number = _are_numbers(texts, decimal, thousands)
    others = texts[~is_number]
    if not len(others):
        return
    _refuse_thousands(others, path)
    if all(map(_COMMA.fullmatch, others)):
        raise _no_number(others, path, "--decimal , if that is a number")
    if pd.to_numeric(others, errors="coerce").notna().all():
        raise _no_number(others, path, "leave out --decimal if that is a number", " with a comma")
    if all(map(_WITH_SIGN.fullmatch, others)):
        raise _no_number(others, path, "write it without its sign if that is a number")
    if (
        all("\N{MINUS SIGN}" in x for x in others)
        and _are_numbers(others.str.replace("\N{MINUS SIGN}", "-"), decimal, thousands).all()
    ):
        raise _no_number(others, path, "write the sign as - if that is a number")
    _refuse_dates(texts, path)
    _refuse_units(others, path)
    if all(x.startswith(("<", ">")) for x in others) and is_number.mean() >= _MOSTLY:
        raise _no_number(
            others, path, "write the limit itself, or leave the column out, as values beyond a "
            "limit are not missing at random",
        )  # fmt: skip
    if is_number.mean() >= _MOSTLY:
        advice = f"--na {shlex.quote(others.iloc[0])} if that means missing"
        raise _no_number(others, path, advice, " as most of its cells do")


def refuse_marks(texts, path, decimal, thousands):
    """Raise a BadInput if numbers of a text file have marks of thousands that were not given.

    Under ``--decimal ,`` 1,234 would be read as 1.234, under ``--thousands .`` 1.5 as 15.
    """
    if thousands is not None:
        found = texts[texts.str.contains(thousands, regex=False)].str.strip()
        fits = [(match := _THOUSANDS.fullmatch(x)) and match["mark"] == thousands for x in found]
        others = found[[not fit for fit in fits]]
        if len(others):
            _refuse_dates(others, path)
            rule = f" with {thousands!r} before each three digits"
            raise _no_number(others, path, "leave out --thousands if that is a number", rule)
    elif decimal == ",":
        _refuse_thousands(texts[texts.str.contains(",", regex=False)].str.strip(), path)


def code_among(texts):
    """The first of these that begins with a 0 that no number has, such as 01000, or None."""
    return next(iter(texts[texts.str.fullmatch(r"0\d+")]), None)


def _are_numbers(texts, decimal, thousands):
    """Which cells the reader takes for numbers."""
    import pandas as pd

    if thousands is not None:
        texts = texts.str.replace(thousands, "", regex=False)
    if decimal == ",":
        texts = texts.where(~texts.str.contains(".", regex=False))
        texts = texts.str.replace(",", ".", regex=False)
    return pd.to_numeric(texts, errors="coerce").notna()


def _refuse_thousands(texts, path):
    """Raise a BadInput if all of these, one at least, are numbers with one mark of thousands."""
    found = list(map(_THOUSANDS.fullmatch, texts))
    if not found or not all(found) or len({match["mark"] for match in found}) > 1:
        return
    mark = found[0]["mark"]
    if mark == " " and not any(match["point"] for match in found):  # numbers of telephones
        return
    advice = f"--thousands {mark}" if mark in ",." else f'--thousands "{mark}"'
    if mark == "." or any(match["point"] == "," for match in found):
        advice += " --decimal ,"
    advice += " if these are thousands"
    if mark == ",":
        advice += ", --decimal , --thousands . if that is a decimal comma"
    raise _no_number(texts, path, advice)


def _refuse_units(texts, path):
    """Raise a BadInput if all of these are numbers with one unit behind them."""
    found = list(map(_WITH_UNIT.fullmatch, texts))
    if all(found) and len({match["unit"] for match in found}) == 1:
        if texts.nunique() >= _FEWEST_OF_UNIT:
            unit = found[0]["unit"]
            raise _no_number(texts, path, f"write it without {unit!r} if that is a number")


def _refuse_dates(texts, path):
    """Raise a BadInput if most of these are dates."""
    if sum(map(bool, map(_DATE.fullmatch, texts))) >= _MOSTLY * len(texts):
        raise BadInput(f"{path}: column {texts.name!r} {DATES}")


def _no_number(texts, path, advice, rule=""):
    """A BadInput about the first of these cells."""
    return BadInput(
        f"{path}, column {texts.name!r} must hold numbers{rule}, got {texts.iloc[0]!r} in row "
        f"{texts.index[0] + 1}: {advice}, --text {shlex.quote(str(texts.name))} if the column "
        "holds names"
    )
