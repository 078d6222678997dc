"""Tables of the command line: what is read, what is refused, what goes out as it came in."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from skbnp.command_line import tables
from skbnp.command_line.errors import BadInput


@pytest.mark.parametrize(
    ("text", "sep"),
    [
        ("a,b\n1,2\n", ","),
        ("a;b;c\n1,5;2;3\n4;5;6\n", ";"),
        ("a\tb\n1,5\t2\n", "\t"),
        ('"a,x"|b\n1|2\n', "|"),
        ("a\n1\n", ","),
        ("a\n1;2\n3\n", ","),
        ("a,b\n1\n2,3\n", ","),
        ("name;remark\nx;one, two\ny;three\n", ";"),
        ("a  b\n1.5 2\n 10   4 \n", r"\s+"),
        ('a b\n"u v" 2\n', r"\s+"),
        ("a long name\nJohn Smith\nAda King\n", ","),
        ("full name\nJohn Smith\nAda\n", ","),
        ("full name\nJohn Smith\nAda King\n", ","),
    ],
)
def test_separator(text, sep):
    assert tables.separator_of(text.splitlines()) == sep


def test_blanks_between_cells(read, tmp_path):
    table = read('  a    b  word\n 1.5  2 "u v"\n14   NA   w \n')
    assert table.data["a"].tolist() == [1.5, 14.0] and table.data["word"].tolist() == ["u v", "w"]
    # Tabs go out: they are blanks, and show cells without text.
    path = tmp_path / "b.csv"
    tables.write_table(tables.with_cells(table, table.data.fillna(2.0), path), path, table)
    assert path.read_text() == "a\tb\tword\n1.5\t2\tu v\n14\t2.0\tw\n"
    with pytest.raises(BadInput, match="rows with more cells than its header, which has 2"):
        read("a b\n1 2.5 3\n2 3.5 4\n")


def test_a_single_column_is_worth_a_note(read, capsys):
    assert read("a long name\n1\n2\n").data.shape == (2, 1)
    assert capsys.readouterr().err == (
        "note: one column is found, 'a long name': --sep cuts the rows if there are more\n"
    )
    read("x\n1\n2\n", sep=",")
    assert capsys.readouterr().err == ""


def test_files_without_a_header(read, capsys, tmp_path):
    text = "1,2.5\n3,\n5,4.5\n"
    assert list(read(text).data.columns) == ["1", "2.5"]
    note = "the names of the columns are numbers: --no-header, if the first row is data\n"
    assert capsys.readouterr().err == f"note: {note}"
    with pytest.raises(BadInput, match="more than one column '1': --no-header, if the first row"):
        read("1,1\n3,4\n")
    table = read(text, no_header=True)
    assert list(table.data.columns) == ["column1", "column2"] and len(table.data) == 3
    path = tmp_path / "b.csv"
    tables.write_table(tables.with_cells(table, table.data.fillna(3.5), path), path, table)
    assert path.read_text() == "1,2.5\n3,3.5\n5,4.5\n"
    assert capsys.readouterr().err == ""


def test_names_and_dtypes(read):
    table = read('id, age,"a, b",word\n007,1.5,2,x\n008,,3,y\n', drop=["id"])
    assert list(table.data.columns) == ["age", "a, b", "word"]
    assert table.data["age"].dtype == float and table.data["a, b"].dtype == int
    assert table.data["age"].isna().tolist() == [False, True]
    assert table.frame["id"].tolist() == ["007", "008"]


def test_a_line_without_text_is_a_hole_of_a_single_column(read):
    table = read("x\n1.5\n\n2.5\n")
    assert table.data["x"].isna().tolist() == [False, True, False] and len(table.frame) == 3
    assert len(read("x,y\n1,2\n\n3,4\n").data) == 2


def test_a_cell_may_be_long(read):
    assert len(read("x,y\n1," + 140_000 * "a" + "\n2,b\n", drop=["y"]).data) == 2


def test_a_mark_before_the_header_is_no_part_of_a_name(read):
    assert list(read("a,b\n1,2\n", encoding="utf-8-sig").data.columns) == ["a", "b"]
    assert list(read("\ufeffa,b\n1,2\n").data.columns) == ["a", "b"]


def test_a_column_without_a_name_keeps_none(read, tmp_path):
    table = read(",x\nr1,1\nr2,2\n", index="")
    assert list(table.data.columns) == ["x"] and table.data.index.tolist() == ["r1", "r2"]
    tables.write_table(table.frame, tmp_path / "b.csv", table)
    assert (tmp_path / "b.csv").read_text() == ",x\nr1,1\nr2,2\n"


def test_words_that_may_mean_missing(read, capsys):
    """They are names among names, and missing among numbers; marks and dropped columns say so."""
    text = "id,garage,size,left\nNone,None,1,null\nNA,Attached,nan,b\nr,null,2,\ns,,None,c\n"
    table = read(text, index="id", drop=["left"])
    assert table.data.index.tolist() == ["None", "NA", "r", "s"]
    assert table.data["garage"].fillna("?").tolist() == ["None", "Attached", "null", "?"]
    assert table.data["size"].fillna(-1.0).tolist() == [1.0, -1.0, 2.0, -1.0]
    rule = "note: column 'garage' has the name '{0}': --na {0} if that means missing\n"
    assert capsys.readouterr().err == rule.format("None") + rule.format("null")
    table = read(text, marks=["None", "null"])
    assert table.data["garage"].fillna("?").tolist() == ["?", "Attached", "?", "?"]
    assert capsys.readouterr().err == ""
    codes = read("code,x\n1,1\nNaN,2\n", text=["code"]).data["code"]
    assert codes.tolist() == ["1", "NaN"]


def test_columns_drop_index(read):
    text = "id,b,a,c\n01,1,2,3\n02,4,5,6\n"
    table = read(text, columns=["a", "b", "c"], drop=["c"], index="id")
    assert list(table.data.columns) == ["b", "a"]
    assert table.data.index.tolist() == ["01", "02"] and table.data.index.name == "id"


@pytest.mark.parametrize("name", ["a.tsv", "a.txt", "a.csv.gz"])
def test_kinds_of_text(read, name):
    assert read("a\tb\n1\t2\n", name).data["b"].tolist() == [2]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_marks(read, tmp_path, ending):
    frame = pd.DataFrame({"x": [1.0, -999.0, 3.0], "word": ["u", "?", "v"]})
    if ending == "csv":
        frame.to_csv(tmp_path / "a.csv", index=False)
    else:
        frame.to_parquet(tmp_path / "a.parquet")
    data = read(None, f"a.{ending}", marks=["-999", "?"]).data
    assert data.isna().to_numpy().tolist() == [[False] * 2, [True] * 2, [False] * 2]


@pytest.mark.parametrize("given", [{"text": ["code"]}, {"families": {"code": "categorical"}}])
def test_names_that_are_numbers_beside_marks_stay_names(read, tmp_path, given):
    frame = pd.DataFrame({"code": ["1", "?", "2"], "x": ["1.5", "?", "2.5"]})
    frame.to_parquet(tmp_path / "a.parquet")
    data = read(None, "a.parquet", marks=["?"], **given).data
    assert data["code"].tolist()[::2] == ["1", "2"] and data["x"].tolist()[::2] == [1.5, 2.5]
    assert data.isna().sum().tolist() == [1, 1]


def test_text_is_kept_as_text(read):
    data = read("code,x\n01,1\n02,2\n", text=["code"]).data
    assert data["code"].tolist() == ["01", "02"]


def test_decimal_commas(read):
    text = "a;b\n1,5;1\n2;\n"
    assert read(text, decimal=",").data["a"].tolist() == [1.5, 2.0]
    assert read(text, text=["a"]).data["a"].tolist() == ["1,5", "2"]
    with pytest.raises(
        BadInput, match=r"a.csv, column 'a' must hold numbers, got '1,5' in row 1: --de"
    ):
        read(text)
    # And the other way round: no cell is a number then.
    with pytest.raises(
        BadInput, match="'a' must hold numbers with a comma, got '1.5' in row 1: lea"
    ):
        read("a;b\n1.5;1\n2.25;\n", decimal=",")
    assert read("a;b\n1.5;1\n", decimal=",", text=["a"]).data["a"].tolist() == ["1.5"]


def test_text_among_numbers(read):
    text = "age,x\n31,1\n32,2\nunknown,3\n34,4\n"
    with pytest.raises(BadInput) as error:
        read(text)
    assert "a.csv, column 'age' must hold numbers" in str(error.value)
    assert "got 'unknown' in row 3: --na unknown" in str(error.value)
    assert read(text, marks=["unknown"]).data["age"].isna().sum() == 1
    for given in ({"text": ["age"]}, {"families": {"age": "categorical"}}):
        assert read(text, **given).data["age"].tolist() == ["31", "32", "unknown", "34"]
    assert list(read(text, drop=["age"]).data.columns) == ["x"]
    # Codes among names are no slips.
    assert read("code\nA\nB\nC\n4\n").data["code"].tolist() == ["A", "B", "C", "4"]


@pytest.mark.parametrize(
    ("text", "given", "message"),
    [
        ("", {}, "a.csv is empty"),
        ("\n \n", {}, "a.csv is empty"),
        ("a,b\n", {}, "a.csv has no rows"),
        ("a,b,a\n1,2,3\n", {}, "a.csv has more than one column 'a'"),
        (
            "a,b\n1,2,3\n4,5,6\n",
            {},
            "rows with more cells than its header, which has 2, the first in line 2: quote cells",
        ),
        (
            "# of 2024\na,b\n1,2\n",
            {"sep": ","},
            "which has 1, the first in line 2: quote cells that hold the separator, and leave out",
        ),
        ('a,b\n1,2\n3,"4\n5,6\n', {}, "a quote is opened in line 3 or in the next, and never"),
        ("a,b\n" + "1,2\n" * 60 + "5,6,7\n", {}, "cannot read .*a.csv: .*line 62"),
        ("a,b\n1,2\n", {"columns": ["c"]}, "a.csv has no column 'c'; it has 'a', 'b'"),
        ("a,b\n1,2\n", {"drop": ["c"]}, "a.csv has no column 'c'"),
        ("a,b\n1,2\n", {"index": "c"}, "a.csv has no column 'c'"),
        ("a,b\n1,2\n", {"text": ["c"]}, "a.csv has no column 'c'"),
        ("a,b\n1,2\n", {"drop": ["a", "b"]}, "a.csv: there is no column left"),
        ("a,b\n1,2\n", {"sep": "::"}, "--sep must be one character, got '::'"),
        ("a,b\n1,2\n", {"encoding": "morse"}, "cannot read .*a.csv: unknown encoding: morse"),
    ],
)
def test_what_is_refused(read, text, given, message):
    if given.get("encoding") == "morse":
        read(text)
        text = None
    with pytest.raises(BadInput, match=message):
        read(text, **given)


def test_files_that_cannot_be_read(read, tmp_path):
    (tmp_path / "latin.csv").write_bytes("höhe,b\n1,2\n".encode("latin-1"))
    with pytest.raises(BadInput, match="cannot read .*latin.csv as utf-8.*--encoding latin-1"):
        read(None, "latin.csv")
    assert list(read(None, "latin.csv", encoding="latin-1").data.columns) == ["höhe", "b"]
    for order in ("le", "be"):
        text = "\ufeffa,b\n1,2\n"
        (tmp_path / "wide.csv").write_bytes(text.encode(f"utf-16-{order}"))
        with pytest.raises(BadInput, match="cannot read .*wide.csv as utf-8.*--encoding utf-16"):
            read(None, "wide.csv")
        assert list(read(None, "wide.csv", encoding="utf-16").data.columns) == ["a", "b"]
    (tmp_path / "a.csv.gz").write_bytes(b"not packed")
    (tmp_path / "a.parquet").write_bytes(b"no table")
    (tmp_path / "folder.csv").mkdir()
    for name in ("a.csv.gz", "a.parquet", "folder.csv"):
        with pytest.raises(BadInput, match=f"cannot read .*{name}"):
            read(None, name)
    with pytest.raises(BadInput, match="a.xlsx: the name of a table must end in .csv"):
        read("", "a.xlsx")
    with pytest.raises(BadInput, match="cannot read .*none.csv: there is no such file"):
        read(None, "none.csv")


def test_parquet_needs_pyarrow(read, monkeypatch, tmp_path):
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "a.parquet")
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(BadInput, match="needs pyarrow"):
        read(None, "a.parquet")
    with pytest.raises(BadInput, match="needs pyarrow"):
        tables.check_output_table("--output", Path("b.parquet"))


# -- out


def test_default_names():
    assert tables.default_output(Path("d/a.b.csv"), "x") == Path("d/a.b_x.csv")
    assert tables.default_output(Path("d/a.tsv.gz"), 3) == Path("d/a_3.tsv.gz")
    with pytest.raises(BadInput):
        tables.default_output(Path("."), "x")


@pytest.mark.parametrize(
    ("name", "output", "sep"),
    [
        ("a.txt", "b.txt", "\t"),
        ("a.csv", "b.csv", "\t"),
        ("a.tsv", "b.tsv", "\t"),
        ("a.tsv", "b.csv", ","),
        ("a.txt", "b.csv.gz", "\t"),
    ],
)
def test_what_is_between_cells_stays(read, tmp_path, name, output, sep):
    table = read("x\ty\n1\t2\n", name)
    tables.write_table(table.frame, tmp_path / output, table)
    assert pd.read_csv(tmp_path / output, sep=sep).columns.tolist() == ["x", "y"]


def filled_of(table):
    """Its holes filled with the mean, or the first of the names."""
    return table.data.apply(
        lambda x: x.fillna(x.mean() if x.dtype == float else x.dropna().iloc[0])
    )


def test_cells_that_were_given_keep_their_text(read, tmp_path):
    text = "id;x;n;on\n01;1,50;7;TRUE\n02;NA;;\n03;2,00;9;FALSE\n"
    table = read(text, index="id", decimal=",")
    path = tmp_path / "b.csv"
    tables.write_table(tables.with_cells(table, filled_of(table), path), path, table)
    assert path.read_text() == "id;x;n;on\n01;1,50;7;TRUE\n02;1,75;8,0;TRUE\n03;2,00;9;FALSE\n"


@pytest.mark.parametrize(
    ("column", "cell", "text"),
    [
        ([1.0, 2.0], 1.2345678901234, "1.23457"),
        ([1.0, 2.0], -0.0000123456789, "-1.23457e-05"),
        ([1e-3, 1e6], 0.00123456789, "0.00123457"),
        ([1.6e9, 1.6e9 + 1.0], 1600000000.123456789, "1600000000.12346"),
        ([3.0, 3.0], 3.0, "3.0"),
        ([0.0, 1.0], 0.0, "0.0"),
    ],
)
def test_filled_numbers_have_the_digits_that_may_be_known(read, tmp_path, column, cell, text):
    table = read("a,b\n" + "".join(f"{x},1\n" for x in column) + ",1\n")
    path = tmp_path / "b.csv"
    tables.write_table(tables.with_cells(table, table.data.fillna(cell), path), path, table)
    assert path.read_text().splitlines()[-1] == f"{text},1"


@pytest.mark.parametrize("cells", [[[1], [2, 3], None], [{"x": 1}, None, {"x": 2}]])
def test_lists_are_refused_by_name(read, tmp_path, cells):
    pd.DataFrame({"a": [1.0, 2.0, 3.0], "many": cells}).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(BadInput, match=r"column 'many' must hold numbers or names, got lists"):
        read(None, "a.parquet")
    assert list(read(None, "a.parquet", drop=["many"]).data.columns) == ["a"]


def test_from_text_to_parquet_and_back(read, tmp_path):
    table = read("id,x,word\n01,1.5,u\n02,,v\n", drop=["id"])
    path = tmp_path / "b.parquet"
    tables.write_table(tables.with_cells(table, filled_of(table), path), path, table)
    found = pd.read_parquet(path)
    assert found["id"].tolist() == ["01", "02"] and found["x"].tolist() == [1.5, 1.5]
    assert found["x"].dtype == float
    table = read(None, "b.parquet", index="id")
    columns = {"cluster": np.array([0, 1])}
    tables.write_table(
        tables.with_columns(table, columns, tmp_path / "c.tsv"), tmp_path / "c.tsv", table
    )
    assert (tmp_path / "c.tsv").read_text() == (
        "id\tx\tword\tcluster\n01\t1.5\tu\t0\n02\t1.5\tv\t1\n"
    )


def test_parquet_keeps_dtypes_and_index(read, tmp_path):
    index = pd.Index(["r", "s", "t"], name="row")
    frame = pd.DataFrame(
        {
            "day": pd.date_range("2020-01-01", periods=3),
            "level": pd.Categorical(["lo", None, "hi"], categories=["lo", "hi"]),
            "x": np.array([1, 2, 3], dtype=np.float32),
        },
        index=index,
    )
    frame.to_parquet(tmp_path / "a.parquet")
    table = read(None, "a.parquet", drop=["day"])
    path = tmp_path / "b.parquet"
    filled = table.data.fillna({"level": "hi"})
    tables.write_table(tables.with_cells(table, filled, path), path, table)
    found = pd.read_parquet(path)
    pd.testing.assert_frame_equal(found, frame.fillna({"level": "hi"}))
    tables.write_table(table.frame, tmp_path / "b.csv", table)
    assert (tmp_path / "b.csv").read_text().startswith("row,day,level,x\nr,2020-01-01,lo,1.0\n")


def test_what_cannot_be_written(read, tmp_path):
    table = read("a\n1\n")
    with pytest.raises(BadInput, match="cannot write .*folder.csv"):
        (tmp_path / "folder.csv").mkdir()
        tables.write_table(table.frame, tmp_path / "folder.csv", table)
