"""Parameters of CF-KOMD and FedCFK: the table of names, types, bounds and defaults."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from vertikal.parameters import LARGEST, Count, Parameters, Positive


class KomdSettings(Parameters, frozen=True, kw_only=True):
    """Parameters of each user's programme; `CFKOMDRecommender` describes each."""

    alpha: Positive = 0.1
    tol: Positive = 1e-6


class FedcfkSettings(KomdSettings, frozen=True, kw_only=True):
    """Parameters of FedCFK; `FedCFKRecommender` describes each."""

    rounds: Count = 1
    participation: Annotated[float, msgspec.Meta(gt=0, le=1)] = 1.0
    dropping: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0.0
    cover: Annotated[float, msgspec.Meta(ge=1, le=LARGEST)] = 4.0
    request_share: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.7
    decoys: Literal["fixed", "fresh"] = "fixed"
