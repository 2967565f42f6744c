"""Workers that a run has left on this machine's own cluster, for the next run of this process.

A worker takes a second or two to start: a process, and its imports. On a cluster of others it would
keep what it declared from them, so there it ends with its run.
"""

from __future__ import annotations

import threading
from typing import Any

_lock = threading.Lock()
_idle: list[tuple[Any, object, Any]] = []  # (cluster, kind, actor)


def leave(cluster: Any, kind: object, actor: Any) -> None:
    """Leave a worker that holds nothing any more; ``kind`` says what it can be used for."""
    with _lock:
        _idle.append((cluster, kind, actor))


def take(cluster: Any, kind: object) -> Any | None:
    """Take a worker of this kind, if one was left."""
    with _lock:
        for place, (where, what, actor) in enumerate(_idle):
            if where is cluster and what == kind:
                del _idle[place]
                return actor
    return None
