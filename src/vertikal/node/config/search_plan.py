"""The ``[search]`` of a job file: settings to try, on a part of the rows and directions first.

Each round tries what the last one left, on three times as many rows and directions, and keeps the
best third (successive halving, by thirds): nine tries on a sixth of the rows, then three on half of
them, and the best is the model's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import numpy as np

from vertikal.errors import InputError
from vertikal.parameters import Parameters
from vertikal.privacy.ledger import Disclosure

FACTOR = 3
"""One try of so many is kept by a round, and the next has so many times the rows."""
MOST_TRIES = 200
_FIXED = ("regression", "seed")

CHOICE = Disclosure(
    "choice of the search",
    "which tries of the search were the best so far",
    "everybody learns their numbers, a few bits about the labels",
    masked=False,
)


@dataclass(frozen=True)
class SearchRound:
    """One round of a search: so many tries on this share of rows and directions."""

    tries: int
    share: float


class SearchPlan(Parameters, frozen=True):
    """Settings to try: each of ``settings`` has a list of values, in all combinations.

    More combinations than ``tries`` are drawn from at random. The last round uses ``share`` of the
    rows and directions. ``holdout`` is the share of the rows of training that tries are judged on.
    """

    settings: dict[str, list[Any]]
    tries: Annotated[
        int, msgspec.Meta(ge=1, le=MOST_TRIES, description=f"a number from 1 to {MOST_TRIES}")
    ] = 27
    share: Annotated[float, msgspec.Meta(gt=0, le=1, description="a share, at most 1")] = 0.5
    holdout: Annotated[float, msgspec.Meta(gt=0, lt=1, description="a share between 0 and 1")] = (
        0.25
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.settings:
            raise InputError.of("search", "given with [search.settings]", "none")
        for name, values in self.settings.items():
            if name in _FIXED:
                raise InputError.of(
                    "search", f"without {name!r}, which is the same for all", values
                )
            if not values:
                raise InputError.of(f"search.settings.{name}", "a list of values", values)

    def candidates(self, seed: int) -> list[dict[str, Any]]:
        """List the combinations to try, at most `tries`; the draw is public.

        >>> plan = SearchPlan(settings={"alpha": [1, 2], "kernel": ["gaussian", "laplace"]})
        >>> plan.candidates(0)[1]
        {'alpha': 1, 'kernel': 'laplace'}
        """
        sizes = [len(values) for values in self.settings.values()]
        total = math.prod(sizes)
        chosen: Any = range(total)
        if total > self.tries:
            # Numbers of combinations may be beyond 64 bits: each digit is drawn by itself.
            generator = np.random.default_rng((seed, 3))
            drawn: dict[int, None] = {}
            while len(drawn) < self.tries:
                digits = [int(generator.integers(size)) for size in sizes]
                number = 0
                for digit, size in zip(digits, sizes, strict=True):
                    number = number * size + digit
                drawn[number] = None
            chosen = sorted(drawn)
        return [dict(self._combination(number)) for number in chosen]

    def _combination(self, number: int) -> Iterator[tuple[str, Any]]:
        """Yield the settings of the combination of this number, the last one changing fastest."""
        digits = []
        for values in reversed(self.settings.values()):
            number, digit = divmod(number, len(values))
            digits.append(values[digit])
        yield from zip(self.settings, reversed(digits), strict=True)

    def rounds(self, candidates: int) -> list[SearchRound]:
        """List the rounds for so many candidates; the best of the last one is taken.

        >>> SearchPlan(settings={"alpha": [1]}, share=0.6).rounds(9)
        [Round(tries=9, share=0.2), Round(tries=3, share=0.6)]
        """
        counts = [candidates]
        while counts[-1] > FACTOR:
            counts.append(-(-counts[-1] // FACTOR))
        last = len(counts) - 1
        return [
            SearchRound(count, round(self.share / FACTOR ** (last - number), 6))
            for number, count in enumerate(counts)
        ]
