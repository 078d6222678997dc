"""What a report is made of: sections with sentences, tables, pictures and verdicts."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from types import MappingProxyType

from skbnp.reports import html, text

# Steps that "what to do next" names, at most.
_MOST_STEPS = 4
# From the worst to the best.
_ORDER_OF_TRUST = ("no", "with care", "yes")
_BEGINS = {"yes": "To be trusted", "with care": "With care", "no": "Not to be trusted yet"}


@dataclass(frozen=True)
class Picture:
    """A picture that is drawn when it is asked for.

    Parameters
    ----------
    title : str
    draw : callable
        ``draw(figure)`` draws into an empty matplotlib figure.
    size : tuple of two float
        Width and height in inches.
    """

    title: str
    draw: Callable
    size: tuple = (6.0, 4.0)

    def figure(self):
        """The picture as a matplotlib figure.

        Returns
        -------
        figure : matplotlib.figure.Figure

        Raises
        ------
        ImportError
            Without matplotlib, which comes with ``pip install 'skbnp[plot]'``.
        """
        try:
            from matplotlib.figure import Figure
        except ImportError as error:
            raise ImportError(
                "pictures need matplotlib: install it with `pip install 'skbnp[plot]'`"
            ) from error
        figure = Figure(figsize=self.size, layout="constrained")
        self.draw(figure)
        return figure

    def png(self, dpi=100):
        """The picture as the bytes of a PNG file.

        Parameters
        ----------
        dpi : float, default=100

        Returns
        -------
        png : bytes

        Raises
        ------
        ImportError
            Without matplotlib.
        """
        file = BytesIO()
        with warnings.catch_warnings():
            # A letter that the font lacks is an empty box: the tables have the name.
            warnings.filterwarnings("ignore", r"Glyph .* missing from")
            self.figure().savefig(file, format="png", dpi=dpi)
        return file.getvalue()


@dataclass(frozen=True)
class Verdict:
    """How far one part of what was found can be trusted.

    Parameters
    ----------
    part : str
        Of what was found.
    trust : {"yes", "with care", "no"}
    why : str
        A figure, in words.
    remedy : str
        What helps, as a step of its own; empty where nothing needs to be done.
    """

    part: str
    trust: str
    why: str
    remedy: str = ""


@dataclass(frozen=True)
class Section:
    """One part of a report, as data.

    Parameters
    ----------
    name : str
        By which it is found in the report.
    title : str
    sentences : tuple of str
        What it says, derived from its data.
    table : list of dict
        Records with the same keys; empty without a table.
    n_shown : int or None
        How many records text and HTML show, from the first; None shows all.
    pictures : tuple of Picture
    verdicts : tuple of Verdict
        What it contributes to "how far to trust it".
    steps : tuple of str
        What it contributes to "what to do next", after the remedies of its verdicts.
    is_urgent : bool
        Whether its steps come before those of all other sections.
    in_short : str
        What the summary at the top says of it.
    """

    name: str
    title: str
    sentences: tuple = ()
    table: list = ()
    n_shown: int | None = None
    pictures: tuple = ()
    verdicts: tuple = ()
    steps: tuple = ()
    is_urgent: bool = False
    in_short: str = ""


class Report:
    """What an estimator found, how sure that is, and what to do next.

    As text by ``print(report)``, as HTML in a notebook or by `to_html`, as data by `to_frame` and
    `sections`.

    Parameters
    ----------
    title : str
    sections : sequence of Section
        In their order. Others are made of what they say in short, of their verdicts and steps:
        "summary", the first, "trust" and "next", the last.

    Attributes
    ----------
    title : str
    sections : mapping of str to Section
        By their names, in their order.
    """

    def __init__(self, title, sections):
        made = [_summary(sections), *sections, _trust(sections), _next(sections)]
        self.title = title
        self.sections = MappingProxyType({one.name: one for one in made if one is not None})

    def to_html(self):
        """The report as a complete HTML page, its pictures within.

        Returns
        -------
        page : str
            Where matplotlib is missing there are no pictures, and it says so.
        """
        return html.page(self)

    def to_frame(self):
        """The tables of all sections as one.

        Returns
        -------
        frame : pandas.DataFrame
            One row per record, the first column, ``section``, saying of which table it is; NaN in
            columns that this table has not.

        Raises
        ------
        ImportError
            Without pandas.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                "to_frame needs pandas: install it with `pip install pandas`; report.sections "
                "holds the same tables as lists of dicts"
            ) from error
        records = [
            {"section": section.name} | record
            for section in self.sections.values()
            for record in section.table
        ]
        return pd.DataFrame.from_records(records)

    def __str__(self):
        return text.page(self)

    def __repr__(self):
        return f"<Report: {self.title}; sections: {', '.join(self.sections)}>"

    def _repr_html_(self):
        return html.fragment(self)


def _summary(sections):
    """What was found and how far to trust it, in few lines."""
    found = [section.in_short for section in sections if section.in_short]
    if not found:
        return None
    verdicts = [verdict for section in sections for verdict in section.verdicts]
    for trust, begin in _BEGINS.items():
        parts = [verdict.part for verdict in verdicts if verdict.trust == trust]
        found += [f"{begin}: {'; '.join(parts)}."] if parts else []
    if _next(sections) is not None:
        found.append("The last part says what to do next.")
    return Section("summary", "In short", tuple(found))


def _trust(sections):
    """What can be trusted and what cannot, the worst first."""
    verdicts = [verdict for section in sections for verdict in section.verdicts]
    if not verdicts:
        return None
    verdicts.sort(key=lambda verdict: _ORDER_OF_TRUST.index(verdict.trust))
    parts = {
        trust: [f"{one.part} ({one.why})" for one in verdicts if one.trust == trust]
        for trust in _ORDER_OF_TRUST
    }
    sentences = [
        f"{begin}: {'; '.join(parts[trust])}." for trust, begin in _BEGINS.items() if parts[trust]
    ]
    table = [
        {"part": verdict.part, "trust": verdict.trust, "why": verdict.why} for verdict in verdicts
    ]
    return Section("trust", "How far to trust it", tuple(sentences), table, n_shown=0)


def _next(sections):
    """What to do next: remedies of what is not to be trusted, then what sections propose."""
    verdicts = [verdict for section in sections for verdict in section.verdicts if verdict.remedy]
    verdicts.sort(key=lambda verdict: _ORDER_OF_TRUST.index(verdict.trust))
    steps = [step for section in sections if section.is_urgent for step in section.steps]
    steps += [verdict.remedy for verdict in verdicts]
    steps += [step for section in sections for step in section.steps]
    steps = _once(steps)[:_MOST_STEPS]
    if not steps:
        return None
    table = [{"step": place + 1, "what": step} for place, step in enumerate(steps)]
    sentences = tuple(f"{place + 1}. {step}" for place, step in enumerate(steps))
    return Section("next", "What to do next", sentences, table, n_shown=0)


def _once(steps):
    """The steps without those that one before has said, maybe beside something else."""
    kept = []
    for step in steps:
        words = step.rstrip(".")
        words = words[:1].lower() + words[1:]
        if not any(words in one[:1].lower() + one[1:] for one in kept):
            kept.append(step)
    return kept
