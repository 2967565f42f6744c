"""Parameters of ADMM sharing: the table of names, types, bounds and defaults, and their rules.

Estimators and job files build these records alike; all parties of a job agree on them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
import numpy.typing as npt

from vertikal.algorithms.algorithm import JobSettings
from vertikal.data.scaling import Scale
from vertikal.errors import InputError
from vertikal.losses.nonconvex import smooth_loss_named
from vertikal.parameters import Count, Parameters, Positive, Share

Array = npt.NDArray[Any]

_ROUNDS = 200
_PUBLISHED_ROUNDS = 20
"""Rounds of the published mechanism: the paper has fewer than that in mind."""
_RELEASES = 1
"""Noise grows with the root of their number; rows held back prefer one to two in 19 of 24 cases of
`benchmarks/papers/admm/epsilon.py`."""


class Privacy(Parameters, frozen=True, kw_only=True):
    """The total (ε, δ) that each party spends for any one of its rows, and how its noise is made.

    ``bound`` is Assumption 2's b₁: the radius of the ball of x_m and the bound of its targets.
    ``mechanism`` is "row", which protects any one row of a party's columns, or "paper", which
    reproduces Lemma 1, Theorem 3, Corollary 1 and equation (16) as printed, ``bound`` only in the
    size of the noise, and protects nothing. Labels and weights are not covered: every party learns
    them.
    """

    epsilon: Positive
    delta: Annotated[float, msgspec.Meta(gt=0, lt=1)]
    bound: Positive = 4.0
    mechanism: Literal["row", "paper"] = "row"


class Gaussian(Parameters, frozen=True, kw_only=True, tag_field="name", tag="gaussian"):
    """Options of ``kernel="gaussian"``: each party's own random features of its own columns.

    ``bandwidth="mean"`` is from the mean distance between rows in a party's own columns, "median"
    from the median of a sample; nobody else sees either.
    """

    bandwidth: Positive | Literal["mean", "median"] = "mean"
    n_components: Count = 512


class AdmmSettings(JobSettings, frozen=True, kw_only=True):
    """ADMM sharing's parameters; `ADMMClassifier` describes each.

    ``alpha`` is λ of (1/n) Σ L + λR; "auto" is 0.1/n.
    """

    loss: str = "logistic"
    alpha: Positive | Literal["auto"] = "auto"
    l1_ratio: Share = 0.0
    rho: Positive | Literal["auto"] = "auto"
    averaging: bool = True
    fit_intercept: bool = True
    kernel: Gaussian | None = None
    scale: Scale | None = None
    privacy: Privacy | None = None
    tol: Positive = 1e-3
    max_iter: Count | Literal["auto"] = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        smooth_loss_named(self.loss, regression=self.regression)
        if len(self.label_parties) != 1:
            raise InputError.of(
                "label_parties", "one party, which is the central node", list(self.label_parties)
            )
        if self.privacy is not None:
            self._check_private()

    def _check_private(self) -> None:
        if self.l1_ratio != 0:
            raise InputError.of(
                "l1_ratio", "0 with privacy (its x-step is over a ball)", self.l1_ratio
            )
        if self.scale is not None:
            raise InputError.of(
                "scale",
                "None with privacy: a scaling depends on every row (before fit, divide columns "
                "by numbers that everybody may know)",
                self.scale,
            )
        if self.kernel is not None and isinstance(self.kernel.bandwidth, str):
            raise InputError.of(
                "bandwidth",
                f"a number with privacy: a {self.kernel.bandwidth} depends on every row",
                self.kernel.bandwidth,
            )

    @property
    def most_rounds(self) -> int:
        """``max_iter``; automatic is 200, with privacy one release, and as published 20."""
        if isinstance(self.max_iter, int):
            return self.max_iter
        if self.privacy is None:
            return _ROUNDS
        return _RELEASES if self.privacy.mechanism == "row" else _PUBLISHED_ROUNDS

    @property
    def step_bound(self) -> float | None:
        """The bound of targets and of x_m in each x-step; None without, and as published."""
        if self.privacy is None or self.privacy.mechanism == "paper":
            return None
        return self.privacy.bound

    @property
    def proximity(self) -> int:
        """Factor of ρ by which the x-step weighs its distance: M in the averaged form, else 1."""
        return len(self.parties) if self.averaging else 1

    def check_rows(self, rows: int) -> None:
        """Refuse a δ at which showing one row in the open would count as private."""
        if self.privacy is not None and self.privacy.delta >= 1 / rows:
            raise InputError.of("delta", f"below 1 / rows = {1 / rows:.3g}", self.privacy.delta)

    def check_labels(self, targets: Array, weights: Array) -> None:
        """Refuse labels that a classifier cannot learn from; any finite number will do as a target.

        An intercept that nothing penalises has no best value where only one class counts.
        """
        if self.regression:
            return
        strange = targets[(targets != 1) & (targets != -1)]
        if strange.size:
            raise InputError.of(
                "labels", "-1 or 1 (write the two classes so)", float(strange.flat[0])
            )
        used = targets[weights > 0]
        if not ((used > 0).any(axis=0) & (used < 0).any(axis=0)).all():
            raise InputError(
                "y must hold at least two classes in rows of positive weight, got one class; "
                "give weight to rows of another class"
            )
