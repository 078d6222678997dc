"""The map of estimators: questions on the left, kinds of data beside them, estimators."""

import matplotlib.pyplot as plt
from matplotlib.patches import FancyBboxPatch

from skbnp.plot import class_look, style

# Question, where it is treated -> (kind of data, estimator)
QUESTIONS = {
    ("Fill missing cells", "../tutorials/index.html#missing-cells"): [
        ("before another model", "BNPImputer"),
        ("a table of few columns", "DirichletProcessMixture"),
        ("a wide table of numbers", "TreeFactorModel"),
        ("images of one kind", "CIBPBeliefNet"),
        ("one picture with holes", "TreeFactorModel"),
    ],
    ("Find clusters", "../tutorials/index.html#clusters"): [
        ("few columns of any kind", "DirichletProcessMixture"),
        ("tens to a thousand real columns", "TreeFactorModel"),
        ("clusters differ in what varies", "InfiniteFactorClusterer"),
    ],
    ("Estimate a density", "../auto_examples/icp_network/plot_fantasies.html"): [
        ("clusters of simple shapes", "DirichletProcessMixture"),
        ("wide tables", "TreeFactorModel"),
        ("curved shapes, few columns", "ICPNetwork"),
    ],
    ("See how columns depend\non each other", "../tutorials/index.html#networks"): [
        ("which may act on which", "ICPNetwork"),
        ("large and small together", "DeepScaleModel"),
    ],
    (
        "Predict a target\nand its uncertainty",
        "../auto_examples/icp_network/plot_regression_architecture.html",
    ): [
        ("numbers", "ICPNetworkRegressor"),
        ("classes", "ICPNetworkClassifier"),
        ("classes of images", "ICPConvClassifier"),
    ],
}
GUIDES = {
    "BNPImputer": "imputer",
    "CIBPBeliefNet": "cibp_belief_net",
    "DeepScaleModel": "deep_scale_model",
    "DirichletProcessMixture": "dirichlet_process_mixture",
    "ICPConvClassifier": "icp_conv_classifier",
    "ICPNetwork": "icp_network",
    "ICPNetworkClassifier": "icp_network",
    "ICPNetworkRegressor": "icp_network",
    "InfiniteFactorClusterer": "infinite_factor_clusterer",
    "TreeFactorModel": "tree_factor_model",
}
# Left and right end of each column of boxes.
QUESTION, DATA, ESTIMATOR = (0.0, 2.7), (3.3, 6.5), (7.1, 10.3)


def box(ax, ends, y, text, color, address, weight="normal"):
    left, right = ends
    ax.add_patch(
        FancyBboxPatch(
            (left, y - 0.3), right - left, 0.6, boxstyle="round,pad=0,rounding_size=0.12",
            facecolor=color, alpha=0.18, edgecolor="none", url=address,
        )
    )  # fmt: skip
    ax.text(
        (left + right) / 2, y, text, ha="center", va="center", weight=weight, url=address
    )  # fmt: skip


def draw():
    """The figure; its boxes are links, written relative to the page it stands on."""
    with plt.style.context([style(), {"svg.fonttype": "none", "svg.hashsalt": "map"}]):
        n_lines = sum(map(len, QUESTIONS.values()))
        figure, ax = plt.subplots(figsize=(9, 0.46 * n_lines + 0.9), layout="constrained")
        y = 0.0
        for i, ((question, address), answers) in enumerate(QUESTIONS.items()):
            color = class_look(i).color
            middle = y - 0.75 * (len(answers) - 1) / 2
            box(ax, QUESTION, middle, question, color, address, "bold")
            for data, estimator in answers:
                guide = f"../user_guide/{GUIDES[estimator]}.html"
                box(ax, DATA, y, data, color, guide)
                api = f"../generated/skbnp.{estimator}.html"
                box(ax, ESTIMATOR, y, estimator, color, api, "bold")
                arrows = ((QUESTION[1], DATA[0], middle), (DATA[1], ESTIMATOR[0], y))
                for start, end, height in arrows:
                    ax.annotate(
                        "", (end - 0.03, y), (start + 0.03, height),
                        arrowprops={"arrowstyle": "->", "color": color, "linewidth": 1.2},
                    )  # fmt: skip
                y -= 0.75
            y -= 0.3
        heads = ((QUESTION, "What do you want?"), (DATA, "From what?"), (ESTIMATOR, "Take"))
        for ends, title in heads:
            ax.text(sum(ends) / 2, 0.65, title, ha="center", va="center", style="italic")
        ax.set(xlim=(-0.1, 10.4), ylim=(y + 0.5, 0.95))
        ax.axis("off")
        figure.canvas.draw()
    return figure
