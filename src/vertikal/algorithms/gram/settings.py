"""Parameters of a kernel machine on the secure kernel in jobs, and their rules."""

from __future__ import annotations

from typing import Literal

from vertikal.algorithms.algorithm import JobSettings
from vertikal.algorithms.gram.kernel_choice import BOOLEAN, KernelChoice
from vertikal.algorithms.gram.secgram import GramSettings
from vertikal.data.scaling import Scale
from vertikal.errors import InputError
from vertikal.parameters import Count, Number, Positive

MOST_ROWS = 20_000


class SecureKernelSettings(JobSettings, frozen=True, kw_only=True):
    """Parameters of ``algorithm = "gram"``, as `SecureKernelSVC` and `SecureKernelRidge` have them.

    ``machine`` is "svc" with ``C``, or "ridge" with ``alpha``. More rows than ``most_rows`` are
    refused: the label party holds their square. The disjunctive kernel is missing: it needs to know
    how many columns the others have.
    """

    machine: Literal["svc", "ridge"] = "svc"
    kernel: Literal["rbf", "linear", "polynomial", "dot_product", "conjunctive"] = "rbf"
    gamma: Positive | Literal["median"] = "median"
    degree: Count = 3
    coef0: Number = 1.0
    coefficients: tuple[Number, ...] = (0.0, 1.0, 1.0)
    C: Positive = 1.0
    alpha: Positive = 1.0
    scale: Scale | None = None
    ring_bits: Literal["auto", 16, 32, 64] = "auto"
    most_rows: Count = MOST_ROWS

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

    def check_rows(self, rows: int) -> None:
        """Refuse more rows than the label party should hold the square of."""
        if rows > self.most_rows:
            raise InputError.of(
                "rows", f"at most most_rows, {self.most_rows}; FDSKL takes any number", rows
            )
