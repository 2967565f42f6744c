"""Beats that are too long for one message: cut into parts, and put together again."""

from __future__ import annotations

import msgspec

from vertikal.node.links.messages import Beat, JobNews

MOST_NEWS = 192 << 10
"""Bytes of news in one part: well below what a control message may have."""
MOST_PARTS = 64


def cut(beat: Beat, most: int = MOST_NEWS) -> list[Beat]:
    """The same beat in as many parts as its news need, mostly one."""
    pieces: list[list[JobNews]] = [[]]
    size = 0
    # Beyond the last part jobs that are done wait until others are settled.
    for one in sorted(beat.jobs, key=lambda one: one.done):
        length = len(msgspec.msgpack.encode(one))
        if size + length > most and pieces[-1]:
            pieces.append([])
            size = 0
        pieces[-1].append(one)
        size += length
    pieces = pieces[:MOST_PARTS]
    return [
        Beat(beat.version, beat.time, tuple(piece), beat.full, part, len(pieces))
        for part, piece in enumerate(pieces)
    ]


class Joining:
    """The parts of each peer's beat under way."""

    def __init__(self) -> None:
        self._parts: dict[str, list[Beat]] = {}

    def add(self, sender: str, part: Beat) -> Beat | None:
        """The whole beat, once this is its last part; parts of which one was lost are dropped."""
        before = self._parts.pop(sender, []) if part.part else []
        if part.part != len(before) or not part.part < part.parts <= MOST_PARTS:
            return None
        if any((one.time, one.parts) != (part.time, part.parts) for one in before):
            return None
        parts = [*before, part]
        if len(parts) < part.parts:
            self._parts[sender] = parts
            return None
        self._parts.pop(sender, None)
        jobs = tuple(job for one in parts for job in one.jobs)
        return Beat(part.version, part.time, jobs, part.full)
