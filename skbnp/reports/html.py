"""A report as HTML: a fragment for notebooks, or a page of its own."""

from base64 import b64encode
from html import escape

from skbnp.markup import STYLE, html_table


def fragment(report):
    """The report as a div with its style."""
    return f'<style>{STYLE}</style>\n<div class="skbnp">\n{_body(report)}\n</div>'


def page(report):
    """The report as a complete page that refers to nothing outside it."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(report.title)}</title>\n</head>\n<body>\n{fragment(report)}\n"
        "</body>\n</html>\n"
    )


def _body(report):
    parts = [f"<h1>{escape(report.title)}</h1>"]
    missing = None
    for section in report.sections.values():
        parts.append(f"<h2>{escape(section.title)}</h2>")
        parts += [f"<p>{escape(sentence)}</p>" for sentence in section.sentences]
        shown = list(section.table[: section.n_shown])
        if shown:
            parts.append(html_table(shown))
            left = len(section.table) - len(shown)
            if left:
                where = escape(f"report.sections[{section.name!r}].table")
                parts.append(f"<p>({left} more in <code>{where}</code>)</p>")
        for picture in section.pictures:
            try:
                parts.append(_figure(picture))
            except ImportError as error:
                missing = error
    if missing is not None:
        parts.append(f"<p>There are no pictures here: {escape(str(missing))}</p>")
    return "\n".join(parts)


def _figure(picture):
    data = b64encode(picture.png()).decode("ascii")
    title = escape(picture.title)
    return (
        f'<figure><img alt="{title}" src="data:image/png;base64,{data}">'
        f"<figcaption>{title}</figcaption></figure>"
    )
