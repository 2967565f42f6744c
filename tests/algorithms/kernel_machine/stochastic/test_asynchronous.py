"""The asynchronous schedule: nobody waits, staleness is bounded, who vanishes is named."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from tests.algorithms.kernel_machine.pacing import Balanced, Pace, Straggler, Vanishing
from tests.naive.pooled import pooled_prediction
from tests.options import grouped
from vertikal import AVFKAMClassifier, FDSKLClassifier, FDSKLRegressor, Stochastic
from vertikal.algorithms.kernel_machine.settings import AvfkamSettings, FdsklSettings
from vertikal.algorithms.kernel_machine.stochastic.asynchronous import AsynchronousRun
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
    np.testing.assert_allclose(model._decide(X), pooled_prediction(model, X), atol=1e-6)
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


class Standing:
    """As much of a party and a learner as a run needs to wait for a slow one."""

    name = "bank"
    deadline = 0.2
    rows = 10

    def __init__(self, bound):
        self.settings = AvfkamSettings(
            parties=("bank", "shop", "mill"),
            label_parties=("bank", "shop", "mill"),
            solver=Stochastic(max_staleness=bound),
        )


def standing_run(bound, updates, answered):
    standing = Standing(bound)
    run = AsynchronousRun(standing, standing, None)
    run._updates, run._answered, run._open = updates, dict(answered), set(answered)
    return run


def test_who_would_leave_another_one_behind_waits_and_names_it():
    run = standing_run(bound=6, updates=8, answered={"shop": 5, "mill": 7})
    with (
        run._changed,
        pytest.raises(
            DeadlineExceeded,
            match=r"^bank: shop has taken no step for 0.2 s .* after 3 updates of its own",
        ),
    ):
        run._wait_for_the_slow()


def test_below_the_bound_nobody_waits():
    run = standing_run(bound=6, updates=7, answered={"shop": 5, "mill": 7})
    with run._changed:
        run._wait_for_the_slow()


def test_the_wait_ends_when_the_slow_one_asks_again():
    run = standing_run(bound=2, updates=8, answered={"shop": 7})
    run._party.deadline = 60.0

    def ask_again():
        with run._changed:
            run._open.discard("shop")
            run._changed.notify_all()

    thread = threading.Timer(0.1, ask_again)
    with run._changed:
        thread.start()
        run._wait_for_the_slow()
    thread.join()
    assert run._open == set()


def test_the_wait_ends_when_a_thread_that_answers_has_failed():
    run = standing_run(bound=2, updates=8, answered={"shop": 7})
    run._fail(RuntimeError("a thread broke"))
    with run._changed, pytest.raises(RuntimeError, match="a thread broke"):
        run._wait_for_the_slow()


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ({"rows": 1}, "no request"),
        (np.zeros(3), "no request"),
        (np.zeros((1, 3), np.int64), "no request"),
        (np.zeros(1, np.int64), "no request"),
        (np.array([0, 0, 10]), "rows outside the table"),
        (np.array([0, 0, -1]), "rows outside the table"),
        (np.array([-1, 0]), "a wrong count of updates or parties"),
        (np.array([0, 8]), "a wrong count of updates or parties"),
        (np.array([0, -1]), "a wrong count of updates or parties"),
    ],
)
def test_a_malformed_request_is_refused_and_its_sender_named(message, words):
    run = standing_run(bound=6, updates=0, answered={})
    run._party.hear = lambda name, disclosure: message
    run._learner.operator = run._party
    with pytest.raises(MeshError, match=rf"^bank: shop .*{words}"):
        run._request("shop")


def recorded(monkeypatch, tape):
    def recording(federation, program):
        return simulate(replace(federation, wrap=lambda mesh: RecordingMesh(mesh, tape)), program)

    monkeypatch.setattr(base, "simulate", recording)


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
