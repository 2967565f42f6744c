"""Parameters of VAFL."""

from __future__ import annotations

from typing import Annotated

import msgspec

from vertikal.algorithms.algorithm import JobSettings
from vertikal.errors import InputError
from vertikal.parameters import Count, Positive


class VaflSettings(JobSettings, frozen=True, kw_only=True):
    """VAFL's parameters; `VAFLClassifier` describes each."""

    embedding: Count = 64
    hidden: Count = 128
    step_size: Positive = 0.02
    alpha: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    n_steps: Count = 5000
    batch_size: Count = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.label_parties) != 1:
            raise InputError.of(
                "label_parties", "one, which is the server", list(self.label_parties)
            )
        if self.outputs != 1 or self.regression:
            raise InputError.of("outputs", "1 (two classes)", self.outputs)
