"""The asynchronous schedule: nobody waits, staleness is bounded, who vanishes is named."""

from __future__ import annotations

import time
from collections import Counter

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from tests.naive.pooled import pooled_prediction
from vertikal import AVFKAMClassifier, FDSKLClassifier, FDSKLRegressor
from vertikal.errors import InputError
from vertikal.estimators.federated import FederatedKernelEstimator
from vertikal.estimators.simulation import Federation
from vertikal.mesh import RecordingMesh, Tape
from vertikal.secure.ring import Ring

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(600, 8))
Y = (X[:, 0] * X[:, 3] + 0.3 * GENERATOR.normal(size=600) > 0.7).astype(int)


class Observer:
    """Does something at each step of one party; counts everybody's steps."""

    def __init__(self, party="", at_step=lambda number: None):
        self.steps: Counter[str] = Counter()
        self.notes: list[str] = []
        self._party = party
        self._at_step = at_step

    def begin(self, party, stage, total): ...

    def end(self, party, stage, seconds): ...

    def advance(self, party, stage, amount, note):
        if stage == "solve":
            self.steps[party] += amount
            self.notes.append(note)
            if party == self._party:
                self._at_step(self.steps[party])


def make(estimator=AVFKAMClassifier, **settings):
    given = {
        "parties": 4,
        "label_parties": 3,
        "solver": "dsg",
        "schedule": "async",
        "n_directions": 192,
        "features": 16,
        "samples": 32,
        "steps": 150,
        "random_state": 0,
        "timeout": 60,
    }
    return estimator(**(given | settings))


@pytest.mark.parametrize("label_parties", [2, 3, 4])
def test_it_learns_and_the_shards_are_the_model(label_parties):
    observer = Observer()
    model = make(label_parties=label_parties, verbose=observer).fit(X, Y)
    assert roc_auc_score(Y, model.decision_function(X)) > 0.9
    np.testing.assert_allclose(model._decide(X), pooled_prediction(model, X), atol=1e-6)
    # All stop together: each has at most one step under way when the last one is counted.
    assert 150 <= sum(model.updates_.values()) < 150 + 2 * label_parties
    assert dict(observer.steps) == {n: c for n, c in model.updates_.items() if c}
    assert all(shard.training.missing == () for shard in model.shards_.values())


@pytest.mark.parametrize("estimator", [FDSKLClassifier, FDSKLRegressor])
def test_fdskl_runs_by_the_same_schedule(estimator):
    y = X[:, 0] * X[:, 3] if estimator is FDSKLRegressor else Y
    model = make(estimator).fit(X, y)
    assert model.score(X, y) > (0.2 if estimator is FDSKLRegressor else 0.8)
    assert sum(model.shards_["party1"].training.staleness.values()) > 0


def test_several_classes():
    y = np.digitize(X[:, 0], [-0.6, 0.6])
    assert make(FDSKLClassifier).fit(X, y).score(X, y) > 0.6


def test_trees_mask_the_answers_as_well():
    model = make(masking="trees", label_parties=3).fit(X, Y)
    assert roc_auc_score(Y, model.decision_function(X)) > 0.9


def test_the_curve_and_the_notes_tell_of_updates_staleness_and_auc():
    observer = Observer()
    model = make(validation=0.25, verbose=observer).fit(X, Y)
    scores = [point.auc for point in model.curve_]
    assert len(scores) >= 5
    assert max(scores) > 0.85
    assert any("staleness" in note and "AUC" in note for note in observer.notes)
    for name in ("party1", "party2", "party3"):
        moments = model.shards_[name].training.moments
        assert [m.updates for m in moments] == sorted(m.updates for m in moments)


def test_a_straggler_slows_only_itself():
    """The others make many steps while it sleeps, and finish without its share of the steps."""
    observer = Observer("party2", lambda number: time.sleep(0.2))
    model = make(steps=120, verbose=observer).fit(X, Y)
    slow, fast = model.updates_["party2"], model.updates_["party1"]
    assert slow >= 1
    assert fast >= 3 * slow
    assert sum(model.updates_.values()) >= 120


@pytest.mark.parametrize("bound", [2, 8])
def test_staleness_is_bounded_and_measured(bound):
    """A straggler that never asks again would be left behind; the others wait for it instead."""
    observer = Observer("party2", lambda number: time.sleep(0.05))
    model = make(steps=60, max_staleness=bound, verbose=observer).fit(X, Y)
    ages = {age for counts in model.staleness_.values() for age in counts}
    assert max(ages) <= bound
    assert max(model.staleness_["party2"]) >= bound // 2
    counted = {name: sum(counts.values()) for name, counts in model.staleness_.items()}
    assert counted == model.updates_


def test_without_the_bound_the_straggler_is_left_further_behind():
    observer = Observer("party2", lambda number: time.sleep(0.2))
    model = make(steps=120, verbose=observer).fit(X, Y)
    assert max(model.staleness_["party2"]) > 8


def recorded(monkeypatch, tape):
    build = FederatedKernelEstimator._federation

    def federation(self, *arguments):
        plain = build(self, *arguments)
        return Federation(**{**vars(plain), "wrap": lambda mesh: RecordingMesh(mesh, tape)})

    monkeypatch.setattr(FederatedKernelEstimator, "_federation", federation)


def answers(tape, sender, receiver):
    return tape.arrays("sum/partial predictions", sender, receiver)


def test_with_three_label_parties_no_answer_is_read_by_who_asked(monkeypatch):
    """Answers carry pads of those who answer: uniform to the asking party, which reads the sum."""
    tape = Tape()
    recorded(monkeypatch, tape)
    model = make(steps=60).fit(X, Y)
    sent = np.concatenate([a.ravel() for a in answers(tape, "party2", "party1")])
    assert len(sent) > 300
    ring = Ring(64)
    # A partial prediction lies within ±100; a uniform word of 64 bits hardly ever does.
    assert (np.abs(ring.decode_reals(sent, 36)) < 100).mean() < 0.01
    assert abs((sent >> np.uint64(63)).mean() - 0.5) < 0.1
    names = {disclosure.name for disclosure in model.ledger_.disclosures()}
    assert {"steps", "partial predictions"} <= names


def test_only_requests_sums_and_phases_travel(monkeypatch):
    tape = Tape()
    recorded(monkeypatch, tape)
    make(steps=40).fit(X, Y)
    kinds = {frame.header.tag.split("/")[0] for frame in tape}
    assert kinds == {"agreement", "sum", "broadcast", "message"}
    for request in tape.arrays("message/steps"):
        updates, gone, rows = int(request[0]), int(request[1]), request[2:]
        assert 0 <= updates <= 45
        assert gone == 0
        assert not rows.size or 0 <= rows.min() <= rows.max() < 600


def fail_at(step):
    def at_step(number):
        if number == step:
            raise RuntimeError("the power went out")

    return at_step


def test_a_label_party_that_vanishes_is_named():
    observer = Observer("party2", fail_at(5))
    with pytest.raises(RuntimeError, match="the power went out") as caught:
        make(verbose=observer).fit(X, Y)
    assert "raised at party 'party2'" in caught.value.__notes__


@pytest.mark.parametrize(
    ("gone", "label_parties"),
    [("party1", 2), ("party2", 2), ("party1", 3), ("party3", 3), ("party1", 4), ("party2", 4)],
)
def test_the_others_finish_without_it_where_that_is_allowed(gone, label_parties):
    observer = Observer(gone, fail_at(4))
    model = make(label_parties=label_parties, allow_missing=True, validation=0.25, verbose=observer)
    with pytest.warns(UserWarning, match=rf"\['{gone}'\] vanished.*the power went out"):
        model.fit(X, Y)
    assert model.missing_ == (gone,)
    assert model.shards_[gone].coefficients is None
    assert model.updates_[gone] == 0
    assert roc_auc_score(Y, model.decision_function(X)) > 0.85
    left = [name for name in model.settings_.label_parties if name != gone]
    assert all(model.shards_[name].training.missing == (gone,) for name in left)


def test_two_may_vanish():
    class TwoFail(Observer):
        def advance(self, party, stage, amount, note):
            super().advance(party, stage, amount, note)
            if stage == "solve" and (party, self.steps[party]) in (("party2", 4), ("party3", 6)):
                raise RuntimeError("the power went out")

    model = make(label_parties=4, allow_missing=True, steps=300, verbose=TwoFail())
    with pytest.warns(UserWarning, match="vanished"):
        model.fit(X, Y)
    assert set(model.missing_) == {"party2", "party3"}
    assert roc_auc_score(Y, model.decision_function(X)) > 0.85


def test_where_all_vanish_the_first_error_is_raised():
    class AllFail(Observer):
        def advance(self, party, stage, amount, note):
            if stage == "solve":
                raise RuntimeError("the power went out")

    with pytest.raises(RuntimeError, match="the power went out"):
        make(allow_missing=True, verbose=AllFail()).fit(X, Y)


def test_a_step_that_diverges_is_an_error_that_names_it():
    with pytest.raises((InputError, FloatingPointError), match="step_size"):
        make(FDSKLRegressor, step_size=1e4, penalty=1e-6, steps=400).fit(X, X[:, 0])


def test_a_party_that_sleeps_beyond_the_deadline_is_named():
    observer = Observer("party2", lambda number: time.sleep(6))
    with pytest.raises(TimeoutError, match="party2"):
        make(steps=200, timeout=1.5, verbose=observer).fit(X, Y)
