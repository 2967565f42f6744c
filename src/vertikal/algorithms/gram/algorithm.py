"""A kernel machine on the secure kernel as the rest of the tree sees it."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from vertikal.algorithms.algorithm import Algorithm, Cost, Exposure, OpenedValues, Route
from vertikal.algorithms.gram import machine
from vertikal.algorithms.gram.machine import SecureKernelShard
from vertikal.algorithms.gram.secgram import PRODUCTS, RING, SIZES, SUPPORT
from vertikal.algorithms.gram.settings import SecureKernelSettings
from vertikal.party.party import AGREEMENT, RESUMED, Party
from vertikal.privacy.budget import BudgetFile
from vertikal.privacy.ledger import Disclosure
from vertikal.secure.hidden.openings import OpenedBits

Array = npt.NDArray[Any]

_PRODUCT_BITS = 64
"""Bits of an inner product at most."""
_KEPT = 16
"""Training rows that the known answers of a shard are about."""


class SecureKernel(Algorithm[SecureKernelSettings, SecureKernelShard]):
    """SecGram (Polato et al.) with a support vector machine, ridge regression or KOMD on it."""

    name: ClassVar[str] = "gram"
    description: ClassVar[str] = "a kernel machine on the exact kernel of all columns (SecGram)"
    settings_type = SecureKernelSettings
    shard_type = SecureKernelShard

    def train(
        self,
        party: Party,
        settings: SecureKernelSettings,
        budget: BudgetFile | None = None,
        job: str = "",
    ) -> SecureKernelShard:
        return machine.train(party, settings)

    def predict(self, party: Party, shard: SecureKernelShard) -> Array | None:
        return machine.predict(party, shard)

    def exposure(self, settings: SecureKernelSettings) -> Exposure:
        """Count one inner product with each other row, or with each landmark and the row itself."""
        columns = settings.landmarks
        products = OpenedBits(settings.most_rows if columns is None else columns + 1, _PRODUCT_BITS)
        (leader,) = settings.label_parties
        return Exposure(level="kernel", opened=(OpenedValues(leader, products),))

    def messages(self, settings: SecureKernelSettings) -> list[Disclosure]:
        landmarks = [] if settings.landmarks is None else [SUPPORT]
        return [AGREEMENT, *landmarks, SIZES, RING, RESUMED, PRODUCTS]

    def routes(self, settings: SecureKernelSettings) -> list[Route]:
        everybody, leader = settings.parties, settings.label_parties
        ways = {
            AGREEMENT: (everybody, everybody),
            SUPPORT: (leader, everybody),
            SIZES: (everybody, leader),
            RING: (leader, everybody),
            RESUMED: (leader, everybody),
            PRODUCTS: (everybody, leader),
        }
        return [Route(one, *ways[one]) for one in self.messages(settings)]

    def prediction_shows(self, settings: SecureKernelSettings) -> str:
        return (
            f"{settings.label_parties[0]} gets the inner products of each row with the training "
            "rows that carry the model, over all columns, from which the others' columns of the "
            "row follow up to a rotation; everybody learns which training rows these are"
        )

    def cost(self, settings: SecureKernelSettings, rows: int, columns: int) -> Cost:
        number = 4 if settings.ring_bits == "auto" else settings.ring_bits // 8
        columns_held = settings.held(rows) // max(1, rows)
        if settings.landmarks is None:
            travel, square = rows * (rows + 1) // 2, rows
        else:
            travel, square = (rows + 1) * (columns_held + 1), columns_held
        sent = dict.fromkeys(settings.parties, travel * number)
        sent[settings.label_parties[0]] = 0
        memory = dict.fromkeys(settings.parties, 8 * rows * columns)
        memory[settings.label_parties[0]] += 24 * settings.held(rows)
        return Cost(sent, 3, memory, float(rows) * columns_held * (columns + square))

    def grows_faster(self, settings: SecureKernelSettings) -> bool:
        return settings.landmarks is None

    def known_answers(self, shard: SecureKernelShard, rows: Array) -> Array:
        """Compute this party's part of inner products with its first training rows."""
        centre, factor = shard.scaling.arrays()
        return np.asarray((rows - centre) * factor @ shard.rows[:_KEPT].T)

    def facts_for_owner(self, shard: SecureKernelShard) -> dict[str, Any]:
        return machine.stored(shard)

    def predicts_log_odds(self, settings: SecureKernelSettings) -> bool:
        return False


GRAM = SecureKernel()
