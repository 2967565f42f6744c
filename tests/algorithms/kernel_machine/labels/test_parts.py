"""Labels in parts: each label party labels some of the rows, and no row counts twice."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from tests.naive.dsg import dsg
from tests.naive.pairwise import over_pairs
from tests.naive.phases import cosines, derive, draw_integers
from tests.naive.pooled import pooled_coefficients, pooled_features, pooled_phases
from tests.naive.tsam import pairs_of, tsam
from tests.options import grouped
from vertikal import (
    ADMMClassifier,
    AVFKAMClassifier,
    FDSKLClassifier,
    FDSKLRegressor,
    KernelClassifier,
    Stochastic,
)
from vertikal.algorithms.kernel_machine.labels.parts import KNOWN, SLOPES
from vertikal.errors import InputError, MeshError
from vertikal.estimators import base
from vertikal.mesh import RecordingMesh, Tape

ROWS = 60
GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(ROWS, 6))
Y = (X[:, 0] * X[:, 3] + 0.2 * GENERATOR.normal(size=ROWS) > 0.3).astype(int)
WEIGHTS = GENERATOR.integers(1, 4, ROWS).astype(float)
PARTIES = {"bank": [4, 0], "shop": [1, 2], "phone": [3, 5]}
TWO, THREE = ("bank", "phone"), ("bank", "shop", "phone")

FIRST = np.arange(ROWS) < 35
DISJOINT = np.column_stack((FIRST, ~FIRST))
OVERLAPPING = np.column_stack((np.arange(ROWS) < 45, np.arange(ROWS) >= 20))
OF_THREE = np.column_stack((np.arange(ROWS) < 30, np.arange(ROWS) >= 25, np.arange(ROWS) % 2 == 0))
PARTS = {
    "disjoint": (TWO, DISJOINT),
    "overlapping": (TWO, OVERLAPPING),
    "three": (THREE, OF_THREE),
}


def make(label_parties, estimator=FDSKLClassifier, **settings):
    given = {
        "parties": PARTIES,
        "label_parties": list(label_parties),
        "n_components": 24,
        "random_state": 1,
        "tol": 1e-7,
        "timeout": 20,
    }
    return estimator(**grouped(**(given | settings)))


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("loss", ["logistic", "square"])
def test_the_exact_solver_finds_the_model_of_all_labels(parts, weights, loss):
    label_parties, known = PARTS[parts]
    whole = make(label_parties, loss=loss).fit(X, Y, weights)
    found = make(label_parties, loss=loss).fit(X, Y, weights, labelled_by=known)
    assert found.alpha_ == pytest.approx(whole.alpha_)
    assert found.objective_[-1] == pytest.approx(whole.objective_[-1], rel=1e-7)
    np.testing.assert_allclose(
        pooled_coefficients(found), pooled_coefficients(whole), atol=2e-5 * np.sqrt(24)
    )
    np.testing.assert_allclose(found.decision_function(X), whole.decision_function(X), atol=1e-4)


def test_regression_and_several_classes():
    y = 100 + 7 * X[:, 1] * X[:, 2]
    whole = make(TWO, FDSKLRegressor).fit(X, y)
    found = make(TWO, FDSKLRegressor).fit(X, y, labelled_by=OVERLAPPING)
    np.testing.assert_allclose(found.predict(X), whole.predict(X), atol=1e-3)
    y = np.digitize(X[:, 0] + X[:, 3], [-0.7, 0.7])
    whole = make(TWO).fit(X, y)
    found = make(TWO).fit(X, y, labelled_by=OVERLAPPING)
    np.testing.assert_allclose(found.decision_function(X), whole.decision_function(X), atol=1e-3)


def test_a_row_that_nobody_labels_counts_for_nothing():
    known = DISJOINT.copy()
    known[50:] = False
    found = make(TWO, alpha=0.01).fit(X, Y, labelled_by=known)
    whole = make(TWO, alpha=0.01).fit(X, Y, (np.arange(ROWS) < 50).astype(float))
    np.testing.assert_allclose(found.decision_function(X), whole.decision_function(X), atol=1e-4)


def test_the_model_is_also_found_where_nobody_sees_a_feature():
    X = GENERATOR.normal(size=(600, 6))
    y = (X[:, 0] * X[:, 3] > 0).astype(int)
    known = np.column_stack((np.arange(600) < 400, np.arange(600) >= 300))
    level = {"name": "values", "value_bits": 24, "gradient_bits": 24, "max_passes": 200}
    parties = PARTIES | {"phone": [3], "notary": [5]}
    options = {"parties": parties, "disclosure": level, "alpha": 0.05, "tol": 1e-3}
    whole = make(("bank", "shop"), **options).fit(X, y)
    found = make(("bank", "shop"), **options).fit(X, y, labelled_by=known)
    np.testing.assert_allclose(found.decision_function(X), whole.decision_function(X), atol=0.02)
    assert np.abs(whole.decision_function(X)).max() > 0.2


def importance(known, weights, blocks):
    """Weights by label party and row: divided among those who have it, one row on average.

    A party that takes more of the steps than its share of the weight counts less in each.
    """
    holders = known.sum(axis=1)
    found = []
    for mine, steps in zip(known.T, blocks, strict=True):
        own = [w / h if k else 0.0 for w, h, k in zip(weights, holders, mine, strict=True)]
        share = sum(own) / sum(w for w, h in zip(weights, holders, strict=True) if h)
        factor = share * sum(blocks) / steps
        found.append([w * factor * int(mine.sum()) / sum(own) for w in own])
    return found


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_steps_are_those_of_rows_that_a_party_can_label(parts, weights):
    """Algorithm 1, line 2, against the plain run; after every one of the first steps."""
    label_parties, known = PARTS[parts]
    even = np.ones(ROWS) if weights is None else weights
    for steps in (1, 4, 7):
        solver = Stochastic(batch_size=2, block_size=4, step_size=0.7, n_steps=steps)
        model = make(label_parties, alpha=0.05, solver=solver, n_components=25)
        model.fit(X, Y, weights, labelled_by=known)
        rows = {n: np.flatnonzero(k) for n, k in zip(label_parties, known.T, strict=True)}
        blocks = [-(-width // 4) for width in model.settings_.widths().values()]
        shares = importance(known, even.tolist(), blocks)

        def batch(owner, number, model=model, rows=rows):
            key = derive(model.shards_[owner].seed, "batches", str(number))
            return [int(rows[owner][w % len(rows[owner])]) for w in draw_integers(key, 2, 64)]

        runs = dsg(
            {owner: cosines(p) for owner, p in pooled_phases(model, X).items()},
            np.where(Y[:, None] == 1, 1.0, -1.0),
            dict(zip(label_parties, shares, strict=True)),
            batch,
            loss="logistic",
            step_size=0.7,
            penalty=0.05,
            block=4,
            steps=steps,
        )
        for owner, alphas in list(runs)[-1].items():
            np.testing.assert_allclose(
                model.shards_[owner].coefficients, np.array(alphas) * math.sqrt(25), atol=1e-7
            )


def test_pairs_are_of_rows_that_one_party_can_label():
    """AVFKAM Algorithm 1, line 2, against the plain run."""
    even, steps = np.ones(ROWS), 6
    solver = Stochastic(batch_size=3, block_size=4, step_size=0.3, n_steps=steps, schedule="turns")
    model = make(TWO, AVFKAMClassifier, alpha=0.05, solver=solver, validation=0.0)
    model.fit(X, Y, labelled_by=OVERLAPPING)
    holders = OVERLAPPING.sum(axis=1)
    classes = {
        name: [np.flatnonzero(mine & (k == Y)).tolist() for k in (1, 0)]
        for name, mine in zip(TWO, OVERLAPPING.T, strict=True)
    }
    masses = {
        name: math.prod(sum(even[i] / holders[i] for i in rows) for rows in classes[name])
        for name in TWO
    }
    weights = {}
    for name in TWO:
        # Both parties take as many steps; the factor is on both rows of a pair, as roots.
        factor = math.sqrt(2 * masses[name] / sum(masses.values()))
        weights[name] = {}
        for rows in classes[name]:
            mean = sum(even[i] / holders[i] for i in rows) / len(rows)
            weights[name] |= {i: factor * even[i] / holders[i] / mean for i in rows}
    runs = tsam(
        {owner: cosines(p) for owner, p in pooled_phases(model, X).items()},
        weights,
        lambda owner, number: pairs_of(model.shards_[owner], number, *classes[owner]),
        loss="squared_hinge",
        step_size=0.3,
        penalty=0.05,
        block=4,
        steps=steps,
    )
    for owner, alphas in list(runs)[-1].items():
        found = model.shards_[owner].coefficients
        np.testing.assert_allclose(found, np.array(alphas) * math.sqrt(24), atol=1e-7)
        assert np.abs(found).max() > 0.01


def test_the_exact_problem_over_pairs_is_that_of_the_parts():
    model = make(TWO, AVFKAMClassifier, alpha=0.02, loss="square", validation=0.0)
    model.fit(X, Y, labelled_by=OVERLAPPING)
    features, positive = pooled_features(model, X), Y == 1
    holders = OVERLAPPING.sum(axis=1)

    def value(a):
        f, total, gradient, mass = features @ a, 0.0, np.zeros(ROWS), 0.0
        for mine in OVERLAPPING.T:
            weights = np.where(mine, 1 / holders, 0.0)
            pairs = weights[positive].sum() * weights[~positive].sum()
            part, slope = over_pairs("square", f, positive, weights)
            total, gradient, mass = total + pairs * part, gradient + pairs * slope, mass + pairs
        return total / mass + 0.01 * a @ a, features.T @ gradient / mass + 0.02 * a

    plain = minimize(value, np.zeros(24), jac=True, options={"gtol": 1e-9})
    found = pooled_coefficients(model)[:, 0]
    assert value(found)[0] == pytest.approx(plain.fun, rel=1e-9)
    # What the parties see of it is rounded in each sum over them.
    assert model.objective_[-1] == pytest.approx(plain.fun, rel=1e-7)
    np.testing.assert_allclose(found, plain.x, atol=1e-4)


@pytest.mark.parametrize("solver", ["exact", Stochastic(schedule="async", n_steps=200)])
@pytest.mark.parametrize("estimator", [FDSKLClassifier, AVFKAMClassifier])
def test_rows_held_out_and_the_asynchronous_schedule(estimator, solver):
    """Enough rows to hold some out of the pairs: the first label party measures on its own."""
    X, y = np.tile(GENERATOR.normal(size=(400, 6)), 1), np.zeros(400, int)
    y[X[:, 0] * X[:, 3] + 0.5 * X[:, 1] > 0] = 1
    known = np.column_stack((np.arange(400) < 250, np.arange(400) >= 150))
    model = make(TWO, estimator, n_components=128, solver=solver).fit(X, y, labelled_by=known)
    assert model.score(X, y) > 0.75


def frames(solver, monkeypatch):
    tape = Tape()
    original = base.simulate
    monkeypatch.setattr(
        base,
        "simulate",
        lambda federation, program: original(
            federation.__class__(
                **{**vars(federation), "wrap": lambda mesh: RecordingMesh(mesh, tape)}
            ),
            program,
        ),
    )
    model = make(TWO, solver=solver).fit(X, Y, labelled_by=DISJOINT)
    return model, tape


def test_the_stochastic_solver_shows_no_label(monkeypatch):
    """Rows travel, and pseudo-random sums; slopes, which would show labels, do not."""
    model, tape = frames(Stochastic(n_steps=8), monkeypatch)
    kinds = {entry.disclosure.name for entry in model.ledger_.entries()}
    assert KNOWN.name in kinds
    assert SLOPES.name not in kinds
    (bank,) = tape.arrays(f"message/{KNOWN.name}", "bank")
    np.testing.assert_array_equal(np.unpackbits(bank, count=ROWS), FIRST)
    targets = np.where(Y == 1, 1.0, -1.0)
    for frame in tape:
        if frame.header.kind == "array" and frame.payload().size >= ROWS:
            values = np.asarray(frame.payload(), float).ravel()
            for mine in (FIRST, ~FIRST):
                if values.size == ROWS:
                    assert abs(np.corrcoef(values[mine], targets[mine])[0, 1]) < 0.6


def test_the_ledger_says_that_the_exact_solver_shows_labels(monkeypatch):
    model, _ = frames("exact", monkeypatch)
    (told,) = {
        e.disclosure.learns for e in model.ledger_.entries() if e.disclosure.name == SLOPES.name
    }
    assert "which shows its label" in told


def test_overlapping_parts_that_contradict_each_other(monkeypatch):
    original = base.simulate

    def meddling(federation, program):
        labels = dict(federation.labels)
        labels["phone"].targets[30] *= -1
        return original(federation.__class__(**{**vars(federation), "labels": labels}), program)

    monkeypatch.setattr(base, "simulate", meddling)
    with pytest.raises(MeshError, match="bank and phone differ in 1 of 25 rows"):
        make(TWO).fit(X, Y, labelled_by=OVERLAPPING)


@pytest.mark.parametrize(
    ("known", "words"),
    [
        (DISJOINT.astype(int), "table of booleans, 60 rows by 2 label parties, got int64"),
        (DISJOINT[:50], r"got bool \(50, 2\)"),
        (np.column_stack((FIRST, np.zeros(ROWS, bool))), "labels of phone must be of at least one"),
    ],
)
def test_tables_that_cannot_be(known, words):
    with pytest.raises(InputError, match=words):
        make(TWO).fit(X, Y, labelled_by=known)


def test_who_takes_no_parts():
    with pytest.raises(InputError, match="label_parts must be False with one label party"):
        make(["bank"]).fit(X, Y, labelled_by=DISJOINT[:, :1])
    for estimator in (ADMMClassifier, KernelClassifier):
        with pytest.raises(InputError, match="labelled_by must be None here"):
            estimator(PARTIES).fit(X, Y, labelled_by=DISJOINT)
    solver = Stochastic(schedule="async", allow_missing=True)
    with pytest.raises(InputError, match="allow_missing must be False with label_parts"):
        make(TWO, solver=solver).fit(X, Y, labelled_by=DISJOINT)


def test_a_part_of_one_class_makes_no_pairs():
    known = np.column_stack((Y == 1, np.ones(ROWS, bool)))
    with pytest.raises(InputError, match="bank: labels must hold rows of both classes"):
        make(TWO, AVFKAMClassifier).fit(X, Y, labelled_by=known)
