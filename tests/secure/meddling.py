"""Roles that do not follow the protocol: what they send is changed on their own end of the mesh."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np

from vertikal.mesh import Mesh
from vertikal.mesh.wire import Frame, frame
from vertikal.secure.hidden.dealing import Dealing

Wire = Callable[[Mesh], Mesh]
"""Wraps one party's end of the mesh."""


class MeddlingMesh(Mesh):
    """Sends what ``change`` makes of each frame, None for nothing; waits ``seconds`` at most."""

    def __init__(
        self,
        inner: Mesh,
        change: Callable[[Frame], Frame | None] = lambda one: one,
        seconds: Callable[[str], float] = lambda tag: float("inf"),
    ) -> None:
        super().__init__(inner.me, inner.parties, inner.deadline)
        self.inner, self.change, self.seconds = inner, change, seconds

    def put_frame(self, to: str, frame: Frame) -> None:
        changed = self.change(frame)
        if changed is not None:
            self.inner.put_frame(to, changed)

    def get_frame(self, from_: str, tag: str, timeout: float) -> Frame:
        return self.inner.get_frame(from_, tag, min(timeout, self.seconds(tag)))

    def excuse(self, name: str) -> None:
        self.inner.excuse(name)

    def close(self) -> None:
        self.inner.close()

    def fail(self, reason: str) -> None:
        self.inner.fail(reason)


def silent(step: str) -> Wire:
    """A role that leaves out the messages of ``step``."""
    return lambda mesh: MeddlingMesh(
        mesh, lambda one: None if one.header.tag.endswith(f"/{step}") else one
    )


def changing(step: str, change: Callable[[Any], Any], to: str | None = None) -> Wire:
    """A role that sends ``change(payload)`` for each payload of ``step``, to all or to one."""

    def changed(one: Frame) -> Frame:
        head = one.header
        if not head.tag.endswith(f"/{step}") or to not in (None, head.receiver):
            return one
        return frame(head.sender, head.receiver, head.tag, change(one.payload()))

    return lambda mesh: MeddlingMesh(mesh, changed)


def widening(step: str) -> Wire:
    """A role that sends each array of ``step`` twice over, in one."""
    return changing(step, lambda values: np.concatenate((values, values)))


def saying(step: str, payload: Any) -> Wire:
    """A role that sends ``payload`` in place of each message of ``step``."""
    return changing(step, lambda _: payload)


def impatient(step: str) -> Wire:
    """A role that waits for ``step`` only a moment."""
    return lambda mesh: MeddlingMesh(
        mesh, seconds=lambda tag: 0.3 if tag.endswith(f"/{step}") else float("inf")
    )


@contextmanager
def repeating(step: str) -> Iterator[None]:
    """Let the dealer send the first array of ``step`` again and again, each under a fresh pad."""
    original, first = Dealing.send, {}

    def send(self: Dealing, what: str, values: np.ndarray) -> None:
        if what == step:
            values = first.setdefault(what, values.copy()).copy()
        original(self, what, values)

    with mock.patch.object(Dealing, "send", send):
        yield
