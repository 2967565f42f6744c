"""The tables and figures of ``items.toml``, each with its benchmark and its verdict."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

TITLES = {
    "fdskl": "FDSKL: federated doubly stochastic kernel learning (KDD 2020)",
    "avfkam": "AVFKAM: asynchronous kernelised AUC maximisation (KDD 2024)",
    "fedcfk": "Secure kernels and FedCFK (ESANN)",
    "admm": "ADMM sharing (2019)",
}


class Item(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One table or figure, or several that one benchmark gives."""

    paper: str
    name: str
    module: str  # below `benchmarks.papers`
    results: str  # the names of its result files begin with this
    published: str
    verdict: str
    minutes: float
    quick_minutes: float
    given: tuple[str, ...] = ()
    quick: tuple[str, ...] = ()
    files: tuple[str, ...] = ()  # of the data folder, without which it does not run
    theirs: Mapping[str, str] = {}  # the paper's numbers, by the names of our figures

    @property
    def id(self) -> str:
        return f"{self.paper} {self.name}"


def read_items() -> tuple[Item, ...]:
    """All items, in the order of the papers."""
    text = (Path(__file__).parent / "items.toml").read_text(encoding="utf-8")
    content: dict[str, Any] = tomllib.loads(text)
    return msgspec.convert(content["items"], tuple[Item, ...])


ITEMS = read_items()
