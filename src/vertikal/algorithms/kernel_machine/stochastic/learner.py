"""One label party's part of a model while it is learned by stochastic gradients.

An `UpdateRule` draws the rows of a step and computes its gradient: `fdskl.RowUpdate` from rows,
`avfkam.PairUpdate` from pairs of rows. The `Learner` holds the coefficients that it changes. The
schedule, `round_robin` or `asynchronous`, decides who takes a step when.
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
from vertikal.secure.keys.prg import derive_key
from vertikal.solvers.feature_operator import FeatureOperator

Array = npt.NDArray[Any]

_ROUNDING = 1e-7
_DIVERGED = 1e6
_SMALLEST = 1e-100


class UpdateRule(ABC):
    """Update of one algorithm: the rows that a step uses, and the gradient that they give."""

    curvature_bound: float
    """Most that the slope of a batch's mean loss changes with f."""

    @abstractmethod
    def draw(self, key: bytes) -> Array:
        """Draw the row numbers of one batch, by the stream cipher under ``key``."""

    @abstractmethod
    def gradient(self, batch: FeatureOperator, rows: Array, f: Array, columns: slice) -> Array:
        """Return the gradient of the batch's mean loss in the coefficients of ``columns``.

        ``batch`` has the features of ``rows``, ``f`` (rows, outputs) their joint predictions.
        """

    @abstractmethod
    def mean_loss(self, f: Array, rows: Array) -> float:
        """Return the batch's mean loss."""


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
    """Coefficients of one label party while they change; safe for several threads."""

    def __init__(
        self, shard: Shard, operator: FeatureOperator, rule: UpdateRule, penalty: float
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
        self._seed = shard.seed
        self._expansion = Expansion(operator.width, shard.settings.outputs)
        self._drawn = 0
        self._seen: Counter[int] = Counter()
        self._lock = threading.Lock()

    def pick(self) -> Array:
        """Draw the rows of this party's next batch from its own seed."""
        key = derive_key(self._seed, "batches", str(self._drawn))
        self._drawn += 1
        return self.rule.draw(key)

    def partial(self, batch: FeatureOperator) -> Array:
        """FDSKL Algorithm 2: f^ℓ(x) = Σ_{i∈Λ^ℓ} α_i φ_i(x), over this label party's directions.

        It is also VFKL Algorithm 2 and AVFKAM Algorithm 2. The batch has its phases already.
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
        """Return −γ times the gradient, for the directions of one block: their new coefficients."""
        change = self.rule.gradient(batch, rows, f, columns)
        if self.settings.stochastic.precondition:
            change = _by_covariance(batch, columns, change)
        else:
            # One of D/F blocks stands for all: F features estimate the kernel by D/F · Σ φφ.
            total = sum(self.settings.features().values())
            change *= total / (columns.stop - columns.start)
        self.trace.append(self.rule.mean_loss(f, rows))
        return np.asarray(-self.step_size * change)

    def decay(self, times: int = 1) -> None:
        """α ← (1 − γλ)·α for all coefficients so far, once per update of any label party."""
        with self._lock:
            self._expansion.decay((1 - self.step_size * self.penalty) ** times)

    def add(self, columns: slice, change: Array) -> None:
        """Add the new coefficients of one block."""
        with self._lock:
            self._expansion.add(columns, change)

    def coefficients(self) -> Array:
        with self._lock:
            return self._expansion.coefficients()

    def mark(self, auc: float | None = None) -> None:
        """Add a point to this party's curves."""
        since = self.staleness - self._seen
        self._seen = self.staleness.copy()
        count = sum(since.values())
        mean = sum(old * times for old, times in since.items()) / count if count else 0.0
        seconds = time.perf_counter() - self.began
        self.moments.append(Moment(seconds, len(self.trace), self.total, mean, auc))

    def note(self) -> str:
        """Say in a few words how the run goes."""
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
        """Record how the run went."""
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
    """Return γ; ``"auto"`` is a constant that is stable for every loss, batch and block size.

    1/L'' is a full Newton step where the kernel is one; a preconditioned block takes half of it.
    """
    solver = settings.stochastic
    if solver.step_size != "auto":
        return solver.step_size
    newton = 1 / curvature_bound
    if solver.precondition:
        return newton / 2
    # Few rows and few features estimate the gradient badly: smaller steps average over them.
    return float(newton * min(1.0, np.sqrt(solver.batch_size * solver.block_size) / 64))


def direction_blocks(settings: FdsklSettings, label_party: str) -> list[slice]:
    """Cut a label party's directions into the blocks that one step each uses.

    Where a direction gives several features, each kind of feature is cut for itself: offsets are
    uniform, so a block of cosines, or of sines, estimates the kernel by itself.
    """
    width, size = settings.widths()[label_party], settings.stochastic.block_size
    return [
        slice(kind + start, kind + min(start + size, width))
        for kind in range(0, settings.features()[label_party], width)
        for start in range(0, width, size)
    ]


def number_of_steps(settings: FdsklSettings) -> int:
    """Return the number of steps: as given, or enough to use each direction once."""
    if settings.stochastic.n_steps is not None:
        return settings.stochastic.n_steps
    return sum(
        len(direction_blocks(settings, label_party)) for label_party in settings.label_parties
    )


def _by_covariance(batch: FeatureOperator, columns: slice, change: Array) -> Array:
    """Multiply a block's update by the inverse of its covariance in this batch, as DSG's code."""
    rows = np.arange(batch.rows)
    gram = batch.gram(rows, np.full(batch.rows, 1 / batch.rows), columns)
    if gram is None:
        return change
    # The fewer rows a block's covariance is estimated from, the more it is shrunk.
    shrinkage = max(0.01, 0.5 * len(gram) / batch.rows)
    ridge = max(_ROUNDING, shrinkage * float(np.trace(gram)) / len(gram))
    np.einsum("ii->i", gram)[:] += ridge
    return np.asarray(cho_solve(cho_factor(gram), change))
