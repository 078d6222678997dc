"""The mixture over cells of rows for the tests: samplers in a state, wrong formulas."""

import numpy as np

from checks.dirichlet_process_mixture import START
from checks.mutants import compiled
from skbnp.dirichlet_process_mixture.records._sampler import RecordSampler
from skbnp.dirichlet_process_mixture.records._service import RowsInMemory
from skbnp.dirichlet_process_mixture.records._slice import places
from skbnp.dirichlet_process_mixture.records._split_merge import RecordSplitMerge
from skbnp.dirichlet_process_mixture.records._whole import Whole


class AllAtHand(RecordSampler):
    """All rows are at hand, so that labels can be looked at between two passes."""

    @property
    def labels(self):
        return np.array(self.state.at_hand.label)

    def completed_data(self):
        return self.state.at_hand.family.completed()


class Pilots(RecordSplitMerge):
    """Proposals of one kind alone."""

    def _pair(self, n):
        i, j, _, log_u = super()._pair(n)
        return i, j, True, log_u


class Coins(RecordSplitMerge):
    """Proposals of the other."""

    def _pair(self, n):
        i, j, _, log_u = super()._pair(n)
        return i, j, False, log_u


class WithoutQ(RecordSplitMerge):
    """A pilot's division counts for nothing."""

    def _settle(self, request, divided, pair, rows, log_q, log_u):
        if request["looks"]:
            log_q, divided = 0.0, divided | {"log_q": 0.0}
        super()._settle(request, divided, pair, rows, log_q, log_u)


class OrderSeesState(Whole):
    """Of some orders the one in which the rows of the first block come earliest; all at hand."""

    def next_record(self):
        label, number = np.asarray(self.at_hand.label), np.asarray(self.at_hand.number)
        keys = [(self.next_key + t) % 2**64 for t in range(64)]
        self.next_key = min(keys, key=lambda key: places(key, number)[label == 0].mean())
        return super().next_record()


class SubsetSeesLabels(Whole):
    """The rows at hand are those of the lowest labels."""

    def draw_next(self, key):
        super().draw_next(key)
        if hasattr(self, "record"):
            chosen = np.argsort(self.service.labels(), kind="stable")[: self.n_subset]
            self.next_subset = np.sort(chosen)


class StaleRecord(Whole):
    """Weights and parameters are drawn given the first blocks that were as many."""

    def next_record(self):
        record = super().next_record()
        seen = vars(self).setdefault("_seen", {})
        blocks = record["blocks"]
        return record | {"blocks": seen.setdefault(len(blocks["n_members"]), blocks)}


def sampler_kind(fault="none", split_merge=None, all_at_hand=False):
    """The sampler, or one with a wrong formula or with proposals of one kind."""
    parts = {}
    if fault in STATE_FAULTS:
        parts["STATE"] = STATE_FAULTS[fault]
    elif fault == "no_pilot_q":
        parts["SPLIT_MERGE"] = type("PilotsWithoutQ", (WithoutQ, Pilots), {})
    elif fault == "launch_sees_division":
        wrong = compiled("records").LaunchSeesDivision
        parts["SPLIT_MERGE"] = type("SeeingPilots", (Pilots, wrong), {})
    elif split_merge is not None:
        parts["SPLIT_MERGE"] = split_merge
    return type("TestSampler", (AllAtHand if all_at_hand else RecordSampler,), parts)


STATE_FAULTS = {
    "order_sees_state": OrderSeesState,
    "subset_sees_labels": SubsetSeesLabels,
    "stale_record": StaleRecord,
}


def make_record_sampler(
    X, prior, labels, seed=0, *, kind=RecordSampler, cell=4, imputed=None, **options
):
    """A sampler in cells of a few rows that starts from these labels and imputed cells."""
    start = {key: options.pop(key) for key in START if key in options}
    rows = RowsInMemory(X, prior, prior.start() | start, cell=cell)
    if imputed is not None:
        rows.set_imputed(imputed)
    bit_generator = np.random.default_rng(seed).bit_generator
    return kind(rows, prior, labels, bit_generator, finds_start=False, start=start, **options)


def record_sampler_at(prior, state, X, missing=None, seed=0, **options):
    """A sampler in the state of ``_model.draw_joint``; imputed cells hold what was drawn."""
    options |= {key: state[key] for key in START if key in state}
    imputed = None
    if missing is not None and missing.any():
        if prior.gaussian is not None and prior.gaussian.covariance_type == "full":
            real = prior.gaussian.columns
            imputed = X[:, real][missing[:, real]]
        X = np.where(missing, np.nan, X)
    return make_record_sampler(X, prior, state["label"], seed, imputed=imputed, **options)
