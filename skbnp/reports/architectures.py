"""Networks of maps that classify images: which architectures were found."""

from skbnp.markup import counted, listed, number
from skbnp.reports.page import Section, Verdict
from skbnp.reports.supervised import HONEST
from skbnp.reports.words import spread


def section(traces, shapes, is_live, n_classes, power=1.0):
    """What architectures look like.

    Parameters
    ----------
    traces : dict of str to ndarray of shape (n_chains, n_draws)
        What is counted, in words.
    shapes : list of tuple
        Height, width and channels of each node of the reference draw, output and image first.
    is_live : ndarray of shape (n_nodes,)
        Which of them see the image.
    n_classes : int
    power : float
        What probabilities are raised to.
    """
    shown = [f"{spread(trace)} {what}" for what, trace in traces.items()]
    height, width, channels = shapes[1]
    image = f"images of {height} x {width} pixels"
    image += "" if channels == 1 else f" and {channels} channels"
    sentences = [
        f"The networks tell {counted(n_classes, 'class', 'classes')} from {image}. Architectures "
        f"of the draws have {listed(shown)} (in 90% of the draws).",
        "Architectures are judged by how likely labels are that were kept apart, under weights "
        "that were trained for some steps: they are ones that work, and how probable each of them "
        "is stays unknown.",
    ]
    if power > 1.0:
        sentences.append(
            f"Averages of probabilities are raised to the power {number(power, 2)} and made to sum "
            "to one again: training images that weights had not seen showed them to be too even."
        )
    records = [
        {"node": number(node), "height": h, "width": w, "channels": c}
        for node, ((h, w, c), live) in enumerate(zip(shapes, is_live, strict=True))
        if live and node > 1
    ]
    verdicts = (
        Verdict("architectures", "with care", "their posterior is an approximation"),
        Verdict(
            "how well it predicts new images", "no",
            "a score on the images of fit would be too good; nothing else is known here", HONEST,
        ),
    )  # fmt: skip
    return Section(
        "architectures", "What was found: architectures", tuple(sentences), records, n_shown=12,
        verdicts=verdicts, in_short=sentences[0],
    )  # fmt: skip
