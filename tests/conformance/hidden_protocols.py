"""The protocols of hidden features, each as a function that runs it among parties with phases."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tests.secure.hidden.hidden_run import Session, draw_phases, hide
from tests.secure.two_party.two_party_run import NAMES, hide_between_two


def with_a_dealer(
    phases: Mapping[str, np.ndarray], program: Callable[[Any], Any], **options: Any
) -> Session:
    """Give helper and dealer phases as well, which add to nothing."""
    first = next(iter(phases.values()))
    zero = {name: np.zeros_like(first) for name in ("sue", "tim")}
    return hide({"ada": phases["ada"], "hal": phases["bob"], **zero}, program, **options)


PROTOCOLS = {"with a dealer": with_a_dealer, "two parties": hide_between_two}


def drawn(rows: int, width: int, seed: int = 0, dtype: str = "uint8") -> dict[str, np.ndarray]:
    return draw_phases(rows, width, seed, dtype, NAMES)
