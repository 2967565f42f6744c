"""What all parties of an AVFKAM job agree on: FDSKL's settings, with pairs instead of rows."""

from __future__ import annotations

from vertikal.algorithms.kernel_machine.settings import FdsklSettings
from vertikal.errors import InputError
from vertikal.losses.pairwise import pair_loss_named
from vertikal.solvers.calibration import check_threshold


class AvfkamSettings(FdsklSettings, frozen=True, kw_only=True, tag="avfkam"):
    """AVFKAM's parameters, by the names that the estimator uses; ``samples`` counts pairs."""

    loss: str = "squared_hinge"
    schedule: str = "async"
    validation: float = 0.1
    threshold: float | str = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_threshold(self.threshold)
        number = isinstance(self.validation, int | float) and not isinstance(self.validation, bool)
        if not number or not 0 <= self.validation <= 0.5:
            raise InputError.of(
                "validation", "a share of the rows within [0, 0.5]", self.validation
            )
        if self.solver == "dsg" and self.hides:
            raise InputError.of(
                "solver",
                f"'exact' with disclosure={self.disclosure!r}: batches of pairs, which helper and "
                "dealer are told, show the labels",
                "dsg",
            )
        if self.outputs != 1 or self.regression:
            raise InputError.of("outputs", "1 (two classes) for a pairwise loss", self.outputs)

    def check_rows(self, rows: int) -> None:
        super().check_rows(rows)
        # Who is asked for batches sees which rows come from the smaller class.
        if self.solver == "dsg" and self.cached_rows(rows) < rows:
            raise InputError.of(
                "cache_size",
                f"enough for all {rows} rows with solver='dsg': batches of pairs, asked for again, "
                "show the labels",
                self.cache_size,
            )

    def _check_loss(self) -> None:
        pair_loss_named(self.loss)
