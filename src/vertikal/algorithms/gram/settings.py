"""Parameters of a kernel machine on the secure kernel in jobs, and their rules."""

from __future__ import annotations

from typing import Literal

from vertikal.algorithms.algorithm import JobSettings
from vertikal.algorithms.gram.kernel_choice import BOOLEAN, KernelChoice, KernelName
from vertikal.algorithms.gram.secgram import GramSettings
from vertikal.data.scaling import Scale
from vertikal.errors import InputError
from vertikal.parameters import Count, Number, Positive

MOST_ROWS = 20_000


class SecureKernelSettings(JobSettings, frozen=True, kw_only=True):
    """Parameters of ``algorithm = "gram"``, as `SecureKernelSVC` and `SecureKernelRidge` have them.

    ``machine`` is "svc" with ``C``, or "ridge" or "komd" with ``alpha``. The label party holds the
    square of the rows, and more of them than ``most_rows`` are refused; with ``landmarks`` it holds
    that many columns of the kernel instead, and the machine learns from these.
    """

    machine: Literal["svc", "ridge", "komd"] = "svc"
    kernel: KernelName = "rbf"
    gamma: Positive | Literal["median"] = "median"
    degree: Count = 3
    coef0: Number = 1.0
    coefficients: tuple[Number, ...] = (0.0, 1.0, 1.0)
    C: Positive = 1.0
    alpha: Positive = 1.0
    scale: Scale | None = None
    ring_bits: Literal["auto", 16, 32, 64] = "auto"
    most_rows: Count = MOST_ROWS
    landmarks: Count | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.label_parties) != 1:
            raise InputError.of(
                "label_parties", "one party, which learns the kernel", list(self.label_parties)
            )
        if self.regression and self.machine != "ridge":
            raise InputError.of("machine", "'ridge' for regression", self.machine)
        if self.kernel in BOOLEAN and self.scale is not None:
            raise InputError.of("scale", "left out for a boolean kernel", self.scale)

    @property
    def gram(self) -> GramSettings:
        """The settings of the kernel matrix itself."""
        return GramSettings(
            parties=self.parties,
            label_parties=self.label_parties,
            ring_bits=self.ring_bits,
            scale=self.scale,
            binary=self.kernel in BOOLEAN,
        )

    @property
    def choice(self) -> KernelChoice:
        """The kernel, its γ not yet found."""
        return KernelChoice(
            kernel=self.kernel,
            gamma=self.gamma,
            degree=self.degree,
            coef0=self.coef0,
            coefficients=self.coefficients,
        )

    def held(self, rows: int) -> int:
        """Count the kernel's entries that the label party holds."""
        return rows * min(rows, self.landmarks or rows)

    def check_rows(self, rows: int) -> None:
        """Refuse more rows than the label party should hold the square, or landmarks, of."""
        if self.held(rows) <= self.most_rows**2:
            return
        if self.landmarks is None:
            raise InputError.of(
                "rows",
                f"at most most_rows, {self.most_rows}, unless landmarks are set; FDSKL takes any "
                "number",
                rows,
            )
        raise InputError.of(
            "landmarks", f"at most {self.most_rows**2 // rows} for {rows} rows", self.landmarks
        )
