"""What all displays share: the import of matplotlib and the colours."""

# Okabe & Ito's palette, told apart with any colour vision; without yellow, too faint for lines,
# and sky blue, which cannot be told from a faint point of the first blue.
COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#000000")
GREY = "#8C8C8C"


def import_pyplot():
    """matplotlib.pyplot, or an ImportError that says how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "skbnp.plot needs matplotlib: install it with `pip install 'skbnp[plot]'`"
        ) from error
    return plt


def hide_frame(ax):
    """Leave only the two spines that carry the scales."""
    ax.spines[["top", "right"]].set_visible(False)
