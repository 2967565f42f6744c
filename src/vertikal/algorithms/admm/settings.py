"""What all parties of an ADMM sharing job agree on, checked before anything runs."""

from __future__ import annotations

import math
from typing import Any, Literal

import msgspec
import numpy.typing as npt

from vertikal.algorithms.kernel_machine.settings import SCALES
from vertikal.errors import InputError
from vertikal.losses.nonconvex import smooth_loss_named
from vertikal.privacy.accountant import check_budget
from vertikal.solvers.regularisers import REGULARISERS

Array = npt.NDArray[Any]

KERNELS = (None, "gaussian")
MECHANISMS = ("row", "paper")

_ROUNDS = 200
_RELEASES = 1
"""Noise grows with the root of their number; rows held back prefer one to two in 19 of 24 cases of
`benchmarks/papers/admm/epsilon.py`."""


class Privacy(msgspec.Struct, frozen=True, kw_only=True):
    """The total (ε, δ) of a job and how its noise is made.

    ``bound`` is Assumption 2's b₁: the radius of the ball of x_m and the bound of its targets.
    ``mechanism`` is ``"row"``, which protects any one row of a party's columns, or ``"paper"``,
    which reproduces Lemma 1, Theorem 3, Corollary 1 and equation (16) and protects nothing.
    """

    epsilon: float
    delta: float
    bound: float = 4.0
    mechanism: str = "row"

    def __post_init__(self) -> None:
        _positive("epsilon", self.epsilon)
        _positive("delta", self.delta)
        check_budget(self.epsilon, self.delta)
        _positive("bound", self.bound)
        _one_of("mechanism", self.mechanism, MECHANISMS)


class AdmmSettings(msgspec.Struct, frozen=True, kw_only=True):
    """ADMM sharing's parameters, named as the estimators name them."""

    parties: tuple[str, ...]
    label_parties: tuple[str, ...]
    loss: str = "logistic"
    regulariser: str = "l2"
    l1_ratio: float = 0.5
    alpha: float | Literal["auto"] = "auto"
    rho: float | Literal["auto"] = "auto"
    averaging: bool = True
    fit_intercept: bool = True
    kernel: str | None = None
    bandwidth: float | Literal["median"] = "median"
    n_components: int = 512
    scale: str | None = None
    privacy: Privacy | None = None
    tol: float = 1e-3
    max_iter: int | Literal["auto"] = "auto"
    outputs: int = 1
    regression: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        smooth_loss_named(self.loss, regression=self.regression)
        _one_of("regulariser", self.regulariser, REGULARISERS)
        _one_of("kernel", self.kernel, KERNELS)
        _one_of("scale", self.scale, SCALES)
        _positive("alpha", self.alpha, "auto")
        _positive("rho", self.rho, "auto")
        _positive("bandwidth", self.bandwidth, "median")
        _positive("tol", self.tol)
        if not _is_number(self.l1_ratio) or not 0 <= self.l1_ratio <= 1:
            raise InputError.of("l1_ratio", "a number from 0 to 1", self.l1_ratio)
        _count("n_components", self.n_components)
        _count("max_iter", self.max_iter, "auto")
        if self.privacy is not None:
            if self.regulariser != "l2":
                raise InputError.of(
                    "regulariser", "'l2' with privacy (its x-step is over a ball)", self.regulariser
                )
            if self.scale is not None:
                raise InputError.of(
                    "scale",
                    "None with privacy: a scaling depends on every row (before fit, divide columns "
                    "by numbers that everybody may know)",
                    self.scale,
                )
            if self.kernel is not None and self.bandwidth == "median":
                raise InputError.of(
                    "bandwidth", "a number with privacy: a median depends on every row", "median"
                )

    @property
    def most_rounds(self) -> int:
        """``max_iter``; automatic is 200, and with privacy one release."""
        if isinstance(self.max_iter, int):
            return self.max_iter
        return _ROUNDS if self.privacy is None else _RELEASES

    @property
    def proximity(self) -> int:
        """How many times ρ the x-step weighs its distance: M in the averaged form, else 1."""
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


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _positive(name: str, value: Any, word: str | None = None) -> None:
    if word is not None and isinstance(value, str) and value == word:
        return
    if not _is_number(value) or not (math.isfinite(value) and value > 0):
        allowed = "a positive number" + (f" or {word!r}" if word else "")
        raise InputError.of(name, allowed, value)


def _count(name: str, value: Any, word: str | None = None) -> None:
    if word is not None and isinstance(value, str) and value == word:
        return
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        allowed = "a positive whole number" + (f" or {word!r}" if word else "")
        raise InputError.of(name, allowed, value)


def _one_of(name: str, value: object, allowed: tuple[object, ...]) -> None:
    if not any(type(value) is type(choice) and value == choice for choice in allowed):
        raise InputError.of(name, "one of " + ", ".join(repr(choice) for choice in allowed), value)
