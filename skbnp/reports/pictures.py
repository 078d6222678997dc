"""The pictures of reports, each drawn into a figure when it is asked for."""

import numpy as np

from skbnp.plot._style import COLORS, hide_frame
from skbnp.plot.cluster_count import ClusterCountDisplay
from skbnp.plot.cluster_profile import ClusterProfileDisplay, figure_size
from skbnp.plot.coclustering import CoclusteringDisplay
from skbnp.plot.network import NetworkDisplay
from skbnp.plot.trace import TraceDisplay
from skbnp.reports.page import Picture
from skbnp.summaries.partitions import coclustering

# Rows that the picture of pairs shows, and bars and cells of other pictures, at most.
_MOST_ROWS, _MOST_BARS, _MOST_COLUMNS, _MOST_TRAITS = 200, 25, 30, 20


def cluster_count(n_blocks, nouns, title):
    """Posterior distribution of the number of blocks, chain by chain."""

    def draw(figure):
        ClusterCountDisplay(n_blocks, noun=nouns).plot(ax=figure.subplots())

    return Picture(title, draw, (5.0, 3.2))


def pairs(draws, labels, tables=None):
    """Which rows are together, in a sample of the rows."""

    def draw(figure):
        rows = np.arange(0, len(labels), -(-len(labels) // _MOST_ROWS))
        together = coclustering(draws, rows, tables=tables)
        display = CoclusteringDisplay(together, labels[rows], n_rows=len(labels))
        display.plot(ax=figure.subplots())

    return Picture("How often two rows are together; squares are the clusters", draw, (5.6, 4.8))


def profiles(found, partition, table):
    """Standardised differences of clusters, the columns that differ most."""

    def draw(figure):
        names = [
            table.trait(column, level)
            for column, level in zip(found.column, found.level, strict=True)
        ]
        sizes = np.bincount(partition.labels)
        display = ClusterProfileDisplay(
            found.difference, names, sizes, noun=partition.noun, max_columns=_MOST_TRAITS
        )
        display.plot(ax=figure.subplots())

    n_clusters, n_traits = found.difference.shape
    size = figure_size(n_clusters, min(n_traits, _MOST_TRAITS))
    title = f"How far the columns of each {partition.noun} are from those of all other rows"
    return Picture(title, draw, size)


def traces(traces, rhat):
    """Traces of the chains of what is reported."""

    def draw(figure):
        axes = figure.subplots(len(traces), 1, squeeze=False)[:, 0]
        TraceDisplay(traces, rhat=rhat).plot(ax=axes)

    return Picture("The chains, draw by draw: they should cover the same range", draw,
                   (7.0, 0.5 + 1.5 * len(traces)))  # fmt: skip


def matrix(values, rows, columns, title, label):
    """A heat map of numbers around zero."""
    values = np.asarray(values, dtype=np.float64)[:_MOST_COLUMNS, :_MOST_COLUMNS]
    rows, columns = rows[:_MOST_COLUMNS], columns[:_MOST_COLUMNS]

    def draw(figure):
        ax = figure.subplots()
        most = np.nanmax(np.abs(values), initial=0.0) or 1.0
        image = ax.imshow(values, cmap="RdBu_r", vmin=-most, vmax=most, aspect="auto")
        ax.set_xticks(range(len(columns)), columns, rotation=90)
        ax.set_yticks(range(len(rows)), rows)
        figure.colorbar(image, ax=ax, shrink=0.8, label=label)

    size = (3.5 + 0.28 * len(columns), 3.0 + 0.24 * len(rows))
    return Picture(title, draw, size)


def bars(values, names, title, label):
    """Horizontal bars, the first on top."""
    values, names = np.asarray(values)[:_MOST_BARS], list(names)[:_MOST_BARS]

    def draw(figure):
        ax = figure.subplots()
        places = np.arange(len(values))[::-1]
        ax.barh(places, values, color=COLORS[0], alpha=0.75)
        ax.set_yticks(places, names)
        ax.set_xlabel(label)
        hide_frame(ax)

    return Picture(title, draw, (6.0, 1.0 + 0.25 * len(values)))


def network(network):
    """The network of the reference draw."""

    def draw(figure):
        level = "order" if "order" in network else "layer"
        names = network["names"]
        display = NetworkDisplay(
            network[level], network["edges"], network["weights"],
            n_visible=len(names), names=names,
        )  # fmt: skip
        display.plot(ax=figure.subplots())

    return Picture("One of the networks, the draw of the highest probability", draw, (7.5, 5.0))
