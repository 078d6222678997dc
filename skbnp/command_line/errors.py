"""What a command ends with, in words of the command line."""

import ast
import re
import shlex
from contextlib import contextmanager
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
    # Of `cluster` alone.
    (r" for covariance_type='full' without a covariance_prior", ""),
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
    (r"\bX\b", "the table"),
]


class BadInput(Exception):
    """Wrong usage, or a file that a command cannot take: a message of one line."""


def in_words(message):
    """What an estimator says, with options and files where it names parameters and X."""
    for pattern, replacement in _WORDS:
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
