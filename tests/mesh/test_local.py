"""The local mesh: who waits for whom, and arrays by reference."""

from __future__ import annotations

import gc
import time
from collections import deque

import numpy as np
import pytest

from tests.conformance.running import join, run, start
from vertikal.errors import DeadlineExceeded, PeerStopped
from vertikal.mesh import local_meshes


def until_waiting(ends, *names):
    """Block until these parties wait, so that a test need not guess how long that takes."""
    for name in names:
        for _ in range(2000):
            if f"; {name} waits for " in chain_to(ends, name):
                break
            time.sleep(0.005)
        else:
            pytest.fail(f"{name} never waited")


def chain_to(ends, name):
    """The chain of waits that another party is told when it asks for something of ``name``."""
    with pytest.raises(DeadlineExceeded) as caught:
        ends[ends[name].peers[0]].recv(name, "a probe", 0.0)
    return str(caught.value)


def stopped_wait(ends, name, peer, tag):
    """A wait that ends when some other party fails."""
    with pytest.raises(PeerStopped):
        ends[name].recv(peer, tag)


def test_arrays_are_handed_over_without_a_copy():
    ends = local_meshes("ab")
    sent = np.arange(5)
    ends["a"].send("b", "x", sent)
    assert np.shares_memory(ends["b"].recv("a", "x"), sent)


def test_the_silent_party_at_the_end_of_the_chain_is_named():
    ends = local_meshes("abcd", deadline=30.0)
    threads = [
        start("b", lambda: stopped_wait(ends, "b", "c", "gradient")),
        start("c", lambda: stopped_wait(ends, "c", "d", "phases")),
    ]
    until_waiting(ends, "b", "c")
    with pytest.raises(DeadlineExceeded) as caught:
        ends["a"].recv("b", "sum", 0.1)
    ends["a"].fail("over")
    join(threads)
    text = str(caught.value)
    assert text.startswith("a: nothing from b for 'sum' within 0.1 s; a waits for b ('sum', 0.")
    links = ["a waits for b ('sum'", "b waits for c ('gradient'", "c waits for d ('phases'"]
    places = [text.index(link) for link in links]
    assert places == sorted(places)
    assert text.endswith("; d has sent nothing")


def test_a_chain_that_ends_at_a_party_that_is_done_says_so():
    """c ends just when a gives up: b waits for it still, and has not been told yet."""
    second = 0.0

    def now():
        if second:
            ends["c"].close()
        return second

    ends = local_meshes("abc", deadline=30.0, now=now)
    thread = start("b", lambda: stopped_wait(ends, "b", "c", "phases"))
    until_waiting(ends, "b")
    second = 2.0
    with pytest.raises(DeadlineExceeded) as caught:
        ends["a"].recv("b", "sum", 0.0)
    assert str(caught.value) == (
        "a: nothing from b for 'sum' within 0 s; a waits for b ('sum', 0.0 s); "
        "b waits for c ('phases', 2.0 s); c has ended"
    )
    join([thread])


def test_two_parties_that_wait_for_each_other_are_both_shown():
    ends = local_meshes("ab", deadline=30.0)
    thread = start("b", lambda: stopped_wait(ends, "b", "a", "ping"))
    until_waiting(ends, "b")
    with pytest.raises(DeadlineExceeded) as caught:
        ends["a"].recv("b", "pong", 0.05)
    assert "a waits for b ('pong', 0." in str(caught.value)
    assert "b waits for a ('ping', 0." in str(caught.value)
    ends["a"].fail("over")
    join([thread])


def test_two_full_links_do_not_hang():
    ends = local_meshes("ab", deadline=0.3, capacity=10)

    def program(mesh):
        for _ in range(2):
            mesh.send(mesh.peers[0], "x", np.zeros(100))

    began = time.monotonic()
    outcome = run(ends, program)
    assert time.monotonic() - began < 5.0
    # The first to give up says so; the other then no longer waits for room at a party that ended.
    first = next(iter(outcome.errors.values()))
    assert isinstance(first, DeadlineExceeded)
    assert "room for 'x'" in str(first)


def test_a_wait_leaves_no_trace_when_it_is_over():
    ends = local_meshes("ab", deadline=0.01)
    with pytest.raises(DeadlineExceeded):
        ends["a"].recv("b", "x")
    ends["b"].send("a", "x", {})
    ends["a"].recv("b", "x")
    assert chain_to(ends, "a").endswith("; a has sent nothing")


def test_a_message_that_was_read_leaves_room_and_no_mailbox():
    ends = local_meshes("ab", deadline=0.01, capacity=10)
    before = mailboxes()
    for i in range(100):
        # More than the capacity: it passes only if nothing else lies between the two.
        ends["b"].send("a", f"x/{i}", np.zeros(100))
        ends["a"].recv("b", f"x/{i}")
    assert mailboxes() < before + 50


def mailboxes():
    gc.collect()
    return sum(isinstance(one, deque) for one in gc.get_objects())


def test_interrupted_parties_all_stop():
    """Control-C in the main thread fails every end; whoever waits hears of another's."""
    ends = local_meshes("abc", deadline=60.0)
    outcome = {}

    def waiting(name):
        try:
            ends[name].recv(ends[name].peers[0], "x")
        except PeerStopped as error:
            outcome[name] = str(error)

    threads = [start(name, lambda name=name: waiting(name)) for name in "abc"]
    until_waiting(ends, *"abc")
    began = time.monotonic()
    for end in ends.values():
        end.fail("interrupted")
    join(threads)
    assert time.monotonic() - began < 5.0
    assert set(outcome) == set("abc")
    for name, text in outcome.items():
        assert "stopped (interrupted)" in text
        assert f"{name} stopped" not in text


def test_the_first_reason_stays():
    ends = local_meshes("ab")
    ends["b"].fail("the cause")
    ends["b"].fail("a consequence")
    ends["b"].close()
    with pytest.raises(PeerStopped, match=r"stopped \(the cause\)"):
        ends["a"].recv("b", "x")


def test_each_of_two_waits_of_one_party_shows_its_own_peer():
    ends = local_meshes("abc", deadline=30.0)
    raised = {}

    def waiting(peer, timeout):
        try:
            ends["a"].recv(peer, "x", timeout)
        except BaseException as error:
            raised[peer] = error

    threads = [start("1", lambda: waiting("b", 0.1)), start("2", lambda: waiting("c", 0.3))]
    join(threads)
    for peer in "bc":
        assert isinstance(raised[peer], DeadlineExceeded)
        assert f"a waits for {peer} ('x'" in str(raised[peer])


def test_a_very_long_wait_is_just_a_wait():
    """Longer than the operating system can wait in one go."""
    ends = local_meshes("ab")
    thread = start("b", lambda: (time.sleep(0.05), ends["b"].send("a", "x", {"late": 1})))
    try:
        assert ends["a"].recv("b", "x", 1e12) == {"late": 1}
    finally:
        join([thread])
