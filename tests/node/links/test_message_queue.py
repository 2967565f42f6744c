"""Messages that take time: each sender waits for its own, and what finds no room is dropped."""

from __future__ import annotations

import threading

from tests.waiting import until
from vertikal.node.links.message_queue import MOST_BYTES, MOST_MESSAGES, MessageQueue


def test_senders_take_turns_and_keep_their_order():
    taken = []
    queue = MessageQueue(lambda sender, message: taken.append((sender, message)))
    for number in range(4):
        assert queue.put("bank", number, 10)
    for number in range(2):
        assert queue.put("shop", number, 10)
    queue.start()
    until(lambda: len(taken) == 6, "all are taken in")
    queue.stop()
    turns = [("bank", 0), ("shop", 0), ("bank", 1), ("shop", 1), ("bank", 2), ("bank", 3)]
    assert taken == turns


def test_a_queue_is_bounded_for_each_sender():
    busy, done = threading.Event(), threading.Event()

    def take_in(sender, message):
        busy.set()
        done.wait(30)

    queue = MessageQueue(take_in)
    queue.start()
    queue.put("bank", "first", 10)
    busy.wait(30)
    accepted = [queue.put("bank", "more", 10) for _ in range(2 * MOST_MESSAGES)]
    assert accepted.count(True) == MOST_MESSAGES
    assert queue.put("shop", "long", MOST_BYTES)
    assert not queue.put("shop", "short", 1)
    assert queue.put("notary", "short", 1)
    done.set()
    until(lambda: queue.put("bank", "later", 10), "there is room again")
    queue.stop()
