"""A report as plain text for a terminal."""

from skbnp.markup import paragraphs, text_table


def page(report):
    """The whole report, in lines of less than 100 characters."""
    parts = [report.title + "\n" + "=" * len(report.title)]
    parts += [_section(section) for section in report.sections.values()]
    return "\n\n".join(parts) + "\n"


def _section(section):
    lines = [section.title, "-" * len(section.title), *paragraphs(section.sentences)]
    shown = section.table[: section.n_shown]
    if len(shown):
        lines += ["", text_table(list(shown))]
        left = len(section.table) - len(shown)
        if left:
            lines += paragraphs([f"({left} more in report.sections[{section.name!r}].table)"])
    return "\n".join(lines)
