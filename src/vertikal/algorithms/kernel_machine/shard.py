"""The shard: the part of a trained model that one party keeps. A model exists only as its shards.

A shard holds a seed instead of directions, which are drawn again from it: so a shard is small, and
the same numbers never lie in two places.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.algorithms.kernel_machine.settings import AvfkamSettings, FdsklSettings
from vertikal.data.encoding import Encoding
from vertikal.data.scaling import Scaling

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Moment:
    """Point of the curves of a stochastic run, as one label party saw it."""

    seconds: float  # since the solver began
    updates: int  # of this party itself
    total: int  # updates of all label parties, as far as this one knew
    staleness: float  # mean over this party's updates since the moment before
    auc: float | None = None  # on the held-out rows, at the leader


@dataclass(frozen=True)
class Training:
    """Record of the solver's run, as a label party saw it."""

    iterations: int = 0
    passes: int = 0
    converged: bool = True
    objective: list[float] = field(default_factory=list)
    gradient: list[float] = field(default_factory=list)
    penalty: float = 0.0
    pairs: str = ""
    """Pairs of rows that a pairwise loss was summed over, in words."""
    moments: list[Moment] = field(default_factory=list)
    staleness: dict[int, int] = field(default_factory=dict)
    """Histogram of staleness: own updates, counted by the updates that the other label parties made
    between the reading of f that the update used and the next reading."""
    missing: tuple[str, ...] = ()
    """Label parties that vanished, and whose coefficients are not in the model."""


@dataclass(frozen=True)
class KernelPart:
    """One kernel of a sum of kernels, and its bandwidth."""

    kernel: str
    bandwidth: float


@dataclass(frozen=True)
class Shard:
    """Part of one party: its columns, scaling and seed; at a label party also its coefficients."""

    party: str
    settings: FdsklSettings | AvfkamSettings
    columns: tuple[str, ...]
    scaling: Scaling  # of the encoded columns, if there is an encoding
    bandwidth: float
    seed: bytes = field(repr=False)
    coefficients: Array | None = None  # (own features, outputs), of the label party's own block
    coefficient_share: Array | None = None
    """Share of sealed coefficients at label party and helper: (features, outputs) elements. The two
    sum to the coefficients, and neither tells anything by itself."""
    landmarks: Mapping[str, Array] = field(default_factory=dict, repr=False)
    """This party's own coordinates of landmarks, by the label party whose block they are."""
    constant: Array = field(default_factory=lambda: np.zeros(1))  # (outputs,), added last
    unit: Array = field(default_factory=lambda: np.ones(1))  # (outputs,), of regression targets
    threshold: float = 0.0
    """Prediction above which a row is of the second class."""
    training: Training = field(default_factory=Training)
    parts: tuple[KernelPart, ...] = ()
    """Kernels of which directions are drawn, as many of each; none: of the settings' kernel."""
    encoding: Encoding | None = None
    """Encoding of the columns, which comes before everything else."""

    @property
    def width(self) -> int:
        """The number of columns that directions and landmarks have coordinates for."""
        return len(self.columns) if self.encoding is None else self.encoding.width

    @property
    def learned(self) -> bool:
        """True if this party holds coefficients or a share of them."""
        return self.coefficients is not None or self.coefficient_share is not None
