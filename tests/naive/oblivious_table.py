"""Oblivious tables one key at a time, in Python's own integers."""

from __future__ import annotations

from vertikal.secure.psi.oblivious_table import SHARED


def decode(table, words):
    """One value per key: the sum of three slots and of the shared slots its last word names."""
    third = (len(table) - SHARED) // 3
    found = []
    for first, second, third_word, subset in words.tolist():
        slots = [first % third, third + second % third, 2 * third + third_word % third]
        slots += [3 * third + bit for bit in range(SHARED) if subset >> bit & 1]
        found.append(
            [sum(int(table[slot][column]) for slot in slots) % 2**64 for column in range(2)]
        )
    return found
