"""Parties that stop, meddle or ask for what was not agreed: named, and nothing is opened."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from tests.secure.hidden.hidden_run import draw_phases
from tests.secure.meddling import changing, impatient, silent
from tests.secure.two_party.two_party_run import NAMES, hide_between_two
from vertikal.errors import DeadlineExceeded, InputError, MeshError, PassesUsedUp, PeerStopped
from vertikal.secure.two_party import two_party_features
from vertikal.secure.two_party.roles import TwoRoles
from vertikal.secure.two_party.two_party_features import TwoPartyRequest

ROWS, WIDTH = 40, 8
PHASES = draw_phases(ROWS, WIDTH, names=NAMES)


def forward(hidden):
    return hidden.product("forward", np.ones((WIDTH, 1)))


def answers(session):
    return [
        one for one in session.tape if one.header.tag.endswith(("forward/answer", "adjoint/answer"))
    ]


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (TwoPartyRequest("backward", 1), "asked for a product that does not exist"),
        (TwoPartyRequest("forward", 0), "asked for a product that does not exist"),
        ({"kind": "forward", "outputs": "many"}, "asked for a product wrongly"),
        ({"kind": "forward", "rows": 3}, "asked for a product wrongly"),
    ],
)
def test_requests_that_make_no_sense(request_, message):
    if isinstance(request_, TwoPartyRequest):
        request_ = msgspec.structs.asdict(request_)
    wires = {"ada": changing("request", lambda _: request_)}
    session = hide_between_two(PHASES, forward, wires=wires)
    assert isinstance(session.outcome.errors["bob"], MeshError)
    assert f"bob: ada {message}" in str(session.outcome.errors["bob"])
    assert not answers(session)


def test_a_key_of_numbers_that_are_no_residues_is_refused():
    wires = {"ada": changing("key", lambda packed: np.full_like(packed, 255))}
    session = hide_between_two(PHASES, forward, wires=wires)
    assert "that are no residues; nothing was computed" in str(session.outcome.errors["bob"])
    assert not answers(session)
    assert isinstance(session.outcome.errors["ada"], PeerStopped)


def test_a_wrong_answer_to_the_proof_of_a_key_is_refused():
    wires = {"ada": changing("proof/answer", np.zeros_like)}
    session = hide_between_two(PHASES, forward, wires=wires)
    assert "ada cannot read what was encrypted under its public key" in str(
        session.outcome.errors["bob"]
    )
    assert not answers(session)


@pytest.mark.parametrize("step", ["cosines", "forward"])
def test_too_many_or_too_few_ciphertexts_are_refused(step):
    wires = {"ada": changing(step, lambda packed: packed[:-3])}
    session = hide_between_two(PHASES, forward, wires=wires)
    assert "expected uint8" in str(session.outcome.errors["bob"])
    assert not answers(session)


def test_an_old_ciphertext_is_noise_to_a_new_question():
    """Sent again, its c1 would be another seed's: the answer is no product of anything."""
    first = []

    def repeat(packed):
        first.append(packed)
        return first[0]

    def twice(hidden):
        return forward(hidden), forward(hidden)

    session = hide_between_two(PHASES, twice, wires={"ada": changing("forward", repeat)})
    honest, repeated = session.result
    assert np.abs(honest).max() < WIDTH
    # Uniform over the whole ring, whose full scale is the sum of magnitudes.
    assert np.abs(repeated).max() > 0.8 * WIDTH
    assert repeated.std() > 0.45 * WIDTH


def test_a_silent_helper_is_named():
    step = "features/hidden"
    session = hide_between_two(PHASES, forward, wires={"bob": silent(step), "ada": impatient(step)})
    assert isinstance(session.outcome.errors["ada"], DeadlineExceeded)
    assert "bob" in str(session.outcome.errors["ada"])


@pytest.mark.parametrize("options", [{"rows": np.arange(5)}, {"columns": slice(0, 4)}])
def test_products_of_some_rows_or_columns_are_not_offered(options):
    session = hide_between_two(
        PHASES, lambda hidden: hidden.product("forward", np.ones((WIDTH, 1)), **options)
    )
    assert isinstance(session.outcome.errors["ada"], InputError)
    assert "all of them without a dealer" in str(session.outcome.errors["ada"])


def test_more_bits_than_the_encryption_has_are_refused():
    session = hide_between_two(PHASES, forward, value_bits=15)
    for name in NAMES:
        assert "bits of forward products must be at most 14, got 15" in str(
            session.outcome.errors[name]
        )


def test_more_rows_than_answers_are_allowed_are_refused(monkeypatch):
    monkeypatch.setattr(two_party_features, "MOST_ANSWERS", ROWS - 1)
    session = hide_between_two(PHASES, forward)
    for name in NAMES:
        assert "rows must be at most 39 of 8 directions without a dealer, got 40" in str(
            session.outcome.errors[name]
        )


def test_phases_of_other_widths_are_refused():
    phases = {name: part.astype(np.uint32) for name, part in PHASES.items()}
    session = hide_between_two(phases, forward)
    assert "phase_bits must be 8 or 16, got 32" in str(session.outcome.errors["ada"])


def test_counts_outlive_the_run():
    class Kept:
        def __init__(self):
            self.kept = []

        def entries(self):
            return list(self.kept)

        def add(self, entry):
            self.kept.append(entry)

    tally = Kept()
    first = hide_between_two(PHASES, forward, passes=1, tally=tally)
    assert first.outcome.unwrap()["ada"].shape == (ROWS, 1)
    assert first.parts["bob"].opened == 1
    second = hide_between_two(PHASES, forward, passes=1, tally=tally)
    assert isinstance(second.outcome.errors["bob"], PassesUsedUp)
    assert not answers(second)


def test_a_party_cannot_be_its_own_helper():
    with pytest.raises(InputError, match="helper must be another party than 'ada'"):
        TwoRoles("ada", "ada")
