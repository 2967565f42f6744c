"""The MPI mesh: ranks and parties, packets of the wrong rank, and mpi4py itself on one rank."""

from __future__ import annotations

import sys
import time
from queue import SimpleQueue

import numpy as np
import pytest

from tests.conformance.queue_world import QueueWorld, mpi_in_threads, queue_worlds
from tests.conformance.running import join, start
from vertikal.errors import DeadlineExceeded, InputError, PeerStopped, WireError
from vertikal.mesh.mpi import MpiMesh, MpiWorld
from vertikal.mesh.packets import envelope
from vertikal.mesh.packets.envelope import Hello, SignedHello
from vertikal.mesh.packets.packet_mesh import Timing


def mpi(names, deadline):
    """Ends of a mesh, and the world of each, in which a party can do what its mesh never does."""
    worlds = queue_worlds(len(names))
    ends, cleanup = mpi_in_threads(names, deadline, worlds=worlds)
    return ends, dict(zip(names, worlds, strict=True)), cleanup


def test_there_is_one_rank_for_each_party():
    with pytest.raises(InputError, match="mpiexec -n must be 2, one rank for each party, got 3"):
        MpiMesh(("a", "b"), QueueWorld(0, [SimpleQueue()] * 3), job="j", version="1")


@pytest.mark.parametrize(
    "raw",
    [
        b"short",
        envelope.pack_head(envelope.DATA, 0, 2, 0, 0),
        envelope.pack_head(envelope.DATA, 0, 1, 2, 0),
    ],
)
def test_a_packet_that_is_not_the_ranks_own_is_refused(raw):
    ends, worlds, cleanup = mpi("abc", 10.0)
    try:
        worlds["b"].post(0, raw)
        with pytest.raises(WireError, match="a: b sent"):
            ends["a"].recv("b", "x")
    finally:
        cleanup()


def hello(session, sender="b", receiver="a"):
    said = envelope.encode(Hello(sender, receiver, session, 1, "1", "job", "a/b", 1 << 26, b""))
    return envelope.pack_head(envelope.HELLO, 0, 1, 0, 0) + envelope.encode(SignedHello(said, b""))


def test_a_second_session_of_one_rank_is_refused():
    ends, worlds, cleanup = mpi("ab", 10.0)
    try:
        ends["a"].connect()
        worlds["b"].post(0, hello(b"another"))
        with pytest.raises(PeerStopped, match="a: b was started again"):
            ends["a"].recv("b", "x")
    finally:
        cleanup()


def test_a_hello_to_somebody_else_is_refused():
    ends, worlds, cleanup = mpi("ab", 10.0)
    try:
        worlds["b"].post(0, hello(b"s", receiver="c"))
        with pytest.raises(WireError, match="a: b sent a hello from b to c"):
            ends["a"].recv("b", "x")
    finally:
        cleanup()


def test_a_frame_in_anothers_name_is_refused():
    from vertikal.mesh import wire

    ends, worlds, cleanup = mpi("abc", 10.0)
    try:
        ends["a"].connect()
        ends["b"].connect()
        frame = wire.frame("c", "a", "x", {})
        flags, pieces = next(iter(envelope.chunks(frame)))
        head = envelope.pack_head(envelope.DATA, flags, 1, 0, 0)
        worlds["b"].post(0, head + b"".join(pieces))
        with pytest.raises(WireError, match="a: b sent a frame from c to a"):
            ends["a"].recv("c", "x")
    finally:
        cleanup()


def test_a_state_that_comes_again_changes_nothing():
    ends, worlds, cleanup = mpi("ab", 10.0)
    try:
        ends["a"].connect()
        ends["b"].connect()
        before = ends["a"].status()["b"].link
        body = envelope.encode(envelope.State(0, 0, 0, ended="failed", reason="forged"))
        worlds["b"].post(0, envelope.pack_head(envelope.STATE, 0, 1, 0, 0) + body)
        time.sleep(0.2)
        assert ends["a"].status()["b"].link == before == "up"
    finally:
        cleanup()


def test_a_large_frame_to_a_party_that_hangs_has_a_deadline_and_is_given_up_whole():
    ends, worlds, cleanup = mpi("ab", 0.5)
    try:
        ends["a"].connect()
        ends["b"].connect()
        with (
            worlds["b"].frozen(),
            pytest.raises(DeadlineExceeded, match=r"nothing from b for room for 'x'"),
        ):
            ends["a"].send("b", "x", np.zeros(40 << 20, np.uint8))
        assert ends["a"].moved() == (0, 0)
        ends["a"].send("b", "x", np.full(5, 7, np.uint8))
        assert ends["b"].recv("a", "x", 5.0).tolist() == [7] * 5
    finally:
        cleanup()


def test_a_party_tells_what_it_waits_for():
    ends, cleanup = mpi_in_threads("ab", 5.0)
    try:
        thread = start("a", lambda: ends["a"].recv("b", "x"))
        while not ends["a"].waits():
            time.sleep(0.01)
        (wait,) = ends["a"].waits()
        assert (wait.peer, wait.what) == ("b", "'x'")
        ends["b"].send("a", "x", {})
        join([thread])
        assert ends["a"].waits() == []
    finally:
        cleanup()


def test_stopping_does_not_wait_for_a_frozen_party():
    ends, worlds, cleanup = mpi("ab", 20.0)
    for one in ends.values():
        one.connect()
        one.timing = Timing(0.1, 0.3, 0.3)
    began = time.monotonic()
    with worlds["b"].frozen():
        ends["a"].stop()
    assert time.monotonic() - began < 20.0
    cleanup()


def test_mpi4py_on_one_rank():
    pytest.importorskip("mpi4py")
    from mpi4py import MPI

    world = MpiWorld(MPI.COMM_SELF)
    assert (world.rank, world.size) == (0, 1)
    assert world.poll() is None
    request = world.post(0, b"hello" * 10_000)
    until = time.monotonic() + 10.0
    while (came := world.poll()) is None:
        assert time.monotonic() < until
    assert came == (0, b"hello" * 10_000)
    assert world.done(request)


def test_without_mpi4py_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(InputError, match=r"needs mpi4py: pip install 'vertikal\[mpi\]'"):
        MpiWorld()
