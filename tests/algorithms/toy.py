"""The smallest algorithm that the rest of the tree can work with: correlations with the labels.

The label party tells everybody the labels; each party's coefficients are the means of label times
column. It keeps no secret worth the name, and is here to show what adding an algorithm takes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vertikal.algorithms.algorithm import Algorithm, Cost, Exposure, JobSettings
from vertikal.parameters import Positive
from vertikal.party.party import AGREEMENT
from vertikal.privacy.ledger import Disclosure
from vertikal.ring.integers import Ring

LABELS = Disclosure("toy labels", "the labels", "everybody learns all labels", masked=False)
PARTS = Disclosure("toy parts", "parts of the predictions", "the leader learns the sum", True)


class ToySettings(JobSettings, frozen=True, kw_only=True):
    shrinkage: Positive = 1.0


@dataclass(frozen=True)
class ToyShard:
    party: str
    settings: ToySettings
    columns: tuple[str, ...]
    coefficients: np.ndarray
    seconds: float = 3.5


class Toy(Algorithm[ToySettings, ToyShard]):
    name = "toy"
    description = "correlations with the labels"
    settings_type = ToySettings
    shard_type = ToyShard

    def train(self, party, settings, budget=None, job=""):
        targets = None if party.labels is None else party.labels.targets
        group = (party.leader, *(name for name in party.parties if name != party.leader))
        told = party.broadcast(targets if party.leads else None, group, LABELS)
        values = party.table.block(slice(0, party.table.rows))
        coefficients = settings.shrinkage * values.T @ np.asarray(told) / party.table.rows
        return ToyShard(party.name, settings, party.table.columns, coefficients)

    def predict(self, party, shard):
        ring, values = Ring(64), party.table.block(slice(0, party.table.rows))
        encoded = ring.encode_reals(values @ shard.coefficients, 20, len(party.parties))
        total = party.secure_sum(encoded, party.leader, PARTS)
        return None if total is None else ring.decode_reals(total, 20)

    def exposure(self, settings):
        return Exposure(level="values", experiments=("toys are for experiments only",))

    def messages(self, settings):
        return [AGREEMENT, LABELS]

    def prediction_shows(self, settings):
        return "the leader gets a toy prediction of each row"

    def cost(self, settings, rows, columns):
        each = dict.fromkeys(settings.parties, 8 * rows)
        return Cost(each, 1, each, float(rows * columns))

    def known_answers(self, shard, rows):
        return rows @ shard.coefficients

    def to_store(self, shard):
        return ToyShard(shard.party, shard.settings, shard.columns, shard.coefficients, 0.0)

    def predicts_log_odds(self, settings):
        return False


TOY = Toy()
