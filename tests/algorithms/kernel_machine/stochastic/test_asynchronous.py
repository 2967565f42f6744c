"""The asynchronous schedule: nobody waits, staleness is bounded, who vanishes is named."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logit
from sklearn.metrics import roc_auc_score

from tests.algorithms.kernel_machine.pacing import Balanced, Pace, Straggler, Vanishing
from tests.naive.pooled import pooled_prediction
from tests.options import grouped
from tests.secure.meddling import changing
from vertikal import AVFKAMClassifier, FDSKLClassifier, FDSKLRegressor, Stochastic
from vertikal.algorithms.kernel_machine.settings import FdsklSettings
from vertikal.algorithms.kernel_machine.stochastic.asynchronous import StalenessBound
from vertikal.errors import DeadlineExceeded, InputError, MeshError
from vertikal.estimators import base
from vertikal.estimators.simulation import simulate
from vertikal.mesh import RecordingMesh, Tape
from vertikal.parameters import read_field
from vertikal.ring.integers import Ring

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(600, 8))
Y = (X[:, 0] * X[:, 3] + 0.3 * GENERATOR.normal(size=600) > 0.7).astype(int)


def make(estimator=AVFKAMClassifier, **settings):
    given = {
        "parties": 4,
        "label_parties": 3,
        "solver": Stochastic(schedule="async", block_size=16, batch_size=32, n_steps=150),
        "n_components": 192,
        "random_state": 0,
        "timeout": 60,
    }
    given |= settings
    names = [f"party{i + 1}" for i in range(given["label_parties"])]
    given = grouped(**given)
    steps = read_field(FdsklSettings, "solver", given["solver"]).n_steps
    return estimator(**({"verbose": Balanced(names, steps)} | given))


@pytest.mark.parametrize("label_parties", [2, 3, 4])
def test_it_learns_and_the_shards_are_the_model(label_parties):
    model = make(label_parties=label_parties).fit(X, Y)
    assert roc_auc_score(Y, model.decision_function(X)) > 0.9
    log_odds = logit(model.predict_proba(X)[:, 1])
    np.testing.assert_allclose(log_odds, pooled_prediction(model, X)[:, 0], atol=1e-6)
    # All stop together: each has at most one step under way when the last one is counted.
    assert 150 <= sum(model.updates_.values()) < 150 + 2 * label_parties
    assert dict(model.verbose.steps) == model.updates_
    assert all(shard.training.missing == () for shard in model.shards_.values())


@pytest.mark.parametrize("estimator", [FDSKLClassifier, FDSKLRegressor])
def test_fdskl_runs_by_the_same_schedule(estimator):
    y = X[:, 0] * X[:, 3] if estimator is FDSKLRegressor else Y
    model = make(estimator).fit(X, y)
    assert model.score(X, y) > (0.2 if estimator is FDSKLRegressor else 0.8)
    trainings = [model.shards_[name].training for name in model.settings_.label_parties]
    assert sum(sum(training.staleness.values()) for training in trainings) >= 150


def test_several_classes():
    y = np.digitize(X[:, 0], [-0.6, 0.6])
    assert make(FDSKLClassifier).fit(X, y).score(X, y) > 0.6


def test_trees_mask_the_answers_as_well():
    model = make(masking="trees", label_parties=3).fit(X, Y)
    assert roc_auc_score(Y, model.decision_function(X)) > 0.9


def test_the_curve_and_the_notes_tell_of_updates_staleness_and_auc():
    model = make(validation=0.25).fit(X, Y)
    scores = [point.auc for point in model.curve_]
    assert len(scores) >= 5
    assert max(scores) > 0.85
    assert any("staleness" in note and "AUC" in note for note in model.verbose.notes)
    for name in ("party1", "party2", "party3"):
        moments = model.shards_[name].training.moments
        assert [m.updates for m in moments] == sorted(m.updates for m in moments)


def test_a_straggler_slows_only_itself():
    """While it is stuck in its first step, the others make all the steps that are left."""
    observer = Straggler("party2", 110)
    model = make(solver__n_steps=120, verbose=observer).fit(X, Y)
    assert observer.left_behind
    assert model.updates_["party2"] < 20
    assert sum(model.updates_.values()) >= 120
    # What the straggler had read was used when the others were far ahead.
    assert max(model.staleness_["party2"]) >= 100


@pytest.mark.parametrize("bound", [2, 8])
def test_staleness_is_bounded_and_measured(bound):
    observer = Pace()
    observer.at_step = lambda party, number: time.sleep(0.05 * (party == "party2"))
    model = make(solver__n_steps=60, solver__max_staleness=bound, verbose=observer).fit(X, Y)
    assert max(age for counts in model.staleness_.values() for age in counts) <= bound
    counted = {name: sum(counts.values()) for name, counts in model.staleness_.items()}
    assert counted == model.updates_
    assert sum(counted.values()) >= 60


def bound_of(limit, updates, deadline=0.2, **readers):
    """The bound of a party that has made so many updates; others read when it had made theirs."""
    bound = StalenessBound("bank", limit, deadline)
    with bound.changed:
        for name, at in sorted(readers.items(), key=lambda item: item[1]):
            bound.updates = at
            bound.read(name, last=False)
        bound.updates = updates
    return bound


def test_who_would_leave_another_one_behind_waits_and_names_it():
    bound = bound_of(limit=3, updates=8, shop=5, mill=7)
    with (
        bound.changed,
        pytest.raises(
            DeadlineExceeded,
            match=r"^bank: shop has taken no step for 0.2 s .* after 3 updates of its own",
        ),
    ):
        bound.wait(lambda: None)


def test_below_the_bound_nobody_waits():
    bound = bound_of(limit=3, updates=7, shop=5, mill=7)
    with bound.changed:
        bound.wait(lambda: pytest.fail("it waits"))


def test_a_reading_tells_how_many_updates_are_new():
    bound = bound_of(limit=3, updates=8, shop=5)
    with bound.changed:
        assert bound.read("shop", last=False) == 3
        assert bound.read("mill", last=False) == 0
        assert bound.read("shop", last=True) == 0


@pytest.mark.parametrize("event", ["asks again", "has read for the last time", "vanished"])
def test_the_wait_ends_when_the_slow_one(event):
    bound = bound_of(limit=1, updates=8, deadline=60.0, shop=7)
    acts = {
        "asks again": lambda: bound.read("shop", last=False),
        "has read for the last time": lambda: bound.read("shop", last=True),
        "vanished": lambda: bound.forget("shop"),
    }
    waiting = threading.Event()

    def act():
        waiting.wait(60.0)
        with bound.changed:
            acts[event]()

    thread = threading.Thread(target=act)
    thread.start()
    began = time.monotonic()
    with bound.changed:
        bound.wait(waiting.set)
    thread.join()
    assert time.monotonic() - began < 30.0


@pytest.mark.parametrize("leave", [lambda b: b.read("shop", last=True), lambda b: b.forget("shop")])
def test_who_reads_no_more_is_left_behind(leave):
    bound = bound_of(limit=3, updates=8, shop=7)
    with bound.changed:
        leave(bound)
        bound.updates = 100
        bound.wait(lambda: pytest.fail("it waits"))


class Held(Pace):
    """Some parties stay in their second step, until ``held``, called there by each, returns.

    All others have made one update when these ask for it.
    """

    def __init__(self, slow, others, held):
        super().__init__()
        self.slow, self.others, self.held = slow, others, held
        self.ended = set()

    def at_step(self, party, number):
        if party in self.slow and number == 2:
            self.held(party)
        elif number == 1:
            # The slow read a second time when the others have made one update and no other.
            everybody = (*self.slow, *self.others)
            fewest = 1 if party in self.slow else 2
            self.wait_for(
                lambda: all(self.steps[p] >= (fewest if p in self.slow else 1) for p in everybody)
            )

    def end(self, party, stage, seconds):
        if stage == "solve":
            with self.changed:
                self.ended.add(party)

    def others_wait(self, limit):
        """Return True if the others make all updates that they may while the slow stay, no more."""
        made = self.wait_for(lambda: all(self.steps[p] == 1 + limit for p in self.others))
        time.sleep(0.2)
        return made and all(self.steps[p] == 1 + limit for p in self.others)


@pytest.mark.parametrize("limit", [2, 3])
def test_a_slow_party_is_waited_for_and_all_go_on_when_it_does(limit):
    """Of three label parties each may make half of ``max_staleness`` updates of its own."""
    waited = []
    pace = Held(("party2",), ("party1", "party3"), lambda _: waited.append(pace.others_wait(limit)))
    model = make(solver__n_steps=30, solver__max_staleness=2 * limit, verbose=pace).fit(X, Y)
    assert waited == [True]
    assert sum(model.updates_.values()) >= 30
    assert max(age for counts in model.staleness_.values() for age in counts) <= 2 * limit


def test_the_wait_ends_when_a_thread_that_answers_has_failed():
    """Parties 1 and 3 wait for the others when party 4 fails: they hear of it as they answer it."""

    def held(party):
        if party == "party4":
            assert pace.others_wait(2)
            raise RuntimeError("the power went out")
        over.wait(60.0)

    over = threading.Event()
    pace = Held(("party2", "party4"), ("party1", "party3"), held)
    model = make(label_parties=4, solver__max_staleness=6, solver__n_steps=10**6, verbose=pace)
    with pytest.raises(RuntimeError, match="the power went out"):
        model.fit(X, Y)
    assert pace.ended >= {"party1", "party3"}
    over.set()


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ({"rows": 1}, "sent no request for a step"),
        (np.zeros(3), "sent no request for a step"),
        (np.zeros((1, 3), np.int64), "sent no request for a step"),
        (np.zeros(1, np.int64), "sent no request for a step"),
        (np.array([0, 0, 600]), "asked for rows outside the table"),
        (np.array([0, 0, -1]), "asked for rows outside the table"),
        (np.array([-1, 0]), "sent a wrong count of updates or parties"),
        (np.array([0, 8]), "sent a wrong count of updates or parties"),
        (np.array([0, -1]), "sent a wrong count of updates or parties"),
    ],
)
def test_a_malformed_request_is_refused_and_its_sender_named(monkeypatch, message, words):
    cheat = changing("steps", lambda _: message, to="party1")
    on_meshes(monkeypatch, lambda mesh: cheat(mesh) if mesh.me == "party2" else mesh)
    with pytest.raises(MeshError, match=rf"^party1: party2 {words}$"):
        make(verbose=Pace()).fit(X, Y)


def on_meshes(monkeypatch, wrap):
    """Put something between the parties of the next fits and their meshes."""

    def wrapping(federation, program):
        return simulate(replace(federation, wrap=wrap), program)

    monkeypatch.setattr(base, "simulate", wrapping)


def recorded(monkeypatch, tape):
    on_meshes(monkeypatch, lambda mesh: RecordingMesh(mesh, tape))


def answers(tape, sender, receiver):
    return tape.arrays("sum/partial predictions", sender, receiver)


def test_with_three_label_parties_no_answer_is_read_by_who_asked(monkeypatch):
    """Answers carry pads of those who answer: uniform to the asking party, which reads the sum."""
    tape = Tape()
    recorded(monkeypatch, tape)
    model = make(solver__n_steps=60).fit(X, Y)
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
    make(solver__n_steps=40).fit(X, Y)
    kinds = {frame.header.tag.split("/")[0] for frame in tape}
    assert kinds == {"agreement", "sum", "broadcast", "message"}
    for request in tape.arrays("message/steps"):
        updates, gone, rows = int(request[0]), int(request[1]), request[2:]
        assert 0 <= updates <= 45
        assert gone == 0
        assert not rows.size or 0 <= rows.min() <= rows.max() < 600


def test_a_label_party_that_vanishes_is_named():
    with pytest.raises(RuntimeError, match="the power went out") as caught:
        make(verbose=Vanishing("party2")).fit(X, Y)
    assert "raised at party 'party2'" in caught.value.__notes__


@pytest.mark.parametrize(
    ("gone", "label_parties"),
    [("party1", 2), ("party2", 2), ("party1", 3), ("party3", 3), ("party1", 4), ("party2", 4)],
)
def test_the_others_finish_without_it_where_that_is_allowed(gone, label_parties):
    model = make(
        label_parties=label_parties,
        solver__allow_missing=True,
        validation=0.25,
        verbose=Vanishing(gone),
    )
    with pytest.warns(UserWarning, match=rf"\['{gone}'\] vanished.*the power went out"):
        model.fit(X, Y)
    assert model.missing_ == (gone,)
    assert model.shards_[gone].coefficients is None
    assert model.updates_[gone] == 0
    assert roc_auc_score(Y, model.decision_function(X)) > 0.85
    left = [name for name in model.settings_.label_parties if name != gone]
    assert all(model.shards_[name].training.missing == (gone,) for name in left)


def test_two_may_vanish():
    model = make(
        label_parties=4,
        solver__allow_missing=True,
        solver__n_steps=300,
        verbose=Vanishing("party2", "party3"),
    )
    with pytest.warns(UserWarning, match="vanished"):
        model.fit(X, Y)
    assert set(model.missing_) == {"party2", "party3"}
    assert roc_auc_score(Y, model.decision_function(X)) > 0.85


def test_where_all_vanish_the_first_error_is_raised():
    gone = ("party1", "party2", "party3")
    with pytest.raises(RuntimeError, match="the power went out"):
        make(solver__allow_missing=True, verbose=Vanishing(*gone)).fit(X, Y)


def test_a_step_that_diverges_is_an_error_that_names_it():
    with pytest.raises((InputError, FloatingPointError), match="step_size"):
        make(FDSKLRegressor, solver__step_size=1e4, alpha=1e-6, solver__n_steps=400).fit(X, X[:, 0])


def test_a_party_that_is_stuck_beyond_the_deadline_is_named():
    with pytest.raises(TimeoutError, match="party2"):
        make(solver__n_steps=40, timeout=5, verbose=Straggler("party2", 1_000_000)).fit(X, Y)
