"""Parties in threads: their results, whose error is raised, and how an interruption ends them."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from vertikal.errors import InputError, PeerStopped
from vertikal.mesh import local_meshes
from vertikal.mesh.party_threads import GRACE, is_fatal, run_in_threads

NAMES = ("bank", "shop", "clinic")


def waiting(mesh):
    """Wait for the bank, which is to fail."""
    mesh.recv("bank", "never")


def test_every_party_gets_its_mesh_and_gives_a_result():
    def work(mesh):
        for peer in mesh.peers:
            mesh.send(peer, "name", {"name": mesh.me})
        return [mesh.recv(peer, "name")["name"] for peer in mesh.peers]

    ended = run_in_threads(local_meshes(NAMES, 10), work)
    assert ended.results["shop"] == ["bank", "clinic"]
    assert (set(ended.results), ended.errors) == (set(NAMES), {})


def test_the_first_real_error_is_raised_and_not_its_echo():
    def work(mesh):
        if mesh.me != "bank":
            waiting(mesh)
        time.sleep(0.05)
        raise InputError("columns of bank: none")

    with pytest.raises(InputError, match=r"^columns of bank: none$"):
        run_in_threads(local_meshes(NAMES, 10), work)


def test_an_error_of_the_mesh_alone_is_raised():
    with pytest.raises(PeerStopped, match="bank has ended without sending 'never'"):
        run_in_threads(local_meshes(NAMES, 10), lambda mesh: mesh.me == "bank" or waiting(mesh))


def test_a_foreign_error_says_at_which_party_it_was_raised():
    def work(mesh):
        if mesh.me == "bank":
            raise OSError("the disk is gone")
        waiting(mesh)

    with pytest.raises(OSError, match="the disk is gone") as caught:
        run_in_threads(local_meshes(NAMES, 10), work)
    assert caught.value.__notes__ == ["raised at party 'bank'"]


def test_a_party_that_hangs_in_its_own_work_is_left_behind():
    released = threading.Event()

    def work(mesh):
        if mesh.me == "bank":
            raise InputError("no")
        released.wait(10)

    began = time.monotonic()
    try:
        with pytest.raises(InputError, match="no"):
            run_in_threads(local_meshes(NAMES, 10), work)
    finally:
        released.set()
    assert GRACE <= time.monotonic() - began < GRACE + 3


def test_an_interruption_ends_the_waits_of_all():
    said = []

    def work(mesh):
        try:
            waiting(mesh) if mesh.me != "bank" else mesh.recv("shop", "never")
        except PeerStopped as error:
            said.append(str(error))
            raise

    # A job in the background of a shell, as a test may be, starts with SIGINT ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    main = threading.get_ident()
    timer = threading.Timer(0.3, signal.pthread_kill, (main, signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            run_in_threads(local_meshes(NAMES, 10), work)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert len(said) == len(NAMES)
    assert all("interrupted" in words for words in said)


def test_the_others_finish_without_a_dispensable_party():
    def work(mesh):
        if mesh.me == "bank":
            raise InputError("no")
        return mesh.me

    ended = run_in_threads(local_meshes(NAMES, 10), work, ("bank", "shop"))
    assert set(ended.results) == {"shop", "clinic"}
    assert [str(error) for error in ended.errors.values()] == ["no"]


@pytest.mark.parametrize(
    ("failed", "dispensable", "fatal"),
    [
        ((), ("a", "b"), False),
        (("a",), ("a", "b"), False),
        (("a", "b"), ("a", "b"), True),
        (("c",), ("a", "b"), True),
        (("a",), (), True),
        ((), (), False),
    ],
)
def test_whose_failure_is_fatal(failed, dispensable, fatal):
    assert is_fatal(failed, dispensable) is fatal
