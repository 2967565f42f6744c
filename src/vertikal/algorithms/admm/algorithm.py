"""ADMM sharing as the rest of the tree sees it."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
import numpy as np
import numpy.typing as npt

from vertikal.algorithms.admm import sharing
from vertikal.algorithms.admm.settings import AdmmSettings
from vertikal.algorithms.admm.shard import AdmmShard
from vertikal.algorithms.admm.sharing import CONTRIBUTIONS, PROGRESS, SHARED, TERMS
from vertikal.algorithms.algorithm import Algorithm, Cost, Exposure, OpenedValues, Route
from vertikal.data.tables import Table
from vertikal.losses.pointwise import LOSSES
from vertikal.party.party import AGREEMENT, Party
from vertikal.privacy.budget import BudgetFile
from vertikal.privacy.ledger import Disclosure
from vertikal.secure.hidden.openings import OpenedBits

Array = npt.NDArray[Any]

_ROUNDS = 60
"""Rounds that an estimate of cost counts at most."""
_NUMBER_BITS = 64
"""Bits of a joint prediction as it is summed."""


class Admm(Algorithm[AdmmSettings, AdmmShard]):
    """ADMM sharing (Hu et al. 2019), linear or on each party's own random features."""

    name: ClassVar[str] = "admm"
    description: ClassVar[str] = "a linear machine by ADMM sharing"
    settings_type = AdmmSettings
    shard_type = AdmmShard

    def train(
        self,
        party: Party,
        settings: AdmmSettings,
        budget: BudgetFile | None = None,
        job: str = "",
    ) -> AdmmShard:
        return sharing.train(party, settings, budget if settings.privacy else None, job)

    def predict(self, party: Party, shard: AdmmShard) -> Array | None:
        return sharing.predict(party, shard)

    def exposure(self, settings: AdmmSettings) -> Exposure:
        private = settings.privacy
        # The paper's own mechanism promises privacy, and protects nothing.
        level = "private" if private and private.mechanism == "row" else "rounds"
        rounds = OpenedBits(settings.most_rounds * settings.outputs, _NUMBER_BITS)
        opened = [OpenedValues(name, rounds) for name in settings.label_parties]
        return Exposure(
            level=level,
            components=settings.kernel.n_components if settings.kernel else 0,
            opened=tuple(opened) if level == "rounds" else (),
            private=private is not None,
        )

    def messages(self, settings: AdmmSettings) -> list[Disclosure]:
        found = [AGREEMENT, TERMS, CONTRIBUTIONS, SHARED]
        return found if settings.privacy else [*found, PROGRESS]

    def routes(self, settings: AdmmSettings) -> list[Route]:
        everybody, leader = settings.parties, settings.label_parties[:1]
        ways = {
            AGREEMENT: (everybody, everybody),
            TERMS: (leader, everybody),
            CONTRIBUTIONS: (everybody, leader),
            SHARED: (leader, everybody),
            PROGRESS: (everybody, leader),
        }
        return [Route(one, *ways[one]) for one in self.messages(settings)]

    def prediction_shows(self, settings: AdmmSettings) -> str:
        return (
            f"{settings.label_parties[0]} gets the joint prediction of each row, with two parties "
            "the other's part of it; there is no noise in it, also where training has some"
        )

    def cost(self, settings: AdmmSettings, rows: int, columns: int) -> Cost:
        width = settings.kernel.n_components if settings.kernel else columns
        rounds = min(settings.most_rounds, _ROUNDS)
        each = rounds * rows * settings.outputs * 8
        sent = {name: each for name in settings.parties}
        sent[settings.label_parties[0]] = each * (len(settings.parties) - 1)
        memory = {name: rows * width * 8 for name in settings.parties}
        return Cost(sent, 2 * rounds, memory, float(rows) * width * (2 * rounds + width))

    def linear(self, settings: AdmmSettings) -> tuple[Algorithm[Any, Any], Any] | None:
        if settings.kernel is None:
            return None
        return self, msgspec.structs.replace(settings, kernel=None)

    def known_answers(self, shard: AdmmShard, rows: Array) -> Array:
        """Compute the party's contribution to the prediction."""
        design = shard.features.design(Table(shard.party, shard.columns, rows))
        return np.asarray(design.forward(shard.coefficients))

    def predicts_log_odds(self, settings: AdmmSettings) -> bool:
        return settings.loss == "logistic" and not settings.regression

    def probabilities(self, settings: AdmmSettings, f: Array) -> Array | None:
        return None if settings.regression else LOSSES[settings.loss].probability(f)


ADMM = Admm()
