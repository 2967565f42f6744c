"""The table of a search: all tries and what rows held out said of them, kept beside the shard."""

from __future__ import annotations

from typing import Any

import msgspec

from vertikal.metrics.measures import TITLES
from vertikal.metrics.wording import short


class Try(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One try: its settings, the rows it was trained on, and its measure on the judging rows."""

    settings: dict[str, Any]
    round: int
    share: float
    """Share of rows and directions of its round."""
    rows: int
    """Rows of training."""
    value: float | None


class SearchTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All tries of a search, round by round, and the settings that were taken."""

    measure: str
    judged: int
    """Rows that tries were judged on."""
    tries: tuple[Try, ...]
    chosen: dict[str, Any]

    @property
    def first_line(self) -> str:
        """Say what was chosen, and of how many.

        "alpha = 0.001, of 9 combinations in 12 tries; AUC 0.812 on 90 rows"
        """
        last = max(one.round for one in self.tries)
        value = next(
            (one.value for one in self.tries if one.round == last and one.settings == self.chosen),
            None,
        )
        combinations = sum(one.round == 0 for one in self.tries)
        return (
            f"{settings_text(self.chosen)}, of {combinations} combinations in {len(self.tries)} "
            f"tries; {TITLES[self.measure]} {short(value)} on {self.judged} rows"
        )

    def rows(self) -> list[tuple[str, str, str, str]]:
        """List (round, settings, rows of training, measure) of all tries, the best first."""
        ordered = sorted(
            self.tries,
            key=lambda one: (-one.round, -(one.value if one.value is not None else -1e300)),
        )
        return [
            (str(one.round + 1), settings_text(one.settings), f"{one.rows:,}", short(one.value))
            for one in ordered
        ]


def settings_text(settings: dict[str, Any]) -> str:
    """Write settings in one line."""
    return ", ".join(f"{name} = {value}" for name, value in settings.items())
