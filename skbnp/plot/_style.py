"""The style of all pictures, and what all displays share."""

from functools import wraps
from typing import NamedTuple

# Okabe & Ito's palette, told apart with any colour vision; without yellow, too faint for lines,
# and sky blue, which cannot be told from a faint point of the first blue.
COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#000000")
GREY = "#8C8C8C"
# The next one each time the colours are used up.
MARKERS = ("o", "s", "D", "^", "v", "P")
LINES = ("-", "--", ":", "-.")
HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "oooo")
LINE_LENGTH = 30  # characters of a name
SEPARATORS = " _-./:,;"


def style():
    """The style of the pictures, as a dictionary of matplotlib's parameters.

    Displays draw in it wherever they make their own figure, and leave the global parameters as
    they are; on axes that are given, the style of these rules. For pictures of one's own beside
    them: ``plt.style.use(style())``, or ``with plt.style.context(style()):``.

    Returns
    -------
    parameters : dict of str to object
        Figures of 150 dots per inch with a layout that keeps labels within them; text in SVG and
        PDF stays text, which a figure editor can change; lines take the six colours of Okabe and
        Ito's palette that are told apart with any colour vision, then the same in dashes.

    Examples
    --------
    >>> from skbnp.plot import style
    >>> style()["svg.fonttype"]
    'none'
    """
    cycler = import_pyplot().cycler
    return {
        "figure.dpi": 150,
        "savefig.dpi": 150,
        "figure.figsize": (6.0, 4.0),
        "figure.constrained_layout.use": True,
        "svg.fonttype": "none",
        "pdf.fonttype": 42,
        "ps.fonttype": 42,
        "font.size": 9.0,
        "axes.titlesize": "medium",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.prop_cycle": cycler(linestyle=LINES) * cycler(color=COLORS),
        "image.interpolation": "nearest",
        "legend.frameon": False,
        "lines.linewidth": 1.2,
    }


def save_figure(figure, *paths, **savefig_kw):
    """Write a picture to files in the style of the package.

    Parameters
    ----------
    figure : matplotlib Figure or display
        A display stands for the figure that it has drawn.
    *paths : str or path
        One file each, whose suffix says the format: .svg and .pdf are vectors with their text as
        text, .png has 150 dots per inch.
    **savefig_kw : dict
        Passed to ``Figure.savefig``, such as ``dpi``.

    Raises
    ------
    TypeError
        If there is no figure, as with a display that is not drawn yet.

    Examples
    --------
    >>> import os
    >>> import tempfile
    >>> from skbnp.plot import ClusterCountDisplay, save_figure
    >>> display = ClusterCountDisplay([[3, 3, 4], [3, 3, 3]]).plot()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_figure(display, os.path.join(folder, "clusters.svg"))
    """
    import_pyplot()
    from matplotlib import rc_context
    from matplotlib.figure import FigureBase

    figure = getattr(figure, "figure_", figure)
    if not isinstance(figure, FigureBase):
        raise TypeError(
            f"figure must be a figure, or a display that is drawn, got {type(figure).__name__}"
        )
    with rc_context(style()):
        for path in paths:  # a part of a figure has the whole as its figure, which can be written
            figure.figure.savefig(path, **savefig_kw)


def styled(plot):
    """Let ``plot`` of a display draw in the style where it makes its own figure."""

    @wraps(plot)
    def wrapper(self, *, ax=None, **options):
        if ax is not None:
            return plot(self, ax=ax, **options)
        import_pyplot()
        from matplotlib import rc_context

        with rc_context(style()):
            return plot(self, ax=None, **options)

    return wrapper


class Look(NamedTuple):
    """What tells a class from others in a picture, as `class_look` has it.

    Attributes
    ----------
    color, marker, linestyle, hatch : str
        As matplotlib takes them.
    """

    color: str
    marker: str
    linestyle: str
    hatch: str


def class_look(place):
    """Colour, marker, line and hatch of a class, the same in every picture.

    Parameters
    ----------
    place : int >= 0
        The number of the class. Each six classes go through the colours; the next six have
        another marker, line and hatch: 36 points and bars and 24 lines are all different.

    Returns
    -------
    look : Look
        A named tuple of ``color``, ``marker``, ``linestyle`` and ``hatch``, strings of matplotlib.

    Examples
    --------
    >>> from skbnp.plot import class_look
    >>> class_look(0).color, class_look(7).color, class_look(7).marker
    ('#0072B2', '#E69F00', 's')
    """
    turn, place = divmod(int(place), len(COLORS))
    shapes = (shapes[turn % len(shapes)] for shapes in (MARKERS, LINES, HATCHES))
    return Look(COLORS[place], *shapes)


# -- names


def short_name(name, longest):
    """A name on one line, without its middle beyond ``longest`` characters.

    The beginning and the end say more than either alone: columns often share one of them.
    """
    name = " ".join(str(name).split())
    if len(name) > longest:
        head = longest // 2
        name = f"{name[:head]}…{name[len(name) - (longest - 1 - head) :]}"
    # Text between two dollars would be read as a formula, and what begins with a line not be shown.
    return (" " if name.startswith("_") else "") + name.replace("$", r"\$")


def wrapped_name(name, width=LINE_LENGTH):
    """A name on one line or two of at most ``width`` characters, broken where words end."""
    name = short_name(name, 2 * width)
    if len(name) <= width:
        return name
    ends = [at + 1 for at in range(len(name) - width - 1, width) if name[at] in SEPARATORS]
    end = max(ends, default=width)
    return f"{name[:end].rstrip()}\n{name[end:].lstrip()}"


# -- what displays do


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


def frame_image(ax):
    """Draw a thin line around an image, and no scales.

    Parameters
    ----------
    ax : matplotlib Axes
    """
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set(visible=True, linewidth=0.6, color=GREY)


def size_in_points(ax):
    """Width and height of the axes."""
    box = ax.get_window_extent()
    return 72.0 / ax.figure.dpi * box.width, 72.0 / ax.figure.dpi * box.height
