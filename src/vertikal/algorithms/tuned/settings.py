"""Parameters of ``algorithm = "kernel"``, and the sizes of its passes, which follow from them.

All parties must take the same passes, so every size here depends on nothing but the settings and
the number of rows.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from vertikal.algorithms.algorithm import JobSettings
from vertikal.algorithms.kernel_machine.settings import (
    SPARE_SHARE,
    FdsklSettings,
    Fourier,
    Values,
    parse_bytes,
)
from vertikal.errors import InputError
from vertikal.parameters import Count

SEARCH_ROWS = {"open": 10_000, "values": 5_000}
"""Rows on which the search runs at most."""
SEARCH_WIDTH = 512
"""Directions of one pass of the search."""
SMALL = 2_000
"""Rows below which every part is held out in its turn, since one part says too little; half of the
directions are then enough, and none are added."""
ROUNDS = 2
"""Rounds of relevance."""
BANDWIDTHS = {"open": 0, "values": 1}
"""Passes of the search that try another bandwidth; in the open multiples of phases do."""
FEWEST_ROWS = {"open": 30, "values": 1_000}
"""Rows below which columns keep equal factors: too few to tell which of them matter, and under
``values`` too few for the gradients that it takes."""
SKETCHES = {"open": 32, "values": 8}
"""Sketches of a round."""
SEARCH_PASSES = 18
"""Values of a row that one pass of the search may open, for each output."""
MODEL_PASSES = 48
"""Values of a row that the pass over all rows may open, for each output."""
FITS = 6
"""Fits on one pass at most, where each opens values: a path of penalties, and one on all rows."""
GROWTH = (1024, 1024)
"""Directions that ``n_components="auto"`` adds, step by step, where features are open."""
SMALL_WIDTH = 512
"""Directions of ``n_components="auto"`` on few rows."""
HIDDEN_WIDTH = 2048
"""Directions of ``n_components="auto"`` where features are hidden: one pass, no steps, and half of
them on few rows."""
FEWEST_GRADIENTS = 3
"""Gradients of a model of hidden features at least: two of an iteration, and one on all rows."""
CHAINED_TOLERANCE = 3e-3
"""Tolerance of fits on values of few bits: below that of one plain fit, since each fit goes on with
the curvature of the last, and a smaller gradient takes few passes more."""
OPEN_BYTES = 1
"""Bytes that the busiest party sends for a row and a direction."""
HIDDEN_BYTES = {32: 12, 64: 19}
"""The same where features are hidden, in words of so many bits, about."""
ENCRYPTED_BYTES = 14
"""The same between two parties without a dealer, on many rows."""


class PassSettings(FdsklSettings, frozen=True, kw_only=True, tag="pass"):
    """Settings of one pass over rows, on which several problems are solved one after another.

    ``extra_gradients`` are opened beside those of one fit: the first of each further fit, and
    sketches.
    """

    extra_gradients: int = 0

    def iterations(self, rows: int) -> int:
        if not isinstance(self.disclosure, Values):
            return super().iterations(rows)
        spare = -(-self.extra_gradients * self.opened_gradient_bits * SPARE_SHARE // 8)
        return super().iterations(max(1, rows - spare))

    def gradients(self, rows: int | None) -> int:
        return super().gradients(rows) + self.extra_gradients

    def stopping(self) -> float:
        return min(super().stopping(), CHAINED_TOLERANCE)

    def fewest_rows(self) -> int:
        """Return the rows that one iteration and a last gradient of all rows take, where hidden."""
        return FEWEST_GRADIENTS * self._rows_per_gradient() * self.outputs

    def plain(self) -> FdsklSettings:
        """Return what predictions need of them."""
        given = msgspec.structs.asdict(self)
        del given["extra_gradients"]
        return FdsklSettings(**given)


class KernelSettings(JobSettings, frozen=True, kw_only=True, tag_field="program", tag="kernel"):
    """Parameters of the tuned kernel machine; `KernelClassifier` describes each."""

    n_components: Count | Literal["auto"] = "auto"
    budget: Count | str = "1GB"
    disclosure: Literal["open"] | Values = "open"

    def __post_init__(self) -> None:
        refuse_sealed(self.disclosure)
        super().__post_init__()
        parse_bytes(self.budget, "budget")
        # The checks of parties, label parties, helper and dealer are those of a kernel machine.
        self.search_block()
        if isinstance(self.disclosure, Values):
            self._check_passes()

    @property
    def level(self) -> Literal["open", "values"]:
        """The level of disclosure, by name."""
        return "values" if isinstance(self.disclosure, Values) else "open"

    @property
    def hides(self) -> bool:
        """True if nobody sees a feature."""
        return self.level != "open"

    def search_block(self, rows: int | None = None) -> PassSettings:
        """Return the settings of one pass of the search, on so many rows or on however many."""
        sketches = self.sketches() if rows is None or self.rounds(rows) else 0
        width = self.search_width(rows)
        # All passes together open what rounds alone might, also where directions are few.
        quarter = max(1, width // len(self.label_parties) // 4)
        most = min(SEARCH_PASSES, max(1, quarter * (ROUNDS + 1) // self.searches()))
        return self._block(width, most, FITS * self.outputs + sketches)

    def model_block(self, width: int) -> PassSettings:
        """Return the settings of a pass over all rows.

        ``max_passes`` is about all passes together, so that what the search may open is taken off.
        """
        given = self.disclosure.max_passes if isinstance(self.disclosure, Values) else None
        left = None if given is None else given - self._search_passes()
        return self._block(width, MODEL_PASSES, FITS * self.outputs, left)

    def _block(self, width: int, passes: int, extra: int, given: int | None = None) -> PassSettings:
        """Return the settings of a pass that opens so many values for each output, or as given.

        As many values as directions would tell the phases, hence a quarter at most.
        """
        disclosure = self.disclosure
        if isinstance(disclosure, Values):
            quarter = max(1, width // len(self.label_parties) // 4)
            most = min(quarter, passes * self.outputs) if given is None else given
            disclosure = msgspec.structs.replace(disclosure, max_passes=most)
        return PassSettings(
            parties=self.parties,
            label_parties=self.label_parties,
            outputs=self.outputs,
            regression=self.regression,
            seed=self.seed,
            n_components=width,
            loss="square" if self.regression else "logistic",
            feature_map=Fourier(functions="pair"),
            disclosure=disclosure,
            extra_gradients=extra,
        )

    def _search_passes(self) -> int:
        block = self.search_block()
        return self.searches() * max(block.passes(name) for name in self.label_parties)

    def _check_passes(self) -> None:
        given = self.disclosure.max_passes if isinstance(self.disclosure, Values) else None
        needed = self._search_passes() + self.outputs
        if given is not None and given < needed:
            raise InputError.of(
                "max_passes",
                f"None or at least {needed}, of which the search takes {self._search_passes()}",
                given,
            )

    def search_width(self, rows: int | None = None) -> int:
        """Directions of one pass of the search: never more than the model has."""
        width = SEARCH_WIDTH if rows is None or rows >= SMALL else SEARCH_WIDTH // 2
        return width if self.n_components == "auto" else min(width, self.n_components)

    def search_rows(self, rows: int) -> int:
        """Rows of the search, of so many training rows."""
        return min(rows, SEARCH_ROWS[self.level])

    def rounds(self, rows: int) -> int:
        """Rounds of relevance on so many training rows."""
        return ROUNDS if rows >= FEWEST_ROWS[self.level] else 0

    def searches(self, rows: int | None = None) -> int:
        """Passes of the search on so many training rows, or on however many."""
        rounds = ROUNDS if rows is None else self.rounds(rows)
        return rounds + 1 + (BANDWIDTHS[self.level] if rounds else 0)

    def sketches(self) -> int:
        """Sketches of one round."""
        return SKETCHES[self.level]

    def bytes_each(self) -> int:
        """Bytes that the busiest party sends for a row and a direction, about."""
        if not isinstance(self.disclosure, Values):
            return OPEN_BYTES
        dealerless = self.search_block().dealerless
        return ENCRYPTED_BYTES if dealerless else HIDDEN_BYTES[self.disclosure.bits]

    def growth(self, rows: int) -> tuple[int, ...]:
        """Directions of the passes over all rows: the first, and what may be added to it."""
        if self.n_components != "auto":
            return (self.n_components,)
        if self.hides:
            return (self._affordable(rows, HIDDEN_WIDTH if rows >= SMALL else HIDDEN_WIDTH // 2),)
        steps: list[int] = []
        for step in (SMALL_WIDTH,) if rows < SMALL else GROWTH:
            if steps and self._affordable(rows, sum(steps) + step) < sum(steps) + step:
                break
            steps.append(step if steps else self._affordable(rows, step))
        return tuple(steps)

    def _affordable(self, rows: int, width: int) -> int:
        """Directions within the budget, ``width`` at most, of which the search takes its part."""
        each = self.bytes_each()
        searched = self.search_rows(rows) * self.search_width(rows) * self.searches(rows) * each
        fewest = 2 * len(self.label_parties)
        budget = parse_bytes(self.budget, "budget") or 0
        return max(fewest, min(width, (budget - searched) // (max(1, rows) * each)))

    def most_components(self) -> int:
        """Directions of the model at most, of however many rows."""
        if self.n_components != "auto":
            return self.n_components
        return HIDDEN_WIDTH if self.hides else sum(GROWTH)

    def all_components(self) -> int:
        """Directions of all passes together at most."""
        return self.search_width() * self.searches() + self.most_components()

    def check_rows(self, rows: int) -> None:
        """Refuse too few rows to hide, or too many."""
        block = self.model_block(self.growth(rows)[0])
        self.search_block(rows).check_rows(self.search_rows(rows))
        block.check_rows(rows)
        if self.hides and rows < (fewest := block.fewest_rows()):
            raise InputError.of(
                "rows",
                f"at least {fewest} with disclosure='values' ({fewest // self.outputs} for each "
                "output, and two classes are one output): gradients of few rows show their "
                "features; take more rows, merge classes, or use disclosure='open'",
                rows,
            )


def refuse_sealed(disclosure: Any) -> None:
    """Say why this level is not there, before the types would only list what is."""
    named = disclosure.get("name") if isinstance(disclosure, dict) else disclosure
    if named == "sealed" or type(disclosure).__name__ == "Sealed":
        raise InputError.of(
            "disclosure",
            "'open' or 'values': the search looks at predictions of rows held out, which 'sealed' "
            "never opens (FDSKL and AVFKAM offer it)",
            "sealed",
        )
