"""Arrays that a role of a protocol keeps in memory, whatever it calls them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np


def matrices_in(part: object, shape: tuple[int, ...]) -> list[np.ndarray]:
    """All matrices of this shape that can be reached from an object of the package, each once."""
    return [one for one in _reached(part, set()) if one.shape == shape]


def _reached(thing: Any, seen: set[int]) -> Iterator[np.ndarray]:
    if id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, np.ndarray):
        yield thing
    elif isinstance(thing, dict):
        for value in thing.values():
            yield from _reached(value, seen)
    elif isinstance(thing, list | tuple | set | deque):
        for value in thing:
            yield from _reached(value, seen)
    elif type(thing).__module__.startswith(("vertikal.secure.", "vertikal.ring.")):
        yield from _reached(vars(thing), seen)
