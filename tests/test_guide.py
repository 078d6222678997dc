"""Every block of Python on the pages of the guide runs, in the order of the page.

Chains are short and data small here: what is looked at is that names, parameters and shapes on the
pages are those of the library. What a page leaves to its reader is in ``BEFORE``.
"""

import functools
import inspect
import re
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

import skbnp
from checks.callbacks import HAS_CALLBACKS

GUIDE = Path(__file__).resolve().parents[1] / "doc" / "user_guide"
BLOCK = re.compile(r"^( *)\.\. code-block:: python\n\n((?:\1    .*\n|\n)+)", re.M)

X = """
import numpy as np
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from skbnp import DirichletProcessMixture, TreeFactorModel
X, y = load_iris(return_X_y=True)
X, X_new, X_test = X[::3].copy(), X[1::15], X[2::15]
X[::9, 1] = np.nan
"""
FRAME = (
    X
    + """
import pandas as pd
people = pd.DataFrame(X, columns=["height", "weight", "q1", "q2"])
people["region"] = np.array(["north", "south"])[np.arange(len(people)) % 2]
people["children"] = np.arange(len(people)) % 3
new_people = people.iloc[:3]
"""
)
# Page -> what the reader of the page has.
BEFORE = {
    "cibp_belief_net": "",
    "command_line": X + 'DirichletProcessMixture().fit(X).save("people.skbnp")\n',
    "deep_scale_model": "",
    "dirichlet_process_mixture": FRAME
    + """
from skbnp.laws import ShiftedBetaNegativeBinomial
from skbnp.plot import MergeTreeDisplay, TraceDisplay
from skbnp.processes import mfm
""",
    "icp_conv_classifier": "from skbnp.samplers import ICPConvSampler\n",
    "icp_network": "",
    "imputer": X
    + """
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
n, k = 50, 2
def analyse(table):
    slope = np.polyfit(table[:, 2], table[:, 3], 1, cov=True)
    return slope[0], np.diag(slope[1])
""",
    "infinite_factor_clusterer": "",
    "long_runs": X + "import arviz\nimport skbnp.mcmc\n",
    "pictures": FRAME
    + """
table = people[["height", "weight"]].rename(columns={"height": "age", "weight": "height"})
mixture = DirichletProcessMixture().fit(table)
""",
    "posterior": FRAME
    + """
import arviz
import xarray
frame = people[["height", "weight"]].rename(columns={"height": "width"})
""",
    "reports": FRAME + "animals = people\n",
    "tables": FRAME
    + """
from sklearn.compose import ColumnTransformer
questions = ["q1", "q2"]
others = new_people
table = people.assign(id=np.arange(len(people)), seen_on="2030-01-31")
table.to_csv("people.csv", index=False)
""",
    "tree_factor_model": """
import numpy as np
from sklearn.datasets import load_digits
X_whole = load_digits().data[:150] + np.random.default_rng(0).uniform(size=(150, 64))
X_test, X = X_whole[:5], X_whole.copy()
X[np.random.default_rng(1).random(X.shape) < 0.3] = np.nan
Phi = np.random.default_rng(2).normal(size=(8, 64))
v = X_test @ Phi.T
""",
}
# What would take long here, or is elsewhere: pattern -> what stands in its place.
SHORTER = {
    r"n_(warmup|draws)=\d+": r"n_\1=14",
    r"posterior_\[(\d), \d+\]": r"posterior_[\1, 3]",
    r"predict_draws=\d+": "predict_draws=2",
    r"n_tables=\d+": "n_tables=3",
    r"make_moons\(\d+": "make_moons(60",
    r"\[rows\[:100\]\]": "[rows[:60]]",
    r"\[rows\[100:\]\]": "[rows[140:]]",
    r"order\[:400\]\], images\[order\[400:500\]\]": "order[:50]], images[order[400:403]]",
    r"train_size=500": "train_size=100, test_size=10",
    r"ICPConvClassifier\(random": "ICPConvClassifier(n_architectures=2, predict_draws=10, "
    "sampler=ICPConvSampler(n_steps=5, n_start_steps=10), random",
    r"F\[200:\], 100": "F[200:], 3",
    r"X = load_digits\(\)\.data\n": "X = load_digits().data[:200]\n",
    r'diag"\)\)\n': 'diag")).fit(X)\n',  # BNPImputer(estimator=...)
    r"fit\(load_iris\(\)\.data\)": "fit(X)",
    r"\.multiple\(20": ".multiple(3",
    'backend="loky"': 'backend="threading"',
    r'Client\("scheduler:8786"\)': "Client(processes=False, n_workers=1, dashboard_address=None)",
}
ESTIMATORS = [getattr(skbnp, name) for name in skbnp.__all__ if name[0].isupper()]
SETTINGS = {"n_chains": 2, "n_warmup": 6, "n_draws": 14}


def blocks(page):
    """The code of a page, one text."""
    found = []
    for indent, text in BLOCK.findall((GUIDE / f"{page}.rst").read_text(encoding="utf-8") + "\n"):
        found.append(re.sub(f"^{indent}    ", "", text, flags=re.M))
    return found


def with_short_chains(init):
    """The constructor of an estimator, with other defaults."""
    known = inspect.signature(init).parameters
    settings = {name: value for name, value in SETTINGS.items() if name in known}

    @functools.wraps(init)
    def shortened(self, **given):
        init(self, **(settings | given))

    return shortened


def of_this_arviz(code):
    """Without the lines that are for the other line of ArviZ."""
    import arviz

    other = r"# ArviZ 0\.23" if int(arviz.__version__.split(".")[0]) >= 1 else r"# ArviZ 1\.x"
    return re.sub(rf"^.*{other}.*\n", "", code, flags=re.M)


@pytest.mark.parametrize("page", sorted(BEFORE))
def test_the_code_of_the_guide_runs(page, tmp_path, monkeypatch):
    if page == "long_runs" and not HAS_CALLBACKS:
        pytest.skip("shows progress by callbacks")
    monkeypatch.chdir(tmp_path)
    for estimator in ESTIMATORS:
        monkeypatch.setattr(estimator, "__init__", with_short_chains(estimator.__init__))
    code = "\n".join(blocks(page))
    for pattern, shorter in SHORTER.items():
        code = re.sub(pattern, shorter, code)
    if "arviz" in BEFORE[page]:
        code = of_this_arviz(code)
    names = {"__name__": "guide"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so short a run has not converged
        exec(compile(BEFORE[page], f"{page}: before", "exec"), names)
        exec(compile(code, f"{page}.rst", "exec"), names)
    plt.close("all")
    assert all(np.isfinite(names[name]).all() for name in ("filled",) if name in names)


def test_no_page_is_left_out():
    pages = {path.stem for path in GUIDE.glob("*.rst")}
    # Buckets and clusters of machines that only their owners have: tests/collections instead.
    pages.remove("rows_beyond_memory")
    assert {page for page in pages if blocks(page)} == set(BEFORE)
