"""The booked mesh: every frame that leaves a party has an entry in its ledger."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy.typing as npt

from vertikal.errors import SecrecyError
from vertikal.mesh import wire
from vertikal.mesh.interface import Mesh
from vertikal.mesh.wire import Frame
from vertikal.privacy.ledger import Disclosure, Ledger


class BookedMesh(Mesh):
    """The mesh as a party uses it: every frame is booked under the disclosure in force."""

    def __init__(self, inner: Mesh, ledger: Ledger) -> None:
        super().__init__(inner.me, inner.parties, inner.deadline)
        self._inner = inner
        self._ledger = ledger
        # By thread: a party may serve several label parties at once.
        self._local = threading.local()

    @property
    def _current(self) -> Disclosure | None:
        return getattr(self._local, "disclosure", None)

    @_current.setter
    def _current(self, disclosure: Disclosure | None) -> None:
        self._local.disclosure = disclosure

    @contextmanager
    def under(self, disclosure: Disclosure) -> Iterator[None]:
        before, self._current = self._current, disclosure
        try:
            yield
        finally:
            self._current = before

    def put_frame(self, to: str, frame: Frame) -> None:
        if self._current is None:
            raise SecrecyError(
                f"{self.me}: {frame.header.tag!r} has no entry in the ledger; not sent"
            )
        self._inner.put_frame(to, frame)
        self._ledger.book(self.me, to, self._current, frame.size)

    def sent_apart(self, to: str, tag: str, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> None:
        if self._current is None:
            raise SecrecyError(f"{self.me}: {tag!r} has no entry in the ledger; not sent")
        super().sent_apart(to, tag, dtype, shape)
        size = wire.array_size(self.me, to, tag, dtype, shape)
        self._ledger.book(self.me, to, self._current, size)

    def get_frame(self, from_: str, tag: str, timeout: float) -> Frame:
        return self._inner.get_frame(from_, tag, timeout)

    def excuse(self, name: str) -> None:
        self._inner.excuse(name)

    def close(self) -> None:
        self._inner.close()

    def fail(self, reason: str) -> None:
        self._inner.fail(reason)
