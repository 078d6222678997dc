"""What a command ends with, in words of the command line."""

import ast
import re
import shlex
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec


def _family_options(match):
    """``family={'sex': 'categorical'}`` as options, with quotes where a shell needs them."""
    try:
        pairs = ast.literal_eval(match.group(1)).items()
    except (ValueError, SyntaxError):  # names that are neither text nor numbers
        return match.group()
    return "--family " + " ".join(shlex.quote(f"{name}={family}") for name, family in pairs)


# What users of estimators write, and users of the command line.
_WORDS = [
    (r" \(\w+, the imputer's estimator, says so\.\)", ""),
    (r" Look at posterior_\.summary\(\)( and skbnp\.plot\.TraceDisplay)?\.", ""),
    (r"\bn_(warmup|draws|chains)=(\d+)", r"--\1 \2"),
    (r"\bn_(warmup|draws|chains)\b", r"--\1"),
    (r"\bfamily=(\{[^{}]*\})", _family_options),
    (
        r", by astype\('category'\) or the family 'categorical',",
        ", by --family COLUMN=categorical,",
    ),
    (r"\bfamily '(\w+)' takes them", r"--family COLUMN=\1 takes them"),
    (r" where family is 'auto'", ""),
    (r"\braise --draws or thin\b", "raise --draws"),
    (r", as by numpy\.unique\(X, axis=0\)", ""),
    # Of `cluster` alone.
    (r" for covariance_type='full'(?: without a covariance_prior)?", ""),
    (
        r"\bgive columns of few values another family\b",
        "make columns of few values names, by --family COLUMN=categorical",
    ),
    (r"\bname another family in family\b", "name another one by --family"),
    (
        r"\bstore='\w+' has room for (\d+) of the (\d+) draws, fewer than predict_draws=\d+:",
        r"there is room for \1 of the \2 draws:",
    ),
    (r"^labels_ has (\d+ clusters?)\b", r"there are \1"),
    (r"\bclusters like (.*?) of labels_,", r"clusters like \1,"),
    (
        r", not much more than merge_overlap=\S+: merge_tree_\.cut\(.*?\)\[component_labels_\] "
        r"keeps (\d+) apart",
        r", not much more than joins need: with a little less there would be \1",
    ),
    (r"\.? Look at skbnp\.plot\.MergeTreeDisplay(?: and coclustering\(joined=False\))?$", ""),
    (r"\bLook at predict_proba or coclustering\b", "Look at --probabilities"),
    (r"(only NaN in column\(s\) .*)", r"\1: --drop what is empty"),
    (r"\bremove them or use covariance_type=", "--drop them or use --covariance "),
    (r"\braise max_work \(.*? was spent\)", "name a longer --warmup"),
    (r"[;,] the warm-up ended when max_work=\S+ was spent", "; name a longer --warmup"),
    (r"--chains, and max_work in proportion\b", "--chains, with a --warmup as long as now"),
    (r"\bmissing_values=", "--na "),
    (r", or set merge_overlap=None", ""),
    (r"\blabels_ are component_labels_", "clusters are components"),
    (r",? (set it|or set one) as the index", r", \1 as the --index"),
    (r"\bdrop it\b", "--drop it"),
    (r": drop such columns\b", ": --drop such columns"),
    (r"(?<!')\bX\b(?!')", "the table"),
]
# Of a report: what is to be done in Python.
_WORDS_OF_REPORTS = [
    *_WORDS[:-1],
    (r"\bX (has|must)\b", r"the table \1"),
    (
        r" merge_overlap sets how much they must overlap(?:, and merge_tree_ has all joins)?; "
        r"where a join is near that limit,",
        " Where a join is near the limit for that,",
    ),
    (r"\bis up to merge_overlap: look at what was joined, by .*$", "is a matter of a limit."),
    (r" than of that in labels_, the same for all draws: see predict\(X\)\.", "."),
    (r" How far they overlap says skbnp\.plot\.MergeTreeDisplay\.", ""),
    (r", by skbnp\.plot\.[\w.]+(?: and [\w.]+)?\([^)]*\)", ", in the --picture"),
    (r"\bUse estimator\.predict_proba\(X\)(, the probabilities,)? in place of labels_",
     "Use --probabilities in place of clusters"),
]  # fmt: skip


class BadInput(Exception):
    """Wrong usage, or a file that a command cannot take: a message of one line."""


def in_words(message):
    """What an estimator says, with options and files where it names parameters and X."""
    return _reworded(message, _WORDS)


def report_in_words(report):
    """The same of a report."""

    def reworded(texts):
        return tuple(_reworded(text, _WORDS_OF_REPORTS) for text in texts)

    sections = []
    # Three more are made of these.
    made = ("summary", "trust", "next")
    for section in (one for name, one in report.sections.items() if name not in made):
        verdicts = (
            replace(one, why=reworded([one.why])[0], remedy=reworded([one.remedy])[0])
            for one in section.verdicts
        )
        sections.append(
            replace(
                section,
                sentences=reworded(section.sentences),
                steps=reworded(section.steps),
                in_short=reworded([section.in_short])[0],
                verdicts=tuple(verdicts),
            )
        )
    return type(report)(report.title, sections)


def text_of(report):
    """A report as text for a terminal."""
    return re.sub(r" in report\.sections\[\W\w+\W\]\.table\b", "", str(report))


def _reworded(message, words):
    for pattern, replacement in words:
        message = re.sub(pattern, replacement, message)
    return message


@contextmanager
def refusing(path):
    """Context in which what an estimator refuses is bad input, of the file at a path."""
    try:
        yield
    except (ValueError, TypeError, OSError) as error:
        raise BadInput(f"{path}: {in_words(str(error))}") from error


def require(*modules):
    """Raise a BadInput unless these modules are installed."""
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        # Pillow is imported by another name.
        names = " and ".join("Pillow" if name == "PIL" else name for name in missing)
        raise BadInput(f"needs {names}: install the extra, pip install 'skbnp[cli]'")
