"""Seeds: uniform arrays that two parties grow from a shared key instead of sending them.

Where a protocol wants two parties to know the same uniform numbers, both expand the key of their
pair (`agreement`) instead of one sending them to the other. As with pads, each array is handed out
once.
"""

from __future__ import annotations

import threading
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from vertikal.errors import PadReused
from vertikal.reused_memory import reused_memory
from vertikal.secure.keys.agreement import PairKeys
from vertikal.secure.keys.keystream import Keystream

Array = npt.NDArray[Any]


class SeedSequence:
    """Uniform arrays of one pair for one purpose, the same at both ends, each handed out once.

    The number of the next array is private, only grows, and cannot be set; the object refuses to be
    copied or serialised. Both ends take the same shapes in the same order.
    """

    def __init__(self, keys: PairKeys, peer: str, *purpose: str) -> None:
        self._key = keys.key(peer, "seeds", *purpose)
        self._next = 0
        self._lock = threading.Lock()

    def take(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        """Return the next array: uniform unsigned integers, owned by the caller."""
        elements = reused_memory.empty(shape, dtype)
        self.fill(elements)
        return elements

    def fill(self, out: Array) -> None:
        """Write the next array into one that is there already (C-ordered)."""
        with self._lock:
            number = self._next
            self._next += 1
        if out.size:
            Keystream(self._key, number).fill(out.reshape(-1).view(np.uint8).data)

    def _refuse(self, *_: object) -> NoReturn:
        raise PadReused("a sequence of seeds cannot be copied: a copy would repeat its arrays")

    __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = _refuse
