"""The picture of the page: questions on the left, kinds of data beside them, estimators."""

import matplotlib.pyplot as plt
from matplotlib.patches import FancyBboxPatch

from skbnp.plot import class_look, style

# Question -> (kind of data, estimator)
QUESTIONS = {
    "Fill missing cells": [
        ("before another model", "BNPImputer"),
        ("a table of few columns", "DirichletProcessMixture"),
        ("a wide table of numbers", "TreeFactorModel"),
        ("images of one kind", "CIBPBeliefNet"),
        ("one picture with holes", "TreeFactorModel"),
    ],
    "Find clusters": [
        ("few columns of any kind", "DirichletProcessMixture"),
        ("tens to a thousand real columns", "TreeFactorModel"),
        ("clusters differ in what varies", "InfiniteFactorClusterer"),
    ],
    "Estimate a density": [
        ("clusters of simple shapes", "DirichletProcessMixture"),
        ("wide tables", "TreeFactorModel"),
        ("curved shapes, few columns", "ICPNetwork"),
    ],
    "See how columns depend\non each other": [
        ("which may act on which", "ICPNetwork"),
        ("large and small together", "DeepScaleModel"),
    ],
    "Predict a target\nand its uncertainty": [
        ("numbers", "ICPNetworkRegressor"),
        ("classes", "ICPNetworkClassifier"),
        ("classes of images", "ICPConvClassifier"),
    ],
}
# Left and right end of each column of boxes.
QUESTION, DATA, ESTIMATOR = (0.0, 2.7), (3.3, 6.5), (7.1, 10.3)


def box(ax, ends, y, text, color, weight="normal"):
    left, right = ends
    ax.add_patch(
        FancyBboxPatch(
            (left, y - 0.3), right - left, 0.6, boxstyle="round,pad=0,rounding_size=0.12",
            facecolor=color, alpha=0.18, edgecolor="none",
        )
    )  # fmt: skip
    ax.text((left + right) / 2, y, text, ha="center", va="center", weight=weight)


with plt.style.context(style()):
    n_lines = sum(map(len, QUESTIONS.values()))
    figure, ax = plt.subplots(figsize=(9, 0.46 * n_lines + 0.9), layout="constrained")
    y = 0.0
    for i, (question, answers) in enumerate(QUESTIONS.items()):
        color = class_look(i).color
        middle = y - 0.75 * (len(answers) - 1) / 2
        box(ax, QUESTION, middle, question, color, "bold")
        for data, estimator in answers:
            box(ax, DATA, y, data, color)
            box(ax, ESTIMATOR, y, estimator, color, "bold")
            for start, end, height in ((QUESTION[1], DATA[0], middle), (DATA[1], ESTIMATOR[0], y)):
                ax.annotate(
                    "", (end - 0.03, y), (start + 0.03, height),
                    arrowprops={"arrowstyle": "->", "color": color, "linewidth": 1.2},
                )  # fmt: skip
            y -= 0.75
        y -= 0.3
    for ends, title in ((QUESTION, "What do you want?"), (DATA, "From what?"), (ESTIMATOR, "Take")):
        ax.text(sum(ends) / 2, 0.65, title, ha="center", va="center", style="italic", color="0.4")
    ax.set(xlim=(-0.1, 10.4), ylim=(y + 0.5, 0.95))
    ax.axis("off")
