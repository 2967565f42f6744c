"""Messages that take time, in a thread of their own: proposals, decisions, beginnings of runs.

Each is written to disk and waits for it. Taken in where they arrive, they would hold up the beats
that come over the same link, also those of other parties. Each sender has a bounded queue of its
own, and the queues take turns: a sender that floods this party delays only itself. A message that
finds no room is dropped; its sender's next beats bring it again.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

MOST_MESSAGES = 256
MOST_BYTES = 16 << 20

Message = TypeVar("Message")


class MessageQueue(Generic[Message]):
    """Hands messages to ``take_in``, one after another, the senders in turn."""

    def __init__(self, take_in: Callable[[str, Message], None]) -> None:
        self._take_in = take_in
        self._changed = threading.Condition()
        self._waiting: dict[str, deque[tuple[Message, int]]] = {}
        """By sender; the sender whose turn is next comes first."""
        self._bytes: dict[str, int] = {}
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="messages", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Drop what waits, and let the message at hand be finished."""
        with self._changed:
            self._stopped = True
            self._waiting.clear()
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(5.0)

    def put(self, sender: str, message: Message, size: int) -> bool:
        """Add a message of ``size`` bytes; False if the sender's queue has no room for it."""
        with self._changed:
            waiting, held = len(self._waiting.get(sender, ())), self._bytes.get(sender, 0)
            if waiting >= MOST_MESSAGES or held + size > MOST_BYTES:
                return False
            self._waiting.setdefault(sender, deque()).append((message, size))
            self._bytes[sender] = held + size
            self._changed.notify_all()
            return True

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._stopped:
                    self._changed.wait()
                if self._stopped:
                    return
                sender = next(iter(self._waiting))
                mine = self._waiting.pop(sender)
                message, size = mine.popleft()
                self._bytes[sender] -= size
                if mine:
                    self._waiting[sender] = mine
            self._take_in(sender, message)
