"""Labels as functions of a record, sums over cells, states and files of such chains."""

from dataclasses import replace

import numpy as np
import pytest

from checks.dirichlet_process_mixture import learned_prior
from checks.mixture_priors import mixed_prior
from checks.mixture_records import make_record_sampler
from skbnp import DirichletProcessMixture
from skbnp.dirichlet_process_mixture import _model
from skbnp.dirichlet_process_mixture._predictive import Rows, log_densities, log_weights
from skbnp.dirichlet_process_mixture._record_draws import given_others, packed, unpacked
from skbnp.dirichlet_process_mixture._training_rows import TrainingRows
from skbnp.dirichlet_process_mixture.records._elsewhere import RowsElsewhere
from skbnp.dirichlet_process_mixture.records._kernels import Kernels
from skbnp.dirichlet_process_mixture.records._service import RowsInMemory
from skbnp.dirichlet_process_mixture.records._slice import RowSlice
from skbnp.laws import Gamma, ShiftedBetaNegativeBinomial
from skbnp.samplers import MixtureSampler
from skbnp.units import Units

N, CELL = 300, 64
LAW_OF_COMPONENTS = ShiftedBetaNegativeBinomial(1.0, 4.0, 3.0)


def prior_of(kind):
    if kind == "mixed":
        return mixed_prior("full", concentration=1.0, prior_scale=1.0)
    guess = {"full": np.eye(3), "diag": np.ones(3), "spherical": np.array(1.0)}[kind]
    return learned_prior(kind, np.zeros(3), guess, concentration=Gamma(1.0, 1.0), discount=0.0)


def table(kind, holes=0.15, seed=0):
    """A prior and rows of five blobs or of the prior, with holes."""
    rng, prior = np.random.default_rng(seed), prior_of(kind)
    if kind == "mixed":
        X = _model.draw_joint(prior, N, rng)[1]
    else:
        X = rng.normal(0, 3, (5, 3))[rng.integers(0, 5, N)] + rng.normal(size=(N, 3))
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    X[rng.random(X.shape) < holes] = np.nan
    return prior, X


def sampler_of(kind, seed=1, cell=CELL, **options):
    prior, X = table(kind)
    label = np.arange(N) % 7
    options = {"n_subset": 80, "n_split_merge": 3} | options
    return make_record_sampler(X, prior, label, seed, cell=cell, **options), prior, X


class Cells:
    """Rows that are read anew for every question, as those of a collection."""

    def __init__(self, X):
        self.X, (self.n_samples, self.n_features) = X, X.shape

    def run(self, task, argument, combine):
        value = None
        for first in range(0, len(self.X), CELL):
            rows = (first, min(first + CELL, len(self.X)))
            found = task(self.X[slice(*rows)].copy(), rows, argument)
            value = found if value is None else combine(value, found)
        return value


KINDS = ["full", "diag", "spherical", "mixed"]


@pytest.mark.parametrize("kind", KINDS)
def test_statistics_are_those_of_the_labels(kind):
    """After sweeps in which rows, splits, merges and prior have changed."""
    sampler, prior, _ = sampler_of(kind)
    for t in range(12):
        sampler.sweep()
        sampler.adapt(t)
    assert sampler.n_clusters > 1
    found = sampler.log_joint()
    state = {"label": sampler.labels, **sampler.draw()}
    assert found == pytest.approx(
        _model.log_joint(state, sampler.completed_data(), prior), rel=1e-9
    )
    assert np.bincount(sampler.labels).tolist() == sampler.state.at_hand.sizes().tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_labels_of_a_slice_are_the_slice_of_the_labels(kind):
    sampler, prior, X = sampler_of(kind)
    for _ in range(5):
        sampler.sweep()
    record, whole = sampler.state.record, sampler.labels
    completed = sampler.completed_data()
    rng = np.random.default_rng(4)
    for rows in (np.arange(10, 17), np.array([3]), np.sort(rng.choice(N, 50, replace=False))):
        alone = RowSlice(X[rows], rows, Kernels(prior, prior.start()))
        alone.see(record)
        np.testing.assert_array_equal(alone.label, whole[rows])
        np.testing.assert_array_equal(alone.family.completed(), completed[rows])


def test_labels_depend_on_the_row_and_the_record_alone():
    """Other rows of a cell may be anything."""
    sampler, prior, X = sampler_of("full")
    sampler.sweep()
    rows, other = np.arange(20, 40), X[20:40].copy()
    other[1::2] += 2.0
    alone = RowSlice(other, rows, Kernels(prior, prior.start()))
    alone.see(sampler.state.record)
    np.testing.assert_array_equal(np.asarray(alone.label)[::2], sampler.labels[20:40:2])


@pytest.mark.parametrize("kind", KINDS)
def test_rows_elsewhere_give_the_same_chain(kind):
    """To the last bit, though nothing is kept between two questions."""
    here, prior, X = sampler_of(kind)
    bit_generator = np.random.default_rng(1).bit_generator
    # The first record of the other has labels: it is made from the rows that are kept.
    there = type(here)(
        RowsElsewhere(Cells(X), prior, prior.start()),
        prior,
        np.arange(N) % 7,
        bit_generator,
        kept=RowsInMemory(X, prior, prior.start(), cell=CELL),
        finds_start=False,
        n_subset=80,
        n_split_merge=3,
    )
    for _ in range(9):
        here.sweep()
        there.sweep()
        assert here.log_joint() == pytest.approx(there.log_joint(), rel=1e-12)
    np.testing.assert_array_equal(here.labels, there.labels)
    assert here.acceptance() == there.acceptance()


@pytest.mark.parametrize("kind", KINDS)
def test_a_chain_resumes_to_the_last_bit(kind):
    whole, _, _ = sampler_of(kind)
    half, _, _ = sampler_of(kind)
    for t in range(10):
        whole.sweep()
        whole.adapt(t)
    for t in range(4):
        half.sweep()
        half.adapt(t)
    rest, _, _ = sampler_of(kind, seed=9)
    rest.set_state(half.get_state())
    assert rest.log_joint() == half.log_joint()
    for t in range(4, 10):
        rest.sweep()
        rest.adapt(t)
    assert rest.log_joint() == whole.log_joint()
    np.testing.assert_array_equal(rest.labels, whole.labels)
    one, other = whole.draw(), rest.draw()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name])


def test_a_state_does_not_grow_with_the_rows():
    sampler, _, _ = sampler_of("diag", n_subset=20)
    sampler.sweep()
    # Nor with the rows at hand: labels, sums and these follow from the record.
    state = sampler.get_state()
    arrays = [*state.values(), *state["record"].values()]
    sizes = [array.shape[0] for array in arrays if isinstance(array, np.ndarray)]
    assert max(sizes) == sampler.n_clusters < N // 20


@pytest.mark.parametrize(
    "spoil, message",
    [
        (lambda state: state["record"].update(anchor_row=np.zeros(1, int)), "anchor_row"),
        (lambda state: state["record"]["anchor_row"].__iadd__(N), "anchor_row"),
        (lambda state: state["record"].update(anchor_place=np.array([np.nan])), "anchor_place"),
        (lambda state: state["record"]["blocks"].pop("n_members"), "n_members"),
        (lambda state: state["record"].update(label=np.full(N, 90)), "label of the state"),
        (lambda state: state.pop("next_key"), "next_key"),
        (lambda state: state.pop("record"), "record"),
    ],
)
def test_a_damaged_state_is_refused(spoil, message):
    sampler, _, _ = sampler_of("full")
    sampler.sweep()
    state, before = sampler.get_state(), sampler.log_joint()
    spoil(state)
    with pytest.raises(ValueError, match=message):
        sampler.set_state(state)
    assert sampler.log_joint() == before


def test_the_order_of_threads_is_of_no_matter():
    def backwards(function, n_items, size):
        for start in reversed(range(0, n_items, size)):
            function(start, min(start + size, n_items))

    prior, X = table("full")
    chains = []
    for for_rows in (None, backwards):
        options = {} if for_rows is None else {"for_rows": for_rows}
        rows = RowsInMemory(X, prior, prior.start(), cell=CELL, **options)
        one = np.random.default_rng(2).bit_generator
        chains.append(
            type(sampler_of("full")[0])(rows, prior, np.zeros(N, int), one, finds_start=False)
        )
    for _ in range(4):
        for chain in chains:
            chain.sweep()
    assert chains[0].log_joint() == chains[1].log_joint()
    np.testing.assert_array_equal(chains[0].labels, chains[1].labels)


def test_blocks_far_from_where_they_were_keep_their_digits():
    """Squares about a mean that is far away lose theirs, and are made again."""
    prior, X = table("full", holes=0.0)
    X[:150] += 1e5
    label = (np.arange(N) < 150).astype(int)
    sampler = make_record_sampler(X, prior, label, cell=CELL, n_subset=10)
    state = {"label": sampler.labels, **sampler.draw()}
    assert sampler.log_joint() == pytest.approx(_model.log_joint(state, X, prior), rel=1e-9)


def test_fit_finds_blobs_and_is_the_same_with_threads():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 4, 400)
    X = np.array([[-6, 0], [0, 6], [6, 0], [0, -6]])[truth] + rng.normal(size=(400, 2))
    X[::13, 0] = np.nan
    fits = [
        DirichletProcessMixture(
            sampler=MixtureSampler(algorithm="parallel"),
            n_chains=2,
            n_warmup=30,
            n_draws=30,
            n_jobs=n_jobs,
            random_state=0,
        ).fit(X)
        for n_jobs in (1, 4)
    ]
    assert fits[0].n_clusters_ == 4
    np.testing.assert_array_equal(fits[0].labels_, fits[1].labels_)
    np.testing.assert_array_equal(fits[0].X_imputed_, fits[1].X_imputed_)


# -- digits that are lost


def spoil_sums(sampler, task, always):
    """Let squares about the means that were given be those of no rows; returns what was asked."""
    whole, asked = sampler.state, []
    run = whole.run

    def spoilt(name, request):
        found = run(name, request)
        if name != task:
            return found
        if name == "pass_rows":
            pairs = [(request, found)]
        else:
            pairs = zip(request["proposals"], found, strict=True)
        for one, of_one in pairs:
            asked.append("center" in one)
            if always or not asked[-1]:
                of_one["sums"][:, :-4] = -1e6  # squares stand first, before sums and a count
        return found

    whole.run = spoilt
    return asked


def test_sums_of_a_split_that_lose_digits_are_made_about_other_means():
    prior, X = table("full")
    options = {"cell": CELL, "n_subset": 80, "n_split_merge": 10}
    spoilt, sound = (
        make_record_sampler(X, prior, np.zeros(N, dtype=int), **options) for _ in range(2)
    )
    asked = spoil_sums(spoilt, "divide", always=False)
    for _ in range(30):
        spoilt.sweep()
        sound.sweep()
        assert spoilt.log_joint() == pytest.approx(sound.log_joint(), rel=1e-9)
    assert any(asked) and spoilt.acceptance() == sound.acceptance()
    assert spoilt.acceptance()["split"][0] > 0
    np.testing.assert_array_equal(spoilt.labels, sound.labels)


@pytest.mark.parametrize("task", ["divide", "pass_rows"])
def test_digits_that_are_lost_again_are_an_error(task):
    sampler, _, _ = sampler_of("full", n_split_merge=10)
    asked = spoil_sums(sampler, task, always=True)
    with pytest.raises(ArithmeticError, match="cannot be worked out in double precision"):
        for _ in range(9):
            sampler.sweep()
    assert asked[-2:] == [False, True]


def test_digits_that_are_lost_after_a_pass_are_an_error():
    sampler, _, _ = sampler_of("full")
    sampler.sweep()
    found = sampler.state.found
    found["sums"][:, :-4] = -1e6
    sampler.state._take(found)
    with pytest.raises(ArithmeticError, match="double precision"):
        sampler.sweep()


def given_others_of(sampler, prior, X, rows=slice(0, N)):
    """Of some rows, from the statistics of the blocks; and the draw that they are of."""
    draw = {**sampler._blocks(), **packed(sampler.state.record)}
    record = unpacked(draw, N, 80)
    numbers = np.arange(N)[rows]
    cell = RowSlice(X[numbers], numbers, Kernels(prior, prior.start()))
    found = given_others(cell, draw, record, prior, N).log_densities(0, len(numbers))
    return found, draw


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("law", ["process", "discount", "finite", "finite mixtures"])
def test_density_given_all_other_rows(kind, law):
    """From statistics and one row at a time, and from all rows."""
    laws = {
        "process": {},
        "discount": {"discount": 0.4},
        "finite": {"n_components": 9, "concentration": 2.0},
        "finite mixtures": {"n_components": LAW_OF_COMPONENTS, "concentration": 1.0},
    }
    prior, X = table(kind)
    prior = replace(prior, **laws[law])
    sampler = make_record_sampler(X, prior, np.arange(N) % 7, 1, cell=CELL, n_subset=80)
    for _ in range(6):
        sampler.sweep()
    found, draw = given_others_of(sampler, prior, X)
    whole = {"label": sampler.labels, **draw}
    if sampler._kept.imputed().size:
        whole["imputed"] = sampler._kept.imputed()
    known = TrainingRows(X, prior, Units.unscaled(X.shape[1]))(whole)
    np.testing.assert_allclose(found, known, rtol=1e-9, atol=1e-9)
    assert (sampler.state.at_hand.sizes() > 1).any()
    # The test can fail: rows that count among those of their own block.
    rows = Rows(X, prior)
    seen = log_densities(rows, whole, prior, log_weights(whole, prior))
    assert np.abs(rows.unsort(np.logaddexp.reduce(seen, axis=1)) - known).max() > 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_density_given_others_does_not_depend_on_the_cell(kind):
    sampler, prior, X = sampler_of(kind)
    for _ in range(4):
        sampler.sweep()
    found, _ = given_others_of(sampler, prior, X)
    part, _ = given_others_of(sampler, prior, X, slice(30, 47))
    # But for rounding: products of counts are as long as the largest of a cell allow.
    np.testing.assert_allclose(part, found[30:47], rtol=1e-11)


def test_a_row_beyond_all_others_of_its_block_has_no_density():
    """Nothing is left of the digits of the block without it."""
    prior, X = table("full", holes=0.0)
    X[5] = 1e9
    label = np.repeat(np.arange(2), N // 2)
    sampler = make_record_sampler(X, prior, label, 1, cell=CELL, n_subset=80)
    found, _ = given_others_of(sampler, prior, X)
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(found)), [5])
