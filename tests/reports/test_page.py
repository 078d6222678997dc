"""A report as text, HTML and data."""

import base64
import builtins
import re
import warnings
from html.parser import HTMLParser

import numpy as np
import pytest

from skbnp.markup import counted, listed, measured, number, percent, text_table
from skbnp.reports import Picture, Report, Section, Verdict
from skbnp.reports.words import spread

VERDICTS = (
    Verdict("the size", "yes", "seen twice"),
    Verdict("the colour", "no", "nobody looked", "Look at the colour."),
    Verdict("the weight", "with care", "a poor balance", "Weigh it again."),
)


def draw(figure):
    figure.subplots().plot([1, 2])


@pytest.fixture
def report():
    records = [{"name <b>": f"row {k}", "value": k / 7} for k in range(9)]
    first = Section(
        "first", "The first & best", ("A < B.", "long " * 60), records, n_shown=4,
        pictures=(Picture("A picture", draw),), steps=("Ask somebody.",),
    )  # fmt: skip
    second = Section("second", "The second", ("All is well.",), verdicts=VERDICTS)
    urgent = Section("third", "The third", steps=("Run.",), is_urgent=True)
    return Report("A report", [first, second, urgent])


def without(monkeypatch, module):
    """Let imports of a module fail, as where it is not installed."""
    plain = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name.partition(".")[0] == module:
            raise ImportError(name)
        return plain(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)


class Balanced(HTMLParser):
    """Raises where a tag is closed that is not the last one open."""

    def __init__(self, text):
        super().__init__()
        self.open, self.text = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def test_what_to_trust_and_to_do_comes_last(report):
    assert list(report.sections) == ["first", "second", "third", "trust", "next"]
    said = report.sections["trust"].sentences
    assert said[0] == "To be trusted: the size (seen twice)."
    assert said[1].startswith("With care: the weight") and said[2].startswith("Not to be trusted")
    assert [one["trust"] for one in report.sections["trust"].table] == ["no", "with care", "yes"]
    # Urgent steps, then remedies from the worst on, then what else there is to do.
    steps = [one["what"] for one in report.sections["next"].table]
    assert steps == ["Run.", "Look at the colour.", "Weigh it again.", "Ask somebody."]


def test_a_step_is_there_once():
    """Also where another says it beside something else."""
    verdict = Verdict("the size", "no", "of all rows", "Leave it out.")
    chains = Section(
        "chains", "Chains", steps=("Fit again: leave it out (by hand).",), is_urgent=True
    )
    again = Section("more", "More", verdicts=(verdict,), steps=("Leave it out.", "Ask somebody."))
    steps = [one["what"] for one in Report("A report", [again, chains]).sections["next"].table]
    assert steps == ["Fit again: leave it out (by hand).", "Ask somebody."]


def test_a_report_of_nothing_to_do_has_no_steps():
    assert list(Report("Short", [Section("one", "One")]).sections) == ["one"]


def test_text_is_narrow_and_whole(report):
    text = str(report)
    assert max(map(len, text.splitlines())) <= 100
    assert text.startswith("A report\n========\n")
    assert "row 3" in text and "row 4" not in text
    assert "(5 more in report.sections['first'].table)" in text
    assert "1. Run." in text and repr(report).startswith("<Report: A report")


def test_html_is_escaped_balanced_and_self_contained(report):
    page = report.to_html()
    found = Balanced(page)
    assert not found.open and page.startswith("<!DOCTYPE html>")
    assert "A < B." in found.text and "name <b>" in found.text
    assert "<b>" not in page and not re.search(r'(src|href)="(?!data:)', page)
    (data,) = re.findall(r'src="data:image/png;base64,([^"]+)"', page)
    assert base64.b64decode(data).startswith(b"\x89PNG")
    fragment = report._repr_html_()
    assert not Balanced(fragment).open and "<html" not in fragment and fragment in page


def test_without_matplotlib_there_are_no_pictures_and_it_says_so(report, monkeypatch):
    without(monkeypatch, "matplotlib")
    page = report.to_html()
    assert "<img" not in page and "pip install &#x27;skbnp[plot]&#x27;" in page
    with pytest.raises(ImportError, match="pictures need matplotlib"):
        report.sections["first"].pictures[0].png()


def test_frame(report, monkeypatch):
    frame = report.to_frame()
    assert frame["section"].value_counts().to_dict() == {"first": 9, "next": 4, "trust": 3}
    np.testing.assert_array_equal(frame["value"][:9], np.arange(9) / 7)
    assert frame["part"].notna().sum() == 3
    without(monkeypatch, "pandas")
    with pytest.raises(ImportError, match="to_frame needs pandas"):
        report.to_frame()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"), (12345, "12,345"), (0.0, "0"), (0.12345, "0.123"), (1234.5, "1,230"),
        (float("nan"), "-"), (float("inf"), "infinite"), (1.5e-7, "1.5e-07"), (True, "True"),
        (-2.5, "-2.50"), (np.float32(0.5), "0.500"), (np.int64(7), "7"),
    ],
)  # fmt: skip
def test_numbers(value, text):
    assert number(value) == text


def test_counts_are_told_as_whole_numbers_and_once():
    assert spread(np.ones(20)) == "1"
    assert spread(np.repeat([1, 2], [95, 5])) == "1"
    assert spread(np.repeat([1, 2], [90, 10])) == "1 to 2"
    assert spread(np.repeat([900, 1200], 50)) == "900 to 1,200"


def test_values_of_a_column_are_told_to_a_tenth_of_its_spread():
    assert measured(2013.42, 3.1) == "2013.4"
    assert measured(5.8432, 0.43) == "5.84"
    assert measured(1234.5, 250.0) == "1230"
    assert measured(-0.001, 1.0) == "0.0"
    assert measured(1.23456, 0.0) == "1.23"
    # Two digits of what is small beside the spread, by one more decimal at most.
    assert [measured(x, 150.0) for x in (5.1, 12.6, 0.9)] == ["5", "13", "0"]
    assert [measured(x, 0.15) for x in (0.0031, -0.0449)] == ["0.003", "-0.045"]


def test_shares_are_none_or_all_only_where_they_are():
    assert [percent(x) for x in (0.0, 1.0, 0.5, 0.004, 0.996)] == [
        *("0%", "100%", "50%", "under 1%", "over 99%"),
    ]


def test_words():
    assert counted(1, "row") == "1 row" and counted(2, "branch", "branches") == "2 branches"
    assert listed("ab") == "a and b" and listed("abc") == "a, b and c" and listed("a") == "a"
    assert listed(range(12), 3) == "0, 1, 2 and 9 more"


def test_tables_name_the_columns_that_find_no_room():
    record = {f"a rather long name {k}": k for k in range(10)}
    text = text_table([record], width=80)
    assert max(map(len, text.splitlines())) <= 80 and "not shown here" in text
    assert all(name in " ".join(text.split()) for name in record)


def test_letters_that_the_font_lacks_are_no_warning():
    def draw(figure):
        figure.subplots().set_title("\N{CJK UNIFIED IDEOGRAPH-6C34} \N{GRINNING FACE}")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Picture("A picture", draw).png().startswith(b"\x89PNG")
