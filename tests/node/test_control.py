"""The owner's socket: open to the owner only, one line each way, defects kept from the caller."""

from __future__ import annotations

import errno
import socket
import threading

import pytest

from vertikal.errors import InputError
from vertikal.files import private_folder
from vertikal.node import control
from vertikal.node.control import SOCKET, ControlServer, ask


@pytest.fixture
def store(tmp_path):
    folder = private_folder(tmp_path / "a-store")

    def answer(request):
        if request["command"] == "fail":
            raise InputError("two\nlines")
        if request["command"] == "defect":
            raise ZeroDivisionError
        return request

    server = ControlServer(folder, answer)
    server.start()
    yield folder
    server.stop()


def test_answers_and_errors(store):
    assert ask(store, "echo", number=7) == {"command": "echo", "number": 7}
    with pytest.raises(InputError, match="two lines"):
        ask(store, "fail")
    with pytest.raises(InputError, match=r"the service failed \(ZeroDivisionError\)"):
        ask(store, "defect")
    assert ask(store, "echo") == {"command": "echo"}


def test_only_the_owner_reaches_it(store):
    assert (store / SOCKET).stat().st_mode & 0o777 == 0o600
    assert store.stat().st_mode & 0o777 == 0o700


def test_nonsense_on_the_socket(store):
    for sent in (b"nonsense\n", b"[1]\n"):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(20)
            connection.connect(str(store / SOCKET))
            connection.sendall(sent)
            assert connection.recv(1000).startswith(b'{"error":"request: ')
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(store / SOCKET))
    assert ask(store, "echo") == {"command": "echo"}


def test_a_store_deep_below(tmp_path):
    deep = tmp_path.joinpath(*["folder" * 4] * 6)
    deep.mkdir(parents=True)
    store = private_folder(deep / "store")
    server = ControlServer(store, lambda request: "there")
    server.start()
    try:
        assert ask(store, "echo") == "there"
    finally:
        server.stop()
    with pytest.raises(InputError, match="does not run"):
        ask(store, "echo")


def test_a_want_of_open_files_or_threads_passes(tmp_path, monkeypatch):
    store = private_folder(tmp_path / "store")
    server = ControlServer(store, lambda request: "there")
    real, failures = socket.socket.accept, [1, 2]

    def accept(self):
        if failures:
            failures.pop()
            raise OSError(errno.EMFILE, "Too many open files")
        return real(self)

    monkeypatch.setattr(socket.socket, "accept", accept)
    monkeypatch.setattr(control, "PAUSE", 0.01)
    server.start()
    try:
        assert ask(store, "echo") == "there"
        assert not failures
        with monkeypatch.context() as patch:

            def start(self):
                raise RuntimeError("can't start new thread")

            patch.setattr(threading.Thread, "start", start)
            with pytest.raises(InputError, match="ended the connection"):
                ask(store, "echo")
        assert ask(store, "echo") == "there"
    finally:
        server.stop()
