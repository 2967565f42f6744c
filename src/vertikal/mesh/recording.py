"""The recording mesh: any mesh, with a copy of every frame kept on a tape.

It is how the tests look at what really left a party: the bytes as they would stand on a wire.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from vertikal.mesh.interface import Array, Mesh
from vertikal.mesh.wire import Frame, read


@dataclass
class Tape:
    """Frames as bytes, in the order in which they were sent; one tape may serve many parties."""

    _frames: list[bytes] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def record(self, frame: Frame) -> None:
        prefix, body = frame.buffers()
        with self._lock:
            self._frames.append(prefix + bytes(body))

    def __len__(self) -> int:
        return len(self._frames)

    def __iter__(self) -> Iterator[Frame]:
        """The frames, decoded again from their bytes."""
        return (read(io.BytesIO(raw).read) for raw in list(self._frames))

    def arrays(
        self, tag: str, sender: str | None = None, receiver: str | None = None
    ) -> list[Array]:
        """The arrays sent under tags that begin with ``tag``, by sender and receiver if named."""
        return [
            frame.payload()  # type: ignore[misc]
            for frame in self
            if frame.header.tag.startswith(tag)
            and frame.header.kind == "array"
            and sender in (None, frame.header.sender)
            and receiver in (None, frame.header.receiver)
        ]


class RecordingMesh(Mesh):
    """Passes everything on to ``inner`` and keeps what is sent on ``tape``."""

    def __init__(self, inner: Mesh, tape: Tape) -> None:
        super().__init__(inner.me, inner.parties, inner.deadline)
        self._inner = inner
        self.tape = tape

    def put_frame(self, to: str, frame: Frame) -> None:
        # Before it is sent: afterwards its receiver may answer first, or write into the array.
        self.tape.record(frame)
        self._inner.put_frame(to, frame)

    def get_frame(self, from_: str, tag: str, timeout: float) -> Frame:
        return self._inner.get_frame(from_, tag, timeout)

    def excuse(self, name: str) -> None:
        self._inner.excuse(name)

    def close(self) -> None:
        self._inner.close()

    def fail(self, reason: str) -> None:
        self._inner.fail(reason)
