"""What all parties of an FDSKL job agree on, checked before anything runs.

The settings are public: their digest is compared in the first message between any two parties.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from vertikal.errors import InputError
from vertikal.kernels.spectral import kernel_named
from vertikal.losses.pointwise import loss_named

SOLVERS = ("exact", "dsg")
FEATURE_MAPS = ("fourier", "landmarks")
DISCLOSURES = ("open", "values", "sealed")
HIDDEN_BITS = (32, 64)
HIDDEN_RING_BITS = (8, 16)
COARSE_TOLERANCE = 1e-2
NOISY_TOLERANCE = 7e-3
PRECISE_VALUE_BITS = 12
FEWEST_VALUE_BITS = 4
MOST_VALUE_BITS = 28
FEWEST_SAMPLES = 16
"""Rows of a batch where features are hidden: the gradient of one row would be its features."""
SAMPLES_PER_USE = 8
"""Twice what `secure.openings` asks for: a batch may draw rows twice."""
GRADIENTS_PER_ROW = 0.2
DIRECTIONS = ("private", "shared")
SCHEDULES = ("sync", "async")
RING_BITS = (8, 16, 32)
LANDMARK_BITS = (16, 32)
SCALES = (None, "standard", "minmax", "max")


class FdsklSettings(msgspec.Struct, frozen=True, kw_only=True, tag_field="program", tag="fdskl"):
    """FDSKL's parameters, by the names that the estimators use."""

    parties: tuple[str, ...]
    label_parties: tuple[str, ...]
    kernel: str = "gaussian"
    bandwidth: float | Literal["median", "mean"] = "median"
    n_components: int = 2048
    alpha: float | Literal["auto"] = "auto"
    loss: str = "logistic"
    solver: str = "exact"
    step_size: float | Literal["auto"] = "auto"
    steps: int | None = None
    samples: int = 64
    features: int = 64
    precondition: bool = False
    feature_map: str = "fourier"
    disclosure: str = "open"
    helper: str | None = None
    dealer: str | None = None
    hidden_bits: int = 64
    max_passes: int | None = None
    value_bits: int = 6
    scale: str | None = None
    ring_bits: int = 8
    directions: str = "private"
    schedule: str = "sync"
    max_staleness: int = 256
    allow_missing: bool = False
    cache_size: int | None = None
    tol: float = 1e-3
    max_iter: int = 200
    outputs: int = 1
    regression: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        kernel_named(self.kernel)
        self._check_loss()
        for name, value, allowed in (
            ("solver", self.solver, SOLVERS),
            ("feature_map", self.feature_map, FEATURE_MAPS),
            ("disclosure", self.disclosure, DISCLOSURES),
            ("directions", self.directions, DIRECTIONS),
            ("schedule", self.schedule, SCHEDULES),
            ("ring_bits", self.ring_bits, RING_BITS),
            ("scale", self.scale, SCALES),
            ("hidden_bits", self.hidden_bits, HIDDEN_BITS),
        ):
            _one_of(name, value, allowed)
        if self.bandwidth != "mean":
            words = "a positive number, 'median' or 'mean'"
            _number("bandwidth", self.bandwidth, words, _positive, "median")
        _number("alpha", self.alpha, "a positive number or 'auto' (0.1 / rows)", _positive, "auto")
        _number("step_size", self.step_size, "a positive number or 'auto'", _positive, "auto")
        _number("tol", self.tol, "a positive number", _positive)
        for name, count in (
            ("n_components", self.n_components),
            ("samples", self.samples),
            ("features", self.features),
            ("max_iter", self.max_iter),
            ("max_staleness", self.max_staleness),
        ):
            _whole(name, count)
        if self.steps is not None:
            _whole("steps", self.steps, " or None (each direction once)")
        if self.cache_size is not None:
            _whole("cache_size", self.cache_size, " of bytes, or None for no limit")
        if self.feature_map == "landmarks":
            if self.kernel != "gaussian":
                raise InputError.of("kernel", "'gaussian' for landmarks", self.kernel)
            if self.ring_bits not in LANDMARK_BITS:
                raise InputError.of(
                    "ring_bits", f"one of {LANDMARK_BITS} for landmarks", self.ring_bits
                )
        if self.n_components < len(self.label_parties):
            raise InputError.of(
                "n_components",
                f"at least the number of label parties, {len(self.label_parties)}",
                self.n_components,
            )
        if (
            self.solver == "dsg"
            and self.step_size != "auto"
            and self.alpha != "auto"
            and self.step_size * self.alpha >= 1
        ):
            raise InputError.of(
                "step_size", f"below 1 / alpha = {1 / self.alpha:g}", self.step_size
            )

        _whole("value_bits", self.value_bits)
        if not FEWEST_VALUE_BITS <= self.value_bits <= MOST_VALUE_BITS:
            raise InputError.of(
                "value_bits", f"from {FEWEST_VALUE_BITS} to {MOST_VALUE_BITS}", self.value_bits
            )
        if self.max_passes is not None:
            _whole("max_passes", self.max_passes, " or None (a quarter of the directions)")
        if self.hides:
            self._check_hidden()
        if self.asynchronous:
            self._check_asynchronous()

    def _check_loss(self) -> None:
        loss_named(self.loss, regression=self.regression)

    @property
    def asynchronous(self) -> bool:
        """Whether label parties update without waiting for one another."""
        return self.solver == "dsg" and self.schedule == "async" and len(self.label_parties) > 1

    def _check_asynchronous(self) -> None:
        if self.hides:
            raise InputError.of(
                "schedule",
                f"'sync' with disclosure={self.disclosure!r} (its parties work in step)",
                self.schedule,
            )
        others = len(self.label_parties) - 1
        if self.max_staleness < others:
            raise InputError.of(
                "max_staleness",
                f"at least {others}, one update of each other label party",
                self.max_staleness,
            )

    @property
    def hides(self) -> bool:
        """Whether nobody sees a feature."""
        return self.disclosure != "open"

    @property
    def seals(self) -> bool:
        """Whether nothing is opened but predictions."""
        return self.disclosure == "sealed"

    def _check_hidden(self) -> None:
        level = f"with disclosure={self.disclosure!r}"
        if self.feature_map != "fourier":
            raise InputError.of("feature_map", f"'fourier' {level}", self.feature_map)
        if self.ring_bits not in HIDDEN_RING_BITS:
            raise InputError.of("ring_bits", f"8 or 16 {level}", self.ring_bits)
        needed = max(FEWEST_SAMPLES, SAMPLES_PER_USE * self._uses() * self.outputs)
        if self.solver == "dsg" and self.samples < needed:
            raise InputError.of(
                "samples",
                f"at least {needed} {level}, {SAMPLES_PER_USE} for each step and output on the "
                "same directions: gradients of few rows show their features",
                self.samples,
            )
        if self.solver == "dsg" and self.precondition:
            raise InputError.of(
                "precondition", f"False {level}: a block's covariance is not opened", True
            )
        if self.seals:
            self._check_sealed(level)
        self.assistants()

    def _check_sealed(self, level: str) -> None:
        for name, value, allowed in (
            ("loss", self.loss, "square"),
            ("solver", self.solver, "exact"),
            ("hidden_bits", self.hidden_bits, 64),
        ):
            if value != allowed:
                raise InputError.of(name, f"{allowed!r} {level}", value)
        if self.bandwidth == "median":
            raise InputError.of(
                "bandwidth",
                f"a number or 'mean' {level}: 'median' opens distances of rows",
                "median",
            )
        if len(self.label_parties) > 1:
            raise InputError.of(
                "label_parties",
                f"one {level}: coefficients are shared by it and the helper",
                list(self.label_parties),
            )

    def assistants(self) -> tuple[str, str]:
        """Helper and dealer: those named, or the first and the last feature party."""
        free = [name for name in self.parties if name not in self.label_parties]
        for role, name in (("helper", self.helper), ("dealer", self.dealer)):
            if name is not None and name not in free:
                raise InputError.of(role, f"a party without labels, one of {free}", name)
        left = [name for name in free if name not in (self.helper, self.dealer)]
        if self.helper is not None and self.helper == self.dealer:
            raise InputError.of("dealer", f"another party than the helper {self.helper!r}", "it")
        missing = [self.helper, self.dealer].count(None)
        if len(left) < missing:
            raise InputError(
                f"disclosure={self.disclosure!r} needs two parties without labels, a helper and a "
                f"dealer, got {free}; name a dealer that has no columns, such as dealer='notary', "
                "or use disclosure='open'"
            )
        helper = self.helper if self.helper is not None else left.pop(0)
        return helper, self.dealer if self.dealer is not None else left.pop()

    def passes(self, owner: str) -> int:
        """How often the predictions of a training row may be opened to ``owner``.

        As many as it owns directions would tell it the features, hence a quarter by default.
        """
        return self.max_passes or max(1, self.widths()[owner] // 4)

    def _uses(self) -> int:
        """How many steps of the stochastic solver are about the same directions."""
        blocks = sum(-(-width // self.features) for width in self.widths().values())
        return 1 if self.steps is None else -(-self.steps // blocks)

    def iterations(self, rows: int) -> int:
        """How far the exact solver may go: as told, and within what the helper opens.

        That is the passes that were agreed, and gradients up to a quarter of the rows, of which a
        twentieth is left for answers that a crash may lose; one gradient comes before the first.
        """
        if not self.hides or self.seals:
            return self.max_iter
        fewest = min(self.passes(owner) for owner in self.label_parties)
        gradients = int(rows * GRADIENTS_PER_ROW) // self.outputs
        return max(1, min(self.max_iter, fewest // self.outputs, gradients - 1))

    def stopping(self) -> float:
        """The exact solver's tolerance; hidden in 32 bits, gradients are good to about 1 %.

        With noisy values the last digits only cost passes, each of which opens more.
        """
        if self.hides and self.hidden_bits == 32:
            return max(self.tol, COARSE_TOLERANCE)
        if self.disclosure == "values" and self.value_bits < PRECISE_VALUE_BITS:
            return max(self.tol, NOISY_TOLERANCE)
        return self.tol

    def widths(self) -> dict[str, int]:
        """How many directions each label party owns: D cut as evenly as possible."""
        share, rest = divmod(self.n_components, len(self.label_parties))
        return {name: share + (i < rest) for i, name in enumerate(self.label_parties)}

    def cached_rows(self, rows: int) -> int:
        """Rows whose phases (hidden: masked halves) a label party can keep: ``cache_size``."""
        if self.cache_size is None:
            return rows
        # Landmark features are kept as single-precision kernel values, phases as they came.
        bits = 32 if self.feature_map == "landmarks" else self.ring_bits
        bits = self.kept_bits() if self.hides else bits
        return min(rows, self.cache_size // (max(self.widths().values()) * (bits // 8)))

    def kept_bits(self) -> int:
        """Bits that a role keeps per row and direction where features are hidden."""
        return 2 * self.hidden_bits if self.seals else self.hidden_bits

    def check_rows(self, rows: int) -> None:
        """Refuse too few rows to hide, and where features are hidden, too many for the memory."""
        if self.disclosure == "values":
            fewest = self.samples if self.solver == "dsg" else 10 * self.outputs
            if rows < fewest:
                raise InputError.of(
                    "rows",
                    f"at least {fewest} with disclosure='values' (as many as samples, or ten for "
                    "each output): a gradient of few rows shows their features",
                    rows,
                )
        if self.hides and self.cached_rows(rows) < rows:
            needed = rows * max(self.widths().values()) * self.kept_bits() // 8
            raise InputError.of(
                "cache_size",
                f"None or at least {needed} bytes with disclosure={self.disclosure!r}, where "
                "nothing is asked for again",
                self.cache_size,
            )


def _positive(value: float) -> bool:
    return math.isfinite(value) and value > 0


def _one_of(name: str, value: object, allowed: tuple[object, ...]) -> None:
    if not any(type(value) is type(choice) and value == choice for choice in allowed):
        listed = ", ".join(repr(choice) for choice in allowed)
        raise InputError.of(name, f"{listed}" if len(allowed) == 1 else f"one of {listed}", value)


def _number(
    name: str, value: Any, allowed: str, good: Callable[[float], bool], word: str | None = None
) -> None:
    if isinstance(value, str) and value == word:
        return
    if isinstance(value, bool | str) or not isinstance(value, int | float) or not good(value):
        raise InputError.of(name, allowed, value)


def _whole(name: str, value: Any, also: str = "") -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError.of(name, f"a positive whole number{also}", value)
