"""Columns by the look of their cells: thousands, signs, dates, codes."""

import re

import pandas as pd
import pytest

from skbnp.command_line import tables
from skbnp.command_line.errors import BadInput


def column_of(cells):
    """A text file of these cells and a column of ones."""
    return "x;one\n" + "".join(f"{cell};1\n" for cell in cells)


@pytest.mark.parametrize(
    ("cells", "got", "advice"),
    [
        (["539", "1,341"], "1,341", "--thousands , if these are thousands, --decimal , --thous"),
        (["539", "-1,341,200.5"], "-1,341,200.5", "--thousands , if"),
        (["539", "1.341,5", "12.000"], "1.341,5", "--thousands . --decimal , if"),
        (["539", "1.341.200"], "1.341.200", "--thousands . --decimal , if"),
        (["539", "1'341.5"], "1'341.5", '--thousands "\'" if'),
        (["539", "1 341,5", "12 000"], "1 341,5", '--thousands " " --decimal , if'),
    ],
)
def test_marks_of_thousands_are_named(read, cells, got, advice):
    with pytest.raises(BadInput) as error:
        read(column_of(cells))
    message = f"a.csv, column 'x' must hold numbers, got {got!r} in row 2: {advice}"
    assert message in str(error.value)
    assert str(error.value).endswith(", --text x if the column holds names")


@pytest.mark.parametrize(
    ("cells", "given", "numbers"),
    [
        (["539", "-1,341", "1,341,200.5"], {"thousands": ","}, [539.0, -1341.0, 1341200.5]),
        (["1.341,5", "12.000"], {"thousands": ".", "decimal": ","}, [1341.5, 12000.0]),
        (["539", "1'341"], {"thousands": "'"}, [539, 1341]),
        (["539", "1 341,5"], {"thousands": " ", "decimal": ","}, [539.0, 1341.5]),
        # These are decimals: the mark of thousands is another, or they begin with a 0, or have
        # another number of digits somewhere.
        (["539", "1,341"], {"thousands": ".", "decimal": ","}, [539.0, 1.341]),
        (["539", "0,341"], {"decimal": ","}, [539.0, 0.341]),
        (["1,341", "1,34"], {"decimal": ","}, [1.341, 1.34]),
    ],
)
def test_marks_of_thousands_that_are_given(read, cells, given, numbers):
    assert read(column_of(cells), **given).data["x"].tolist() == numbers


@pytest.mark.parametrize(
    ("cells", "given", "message"),
    [
        (["539", "1,341"], {"decimal": ","}, "got '1,341' in row 2: --thousands , if these are"),
        (["1,5", "2"], {"thousands": ","}, "with ',' before each three digits, got '1,5' in row 1"),
        (["1.234", "1.5"], {"thousands": ".", "decimal": ","}, "three digits, got '1.5' in row 2"),
        (["13.01.2020"], {"thousands": ".", "decimal": ","}, "column 'x' holds dates"),
        (["1"], {"thousands": "."}, "--thousands must differ from --decimal, got . for both"),
        (["1,5", "x", "2,5"], {"decimal": ","}, "as most of its cells do, got 'x' in row 2: --na"),
    ],
)
def test_marks_that_would_change_numbers(read, cells, given, message):
    with pytest.raises(BadInput, match=re.escape(message)):
        read(column_of(cells), **given)
    if len(cells) > 1:
        assert read(column_of(cells), text=["x"], **given).data["x"].tolist() == cells


def test_filled_thousands_can_be_read_again(read, tmp_path):
    given = {"thousands": ".", "decimal": ","}
    table = read("x;y\n1.341,5;1\n;2\n2.000;3\n", **given)
    path = tmp_path / "b.csv"
    filled = table.data.fillna(1670.75)
    tables.write_table(tables.with_cells(table, filled, path), path, table)
    assert path.read_text() == "x;y\n1.341,5;1\n1670,75;2\n2.000;3\n"
    pd.testing.assert_frame_equal(read(None, "b.csv", **given).data, filled)


@pytest.mark.parametrize(
    "cells", [["$3475", "12"], ["-$3,475.50"], ["3.475,00 €", "5 €"], ["45%", "7"], ["£ 5"]]
)
def test_signs_of_currencies(read, cells):
    with pytest.raises(BadInput, match="got .* in row 1: write it without its sign if that is"):
        read(column_of(cells))
    assert read(column_of(cells), text=["x"]).data["x"].tolist() == cells


@pytest.mark.parametrize(
    ("cells", "unit"),
    [
        (["5.6 kg", "7 kg", "12.25 kg"], "kg"),
        (["1,200 m2", "3 m2", "-4 m2"], "m2"),
        (["20.5\N{DEGREE SIGN}C", "21\N{DEGREE SIGN}C", "2 \N{DEGREE SIGN}C"], "\N{DEGREE SIGN}C"),
    ],
)
def test_units(read, cells, unit):
    text = '"' + '"\n"'.join(["x", *cells]) + '"\n'
    with pytest.raises(BadInput, match=f"got '{cells[0]}' in row 1: write it without '{unit}' if"):
        read(text)
    assert read(text, text=["x"]).data["x"].tolist() == cells


@pytest.mark.parametrize(
    "cells",
    [
        ["5 kg", "7 mg", "12 kg"],  # not of one unit
        ["5 kg", "7 kg", "5 kg"],  # of two levels
        ["12A", "13B", "14C"],
        ["5 kg", "7 kg", "heavy"],
    ],
)
def test_what_is_of_no_unit(read, cells):
    assert read(column_of(cells)).data["x"].tolist() == cells


@pytest.mark.parametrize(
    ("cells", "advice"),
    [
        (["0.5", "1", "\N{MINUS SIGN}0.5"], "write the sign as - if that is a number"),
        (["0.5", "1", "<0.5"], "write the limit itself, or leave the column out"),
        (["0.5", "1", "2", "> 99"], "write the limit itself, or leave the column out"),
        (["0.5", "1", "\N{MINUS SIGN}"], "--na '\N{MINUS SIGN}' if that means missing"),
    ],
)
def test_signs_and_limits_beside_numbers(read, cells, advice):
    with pytest.raises(BadInput, match=f"got '{cells[-1]}' in row {len(cells)}: {advice}"):
        read(column_of(cells))
    with pytest.raises(BadInput, match="got '' in row 3: --na '' if"):
        read(column_of(["0.5", "1", "\N{NO-BREAK SPACE}"]))


@pytest.mark.parametrize(
    "cells",
    [
        ["13.01.2020", "14.1.20"],
        ["01/13/2020 12:30", "?"],
        ["31/01/24", "1/2/24"],
        ["31-01-24", "1-2-24"],
        ["Jan 01 2024", "feb. 2 24"],
        ["1 January 2024", "31. Sept 2024"],
        ["Jan 2024", "may-24"],
        ["00:59", "12:30:15", "1:05 pm"],
    ],
)
@pytest.mark.parametrize("given", [{"text": ["x"]}, {"families": {"x": "categorical"}}])
def test_dates_that_are_not_iso(read, cells, given):
    with pytest.raises(BadInput, match=r"a.csv: column 'x' holds dates or times: --drop it"):
        read(column_of(cells))
    assert read(column_of(cells), **given).data["x"].tolist() == cells


def test_codes_are_names(read, capsys, tmp_path):
    table = read(column_of(["01000", "", "12345"]))
    assert table.data["x"].dropna().tolist() == ["01000", "12345"]
    assert table.data["x"].isna().tolist() == [False, True, False]
    note = "note: column 'x' holds codes such as '01000', which are taken as names: "
    assert capsys.readouterr().err.startswith(note)
    path = tmp_path / "b.csv"
    filled = table.data.fillna({"x": "01000"})
    tables.write_table(tables.with_cells(table, filled, path), path, table)
    assert path.read_text() == column_of(["01000", "01000", "12345"])


@pytest.mark.parametrize(
    ("cells", "given"),
    [
        (["0", "0.5", "10"], {}),
        (["01", "10"], {"families": {"x": "poisson"}}),
        (["01", "10"], {"text": ["x"]}),
    ],
)
def test_what_is_no_code(read, capsys, cells, given):
    data = read(column_of(cells), **given).data
    assert data["x"].tolist() == (cells if "text" in given else [float(x) for x in cells])
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "cells",
    [
        ["12-34-56", "12-34-57"],
        ["10.10.10", "10.10.11"],
        ["212 555 123", "+49 123 456"],
        ["Mayer 2000", "June"],
        ["3:1", "2:0"],
    ],
)
def test_names_that_look_a_little_like_dates_or_thousands(read, cells):
    table = read("x,y\n" + "".join(f"{cell},{j}\n" for j, cell in enumerate(cells * 3)))
    assert table.data["x"].tolist() == cells * 3
