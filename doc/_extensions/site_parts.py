"""What the pages need beside published extensions of Sphinx."""

import importlib
import io
import os
import pkgutil
import re
import runpy
import urllib.request
import warnings
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import matplotlib.image
import matplotlib.pyplot as plt
import numpy as np
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from skbnp.plot import class_look, style

ROOT = Path(__file__).resolve().parents[2]
# Published tables and photographs, which are not part of the package.
DATA = Path(os.environ.get("SKBNP_DATA", ROOT.parent / "shared" / "data")).resolve()
logger = logging.getLogger(__name__)


def reachable(inventories, seconds=3):
    """The entries of ``intersphinx_mapping`` whose site answers; without a network, none."""
    found = {}
    for name, address in inventories.items():
        try:
            with urllib.request.urlopen(f"{address}objects.inv", timeout=seconds):
                found[name] = (address, None)
        except OSError:
            return found  # no network: do not wait for the others
    return found


def import_all(package):
    """Import compiled modules before autodoc reads their stubs in their place."""
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def draw_thumbnail(path):
    """A picture for examples that draw none: three components of a mixture."""
    x = np.linspace(-4, 5, 400)
    with plt.style.context(style()):
        figure, ax = plt.subplots(figsize=(4, 2.8))
        for i, (center, width) in enumerate([(-1.8, 0.8), (0.6, 0.6), (2.4, 1.1)]):
            density = np.exp(-0.5 * ((x - center) / width) ** 2) / width
            ax.fill_between(x, density, color=class_look(i).color, alpha=0.35, linewidth=0)
        ax.axis("off")
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=100)
    plt.close(figure)
    return str(path)


class LinkedFigure(SphinxDirective):
    """The figure that ``draw()`` of a script returns, within the page, so that its links work."""

    required_arguments = 1  # the script, relative to the page
    option_spec = {"alt": directives.unchanged_required}

    def run(self):
        path, full = self.env.relfn2path(self.arguments[0])
        self.env.note_dependency(path)
        text = io.StringIO()
        with plt.rc_context({"svg.fonttype": "none", "svg.hashsalt": "map"}):
            figure = runpy.run_path(full)["draw"]()
            figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
            plt.close(figure)
        svg = text.getvalue()
        svg = svg[svg.index("<svg") :].replace(' target="_blank"', "")
        alt = escape(self.options.get("alt", ""), quote=True)
        html = f'<div class="linked-figure" role="group" aria-label="{alt}">{svg}</div>'
        return [nodes.raw("", html, format="html")]


# Labels of scikit-learn's own pages, in docstrings that are inherited from it.
THEIRS = {"accuracy_score", "r2_score"}


def plain_text(app, env, node, content):
    """What another project explains stays text where that project cannot be reached."""
    return content if node.get("reftarget") in THEIRS else None


def skip_routing(app, what, name, thing, skip, options):
    """Leave out the methods that scikit-learn's metadata routing generates."""
    return True if re.fullmatch(r"set_\w+_request", name) else None


def number_equations(app, doctree):
    """Let the number of an equation be its label: T4.2 is the second of section 4 of the tree's.

    Code and tests cite equations by these numbers, so that they are written by hand.
    """
    equations = app.env.get_domain("math").equations
    for node in doctree.findall(nodes.math_block):
        if node.get("label"):
            node["number"] = node["label"]
            equations[node["label"]] = (app.env.docname, node["label"])


class Arguments:
    """What an example of the gallery finds on its command line: where the real data are."""

    def __call__(self, gallery_conf, script_vars):
        real_data = Path(script_vars["src_file"]).parent.name == "real_data"
        return ["--data", str(DATA)] if real_data else []

    def __repr__(self):
        return "Arguments()"  # no address: a changed one would build all pages again


NOT_RUN = """Not run: this site was built without the data of this page, which are not part of the
package. Its code is shown without results."""


def say_what_was_not_run(app, doctree):
    """A page of real data that was built without them says so below its title."""
    if app.env.docname.startswith("auto_examples/real_data/plot_") and app.config.real_data_not_run:
        title = next(iter(doctree.findall(nodes.title)))
        title.parent.insert(
            title.parent.index(title) + 1, nodes.warning("", nodes.paragraph("", NOT_RUN))
        )


DEFINITION = re.compile(r"^(?:cpdef [\w. ]*?|def |cdef class |class )(\w+)(?=[(:])", re.M)


def kernel_source(app, module):
    """Source and places of the definitions of a compiled module, which Sphinx cannot read."""
    path = ROOT.joinpath(*module.split(".")).with_suffix(".pyx")
    if not path.is_file():
        return None
    source = path.read_text(encoding="utf-8")
    tags = {}
    for match in DEFINITION.finditer(source):
        rest = re.search(r"^(?=\S)(?!\))", source[match.end() :], re.M)
        end = match.end() + rest.start() if rest else len(source)
        kind = "class" if "class" in match.group() else "def"
        first = source.count("\n", 0, match.start()) + 1
        tags[match.group(1)] = (
            kind,
            first,
            first + source[match.start() : end].rstrip().count("\n"),
        )
    return source, tags


def no_figure_is_blank(app, exception):
    """A figure of the gallery that shows nothing is a fault of its example."""
    if exception is None and app.builder.format == "html":
        for path in sorted(Path(app.srcdir, "auto_examples").rglob("images/sphx_glr_*.png")):
            pixels = matplotlib.image.imread(path)[..., :3]
            if (abs(pixels - pixels[0, 0]).max(axis=-1) > 0.1).mean() < 0.005:
                logger.warning("%s shows next to nothing", path.relative_to(app.srcdir))


class Links(HTMLParser):
    """What a page links to, and the places on it that others may link to."""

    def __init__(self, path):
        super().__init__()
        self.targets, self.anchors = [], {""}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.anchors |= {attributes.get("id"), attributes.get("name")}
        if tag in ("a", "img", "link", "script"):
            target = attributes.get("src" if tag in ("img", "script") else "href")
            target = target or attributes.get("xlink:href")  # of a linked figure
            if target and not re.match(r"[a-z]+:|//", target):
                self.targets.append(unquote(target))


def links_resolve(app, exception):
    """Every link from a page to a page, a place on it, a picture or a file has its target."""
    if exception is not None or app.builder.format != "html":
        return
    files = Path(app.outdir).resolve().rglob("*.html")
    pages = {path: Links(path) for path in files if "_static" not in path.parts}
    for path, page in sorted(pages.items()):
        for target in sorted(set(page.targets)):
            name, _, anchor = target.partition("#")
            file = Path(path.parent, name.partition("?")[0]).resolve() if name else path
            found = file in pages and anchor in pages[file].anchors or file.is_file() and not anchor
            if not found:
                logger.warning(
                    "%s links to %s", path.relative_to(Path(app.outdir).resolve()), target
                )


def short_warning(message, category, filename, lineno, line=None):
    """Warnings on pages: without the place of the library on the machine that built them."""
    return f"{category.__name__}: {message}\n"


def warn_in_one_line(gallery_conf, filename):
    """Before each example, in whichever process runs it."""
    warnings.formatwarning = short_warning


def setup(app):
    """Sphinx calls this."""
    app.add_directive("linked-figure", LinkedFigure)
    app.connect("autodoc-skip-member", skip_routing)
    app.connect("doctree-read", number_equations)
    app.add_config_value("real_data_not_run", False, "env", bool)
    app.connect("doctree-read", say_what_was_not_run)
    app.connect("missing-reference", plain_text, priority=900)  # after intersphinx
    app.connect("viewcode-find-source", kernel_source)
    app.connect("build-finished", no_figure_is_blank)
    app.connect("build-finished", links_resolve, priority=900)  # when all files are there
    return {"parallel_read_safe": True}
