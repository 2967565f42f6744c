"""The view of a label party at each disclosure level, caught in a real run for the attacks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt

from vertikal.algorithms.kernel_machine import sealed
from vertikal.algorithms.kernel_machine.phases import PhasePass
from vertikal.algorithms.kernel_machine.values import HiddenOperator
from vertikal.party.party import Party
from vertikal.ring.ring_matrix import RingMatrix
from vertikal.secure.two_party.encrypted_product import EncryptedProduct

Array = npt.NDArray[Any]


@contextmanager
def phases_held() -> Iterator[list[tuple[Array, Array, Any]]]:
    """(phases, its own part of them, ring) of label parties that train in the open, inside."""
    held: list[tuple[Array, Array, Any]] = []
    original = PhasePass.gather

    def gather(self: PhasePass, rows: int, kept: int) -> Any:
        operator = original(self, rows, kept)
        if operator is not None:
            own = self.own.local(self.party.table.block(slice(None)))
            held.append((operator.cached.copy(), own, self.own.ring))
        return operator

    with mock.patch.object(PhasePass, "gather", gather):
        yield held


@contextmanager
def values_opened() -> Iterator[list[Array]]:
    """Everything that forward products opened to label parties inside, (rows, outputs) each."""
    values: list[Array] = []
    original = HiddenOperator.forward

    def forward(self: HiddenOperator, *args: Any, **options: Any) -> Array:
        found = original(self, *args, **options)
        values.append(np.array(found))
        return found

    with mock.patch.object(HiddenOperator, "forward", forward):
        yield values


@contextmanager
def numbers_held() -> Iterator[list[RingMatrix]]:
    """The masked features (rows, D) that a label party keeps from sealed fits inside."""
    held: list[RingMatrix] = []
    original = sealed.hide

    def hide(*args: Any) -> Any:
        part = original(*args)
        if part.is_label_party:
            held.append(part._product._common)
        return part

    with mock.patch.object(sealed, "hide", hide):
        yield held


@contextmanager
def words_held() -> Iterator[list[Array]]:
    """The words G (rows, columns) that a label party without a dealer keeps from fits inside."""
    held: list[Array] = []
    original = EncryptedProduct.ask

    def ask(self: EncryptedProduct, kind: str, vectors: Array, bits: int) -> Array:
        if not held:
            held.append(self._own)
        return original(self, kind, vectors, bits)

    with mock.patch.object(EncryptedProduct, "ask", ask):
        yield held


@contextmanager
def sums_received() -> Iterator[list[tuple[str, Array]]]:
    """(name in the ledger, total) of all secure sums that parties receive inside."""
    sums: list[tuple[str, Array]] = []
    original = Party.secure_sum

    def secure_sum(
        self: Party, elements: Array, receiver: str, disclosure: Any, *args: Any, **options: Any
    ) -> Any:
        total = original(self, elements, receiver, disclosure, *args, **options)
        if total is not None:
            sums.append((disclosure.name, np.array(total)))
        return total

    with mock.patch.object(Party, "secure_sum", secure_sum):
        yield sums
