"""The protocol of releases that are next to each other."""

from __future__ import annotations

import pytest

from tests.waiting import until
from vertikal.node.links.messages import Begin, Serve
from vertikal.node.links.protocols import in_words, is_spoken, newest_common
from vertikal.node.storage.audit_log import read


@pytest.mark.parametrize(
    ("spoken", "common"),
    [
        ([(1, 1)], 1),
        ([(1, 1), (1, 2)], 1),
        ([(1, 2), (2, 3)], 2),
        ([(1, 2), (1, 2), (2, 3)], 2),
        ([(1, 3), (2, 5)], 3),
        ([(1, 1), (2, 3)], None),
        ([(1, 2), (1, 1), (2, 2)], None),
        ([(5, 2), (1, 9)], None),
    ],
)
def test_the_newest_that_all_speak(spoken, common):
    assert newest_common(spoken) == common


def test_words():
    assert in_words((2, 2)) == "protocol 2"
    assert in_words((1, 2)) == "protocols 1 to 2"
    assert is_spoken(1)
    assert not is_spoken(2)


def test_a_run_that_this_release_cannot_speak_is_refused(world):
    digest = world.submit().digest
    world.done(digest)
    log = world["bank"].home.store / "audit.log"
    bank, tell = world["bank"], world["lender"].gossip.tell
    for message in (Begin(digest, 9, 7), Serve(digest, "predict/x", 8)):
        tell("bank", message)
        why = f"a run with protocol {message.protocol}; this release speaks protocol 1"
        until(lambda w=why: any(one.facts.get("words") == w for one in read(log)), why, world.told)
    assert bank.book.find(digest).attempt == 1
