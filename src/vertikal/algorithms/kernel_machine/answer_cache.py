"""Answers that earlier runs of the same job opened to a label party, so that none is opened twice.

A solver that begins again asks the same questions up to the point where the last run was broken
off. Asked anew they would be answered under fresh noise, and two answers to one question tell more
than was agreed. So the label party keeps each answer and does not ask again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.party.checkpoints import Checkpoints

Array = npt.NDArray[Any]

ANSWERS = "answers"
_DIGEST, _HEAD = 32, 40


class AnswerCache:
    """Answers of all runs so far, by question: the kind of product, its vectors and its rows."""

    def __init__(self, checkpoints: Checkpoints) -> None:
        self._checkpoints = checkpoints
        self._known: dict[bytes, Array] = {}
        self.opened = 0
        """Vectors among the answers that were multiplied by all rows, which the helper counts."""
        for entry in checkpoints.entries(ANSWERS):
            outputs = int.from_bytes(entry[_DIGEST:_HEAD], "big", signed=True)
            answer = np.frombuffer(entry[_HEAD:], np.float64).reshape(-1, abs(outputs))
            self._known[entry[:_DIGEST]] = answer
            self.opened += max(0, outputs)

    def product(
        self,
        ask: Callable[[str, Array, Array | None, slice], Array],
        kind: str,
        vectors: Array,
        rows: Array | None,
        columns: slice,
    ) -> Array:
        """Return the answer of an earlier run, or ask and keep the answer."""
        question = _digest(kind, vectors, rows, columns)
        if question in self._known:
            return self._known[question].copy()
        answer = np.asarray(ask(kind, vectors, rows, columns), np.float64)
        # Stored as a positive number for forward products, which `opened` counts, else negative.
        outputs = vectors.shape[1] if kind == "forward" else -vectors.shape[1]
        head = question + outputs.to_bytes(_HEAD - _DIGEST, "big", signed=True)
        self._checkpoints.append(ANSWERS, head + answer.tobytes())
        if kind == "adjoint":
            # A fit that goes on from another begins with the gradient at which that one ended.
            self._known[question] = answer.copy()
        return answer


def _digest(kind: str, vectors: Array, rows: Array | None, columns: slice) -> bytes:
    words = f"{kind} {vectors.shape} {columns.start} {columns.stop} {rows is None}"
    found = hashlib.sha256(words.encode())
    found.update(np.ascontiguousarray(vectors, np.float64).tobytes())
    if rows is not None:
        found.update(np.ascontiguousarray(rows, np.int64).tobytes())
    return found.digest()
