"""The shard of ADMM sharing: one party's part of a model, with a record of its training."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.algorithms.admm.design import Features
from vertikal.algorithms.admm.settings import AdmmSettings
from vertikal.privacy.accountant import Spent

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Round:
    """View of the central node on one round; nan where noise would have to protect a number."""

    primal: float  # ‖Σ D_m x_m − z‖
    dual: float  # ρ‖z − z of the round before‖
    lyapunov: float  # V of the round before, (13)
    objective: float  # mean loss + λR


@dataclass(frozen=True)
class AdmmShard:
    """Part of one party: its columns, features and coefficients x_m.

    The leading label party also keeps the constant and unit of regression targets, and the rounds.
    """

    party: str
    settings: AdmmSettings
    columns: tuple[str, ...]
    features: Features
    coefficients: Array  # (width, outputs)
    penalty: float = 0.0  # λ as used
    rho: float = 0.0
    constant: Array = field(default_factory=lambda: np.zeros(1))  # (outputs,)
    unit: Array = field(default_factory=lambda: np.ones(1))  # (outputs,)
    rounds: tuple[Round, ...] = ()
    converged: bool = False
    assumptions: dict[str, bool] = field(default_factory=dict)
    spent: tuple[Spent, ...] = ()
