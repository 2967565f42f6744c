"""An oblivious table: random-looking numbers from which the holder of a key reads its value.

`encode` stores values under keys so that `decode` of a stored key gives its value, and of any other
key a number that says nothing. A key names three slots and a subset of 64 shared ones; its value is
the sum of these slots. As long as values look random, the whole table does, and it does not show
which keys are in it (an *oblivious key-value store*, after Garimella, Pinkas, Rosulek, Trieu and
Yanai, CRYPTO 2021). Sums of tables decode to sums of values, since decoding is linear.

Encoding peels: a slot that one key alone uses can be set last, to whatever that key needs; take the
key away and look again. The few keys that peeling leaves over, if any, are solved for in the shared
slots by elimination in Z_{2^64}. In thousands of trials from 1 to 100,000 keys at most four were
left over, and four cannot be solved for once in 2^60 times.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from vertikal.errors import SecrecyError
from vertikal.secure.keys import prg

Array: TypeAlias = npt.NDArray[Any]

SHARED = 64
"""Slots of which every key uses a subset of its own."""
WORDS = 2
"""64-bit words of a value: 128 bits do not agree by chance."""

_HEIGHT = 4096
_BITS = np.arange(SHARED, dtype=np.uint64)


def slots_for(capacity: int) -> int:
    """Count the slots of a table for up to ``capacity`` keys: 1.4 each, and a few more."""
    third = -(-capacity * 14 // 30) + 32
    return 3 * third + SHARED


def key_words(keys: Sequence[bytes], domain: bytes) -> Array:
    """Hash each key to 64-bit words (n, 4): three choose slots, one chooses shared slots."""
    prefix = hashlib.sha256(domain).digest()
    raw = b"".join(hashlib.sha256(prefix + key).digest() for key in keys)
    return np.frombuffer(raw, "<u8").reshape(-1, 4)


def encode(words: Array, values: Array, slots: int) -> Array:
    """Make a table (slots, 2) in which these distinct keys (n, 4) have these values (n, 2)."""
    table = prg.uniform_elements(prg.fresh_key(), (slots, WORDS), np.uint64)
    places = _places(words, slots)
    layers, rest = _peel(places, slots)
    if rest.size:
        _solve(table, words[rest], places[rest], values[rest])
    for keys, chosen in reversed(layers):
        # The chosen slot takes what the others leave over.
        have = _read(table, words[keys], places[keys])
        table[chosen] += values[keys] - have
    return table


def decode(table: Array, words: Array) -> Array:
    """Read the values (n, 2) that the table gives for these keys (n, 4)."""
    found = np.empty((len(words), WORDS), np.uint64)
    for start in range(0, len(words), _HEIGHT):
        part = words[start : start + _HEIGHT]
        found[start : start + _HEIGHT] = _read(table, part, _places(part, len(table)))
    return found


def _places(words: Array, slots: int) -> Array:
    """(n, 3): one slot in each third of the table."""
    third = (slots - SHARED) // 3
    return (words[:, :3] % np.uint64(third)).astype(np.int64) + np.arange(3) * third


def _subsets(words: Array) -> Array:
    """(n, 64) of 0 and 1: which shared slots each key uses."""
    return (words[:, 3:] >> _BITS) & np.uint64(1)


def _read(table: Array, words: Array, places: Array) -> Array:
    shared = _subsets(words) @ table[-SHARED:]
    return np.asarray(table[places].sum(axis=1, dtype=np.uint64) + shared)


def _peel(places: Array, slots: int) -> tuple[list[tuple[Array, Array]], Array]:
    """Layers of (keys, the slot each of them is alone in), and the keys that are left over."""
    uses = np.bincount(places.ravel(), minlength=slots)
    # Where one key is left, the sum of the keys' numbers is its number.
    sums = np.zeros(slots, np.int64)
    numbers = np.arange(len(places))
    for column in places.T:
        np.add.at(sums, column, numbers)
    left = np.ones(len(places), bool)
    layers = []
    candidates = np.flatnonzero(uses == 1)
    while candidates.size:
        keys, first = np.unique(sums[candidates], return_index=True)
        layers.append((keys, candidates[first]))
        left[keys] = False
        touched = places[keys]
        np.subtract.at(uses, touched.ravel(), 1)
        np.subtract.at(sums, touched.ravel(), np.repeat(keys, 3))
        touched = np.unique(touched)
        candidates = touched[uses[touched] == 1]
    return layers, np.flatnonzero(left)


def _solve(table: Array, words: Array, places: Array, values: Array) -> None:
    """Set shared slots so that these few keys read their values, by elimination in Z_{2^64}."""
    matrix = _subsets(words)  # (c, 64)
    wanted = values - table[places].sum(axis=1, dtype=np.uint64)
    pivots = []
    for row in range(len(matrix)):
        odd = np.flatnonzero(matrix[row] & np.uint64(1))
        if not odd.size:
            raise SecrecyError(
                f"{len(matrix)} ids share so many slots that no table can hold them, which is next "
                "to impossible by chance; nothing was sent, run the alignment again"
            )
        pivot = int(odd[0])
        factor = np.uint64(pow(int(matrix[row, pivot]), -1, 1 << 64))
        matrix[row] *= factor
        wanted[row] *= factor
        others = matrix[:, pivot].copy()
        others[row] = 0
        matrix -= others[:, None] * matrix[row]
        wanted -= others[:, None] * wanted[row]
        pivots.append(pivot)
    shared = table[-SHARED:]
    shared[pivots] = 0
    shared[pivots] = wanted - matrix @ shared
