"""The shard of a tuned kernel machine, and the record of its search."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.algorithms.kernel_machine.shard import Shard, Training
from vertikal.algorithms.tuned.settings import KernelSettings
from vertikal.data.encoding import Encoding

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Trial:
    """One fit of the search, and the loss of the rows held out of it."""

    stage: str  # "relevance", "bandwidth" or "model"
    round: int  # rounds of relevance before it
    gaussian: float  # bandwidth of the Gaussian kernel over the typical distance
    laplace: float  # the same of the Laplace kernel
    directions: int
    penalty: float
    loss: float
    bytes_sent: int  # for the phases that it needed, by each sender; 0 if they were there


@dataclass(frozen=True)
class TunedShard:
    """Part of one party: how it encodes its columns, their relevance, and its part of the blocks.

    Only label parties hold coefficients, and know the trials of the search.
    """

    party: str
    settings: KernelSettings
    columns: tuple[str, ...]
    encoding: Encoding
    blocks: tuple[Shard, ...]
    """Kernel machines on the encoded columns, which add up to f; relevance is their scaling."""
    relevance: Array  # (encoded columns,)
    """Change of f along each encoded column, f having a deviation of one; for the owner only."""
    rounds: int
    """Rounds of relevance whose factors the model uses."""
    trials: tuple[Trial, ...] = ()
    constant: Array = field(default_factory=lambda: np.zeros(1))  # (outputs,), added last
    unit: Array = field(default_factory=lambda: np.ones(1))  # (outputs,), of regression targets
    training: Training = field(default_factory=Training)

    @property
    def learned(self) -> bool:
        """True if this party holds coefficients."""
        return any(block.learned for block in self.blocks)

    @property
    def n_components(self) -> int:
        """Directions of the model."""
        return sum(block.settings.n_components for block in self.blocks)

    def column_relevance(self) -> dict[str, float]:
        """Relevance of this party's own columns by name, 1 for its most relevant one.

        Encoded columns that were made of one column count together.
        """
        squares = np.zeros(len(self.columns))
        np.add.at(squares, list(self.encoding.parents), np.square(self.relevance))
        found = np.sqrt(squares)
        top = found.max(initial=0.0)
        return dict(zip(self.columns, (found / top if top > 0 else found).tolist(), strict=True))
