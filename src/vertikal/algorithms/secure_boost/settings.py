"""Parameters of SecureBoost; defaults are those of its authors' implementation, FATE."""

from __future__ import annotations

from typing import Annotated

import msgspec

from vertikal.algorithms.algorithm import JobSettings
from vertikal.errors import InputError
from vertikal.parameters import Count, Positive


class BoostSettings(JobSettings, frozen=True, kw_only=True):
    """SecureBoost's parameters; `SecureBoostClassifier` describes each."""

    n_trees: Count = 3
    depth: Annotated[int, msgspec.Meta(ge=1, le=10)] = 3
    learning_rate: Positive = 0.3
    bins: Annotated[int, msgspec.Meta(ge=2, le=255)] = 32
    reg_lambda: Positive = 0.1
    min_gain: Positive = 1e-2
    key_bits: Annotated[int, msgspec.Meta(ge=512, le=8192)] = 2048

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.label_parties) != 1:
            raise InputError.of(
                "label_parties", "one, which holds the key", list(self.label_parties)
            )
        if self.outputs != 1 or self.regression:
            raise InputError.of("outputs", "1 (two classes)", self.outputs)
