"""The shard: what one party keeps of a trained model. A model exists only as its shards.

Directions are not in it: they are drawn again from the shard's seed, so a shard is small and the
same numbers never lie in two places.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.algorithms.kernel_machine.avfkam_settings import AvfkamSettings
from vertikal.algorithms.kernel_machine.settings import FdsklSettings
from vertikal.data.scaling import Scaling

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Moment:
    """One point of the curves of a stochastic run, as one label party saw it."""

    seconds: float  # since the solver began
    updates: int  # of this party itself
    total: int  # of all label parties, as far as this one knew
    staleness: float  # mean over this party's updates since the moment before
    auc: float | None = None  # on the held-out rows, at the leader


@dataclass(frozen=True)
class Training:
    """How the solver went, as a label party saw it."""

    iterations: int = 0
    passes: int = 0
    converged: bool = True
    objective: list[float] = field(default_factory=list)
    gradient: list[float] = field(default_factory=list)
    penalty: float = 0.0
    pairs: str = ""
    """Which pairs of rows a pairwise loss was summed over, in words."""
    moments: list[Moment] = field(default_factory=list)
    staleness: dict[int, int] = field(default_factory=dict)
    """How many of this party's updates were so many updates of others old."""
    missing: tuple[str, ...] = ()
    """Label parties that vanished, and whose coefficients are not in the model."""


@dataclass(frozen=True)
class Shard:
    """One party's part: its columns, scaling and seed; at a label party also its coefficients."""

    party: str
    settings: FdsklSettings | AvfkamSettings
    columns: tuple[str, ...]
    scaling: Scaling
    bandwidth: float
    seed: bytes = field(repr=False)
    coefficients: Array | None = None  # (own directions, outputs), of the label party's own block
    coefficient_share: Array | None = None
    """Sealed: (D, outputs) ring elements at the label party and at the helper; their sum is the
    coefficients, and neither says anything by itself."""
    landmarks: Mapping[str, Array] = field(default_factory=dict, repr=False)
    """With landmark features: this party's own coordinates of them, by the label party's block."""
    constant: Array = field(default_factory=lambda: np.zeros(1))  # (outputs,), added last
    unit: Array = field(default_factory=lambda: np.ones(1))  # (outputs,), of regression targets
    threshold: float = 0.0
    """The prediction above which a row is of the second class."""
    training: Training = field(default_factory=Training)

    @property
    def learned(self) -> bool:
        """Whether this party holds coefficients, or its share of them."""
        return self.coefficients is not None or self.coefficient_share is not None
