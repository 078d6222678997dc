"""One style: 150 dots per inch, vectors with text, classes that differ, and no trace left."""

import importlib
import re
import sys

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from skbnp.plot import (
    ArchitectureDisplay,
    ClusterCountDisplay,
    ClusterDisplay,
    CoclusteringDisplay,
    CompletionDisplay,
    FeatureDisplay,
    NetworkDisplay,
    TraceDisplay,
    TreeDisplay,
    class_look,
    frame_image,
    save_figure,
    style,
)
from skbnp.plot._style import COLORS, short_name, wrapped_name

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(30, 2))
IMAGES = RNG.normal(size=(2, 6))
TREE = {
    "parent": np.array([-1, 0, 0]),
    "level": np.array([1, 2, 2]),
    "count": np.array([9, 7, 2]),
    "loadings": np.ones((3, 6)),
    "leaf_node": np.array([1, 2]),
    "leaf_count": np.array([7, 2]),
    "leaf_mean": IMAGES,
}
LONG = "a_very_long_name_of_a_column_from_a_sequencing_experiment_of_2021_replicate_2"
DISPLAYS = {
    "clusters": ClusterDisplay(POINTS, np.arange(30) % 13, names=(LONG, LONG)),
    "one column": ClusterDisplay(POINTS[:, :1], np.arange(30) % 13, names=(LONG,)),
    "categories": ClusterDisplay(
        np.column_stack([np.arange(30) % 8, np.arange(30) % 3]),
        [f"{LONG}{k}" for k in np.arange(30) % 5],
        names=("site", "way"),
        categories=([f"{k} {LONG}" for k in range(8)], [LONG, "b", "c"]),
    ),
    "count": ClusterCountDisplay(RNG.integers(1, 5, size=(2, 20))),
    "coclustering": CoclusteringDisplay(np.eye(4), np.arange(4)),
    "completion": CompletionDisplay(
        np.where(IMAGES > 0, np.nan, IMAGES), IMAGES, image_shape=(2, 3)
    ),
    "features": FeatureDisplay(IMAGES, image_shape=(2, 3), titles=["unit 1", "unit 2"]),
    "architecture": ArchitectureDisplay(
        [0.0, 1.0, 0.8, 0.3],
        [[1, 2], [2, 0], [3, 0]],
        [36, 100, 0],
        [(1, 1, 2), (2, 3, 1), (2, 3, 4), (1, 2, 8)],
        [True, True, True, False],
        maps={1: IMAGES[0].reshape(2, 3, 1)},
    ),
    "network": NetworkDisplay(
        [0, 0, 0, 1, 1],
        [[3, 0], [3, 1], [4, 2]],
        [1.0, -1.0, 2.0],
        n_visible=3,
        names=[LONG, "b", "c"],
    ),
    "trace": TraceDisplay({"log_joint": RNG.normal(size=(8, 20))}),
    "tree": TreeDisplay(TREE, image_shape=(2, 3)),
}


@pytest.mark.parametrize("name", DISPLAYS)
def test_own_figures_are_in_the_style_and_leave_no_trace(name):
    with mpl.rc_context({"font.size": 13.0, "figure.dpi": 80.0, "axes.spines.right": True}):
        before = dict(mpl.rcParams)
        display = DISPLAYS[name].plot()
        assert dict(mpl.rcParams) == before
    assert display.figure_.dpi == 150.0
    assert display.figure_.get_layout_engine() is not None
    figure, _ = plt.subplots()
    assert figure.dpi != 150.0


@pytest.mark.parametrize("name", DISPLAYS)
def test_all_text_is_within_the_figure(name):
    figure = DISPLAYS[name].plot().figure_
    figure.canvas.draw()
    texts = _texts(figure)
    assert len(texts) >= 3
    for text in texts:
        box = text.get_window_extent()
        assert -1 <= box.x0 and box.x1 <= figure.bbox.x1 + 1, text.get_text()
        assert -1 <= box.y0 and box.y1 <= figure.bbox.y1 + 1, text.get_text()


def _texts(figure):
    """All that is written; there are labels of ticks beyond the scale too, which are not drawn."""
    axes = [axis for ax in figure.axes for axis in (ax.xaxis, ax.yaxis)]
    of_ticks = {text for axis in axes for text in axis.findobj(mpl.text.Text)}
    of_ticks -= {axis.label for axis in axes}
    drawn = {tick.label1 for axis in axes for tick in axis._update_ticks()}
    found = [text for text in figure.findobj(mpl.text.Text) if text.get_visible()]
    found = [text for text in found if text not in of_ticks or text in drawn]
    return [text for text in found if text.get_text().strip()]


@pytest.mark.parametrize("name", ["clusters", "categories", "one column", "network"])
def test_tick_labels_and_names_do_not_overlap(name):
    display = DISPLAYS[name].plot()
    ax = display.ax_
    display.figure_.canvas.draw()
    groups = [
        [tick.label1 for tick in axis._update_ticks() if tick.label1.get_text()]
        for axis in (ax.xaxis, ax.yaxis)
    ]
    groups.append(getattr(display, "names_", []))
    assert sum(map(len, groups)) > 3
    for group in groups:
        boxes = [text.get_window_extent() for text in group]
        for t, box in enumerate(boxes):
            assert not any(box.overlaps(other) for other in boxes[t + 1 :])


def test_vectors_hold_text_and_pixels_are_150_to_the_inch(tmp_path):
    display = DISPLAYS["clusters"].plot()
    before = dict(mpl.rcParams)
    paths = [tmp_path / f"clusters.{kind}" for kind in ("svg", "pdf", "png")]
    save_figure(display, *paths)
    assert dict(mpl.rcParams) == before
    svg = paths[0].read_text()
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    assert "cluster 0  (3)" in [text.replace("\xa0", " ") for text in texts]
    assert not re.search(r'<g id="text_\d+">\s*<!--.*-->\s*<g', svg)  # letters as outlines
    assert b"/FontType 42" in paths[1].read_bytes() or b"/CIDFontType2" in paths[1].read_bytes()
    height, width = plt.imread(paths[2]).shape[:2]
    assert (width, height) == (6.0 * 150, 4.5 * 150)
    save_figure(display.figure_, paths[2], dpi=50)
    assert plt.imread(paths[2]).shape[1] == 300


def test_a_part_of_a_figure_stands_for_the_whole(tmp_path):
    part = plt.figure(figsize=(2, 1)).subfigures(1, 2)[0]
    display = DISPLAYS["count"].plot(ax=part.subplots())
    save_figure(display, tmp_path / "both.png", dpi=100)
    assert plt.imread(tmp_path / "both.png").shape[:2] == (100, 200)


def test_what_is_no_figure_is_refused(tmp_path):
    for thing in (ClusterDisplay(POINTS, np.zeros(30, int)), None, plt.subplots()[1]):
        with pytest.raises(TypeError, match="figure must be a figure, or a display that is drawn"):
            save_figure(thing, tmp_path / "x.png")


def test_given_axes_keep_their_own_style():
    with mpl.rc_context({"font.size": 17.0}):
        figure, ax = plt.subplots(dpi=80)
        display = DISPLAYS["clusters"].plot(ax=ax)
    assert figure.dpi == 80.0 and display.ax_.xaxis.label.get_fontsize() == 17.0


def test_importing_changes_nothing(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("skbnp.plot")]:
        monkeypatch.delitem(sys.modules, name)
    before = dict(mpl.rcParams)
    again = importlib.import_module("skbnp.plot")
    assert again.style is not style and again.style()["figure.dpi"] == 150
    assert dict(mpl.rcParams) == before


def test_the_style_is_for_pictures_of_ones_own():
    with plt.style.context(style()):
        figure, ax = plt.subplots()
        lines = [ax.plot([t, t])[0] for t in range(24)]
        assert figure.dpi == 150.0 and not ax.spines["top"].get_visible()
    looks = {(line.get_color(), line.get_linestyle()) for line in lines}
    assert len(looks) == 24
    assert [line.get_color() for line in lines[:6]] == list(COLORS)
    style()["font.size"] = 99.0
    assert style()["font.size"] < 99.0


def test_classes_differ_with_any_colour_vision():
    looks = [class_look(k) for k in range(36)]
    assert len({(look.color, look.marker) for look in looks}) == 36
    assert len({(look.color, look.hatch) for look in looks}) == 36
    assert len({(look.color, look.linestyle) for look in looks[:24]}) == 24
    # As one sees them without red or green: the shades of blue and of lightness differ.
    matrix = np.array([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]])
    seen = np.array([to_rgb(color) for color in COLORS]) @ matrix.T
    apart = np.linalg.norm(seen[:, np.newaxis] - seen, axis=2)[np.triu_indices(len(seen), 1)]
    assert apart.min() > 0.15


def test_names_are_shortened_in_the_middle():
    assert short_name("a\n b", 10) == "a b"
    assert short_name("abcdefghij", 10) == "abcdefghij"
    assert short_name("abcdefghijk", 10) == "abcde…hijk"
    assert short_name("_x", 10) == " _x"  # legends leave out what begins with a line
    assert short_name("a$b$", 10) == r"a\$b\$"
    lines = wrapped_name(LONG).split("\n")
    assert len(lines) == 2 and max(map(len, lines)) <= 30
    assert lines[0].startswith("a_very") and lines[1].endswith("replicate_2")
    assert wrapped_name("age at the first visit, in completed years") == (
        "age at the first visit, in\ncompleted years"
    )


def test_dollars_are_no_formulas():
    display = ClusterDisplay(POINTS, np.zeros(30, int), names=("cost in $", "$x_1$ of $")).plot()
    display.figure_.canvas.draw()
    assert display.ax_.get_xlabel() == r"cost in \$"


def test_images_have_a_frame_and_no_scales():
    figure, ax = plt.subplots()
    with plt.style.context(style()):
        ax.imshow(np.eye(2))
    frame_image(ax)
    assert len(ax.get_xticks()) == 0 and all(spine.get_visible() for spine in ax.spines.values())
