"""Numbers and lists in words, and tables of records as plain text or HTML."""

import math
import textwrap
from html import escape
from numbers import Integral, Real

# Characters of a line of plain text, and of one cell of a table, at most.
WIDTH, _WIDEST_CELL = 96, 34
# Digits that are shown of a number of which nothing else is known.
_DIGITS = 3

STYLE = """
.skbnp { font-family: system-ui, sans-serif; line-height: 1.45; max-width: 62em; color: #222;
  background: #fff; padding: .2em 1em; }
.skbnp h1 { font-size: 1.5em; } .skbnp h2 { font-size: 1.15em; margin: 1.4em 0 .3em; }
.skbnp p { margin: .35em 0; } .skbnp figure { margin: .8em 0; }
.skbnp figcaption { color: #555; font-size: .9em; }
.skbnp img { max-width: 100%; }
.skbnp table { border-collapse: collapse; font-size: .9em; margin: .6em 0; }
.skbnp th, .skbnp td { padding: .15em .7em; text-align: right; border-bottom: 1px solid #ddd; }
.skbnp th { border-bottom: 1px solid #888; } .skbnp td.text, .skbnp th.text { text-align: left; }
"""


# -- words


def number(value, digits=_DIGITS):
    """A number in so many digits; whole numbers in full, "-" for NaN."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return str(value)
    if isinstance(value, Integral):
        return f"{int(value):,}"
    value = float(value)
    if math.isnan(value):
        return "-"
    if math.isinf(value):
        return "infinite" if value > 0 else "-infinite"
    if not 1e-4 <= abs(value) < 1e7:
        return "0" if value == 0 else f"{value:.{digits}g}"
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    return f"{round(value, decimals):,.{max(0, decimals)}f}"


def measured(value, spread):
    """A value of a column to about a tenth of the column's spread; of small ones to two digits."""
    value, spread = float(value), float(spread)
    if not (math.isfinite(value) and math.isfinite(spread) and spread > 0.0):
        return number(value)
    decimals = 1 - math.floor(math.log10(spread))
    if abs(value) >= spread / 100.0:
        decimals = max(decimals, min(decimals + 1, 1 - math.floor(math.log10(abs(value)))))
    if not -12 <= decimals <= 6 or abs(value) >= 1e12:
        return number(value)
    # Without the sign of a zero, and without commas: years are numbers too.
    return f"{round(value, decimals) + 0.0:.{max(0, decimals)}f}"


def percent(share):
    """A share in per cent; what is neither none nor all never reads as such."""
    if math.isnan(share):
        return "-"
    if 0.0 < share < 0.01 or 0.99 < share < 1.0:
        return "under 1%" if share < 0.01 else "over 99%"
    return f"{100.0 * share:.0f}%"


def counted(n, noun, plural=None):
    """A count with its noun: "1 row", "3 rows"."""
    return f"{number(int(n))} {noun if n == 1 else plural or noun + 's'}"


def listed(items, most=10):
    """Items in words, the first of them where there are many."""
    items = [str(item) for item in items]
    if len(items) > most:
        return ", ".join(items[:most]) + f" and {len(items) - most} more"
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1]


# -- tables: lists of records, dicts with the same keys


def cells_of(records):
    """The cells of records as text: names of columns, which of them hold numbers, and rows."""
    names = list(records[0])
    is_number = {name: all(isinstance(record[name], Real) for record in records) for name in names}
    columns = [_column([record[name] for record in records]) for name in names]
    return names, is_number, [list(row) for row in zip(*columns, strict=True)]


def _column(values):
    """Cells of a column as text: shares and the like with the same decimals."""
    floats = [abs(x) for x in values if isinstance(x, float) and not math.isnan(x)]
    if len(floats) < len([x for x in values if x == x]) or not 0.1 <= max(floats, default=0) <= 1:
        return [number(value) for value in values]
    return [number(value) if math.isnan(value) else f"{value:.2f}" for value in values]


def text_table(records, width=WIDTH):
    """Records as lines of plain text; columns that find no room are named below.

    Parameters
    ----------
    records : list of dict
    width : int
        Characters of a line, at most.

    Returns
    -------
    text : str
    """
    names, is_number, rows = cells_of(records)
    columns = [
        [_shortened(cell) for cell in (name, *(row[place] for row in rows))]
        for place, name in enumerate(names)
    ]
    widths = [max(map(len, column)) for column in columns]
    n_shown = len(columns)
    while n_shown > 1 and sum(widths[:n_shown]) + 2 * n_shown > width:
        n_shown -= 1
    lines = []
    for row in zip(*columns[:n_shown], strict=True):
        padded = [
            cell.rjust(room) if is_number[name] else cell.ljust(room)
            for cell, room, name in zip(row, widths, names, strict=False)
        ]
        lines.append(("  " + "  ".join(padded)).rstrip())
    lines.insert(1, "  " + "  ".join("-" * room for room in widths[:n_shown]))
    if n_shown < len(names):
        lines += paragraphs([f"(not shown here: {listed(names[n_shown:])})"], width)
    return "\n".join(lines)


def html_table(records):
    """Records as an HTML table."""
    names, is_number, rows = cells_of(records)
    kinds = ["" if is_number[name] else ' class="text"' for name in names]
    head = "".join(
        f"<th{kind}>{escape(str(name))}</th>" for name, kind in zip(names, kinds, strict=True)
    )
    body = "\n".join(
        "<tr>"
        + "".join(f"<td{kind}>{escape(cell)}</td>" for cell, kind in zip(row, kinds, strict=True))
        + "</tr>"
        for row in rows
    )
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def paragraphs(sentences, width=WIDTH):
    """Sentences as lines of plain text, each beginning a line."""
    lines = []
    for sentence in sentences:
        lines += textwrap.wrap(sentence, width, subsequent_indent="  ", break_on_hyphens=False)
    return lines


def _shortened(cell):
    return cell if len(cell) <= _WIDEST_CELL else cell[: _WIDEST_CELL - 3] + "..."
