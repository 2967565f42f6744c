"""The record of one party's training, stored beside its shard: what left it, where time went."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from vertikal.party.clock import Stage
from vertikal.party.party import Party
from vertikal.privacy.ledger import Entry, Ledger


class TrainingRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One party's ledger and the stages of its clock."""

    party: str
    ledger: tuple[Entry, ...]
    stages: dict[str, Stage]

    @classmethod
    def of(cls, name: str, steps: Iterable[Party]) -> TrainingRecord:
        """Sum up a run of the party ``name``, which was a `Party` of its own in each step."""
        stages: dict[str, Stage] = {}
        steps = list(steps)
        for step in steps:
            for title, stage in step.clock.stages.items():
                total = stages.setdefault(title, Stage())
                total.seconds += stage.seconds
                total.bytes_sent += stage.bytes_sent
        whole = Ledger.joined(step.ledger for step in steps)
        return cls(name, tuple(whole.entries()), stages)

    @property
    def seconds(self) -> float:
        """Seconds of all stages, those in which the party waited for others included."""
        return sum(stage.seconds for stage in self.stages.values())

    @property
    def bytes_sent(self) -> int:
        return sum(stage.bytes_sent for stage in self.stages.values())
