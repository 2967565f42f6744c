"""Refusing correlated randomness that comes twice.

Used twice, a mask gives away the difference of what it masks. An honest dealer cannot repeat one
(its seeds are handed out once); this is how the one who receives from it makes sure.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.errors import PadReused

Array = npt.NDArray[Any]

_ENOUGH = 4096
_SHORTEST = 16
"""Bytes below which equal uniform arrays may happen by chance."""


class Fresh:
    """What ``dealer`` has sent to ``me`` so far, by digest of the first bytes."""

    def __init__(self, me: str, dealer: str) -> None:
        self._me = me
        self._dealer = dealer
        self._seen: set[bytes] = set()

    def check(self, values: Array) -> Array:
        """``values``, unless they came before."""
        flat = np.ascontiguousarray(values).reshape(-1)
        head = flat[: _ENOUGH // flat.itemsize].tobytes()
        if len(head) >= _SHORTEST:
            digest = hashlib.sha256(head).digest()
            if digest in self._seen:
                raise PadReused(
                    f"{self._me}: the dealer {self._dealer} sent the same correlation twice; "
                    "nothing was computed with it"
                )
            self._seen.add(digest)
        return values
