"""ADMM sharing against its plain twin round by round, its frames, its optimum and its refusals."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression, Ridge

from tests.naive.admm import admm as plain_admm
from vertikal import ADMMClassifier, ADMMRegressor
from vertikal.algorithms.admm import sharing as admm
from vertikal.algorithms.admm.settings import AdmmSettings, Privacy
from vertikal.data.tables import Table
from vertikal.errors import InputError, MeshError
from vertikal.estimators.simulation import Federation, simulate
from vertikal.mesh import RecordingMesh, Tape
from vertikal.party.party import Labels, digest
from vertikal.ring.integers import Ring

GENERATOR = np.random.default_rng(3)
ROWS = 60
WIDTHS = {"bank": 4, "shop": 3, "clinic": 2}
BLOCKS = {name: GENERATOR.normal(size=(ROWS, width)) for name, width in WIDTHS.items()}
BLOCKS["shop"][:, 0] += BLOCKS["bank"][:, 0]  # columns of two parties that go together
X = np.hstack(list(BLOCKS.values()))
SIGNS = np.where(X[:, 0] - X[:, 4] + 0.5 * GENERATOR.normal(size=ROWS) > 0, 1.0, -1.0)
ONES = np.ones(ROWS)


def settings_of(**changes):
    given = {"parties": tuple(BLOCKS), "label_parties": ("bank",), "max_iter": 12}
    return AdmmSettings(**(given | {"alpha": 1.0 / ROWS, "tol": 1e-12} | changes))


def run(settings, masking="pads", weights=ONES, blocks=BLOCKS, targets=SIGNS, tape=None):
    tape = Tape() if tape is None else tape
    tables = {
        name: Table(name, tuple(map(str, range(block.shape[1]))), block)
        for name, block in blocks.items()
    }
    federation = Federation(
        tables,
        settings.label_parties,
        Labels(targets[:, None], weights),
        {name: name.encode().ljust(32) for name in tables},
        digest(settings),
        masking,
        20.0,
        wrap=lambda mesh: RecordingMesh(mesh, tape),
    )
    return simulate(federation, lambda party: admm.train(party, settings)), tape


def written_out(settings):
    matrices, penalised = {}, {}
    for name, block in BLOCKS.items():
        D = block - block.mean(axis=0) if settings.fit_intercept else block
        lead = settings.fit_intercept and name == "bank"
        matrices[name] = np.hstack((D, np.ones((ROWS, 1)))) if lead else D
        penalised[name] = np.array([True] * D.shape[1] + [False] * lead)
    return matrices, penalised


def twin(settings, rho, rounds):
    matrices, penalised = written_out(settings)
    return plain_admm(
        matrices,
        penalised,
        SIGNS,
        loss=settings.loss,
        penalty=1.0,
        rho=rho,
        averaging=settings.averaging,
        rounds=rounds,
    )


@pytest.mark.parametrize("masking", ["pads", "trees", None])
@pytest.mark.parametrize(
    ("averaging", "loss", "fit_intercept"),
    [
        (True, "logistic", True),
        (False, "logistic", True),
        (True, "square", False),
        (False, "smooth_hinge", True),
        (False, "sigmoid", False),
    ],
)
def test_every_round_is_the_plain_one(averaging, loss, fit_intercept, masking):
    for rounds in (1, 2, 7):
        settings = settings_of(
            averaging=averaging, loss=loss, fit_intercept=fit_intercept, max_iter=rounds
        )
        outcome, _ = run(settings, masking)
        shards = outcome.results
        *_, last = twin(settings, shards["bank"].rho, rounds)
        for name in BLOCKS:
            np.testing.assert_allclose(shards[name].coefficients[:, 0], last.x[name], atol=2e-5)


@pytest.mark.parametrize("averaging", [True, False])
def test_every_round_reports_residuals_objective_and_v(averaging):
    settings = settings_of(averaging=averaging, max_iter=6)
    outcome, _ = run(settings)
    rho = outcome.results["bank"].rho
    matrices, penalised = written_out(settings)
    before, lyapunov = np.zeros(ROWS), float("nan")
    iterates = twin(settings, rho, 6)
    for entry, plain in zip(outcome.results["bank"].rounds, iterates, strict=True):
        total = sum(matrices[m] @ plain.x[m] for m in BLOCKS)
        squares = sum(np.square(plain.x[m][penalised[m]]).sum() for m in BLOCKS)
        objective = np.logaddexp(0, -SIGNS * total).mean() + squares / 2 / ROWS
        assert entry.primal == pytest.approx(np.linalg.norm(total - plain.z), abs=1e-5)
        assert entry.dual == pytest.approx(rho * np.linalg.norm(plain.z - before), abs=1e-5)
        assert entry.objective == pytest.approx(objective, abs=1e-6)
        assert entry.lyapunov == pytest.approx(lyapunov, abs=1e-4, nan_ok=True)  # one round later
        before, lyapunov = plain.z, lyapunov_of(plain, matrices, penalised, rho)


def lyapunov_of(plain, matrices, penalised, rho):
    """Equation (13), term by term, for λ = 1."""
    gap = sum(matrices[m] @ plain.x[m] for m in BLOCKS) - plain.z
    total = gap @ gap
    for m in BLOCKS:
        moved = plain.x[m] - matrices[m].T @ (plain.y + rho * gap)
        total += np.square(plain.x[m] - np.where(penalised[m], moved / 2, moved)).sum()
    slope = -SIGNS / (1 + np.exp(SIGNS * plain.z)) - plain.y - rho * gap
    return total + slope @ slope


@pytest.mark.parametrize("tol", [1e-1, 1e-3])
def test_it_stops_when_both_residuals_and_v_are_small(tol):
    outcome, _ = run(settings_of(tol=tol, max_iter=500))
    rounds = outcome.results["bank"].rounds
    assert outcome.results["bank"].converged
    assert 3 < len(rounds) < 500
    last = rounds[-1]
    predictions = sum(
        D @ outcome.results[m].coefficients for m, D in written_out(settings_of())[0].items()
    )
    assert last.primal <= tol * np.linalg.norm(predictions) * 1.01
    assert last.lyapunov <= tol * rounds[1].lyapunov
    longer, _ = run(settings_of(tol=tol / 100, max_iter=500))
    assert len(longer.results["bank"].rounds) > len(rounds)


def test_the_last_private_step_begins_at_the_exact_contribution():
    """Its own noise is nothing that a party needs to learn from."""
    # The bound is so large that neither it nor the cut of the targets plays a part, but for noise.
    private = Privacy(epsilon=5.0, delta=1e-3, bound=1e3)
    outcome, tape = run(settings_of(privacy=private, max_iter=1, rho=0.5, fit_intercept=False))
    first, second = tape.arrays("broadcast/shared vector", receiver="clinic")
    for name, block in BLOCKS.items():
        D = block / np.linalg.norm(block, axis=1, keepdims=True)
        c = len(BLOCKS) * 0.5
        gram = np.eye(D.shape[1]) + c * D.T @ D
        x = np.linalg.solve(gram, -D.T @ first)
        x = np.linalg.solve(gram, D.T @ (c * D @ x - second))
        np.testing.assert_allclose(outcome.results[name].coefficients, x, atol=1e-6)


@pytest.mark.parametrize("value", [0.0, 2.0])
def test_labels_that_are_not_signs_are_refused_before_anything_is_sent(value):
    targets = np.where(SIGNS > 0, 1.0, value)
    tape = Tape()
    with pytest.raises(InputError, match=rf"^labels must be -1 or 1 .*, got {value}$"):
        run(settings_of(), targets=targets, tape=tape)
    assert not tape.arrays("broadcast/terms/")
    assert not tape.arrays("sum/contributions/")


def summed_frames(tape, prefix):
    return [frame for frame in tape.arrays(f"{prefix}/contributions/") if frame.shape == (ROWS, 1)]


def test_contributions_travel_masked_and_in_the_open_only_when_asked():
    settings = settings_of()
    _, tape = run(settings)
    masked = np.concatenate(summed_frames(tape, "sum")).ravel()
    assert len(masked) == 12 * 2 * ROWS
    # Uniform in Z_2^64: the mean of the top byte is that of a uniform one, within five deviations.
    top = (masked >> np.uint64(56)).astype(float)
    assert abs(top.mean() - 127.5) < 5 * 73.9 / np.sqrt(len(top))
    assert not summed_frames(tape, "open")
    outcome, tape = run(settings, masking=None)
    opened = Ring(64).decode_reals(summed_frames(tape, "open")[-1], admm.FRACTION)
    shard = outcome.results["clinic"]
    centred = BLOCKS["clinic"] - BLOCKS["clinic"].mean(axis=0)
    shop = outcome.results["shop"].coefficients
    candidates = [centred @ shard.coefficients]
    candidates.append((BLOCKS["shop"] - BLOCKS["shop"].mean(axis=0)) @ shop)
    assert min(np.abs(opened - one).max() for one in candidates) < 1e-9
    entries = {entry.disclosure.name: entry.disclosure for entry in outcome.ledger.entries()}
    assert not entries["contributions"].masked
    assert "own numbers are read" in entries["contributions"].learns


def test_a_round_sends_one_number_per_row_up_and_one_down():
    outcome, tape = run(settings_of(max_iter=5))
    up = summed_frames(tape, "sum")
    down = [a for a in tape.arrays("broadcast/shared vector/") if a.shape == (ROWS, 1)]
    assert len(up) == 5 * 2
    assert len(down) == 4 * 2  # after the last round only the end is told
    assert {entry.disclosure.name for entry in outcome.ledger.entries()} == {
        "agreement",
        "terms",
        "contributions",
        "progress",
        "shared vector",
    }


PARTS = {
    name: list(range(s, s + w)) for (name, w), s in zip(WIDTHS.items(), (0, 4, 7), strict=True)
}


@pytest.mark.parametrize("averaging", [True, False])
def test_logistic_regression_is_scikit_learns(averaging):
    model = ADMMClassifier(PARTS, averaging=averaging, alpha=1 / ROWS, tol=1e-9, max_iter=4000).fit(
        X, SIGNS
    )
    expected = LogisticRegression(C=1.0, tol=1e-10, max_iter=1000).fit(X, SIGNS)
    np.testing.assert_allclose(model.decision_function(X), expected.decision_function(X), atol=1e-4)
    assert model.rounds_[-1].lyapunov < 1e-9 * model.rounds_[1].lyapunov


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_ridge_is_scikit_learns_dense_and_sparse(form):
    y = X @ GENERATOR.normal(size=X.shape[1]) + GENERATOR.normal(size=ROWS)
    # (1/n) Σ (f − y)²/s² + λ/2 ‖x/s‖²·s²…: in units of the target's deviation, λn/2 is Ridge's α.
    model = ADMMRegressor(PARTS, alpha=2 / ROWS, tol=1e-9, max_iter=4000)
    model.fit(form(X), y)
    expected = Ridge(alpha=1.0).fit(X, y)
    np.testing.assert_allclose(model.predict(form(X)), expected.predict(X), atol=1e-4)


def test_wide_columns_by_the_dual_form():
    wide = GENERATOR.normal(size=(30, 80))
    y = np.where(wide[:, 0] > 0, 1, 0)
    model = ADMMClassifier(2, alpha=1 / 30, tol=1e-8, max_iter=3000).fit(wide, y)
    expected = LogisticRegression(C=1.0, tol=1e-10, max_iter=1000).fit(wide, y)
    np.testing.assert_allclose(
        model.decision_function(wide), expected.decision_function(wide), atol=1e-3
    )


def test_a_row_of_weight_two_is_that_row_twice():
    weights = np.where(np.arange(ROWS) % 3 == 0, 2.0, 1.0)
    once, _ = run(settings_of(alpha="auto"), weights=weights)
    index = np.repeat(np.arange(ROWS), weights.astype(int))
    twice, _ = run(
        settings_of(alpha="auto"),
        weights=np.ones(len(index)),
        blocks={name: block[index] for name, block in BLOCKS.items()},
        targets=SIGNS[index],
    )
    for name in BLOCKS:
        np.testing.assert_allclose(
            once.results[name].coefficients, twice.results[name].coefficients, atol=1e-7
        )


def test_weights_of_many_rows_travel():
    many = np.tile(X, (1700, 1))
    model = ADMMClassifier(PARTS, class_weight="balanced", tol=0.3)
    assert model.fit(many, np.tile(SIGNS, 1700)).score(X, SIGNS) > 0.7


def test_l1_leaves_coefficients_at_zero():
    model = ADMMClassifier(PARTS, l1_ratio=1.0, alpha=0.1, max_iter=500).fit(X, SIGNS)
    x = np.concatenate([shard.coefficients[:, 0] for shard in model.shards_.values()])
    assert (x == 0).sum() >= 3
    assert model.score(X, SIGNS) > 0.7


def test_the_loss_that_is_not_convex_reaches_a_stationary_point():
    model = ADMMClassifier(PARTS, loss="sigmoid", alpha=0.01, tol=1e-6, max_iter=5000).fit(X, SIGNS)
    assert model.rounds_[-1].lyapunov < 1e-6 * model.rounds_[1].lyapunov
    assert all(held["rho"] for held in model.assumptions_.values())
    assert not hasattr(model, "predict_proba")


def test_the_parallel_form_with_a_small_rho_is_caught():
    copies = np.hstack([X[:, :3]] * 4) * 30
    model = ADMMClassifier(
        {f"p{i}": range(3 * i, 3 * i + 3) for i in range(4)},
        averaging=False,
        rho=1e-3,
        alpha=1e-6,
    )
    with pytest.raises(InputError, match=r"^rho must be larger, or averaging=True: .* diverge"):
        model.fit(copies, SIGNS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert (
            model.set_params(averaging=True, rho="auto").fit(copies, SIGNS).score(copies, SIGNS)
            > 0.6
        )


def test_the_end_of_the_rounds_is_said():
    from sklearn.exceptions import ConvergenceWarning

    with pytest.warns(ConvergenceWarning, match="^not converged to tolerance 1e-12 in 5 rounds"):
        ADMMClassifier(PARTS, tol=1e-12, max_iter=5).fit(X, SIGNS)


@pytest.mark.parametrize(
    "told",
    [
        np.array([1.0, -1.0]),
        np.array([1.0, 1.0, 1.0]),
        np.array([1.0, np.nan]),
        np.append([1.0, 1.0], -ONES),
        {"alpha": 1.0, "rho": 1.0},
    ],
)
def test_wrong_terms_are_refused(monkeypatch, told):
    from vertikal.party.party import Party

    real = Party.broadcast

    def lying(self, payload, group, disclosure):
        got = real(self, payload, group, disclosure)
        return told if disclosure.name == "terms" and self.name == "shop" else got

    monkeypatch.setattr(Party, "broadcast", lying)
    with pytest.raises(MeshError, match=r"^shop: bank sent wrong terms"):
        run(settings_of())


def test_a_vector_of_another_shape_is_refused(monkeypatch):
    from vertikal.party.party import Party

    real = Party.broadcast

    def short(self, payload, group, disclosure):
        got = real(self, payload, group, disclosure)
        return got[:3] if disclosure.name == "shared vector" and self.name == "shop" else got

    monkeypatch.setattr(Party, "broadcast", short)
    with pytest.raises(MeshError, match=r"shop: bank sent float64 \(3, 1\), expected"):
        run(settings_of())
