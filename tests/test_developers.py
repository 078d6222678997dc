"""What the pages for developers tell to write, written: a move, a family, a model."""

import os
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import skbnp
from checks.dirichlet_process_mixture import enumerate_posterior, gaussian_prior, partition_z_scores
from checks.joint_distribution import assert_z_scores_small, paired_one_step
from checks.mutants import compiled
from contract.registry import Setting
from skbnp.dirichlet_process_mixture import _model, _sweep
from skbnp.dirichlet_process_mixture._sampler import Sampler

FOLDER = "../doc/developers"
ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "doc" / "developers"
sys.path.insert(0, str(PAGES))


def _compiled(name):
    """A kernel of a page.

    Cython goes on with the folders of the first kernel that a process compiles, and kernels of
    other tests include files of theirs.
    """
    try:
        return compiled(name, FOLDER)
    finally:
        if "Cython.Build.Dependencies" in sys.modules:
            sys.modules["Cython.Build.Dependencies"]._dep_tree = None


# Where the page puts the kernel.
KERNEL = "skbnp.likelihoods.conjugate.gamma_exponential"
sys.modules[KERNEL] = _compiled("gamma_exponential")

from exponential_prior import ExponentialPrior  # noqa: E402
from gaussian_columns import GaussianColumns  # noqa: E402
from gaussian_columns import _model as columns_model  # noqa: E402
from gaussian_columns._sampler import Means  # noqa: E402
from gaussian_columns._sampler import Sampler as ColumnsSampler  # noqa: E402

# -- a move


def moves_with_a_line(new, after):
    """The moves of a sweep, were that line of imports in ``_sweep.py`` after another."""
    lines = Path(_sweep.__file__).read_text().splitlines()
    place = next(i for i, line in enumerate(lines) if line.endswith(f" import {after}"))
    namespace = {"__name__": "sweep_with_a_line"}
    exec("\n".join([*lines[: place + 1], new, *lines[place + 1 :]]), namespace)
    return namespace["MOVES"]


def swapping(name):
    """The mixture's sampler with the move of the page, or a wrong one: one file and one line."""
    sys.modules["swap"] = _compiled("swap")
    moves = moves_with_a_line(f"from swap import {name}", after="SplitMerge")
    assert [move.NAME for move in moves][2:4] == ["split_merge", "swap"]
    return type("Swapping", (Sampler,), {"MOVES": {move.NAME: move for move in moves}})


def z_scores_of_swaps(name, n):
    prior = gaussian_prior("full", np.zeros(2), 0.5, 8.0, 4.0 * np.eye(2))
    kind = swapping(name)

    class Alone:
        def __init__(self, sampler):
            self.sampler = sampler

        def sweep(self):
            self.sampler.sweep_only("swap")

    def make(rng):
        state, X = _model.draw_joint(prior, 8, rng)
        state["concentration"] = 2.0
        bits = np.random.default_rng(rng.integers(2**62)).bit_generator
        start = {name: state[name] for name in ("concentration", "discount", "prior_scale")}
        return Alone(kind(X, prior, state["label"], bits, start=start, n_split_merge=0))

    def statistics(alone):
        sampler = alone.sampler
        X, label = sampler.completed_data(), sampler.labels
        sizes = np.bincount(label)[label]
        return {
            "log joint": sampler.log_joint(),
            "first two together": float(label[0] == label[1]),
            "size of the first": float(sizes[0]),
            "size x norm": float(sizes @ np.log1p((X**2).sum(axis=1))),
        }

    return paired_one_step(make, statistics, n, seed=1)


def test_the_move_of_the_page_is_right():
    assert_z_scores_small(z_scores_of_swaps("Swap", 3000))


@pytest.mark.slow
def test_a_wrong_one_is_noticed():
    z = z_scores_of_swaps("OneSided", 3000)
    assert max(map(abs, z.values())) > 6, z


def test_what_follows_from_a_move():
    """Counts, snapshots and single moves, without a line for them."""
    X = np.random.default_rng(0).normal(size=(20, 2))
    prior = gaussian_prior("full", np.zeros(2), 0.5, 8.0, 4.0 * np.eye(2))
    kind = swapping("Swap")
    one, other = (
        kind(X, prior, np.arange(20) % 3, np.random.PCG64(seed), n_split_merge=2)
        for seed in range(2)
    )
    for _ in range(10):
        one.sweep()
    accepted, proposed = one.acceptance()["swap"]
    assert 0 < accepted < proposed
    other.set_state(one.get_state())
    for _ in range(10):
        one.sweep()
        other.sweep()
    assert np.array_equal(one.labels, other.labels) and one.acceptance() == other.acceptance()


# -- a family

TIMES = np.array([[0.2, 1.0], [0.3, np.nan], [0.1, 0.6], [4.0, 9.0], [6.0, 3.0], [np.nan, 5.0]])
WAITING = _model.Prior(
    (ExponentialPrior(np.arange(2), np.array([1.5, 2.0]), np.array([1.0, 2.0])),),
    concentration=1.0,
)


def waiting_sampler(X, prior, label, seed=0, **options):
    return Sampler(X, prior, label, np.random.PCG64(seed), **options)


@pytest.mark.parametrize("algorithm", ["collapsed", "parallel"])
def test_the_family_of_the_page_by_enumeration(algorithm):
    exact = enumerate_posterior(TIMES, WAITING)
    options = dict(algorithm=algorithm, n_subset=1, n_split_merge=1)
    sampler = waiting_sampler(TIMES, WAITING, np.zeros(6, int), **options)
    z = partition_z_scores(sampler, lambda one: one.sweep(), exact, 8000)
    assert max(map(abs, z.values())) < 4, z
    state = {"label": sampler.labels, "concentration": 1.0, "discount": 0.0, "prior_scale": 1.0}
    assert sampler.log_joint() == pytest.approx(_model.log_joint(state, TIMES, WAITING))


@pytest.mark.parametrize(
    "algorithm", ["collapsed", pytest.param("parallel", marks=pytest.mark.slow)]
)
def test_the_family_of_the_page_paired(algorithm):
    def make(rng):
        state, X = _model.draw_joint(WAITING, 8, rng)
        seed = int(rng.integers(2**62))
        return waiting_sampler(X, WAITING, state["label"], seed, algorithm=algorithm, n_subset=3)

    def statistics(sampler):
        size = np.bincount(sampler.labels)[sampler.labels]
        return {
            "clusters": float(sampler.n_clusters),
            "size x time": float(size @ np.tanh(sampler.completed_data()).sum(axis=1)),
            "log joint": sampler.log_joint(),
        }

    assert_z_scores_small(paired_one_step(make, statistics, 2000, seed=1))


FILES = "dirichlet_process_mixture/families"
LINE = f"from skbnp.{FILES.replace('/', '.')}.exponential import ExponentialPrior\n"


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The library with two new files, kernel and family, and a line in the list of families."""
    root, package = tmp_path_factory.mktemp("library"), Path(skbnp.__file__).parent
    unseen = shutil.ignore_patterns("__pycache__", "*.pyx", "*.pxd")
    shutil.copytree(package, root / "skbnp", copy_function=os.symlink, ignore=unseen)
    (root / "skbnp" / FILES / "exponential.py").symlink_to(PAGES / "exponential_prior.py")
    # An extension module knows its name: this one was compiled under another.
    built = Path(_compiled("gamma_exponential").__file__)
    kernel = root.joinpath("skbnp", *KERNEL.split(".")[1:]).with_suffix(".py")
    kernel.write_text(
        "import sys\n"
        f"sys.path.append({str(built.parent)!r})\n"
        f"from {built.name.partition('.')[0]} import GammaExponential\n"
    )
    listed = root / "skbnp" / FILES / "__init__.py"
    before = listed.read_text()
    place = before.index("\n# isort: on") + 1
    listed.unlink()
    listed.write_text(before[:place] + LINE + before[place:])
    return root


def test_a_family_is_two_files_and_a_line(library, tmp_path):
    """All that users do, with waiting times beside the columns that there are."""
    code = f"import sys; sys.path.insert(0, {str(library)!r})\n{FACE}"
    command = [sys.executable, "-c", code, str(tmp_path / "file")]
    done = subprocess.run(command, cwd=library, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["all", "is", "well"]


FACE = """
import warnings
import numpy as np, pytest
from skbnp import DirichletProcessMixture
from skbnp.laws import Gamma
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
group = np.arange(80) % 2
X = np.column_stack([
    rng.exponential(np.where(group, 100.0, 1.0)), rng.normal(5.0 * group, 1.0),
    rng.exponential(np.where(group, 0.01, 1.0)), rng.poisson(3.0, 80),
])
X[rng.random(X.shape) < 0.1] = np.nan
names = ["exponential", "gaussian", "exponential", "poisson"]
short = dict(n_chains=2, n_warmup=20, n_draws=8, random_state=0)
for algorithm in ("collapsed", "parallel"):
    from skbnp.samplers import MixtureSampler
    sampler = MixtureSampler(algorithm=algorithm)
    model = DirichletProcessMixture(family=names, sampler=sampler, **short).fit(X)
    assert model.n_clusters_ == 2 and (np.bincount(model.labels_) > 30).all()
    assert list(model.families_) == names
    # Densities sum to one: over the times, all else missing.
    times = np.exp(np.linspace(-12, 14, 1001))
    rows = np.full((len(times), 4), np.nan)
    rows[:, 0] = times
    assert abs(np.trapezoid(np.exp(model.score_samples(rows)) * times, np.log(times)) - 1) < 1e-2
    filled, std = model.impute(X, return_std=True)
    holes = np.isnan(X)
    assert np.array_equal(filled[~holes], X[~holes]) and (filled[:, [0, 2]] > 0).all()
    assert np.isfinite(filled).all() and (std[holes] > 0).all()
    assert np.array_equal(model.X_imputed_, filled)
    for table in model.sample_missing(n_tables=3, random_state=1):
        assert (table[:, [0, 2]] > 0).all() and not np.isnan(table).any()
    for table in model.sample_missing(X[:5] * [2, 1, 2, 1], n_tables=2, random_state=1):
        assert (table[:, [0, 2]] > 0).all() and not np.isnan(table).any()
    drawn, labels = model.sample(30, random_state=2)
    assert (drawn[:, [0, 2]] > 0).all() and set(labels) <= {-1, 0, 1}
    assert (model.sample_prior(10, random_state=3)[0][:, 0] > 0).all()
    assert np.isfinite(model.posterior_.log_likelihood()).all()
    model.save(sys.argv[1])
    loaded = DirichletProcessMixture.load(sys.argv[1])
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
assert "exponential_prior : Gamma, default=Gamma(shape=3.0, rate=3.0)" in model.__doc__
assert '"exponential" (waiting times > 0)' in model.__doc__
other = DirichletProcessMixture(family=names, exponential_prior=Gamma(2, 9), **short).fit(X)
assert not np.array_equal(other.score_samples(X), model.score_samples(X))
for wrong, message in [
    (dict(exponential_prior=(2, 9)), "write exponential_prior=Gamma"),
    (dict(exponential_prior=Gamma(1, Gamma(1, 1))), "rate of exponential_prior must be a number"),
]:
    with pytest.raises(ValueError, match=message):
        DirichletProcessMixture(family=names, **short, **wrong).fit(X)
with pytest.raises(ValueError, match="X must hold times > 0 in a 'exponential' column, got -1"):
    DirichletProcessMixture(family="exponential", **short).fit([[1.0], [-1.0]])
print("all is well")
"""


# -- a law


def documented_changes():
    """Section -> file -> blocks of lines that the page of laws says to change."""
    found, section, file, before = {}, None, None, ""
    for line in (PAGES / "change_a_law.rst").read_text().splitlines():
        if re.fullmatch(r"-{5,}", line):
            section = found.setdefault(before, {})
        named = re.search(r"``([\w/]+\.pyx?)``", line)
        if named and (before.startswith("**") or line.startswith("**")):
            folder = next((Path(other).parent for other in section or {}), Path())
            path = Path(named[1])
            file = path if (ROOT / path).exists() else folder / path
            section[file] = [[]]
        elif line.startswith("    -"):
            section[file][-1].append(line[5:])
        elif file in (section or {}) and section[file][-1]:
            section[file].append([])
        before = line
    return found


@pytest.mark.parametrize("section", documented_changes())
def test_another_law_is_three_files(section):
    changed = documented_changes()[section]
    assert len(changed) == 3
    for file, blocks in changed.items():
        text = (ROOT / file).read_text()
        assert any(blocks), file
        for block in blocks:
            assert "\n".join(block) in text, (file, block)


# -- a model


SETTING = Setting("columns", GaussianColumns)
CHECKED = GaussianColumns(n_chains=2, n_warmup=5, n_draws=5, random_state=0)


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([CHECKED])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


class WrongMeans(Means):
    """The prior's precision left out of the mean's variance."""

    def run(self):
        before = self.state.prior
        self.state.prior = columns_model.Prior(1e8, before.shape, before.rate)
        status = super().run()
        self.state.prior = before
        return status


def z_scores_of_columns(kind, n=4000):
    prior = columns_model.Prior(1.0, 3.0, 3.0)
    holes = np.random.default_rng(5).random((6, 2)) < 0.2

    def make(rng):
        state, X = columns_model.draw_joint(prior, 6, 2, rng)
        bits = np.random.default_rng(rng.integers(2**62)).bit_generator
        sampler = kind(np.where(holes, np.nan, X), prior, bits)
        sampler.state.mean[:], sampler.state.precision[:] = state["mean"], state["precision"]
        return sampler

    def statistics(sampler):
        mean, log_precision = sampler.state.mean, np.log(sampler.state.precision)
        return {
            "mean": mean.sum(),
            "mean^2": mean @ mean,
            "log precision": log_precision.sum(),
            "log precision^2": log_precision @ log_precision,
            "product": (mean**2) @ log_precision,
            "log joint": sampler.log_joint(),
        }

    return paired_one_step(make, statistics, n, seed=1)


def test_the_sampler_of_the_page_is_right():
    assert_z_scores_small(z_scores_of_columns(ColumnsSampler))


def test_a_wrong_mean_is_noticed():
    wrong = type("Wrong", (ColumnsSampler,), {"MOVES": (WrongMeans, *ColumnsSampler.MOVES[1:])})
    assert max(map(abs, z_scores_of_columns(wrong).values())) > 6


def test_the_estimator_of_the_page(tmp_path):
    X = SETTING.table()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = SETTING.fit(X, n_draws=200)
        half = SETTING.fit(X, n_draws=100, warm_start=True)
        longer = half.set_params(n_draws=200).fit(X)
    loaded = GaussianColumns.load(fitted.save(tmp_path / "file") and tmp_path / "file")
    for other in (longer, loaded):
        assert np.array_equal(other.score_samples(X), fitted.score_samples(X))
    filled, std = fitted.impute(X, return_std=True)
    holes = np.isnan(X)
    assert np.array_equal(filled[~holes], X[~holes]) and (std[holes] > 0).all()
    assert np.abs(fitted.means_ - np.nanmean(X, axis=0)).max() < 0.2 * np.nanstd(X)
    assert fitted.sample(7, random_state=0).shape == (7, 3)


def test_files_that_the_page_of_questions_names_are_there():
    page = (PAGES / "where.rst").read_text(encoding="utf-8")
    named = re.findall(r"``([\w/]+\.(?:pyx?|rst))``", page)
    assert len(named) > 15
    for name in named:
        assert (ROOT / "skbnp" / name).is_file() or (ROOT / name).is_file(), name
