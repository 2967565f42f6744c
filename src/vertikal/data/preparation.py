"""How a party's columns become numbers, learned on its training rows and replayed at prediction."""

from __future__ import annotations

from typing import Literal

import msgspec


class ColumnPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What becomes of one column."""

    name: str
    kind: Literal["number", "category"]
    fill: float | None = None  # for missing numbers; None: refuse them
    indicator: bool = False  # one more column: whether the cell was missing
    categories: tuple[str, ...] = ()


class Preparation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The plans of all columns of one party, in order."""

    party: str
    columns: tuple[ColumnPlan, ...]
