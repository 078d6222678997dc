"""Files hold what fit has found and nothing else, in numbers that mean something."""

import warnings
from functools import cache

import numpy as np
import pytest
from sklearn import config_context

from checks.answers import answers, assert_same_answers
from checks.documents import Document
from contract.registry import DEFAULTS, SHORTEST, UNSUPERVISED, VARIED, others_slow
from skbnp.mcmc import io

pytestmark = pytest.mark.filterwarnings("ignore")
each = pytest.mark.parametrize("setting", others_slow(VARIED, DEFAULTS), ids=str)
# NaN marks a missing cell there, -inf one below the detection limit, and infinitely many degrees
# of freedom are no tails.
MAY_HOLD = {"X": {"nan", "-inf"}, "table": {"nan"}, "visible": {"nan"}}
MAY_HOLD |= {"tail_df": {"inf"}, "hyper": {"inf"}}
# Variances of missing cells, where a component has no second moment.
MAY_HOLD |= dict.fromkeys(["_training_cells", "missing_variance", "imputed_square"], {"inf"})


@pytest.fixture(autouse=True)
def files_need_not_survive(monkeypatch):
    """No waiting for the disk."""
    monkeypatch.setattr("os.fsync", lambda descriptor: None)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A file of an estimator fitted under a setting, made once."""
    directory, found = tmp_path_factory.mktemp("files"), {}

    def save(setting):
        if setting.name not in found:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = setting.fit(setting.table(), n_warmup=1, n_draws=1)
            found[setting.name] = directory / setting.name
            model.save(found[setting.name])
        return found[setting.name]

    return save


def some(places, n=12):
    """A few of the arrays of a file, spread over it."""
    return places[:: max(1, len(places) // n)]


@cache
def content_of(path, kind):
    """What is in a file; not to be changed."""
    return io.read(path, f"fitted {kind.__name__}", kind._types_in_files())


def spoiled(path, to, kind, change):
    """A copy of a file after a change to its content."""
    content = content_of(path, kind)
    content = content | {"fitted": content["fitted"].copy()}
    change(content)
    io.write(to, f"fitted {kind.__name__}", content, kind._types_in_files())
    return to


@pytest.mark.parametrize("setting", [one for one in DEFAULTS if one in UNSUPERVISED], ids=str)
def test_a_hole_in_a_column_that_does_not_vary(setting, tmp_path):
    X = np.column_stack([setting.table(), np.full(24, 4.0)])
    if setting.takes_holes:
        X[5, 3] = np.nan
    try:
        model = setting.fit(X, **SHORTEST)
    except ValueError as error:
        assert "constant column" in str(error)
        return
    model.save(tmp_path / "file")
    loaded = setting.kind.load(tmp_path / "file")
    assert_same_answers(answers(loaded, X), answers(model, X))
    model.posterior_.to_arviz()


@each
def test_a_file_comes_back_as_it_was(setting, saved, tmp_path):
    model = setting.kind.load(saved(setting))
    model.save(tmp_path / "again")
    one, other = Document(saved(setting)), Document(tmp_path / "again")
    assert one.tree == other.tree
    for name, array in one.arrays.items():
        np.testing.assert_array_equal(array, other.arrays[name])


@each
@pytest.mark.parametrize("name", ["extra_", "coclustering_", "predict", "_sampler", "__class__"])
def test_attributes_that_are_not_of_the_estimator(setting, saved, tmp_path, name):
    def change(content):
        content["fitted"][name] = 1.0

    path = spoiled(saved(setting), tmp_path / "file", setting.kind, change)
    with pytest.raises(io.FileFormatError, match=f"it sets '{name}'"):
        setting.kind.load(path)


@each
def test_attributes_of_another_type_or_missing(setting, saved, tmp_path):
    fitted = content_of(saved(setting), setting.kind)["fitted"]
    for name in fitted:

        def other_type(content, name=name):
            content["fitted"][name] = "text" if name[:5] not in ("init_", "algor", "visib") else 1

        def missing(content, name=name):
            del content["fitted"][name]

        path = spoiled(saved(setting), tmp_path / "file", setting.kind, other_type)
        with pytest.raises(io.FileFormatError, match=f"its {name} is a "):
            setting.kind.load(path)
        # What a file of 0.1 does not have is found by what it has.
        of_older = ("expected_loss_", "n_chains_", "power_")
        if name not in (*setting.kind._not_always_fitted, *of_older):
            path = spoiled(saved(setting), tmp_path / "file", setting.kind, missing)
            with pytest.raises(io.FileFormatError, match=f"it has no {name}"):
                setting.kind.load(path)


@each
def test_what_fit_has_not_set_is_not_saved(setting, saved, tmp_path):
    model = setting.kind.load(saved(setting))
    model.note_ = "mine"
    with pytest.raises(TypeError, match="note_ cannot be saved"):
        model.save(tmp_path / "file")
    assert not (tmp_path / "file").exists()


def requests_of(model):
    """What each method may ask of metadata routing, and does."""
    routing = model.get_metadata_routing()
    methods = [name[4:-8] for name in dir(model) if name[:4] + name[-8:] == "set__request"]
    return {method: dict(getattr(routing, method).requests) for method in methods}


@each
def test_requests_of_metadata_are_kept(setting, saved, tmp_path):
    model = setting.kind.load(saved(setting))
    asked = requests_of(model)
    with config_context(enable_metadata_routing=True):
        for method, names in asked.items():
            values = dict(zip(names, ["alias", True, False], strict=False))
            getattr(model, f"set_{method}_request")(**values)
    asked_now = requests_of(model)
    assert asked_now != asked or not asked
    # Whether routing is on there is not asked.
    model.save(tmp_path / "file")
    loaded = setting.kind.load(tmp_path / "file")
    assert requests_of(loaded) == asked_now
    loaded.save(tmp_path / "again")
    assert Document(tmp_path / "file").tree == Document(tmp_path / "again").tree


WRONG_REQUESTS = {
    "another method": {"fit": {"sample_weight": True}},
    "no method": {"output; import os": {}},
    "another argument": {"score": {"weight": True}},
    "no alias": {"score": {"sample_weight": "1 weight"}},
    "a number": {"score": {"sample_weight": 2}},
    "a list": [1],
}


@pytest.mark.parametrize("requests", WRONG_REQUESTS.values(), ids=WRONG_REQUESTS)
def test_requests_of_metadata_that_cannot_be(requests, saved, tmp_path):
    (setting,) = (setting for setting in VARIED if setting.name == "icp-classifier")

    def change(content):
        content["requests"] = requests

    path = spoiled(saved(setting), tmp_path / "file", setting.kind, change)
    with pytest.raises(io.FileFormatError, match="file is damaged"):
        setting.kind.load(path)


@each
def test_numbers_that_are_not_finite(setting, saved, tmp_path):
    document, random = Document(saved(setting)), np.random.default_rng(0)

    def refused(names):
        return {"nan", "inf", "-inf"}.difference(*(MAY_HOLD.get(name, ()) for name in names))

    places = [
        place
        for place in document.places
        if place[1].startswith("float") and "fitted" in place[0] and place[3] and refused(place[0])
    ]
    for names, dtype, start, size in some(places):
        place = start + random.integers(size)
        value = random.choice(sorted(refused(names)))
        document.write_with(tmp_path / "file", dtype, place, value)
        with pytest.raises(io.FileFormatError, match="file"):
            setting.kind.load(tmp_path / "file")


@each
def test_integers_out_of_range(setting, saved, tmp_path):
    document, random = Document(saved(setting)), np.random.default_rng(0)
    # Classes may be any numbers, and a state is looked at when a chain goes on from it.
    places = [
        place
        for place in document.places
        if document.arrays[place[1]].dtype.kind in "iu"
        and "fitted" in place[0]
        and place[3]
        and not {"classes_", "ends", "acceptance"} & set(place[0])
    ]
    for _, dtype, start, size in some(places):
        place, limits = start + random.integers(size), np.iinfo(dtype)
        for value in {limits.min, limits.max} - {document.arrays[dtype][place], 0}:
            document.write_with(tmp_path / "file", dtype, place, value)
            with pytest.raises(io.FileFormatError, match="file"):
                setting.kind.load(tmp_path / "file")


@each
def test_counts_out_of_range(setting, saved, tmp_path):
    fitted = content_of(saved(setting), setting.kind)["fitted"]
    for name in (name for name, value in fitted.items() if type(value) is int):
        for value in (-1, 10**9):
            # How many proposals were refused may be any number.
            if (name, value) == ("n_guard_rejections_", 10**9):
                continue

            def change(content, name=name, value=value):
                content["fitted"][name] = value

            path = spoiled(saved(setting), tmp_path / "file", setting.kind, change)
            with pytest.raises(io.FileFormatError, match="file is damaged"):
                setting.kind.load(path)


@each
def test_acceptance_that_cannot_be(setting, saved, tmp_path):
    document = Document(saved(setting))
    for names, dtype, start, _ in document.places:
        if "acceptance" in names:
            document.write_with(tmp_path / "file", dtype, start, -1)
            break
    else:
        pytest.skip("no move counts what it accepts")
    with pytest.raises(io.FileFormatError, match=f"the acceptance of {names[-1]} is"):
        setting.kind.load(tmp_path / "file")


@each
def test_checkpoints_with_numbers_that_are_not_finite(setting, tmp_path):
    X = setting.table()
    (tmp_path / "runs").mkdir()
    setting.fit(X, checkpoint=tmp_path / "runs")
    (path,) = (tmp_path / "runs").iterdir()
    document = Document(path)
    places = [
        place
        for place in document.places
        if place[1].startswith("float") and place[3] and not MAY_HOLD.keys() & set(place[0])
    ]
    for names, dtype, start, _ in some(places, 5):
        document.write_with(path, dtype, start, np.nan)
        with pytest.raises(io.FileFormatError, match=f"{names[-1]} holds nan"):
            setting.fit(X, checkpoint=tmp_path / "runs", n_draws=5)
