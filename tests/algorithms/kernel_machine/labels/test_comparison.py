"""Label parties that hold different labels stop before anything is trained."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.options import grouped
from vertikal.algorithms.catalogue import algorithm_named
from vertikal.algorithms.kernel_machine.labels.comparison import COMPARED, COUNTED
from vertikal.data.tables import Table
from vertikal.errors import AgreementError, InputError, MeshError
from vertikal.estimators.simulation import Federation, simulate
from vertikal.mesh import RecordingMesh, Tape
from vertikal.party.party import Labels, digest
from vertikal.secure.keys.prg import fresh_key

ROWS = 60
GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(ROWS, 6))
Y = np.where(X[:, :1] * X[:, 3:4] > 0, 1.0, -1.0)
NAMES = ("bank", "shop", "phone")
ALL = Labels(Y, np.ones(ROWS))


def train(labels, algorithm="fdskl", **settings):
    """Train with these labels by party; what travelled is on the tape."""
    tape = Tape()
    chosen = algorithm_named(algorithm)
    record = chosen.read_settings(
        grouped(**({"n_components": 16} | settings)), NAMES, tuple(labels), 1
    )
    tables = {
        name: Table(name, (f"{name} 0", f"{name} 1"), X[:, 2 * place : 2 * place + 2])
        for place, name in enumerate(NAMES)
    }
    federation = Federation(
        tables,
        tuple(labels),
        labels,
        {name: fresh_key() for name in NAMES},
        digest(record),
        "pads",
        20.0,
        wrap=lambda mesh: RecordingMesh(mesh, tape),
    )
    error, outcome = None, None
    try:
        outcome = simulate(federation, lambda party: chosen.train(party, record))
    except (MeshError, InputError) as raised:
        error = raised
    return outcome, error, tape


def changed(rows):
    targets = Y.copy()
    targets[rows] *= -1
    return Labels(targets, np.ones(ROWS))


DSG = {"name": "dsg", "n_steps": 4}


@pytest.mark.parametrize(
    ("algorithm", "settings"),
    [("fdskl", {}), ("fdskl", {"solver": DSG}), ("avfkam", {"solver": DSG}), ("kernel", {})],
)
def test_opposite_labels_are_an_error_that_names_parties_and_rows(algorithm, settings):
    settings = {"n_components": 64} if algorithm == "kernel" else settings
    labels = {"bank": ALL, "phone": replace(ALL, targets=-Y)}
    _, error, tape = train(labels, algorithm, **settings)
    assert isinstance(error, AgreementError)
    assert "bank and phone differ in 60 of 60 rows" in str(error)
    # A party without labels may have sent a sum already, whose pads nobody can take off.
    tags = {f.header.tag.split("/")[0] for f in tape if f.header.sender in labels}
    assert tags <= {"agreement", "message", "equal"}, "something of the columns was sent"


def test_one_row_that_differs_is_counted_and_not_named():
    _, error, _ = train({"bank": ALL, "phone": changed([41])})
    assert "bank and phone differ in 1 of 60 rows" in str(error)
    assert "41" not in str(error)


def test_each_pair_is_compared():
    _, error, _ = train({"bank": ALL, "shop": changed([1, 2]), "phone": ALL})
    assert "bank and shop differ in 2 of 60 rows" in str(error)
    assert "bank and phone" not in str(error)


def test_weights_are_compared_too():
    weights = np.ones(ROWS)
    weights[7] = 2.0
    _, error, _ = train({"bank": ALL, "phone": replace(ALL, weights=weights)})
    assert "labels and weights" in str(error)
    assert "differ in 1 of 60 rows" in str(error)


def test_equal_labels_cost_a_digest_which_shows_nothing():
    """Zero and minus zero are one number. The same labels give other digests in every run."""
    zero, minus = Y.copy(), Y.copy()
    zero[0], minus[0] = 0.0, -0.0
    labels = {"bank": replace(ALL, targets=zero), "phone": replace(ALL, targets=minus)}
    seen = set()
    for _ in range(2):
        outcome, error, tape = train(labels, solver=DSG, loss="square")
        assert error is None
        sent = [f.payload() for f in tape if f.header.tag == f"message/{COMPARED.name}"]
        assert len(sent) == 2
        assert all(list(one) == ["digest"] and len(one["digest"]) == 32 for one in sent)
        seen |= {one["digest"] for one in sent}
        booked = {entry.disclosure for entry in outcome.ledger.entries()}
        assert COMPARED in booked
        assert COUNTED not in booked
    assert len(seen) == 4


def test_one_label_party_compares_nothing():
    outcome, error, _ = train({"bank": ALL}, solver=DSG)
    assert error is None
    assert COMPARED not in {entry.disclosure for entry in outcome.ledger.entries()}


@pytest.mark.parametrize("others", [{"phone": ALL}, {}])
def test_rows_without_a_label_must_be_announced(others):
    known = np.arange(ROWS) < 50
    part = Labels(np.where(known[:, None], Y, 0.0), known.astype(float), known)
    _, error, _ = train({"bank": part} | others)
    assert "labels of bank must be of all rows, or label_parts=True, got 10 rows without" in str(
        error
    )
