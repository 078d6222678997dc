"""``skbnp impute``: filled tables, how sure they are, completed ones, refusals."""

import re

import numpy as np
import pandas as pd
import pytest

from skbnp import BNPImputer, TreeFactorModel

SHORT = ["--chains", "1", "--warmup", "20", "--draws", "20", "--jobs", "1"]


@pytest.fixture
def table(tmp_path):
    """A file with holes, marked in two ways; the truth."""
    random = np.random.default_rng(0)
    size = random.normal(size=60)
    truth = pd.DataFrame(
        {
            "id": [f"{i:03d}" for i in range(60)],
            "length": np.round(10 + 3 * size + 0.1 * random.normal(size=60), 2),
            "width": np.round(5 + size + 0.1 * random.normal(size=60), 2),
            "kind": np.where(size > 0, "large", "small"),
        }
    )
    holed = truth.astype(object)
    holed.loc[::7, "length"] = ""
    holed.loc[1::9, "width"] = "-999"
    holed.loc[2::10, "kind"] = ""
    holed.to_csv(tmp_path / "table.csv", index=False)
    return truth


def test_as_a_process(process, table, tmp_path):
    ended = process("impute", "table.csv", "--index", "id", "--na", "-999", *SHORT)
    assert ended.code == 0
    assert ended.out == "filled 22 of 180 cells, in 3 columns\nwrote table_imputed.csv\n"
    assert all(line.startswith("note: ") for line in ended.err.splitlines())
    found = pd.read_csv(tmp_path / "table_imputed.csv", dtype={"id": str})
    assert not found.isna().any().any()
    assert np.abs(found["length"] - table["length"]).max() < 2.0
    assert (found["kind"] == table["kind"]).mean() > 0.95


def test_what_is_filled_and_what_is_not(skbnp, table, tmp_path):
    ended = skbnp(
        *("impute", "table.csv", "--drop", "id", "--missing-values", "-999", *SHORT),
        *("--output", "full.csv", "--std", "std.csv", "--multiple", "2", "--quiet"),
    )
    assert (ended.code, ended.out) == (0, "")
    cells = {
        name: pd.read_csv(tmp_path / f"{name}.csv", dtype=str, keep_default_na=False)
        for name in ("table", "full", "full_1", "full_2", "std")
    }
    given = cells["table"]
    holes = given.isin(["", "-999"])
    for name in ("full", "full_1", "full_2"):
        found = cells[name]
        assert found.columns.tolist() == given.columns.tolist()
        # Letter by letter: 003 and 7.50 too.
        assert (found == given)[~holes].fillna(True).all().all()
        assert not found.isin(["", "-999"]).any().any()
    # Draws differ from one another as they do from the means.
    length = [cells[name]["length"][holes["length"]] for name in ("full", "full_1", "full_2")]
    assert (length[0] != length[1]).all() and (length[1] != length[2]).all()
    std = cells["std"].astype(float)
    assert std.columns.tolist() == ["length", "width", "kind"]
    assert ((std > 0) == holes[std.columns]).all().all()


def test_parquet(skbnp, table, tmp_path):
    frame = table.set_index("id")
    frame.loc["003", "length"] = np.nan
    frame.astype({"kind": "category"}).to_parquet(tmp_path / "table.parquet")
    assert skbnp("impute", "table.parquet", *SHORT, "--std", "std.parquet").code == 0
    found = pd.read_parquet(tmp_path / "table_imputed.parquet")
    assert found.index.equals(frame.index) and found["kind"].dtype == "category"
    assert not found.isna().any().any()
    assert pd.read_parquet(tmp_path / "std.parquet")["length"].gt(0).sum() == 1


def test_empty_columns_stay(skbnp, tmp_path):
    (tmp_path / "a.csv").write_text("a,b,c\n" + "1,,2.0\n3,,1.0\n,,2.5\n4,,0.5\n" * 3)
    ended = skbnp("impute", "a.csv", *SHORT)
    assert ended.code == 0 and "note: column 'b' has no value, and stays empty\n" in ended.err
    assert "filled 3 of 24 cells, in 1 columns" in ended.out
    found = pd.read_csv(tmp_path / "a_imputed.csv")
    assert found["b"].isna().all() and not found[["a", "c"]].isna().any().any()


@pytest.mark.parametrize(
    ("asked", "kind"), [("auto", "mixture"), ("mixture", "mixture"), ("tree", "tree")]
)
def test_which_model(skbnp, table, monkeypatch, asked, kind):
    seen = {}

    def fit_transform(self, X):
        seen.update(self.get_params())
        raise ValueError("no more")

    monkeypatch.setattr(BNPImputer, "fit_transform", fit_transform)
    options = [
        "--seed",
        "3",
        "--checkpoint",
        "kept",
        "--drop",
        "kind",
        "--columns",
        "length",
        "width",
    ]
    ended = skbnp("impute", "table.csv", "--model", asked, *SHORT, *options)
    assert ended.code == 2 and ended.err == "skbnp impute: table.csv: no more\n"
    assert isinstance(seen["estimator"], TreeFactorModel) == (kind == "tree")
    assert (seen["estimator__n_chains"], seen["estimator__n_draws"]) == (1, 20)
    assert (seen["estimator__random_state"], seen["random_state"]) == (3, 3)
    assert str(seen["estimator__checkpoint"]) == "kept"


def test_reports(skbnp, table, tmp_path):
    assert skbnp("impute", "table.csv", "--index", "id", *SHORT, "--report", "a.html").code == 0
    assert "length" in (tmp_path / "a.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.csv"], "cannot read none.csv: there is no such file"),
        (["whole.csv"], "whole.csv: there is no missing cell to fill"),
        (["nothing.csv"], "nothing.csv: there is no missing cell to fill"),
        (["rows.csv"], "rows.csv has no rows"),
        (["mixed.csv"], r"mixed.csv, column 'a' must hold numbers .*got 'x' in row 2: --na x"),
        (["table.csv", "--drop", "name"], "table.csv has no column 'name'"),
        (["table.csv", "--model", "tree", "--drop", "id"], "table.csv: .*column 'kind'"),
        (["table.csv", "--output", "table.csv"], "would overwrite the input table.csv"),
        (["table.csv", "--output", "link.csv"], "link.csv would overwrite the input table.csv"),
        (["dated.csv"], "dated.csv: column 'day' holds dates or times: --drop it"),
        (["table.csv", "--std", "table_imputed.csv"], "would overwrite that of --output"),
        (["table_1.csv", "--output", "table.csv", "--multiple", "1"], "overwrite the input"),
        (["table.csv", "--std", "std.txt.zip"], "--std std.txt.zip: the name of a table"),
    ],
)
def test_what_it_refuses(refused, table, tmp_path, arguments, message):
    (tmp_path / "whole.csv").write_text("a,b\n1,2\n3,4\n")
    (tmp_path / "nothing.csv").write_text("a,b\n,\n,\n")
    (tmp_path / "rows.csv").write_text("a,b\n")
    (tmp_path / "link.csv").hardlink_to(tmp_path / "table.csv")
    (tmp_path / "dated.csv").write_text("day,b\n2020-01-01,1\n2020-01-02,\n2020-01-03,3\n")
    (tmp_path / "mixed.csv").write_text("a,b\n1,\nx,4\n3,5\n")
    (tmp_path / "table_1.csv").write_text("a,b\n1,2\n3,\n")
    assert re.search(message, refused("impute", *arguments))
