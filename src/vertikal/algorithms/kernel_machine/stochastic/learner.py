"""What the stochastic solvers share, whatever the loss and the schedule.

A `Rule` says which rows a step needs and how the loss slopes there: rows for FDSKL, pairs of rows
for AVFKAM. A `Learner` is one label party's part of the model while it is learned. Who acts when is
the schedule's business (`turns`, `asynchronous`).
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve

from vertikal.algorithms.kernel_machine.settings import FdsklSettings
from vertikal.algorithms.kernel_machine.shard import Moment, Shard, Training
from vertikal.errors import InputError
from vertikal.party.party import Party
from vertikal.secure.keys.prg import derive_key
from vertikal.solvers.feature_operator import FeatureOperator

Array = npt.NDArray[Any]

_ROUNDING = 1e-7
_DIVERGED = 1e6
_SMALLEST = 1e-100


class Rule(ABC):
    """What one step does with its batch."""

    curvature_bound: float

    @abstractmethod
    def draw(self, key: bytes) -> Array:
        """The row numbers of one batch, drawn by the stream cipher under ``key``."""

    @abstractmethod
    def slopes(self, f: Array, rows: Array) -> Array:
        """The derivative of the batch's mean loss in each prediction, of the shape of f."""

    @abstractmethod
    def value(self, f: Array, rows: Array) -> float:
        """The batch's mean loss."""


class Expansion:
    """f = Σ_j α_j φ_j; coefficients (width, outputs), zero at first.

    FDSKL eq. (7) multiplies all earlier coefficients by 1 − γλ in each step. One factor is kept for
    all of them instead, so that a step costs its own block only.
    """

    def __init__(self, width: int, outputs: int) -> None:
        self._stored = np.zeros((width, outputs))
        self._factor = 1.0

    def decay(self, factor: float) -> None:
        """α ← factor · α, for all coefficients, in constant time."""
        self._factor *= factor
        if abs(self._factor) < _SMALLEST:
            self._stored *= self._factor
            self._factor = 1.0

    def add(self, columns: slice, values: Array) -> None:
        """α[columns] += values."""
        self._stored[columns] += values / self._factor

    def coefficients(self, columns: slice = slice(None)) -> Array:
        """α[columns]."""
        return np.asarray(self._stored[columns] * self._factor)


class Learner:
    """One label party's coefficients and how they change; safe for several threads."""

    def __init__(
        self, party: Party, shard: Shard, operator: FeatureOperator, rule: Rule, penalty: float
    ) -> None:
        self.settings = shard.settings
        self.operator = operator
        self.rule = rule
        self.penalty = penalty
        self.step_size = step_size_of(shard.settings, rule.curvature_bound)
        if self.step_size * penalty >= 1:
            raise InputError.of("step_size", f"below 1 / alpha = {1 / penalty:g}", self.step_size)
        self.trace: list[float] = []
        self.moments: list[Moment] = []
        self.staleness: Counter[int] = Counter()
        self.total = 0
        """Updates of all label parties, as far as this one knows."""
        self.began = time.perf_counter()
        self._party = party
        self._seed = shard.seed
        self._expansion = Expansion(operator.width, shard.settings.outputs)
        self._drawn = 0
        self._seen: Counter[int] = Counter()
        self._lock = threading.Lock()

    def pick(self) -> Array:
        """The rows of this party's next batch, drawn from its own seed."""
        key = derive_key(self._seed, "batches", str(self._drawn))
        self._drawn += 1
        return self.rule.draw(key)

    def partial(self, batch: FeatureOperator) -> Array:
        """FDSKL Algorithm 2: f^ℓ(x) = Σ_{i∈Λ^ℓ} α_i φ_i(x), over this label party's directions.

        Also VFKL Algorithm 2, and AVFKAM Algorithm 2. The phases of the batch were saved before.
        """
        with self._lock:
            coefficients = self._expansion.coefficients()
        partial = batch.forward(coefficients)
        if not np.abs(partial).max(initial=0.0) < _DIVERGED:
            raise InputError.of(
                "step_size", "small enough: the predictions diverge", self.step_size
            )
        return partial

    def change(self, batch: FeatureOperator, rows: Array, f: Array, columns: slice) -> Array:
        """−γ·Σ l'(f(x))·φ(x) for the directions of one block, a mean over the batch.

        FDSKL eq. (7), whose gradient is FDSKL eq. (4), FDSKL eq. (5) and FDSKL eq. (6); with pairs
        of rows AVFKAM eq. (6).
        """
        change = batch.adjoint(self.rule.slopes(f, rows), columns=columns)
        if self.settings.precondition:
            change = _by_covariance(batch, columns, change)
        else:
            # One of D/F blocks stands for all: F features estimate the kernel by D/F · Σ φφ.
            change *= self.settings.n_components / (columns.stop - columns.start)
        self.trace.append(self.rule.value(f, rows))
        return np.asarray(-self.step_size * change)

    def decay(self, times: int = 1) -> None:
        """α ← (1 − γλ)·α for all coefficients so far, once per update of anybody."""
        with self._lock:
            self._expansion.decay((1 - self.step_size * self.penalty) ** times)

    def add(self, columns: slice, change: Array) -> None:
        """Keep the new coefficients of one block."""
        with self._lock:
            self._expansion.add(columns, change)

    def coefficients(self) -> Array:
        with self._lock:
            return self._expansion.coefficients()

    def mark(self, auc: float | None = None) -> None:
        """One more point of the curves."""
        since = self.staleness - self._seen
        self._seen = self.staleness.copy()
        count = sum(since.values())
        mean = sum(old * times for old, times in since.items()) / count if count else 0.0
        seconds = time.perf_counter() - self.began
        self.moments.append(Moment(seconds, len(self.trace), self.total, mean, auc))

    def note(self) -> str:
        """How it goes, for the terminal."""
        words = [f"loss {self.trace[-1]:.4f}"] if self.trace else []
        if self.settings.asynchronous:
            last = self.moments[-1].staleness if self.moments else 0.0
            most = max(self.staleness, default=0)
            words = [f"{len(self.trace)} updates", f"staleness {last:.1f} (max {most})"]
        scores = [moment.auc for moment in self.moments if moment.auc is not None]
        if scores:
            words.append(f"AUC {scores[-1]:.4f}")
        return ", ".join(words)

    def training(self, missing: tuple[str, ...] = ()) -> Training:
        """How it went."""
        steps = self.total
        return Training(
            steps,
            steps,
            True,
            self.trace,
            [],
            self.penalty,
            moments=self.moments,
            staleness=dict(self.staleness),
            missing=missing,
        )


def step_size_of(settings: FdsklSettings, curvature_bound: float) -> float:
    """γ; ``"auto"`` is a constant that neither loss nor batch nor block size makes unstable.

    1/L'' is a full Newton step where the kernel is one; a preconditioned block takes half of it.
    """
    if settings.step_size != "auto":
        return settings.step_size
    newton = 1 / curvature_bound
    if settings.precondition:
        return newton / 2
    # Few rows and few features estimate the gradient badly: smaller steps average over them.
    return float(newton * min(1.0, np.sqrt(settings.samples * settings.features) / 64))


def blocks_of(settings: FdsklSettings, label_party: str) -> list[slice]:
    """The blocks of a label party's directions, each used by one step."""
    width = settings.widths()[label_party]
    return [
        slice(start, min(start + settings.features, width))
        for start in range(0, width, settings.features)
    ]


def steps_of(settings: FdsklSettings) -> int:
    """Steps of the stochastic solver: as given, or enough for each direction once."""
    if settings.steps is not None:
        return settings.steps
    return sum(len(blocks_of(settings, label_party)) for label_party in settings.label_parties)


def _by_covariance(batch: FeatureOperator, columns: slice, change: Array) -> Array:
    """The block's update times the inverse of its covariance in this batch (as DSG's code)."""
    rows = np.arange(batch.rows)
    gram = batch.gram(rows, np.full(batch.rows, 1 / batch.rows), columns)
    if gram is None:
        return change
    # The fewer rows a block's covariance is estimated from, the more it is shrunk.
    shrinkage = max(0.01, 0.5 * len(gram) / batch.rows)
    ridge = max(_ROUNDING, shrinkage * float(np.trace(gram)) / len(gram))
    np.einsum("ii->i", gram)[:] += ridge
    return np.asarray(cho_solve(cho_factor(gram), change))
