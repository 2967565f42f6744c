"""One request is about the same people at all parties, or nothing of them leaves anybody."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from tests.waiting import until
from vertikal.errors import MeshError
from vertikal.node.predictions.request_comparison import DIGEST, SALT
from vertikal.node.predictions.session import ASKED, CHOSEN
from vertikal.node.storage.audit_log import read
from vertikal.party.party import Party

IDS = ("1001", "1002")


def ask_differently(monkeypatch, kind, told):
    """Let the lender tell the bank something else than everybody else."""
    real = Party.broadcast

    def broadcast(party, payload, group, disclosure):
        if disclosure is kind and party.name == "lender" and group[-1] == "bank":
            payload = told(payload)
        return real(party, payload, group, disclosure)

    monkeypatch.setattr(Party, "broadcast", broadcast)


def about(ids):
    def told(packed):
        request = msgspec.msgpack.decode(packed.tobytes())
        if not request["rows"]:
            return packed
        return np.frombuffer(msgspec.msgpack.encode({**request, "ids": ids}), np.uint8)

    return told


def lines(world, name, event):
    return [one for one in read(world.root / name / "store" / "audit.log") if one.event == event]


@pytest.mark.parametrize(
    ("ids", "kind", "told"),
    [
        # The shop lacks 1100, and would refuse it: the bank is asked about it all the same.
        (("1003",), ASKED, about(["1100"])),
        (IDS, ASKED, about(IDS[::-1])),
        (("1001", "1002", "nobody"), CHOSEN, lambda _: np.array([1, 0, 0], np.uint8)),
    ],
)
def test_people_cannot_be_mixed_in_one_request(world, monkeypatch, ids, kind, told):
    world.done(world.submit().digest)
    lender = world["lender"]
    with monkeypatch.context() as patch:
        ask_differently(patch, kind, told)
        with pytest.raises(MeshError, match="another one at"):
            lender.predict("credit", ids, False, None)
    for name in ("bank", "shop"):
        until(lambda n=name: lines(world, n, "refused"), "the owner finds the reason")
        until(lambda n=name: lines(world, n, "sent")[1:], "the session is over")
        left = lines(world, name, "sent")[-1].facts["bytes"]
        assert not [one for one in left if one.startswith("phases")], left
        # Who hears of it first ends the session: the others find its words, or their own.
        words = lines(world, name, "refused")[-1].facts["words"]
        assert "request of lender is another one at" in words, words


def test_the_owner_finds_the_reason_if_the_session_ends_before_all_were_heard(world, monkeypatch):
    """Else a leader that asks each for something else ends it at once, and nobody knows why."""
    world.done(world.submit().digest)
    ask_differently(monkeypatch, ASKED, about(IDS[::-1]))
    real = Party.tell

    def tell(party, to, payload, disclosure):
        if (disclosure, party.name, to) != (DIGEST, "shop", "bank"):
            real(party, to, payload, disclosure)

    monkeypatch.setattr(Party, "tell", tell)
    with pytest.raises(MeshError, match="another one at"):
        world["lender"].predict("credit", IDS, False, None)
    until(lambda: lines(world, "bank", "refused"), "the owner finds the reason")
    words = lines(world, "bank", "refused")[-1].facts["words"]
    assert "request of lender is another one at" in words, words


def test_audit_logs_have_one_digest_per_request_which_tells_no_id(world):
    world.done(world.submit().digest)
    for _ in range(2):
        world["lender"].predict("credit", IDS, False, None)
    asked = [one.facts["request"] for one in lines(world, "lender", "predictions")]
    for name in ("bank", "shop"):
        assert [one.facts["request"] for one in lines(world, name, "predicted")] == asked
    # The same ids again have another digest: whoever reads a log cannot try ids.
    assert len(set(asked)) == 2


def test_a_salt_that_differs_from_party_to_party_is_found_out(world, monkeypatch):
    """A party that could choose every key could look for two lists with one digest."""
    world.done(world.submit().digest)
    real = Party.tell

    def tell(party, to, payload, disclosure):
        if disclosure is SALT and party.name == "lender" and to == "bank":
            payload = {"bytes": bytes(32)}
        real(party, to, payload, disclosure)

    monkeypatch.setattr(Party, "tell", tell)
    with pytest.raises(MeshError, match="another one at"):
        world["lender"].predict("credit", IDS, False, None)


@pytest.mark.parametrize("sent", [{"bytes": b"short"}, {"bytes": "0" * 32}, {}])
def test_a_salt_that_is_none(world, monkeypatch, sent):
    world.done(world.submit().digest)
    real = Party.tell
    monkeypatch.setattr(
        Party,
        "tell",
        lambda party, to, payload, disclosure: real(
            party, to, sent if (disclosure, party.name) == (SALT, "shop") else payload, disclosure
        ),
    )
    with pytest.raises(MeshError, match="shop must send 32 bytes as request salts"):
        world["lender"].predict("credit", IDS, False, None)
