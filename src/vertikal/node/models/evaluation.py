"""The evaluation of a model, stored beside the label party's shard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from vertikal.metrics.intervals import DRAWS
from vertikal.metrics.measures import TITLES, Measures, measure_classes, measure_numbers
from vertikal.metrics.wording import in_words, short
from vertikal.node.models.score_reading import ScoreReading

Array = npt.NDArray[Any]


class Evaluation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Measures of a model on rows that it was not trained on."""

    way: str
    """The way in which the rows were held out, in words."""
    trained: int
    """Rows of training."""
    label_party: str
    together: Measures
    alone: Measures
    """Measures of the same learner on the label party's columns alone."""
    contributions: dict[str, float | None] = {}
    """Loss of the first measure when a party's held-out rows are shuffled, by party."""
    linear: Measures | None = None
    """Measures of a linear model of all columns."""
    folds: tuple[float | None, ...] = ()
    """The first measure of each fold by itself; none without folds."""

    @property
    def first_line(self) -> str:
        """Say how much better the model is than one of the label party's columns alone.

        "AUC 0.768 (0.655 to 0.853) together, 0.713 with the columns of lender alone, 0.745 by a
        linear model of all"
        """
        main = self.together.main
        straight = ""
        if self.linear is not None:
            straight = f", {short(self.linear.numbers[main].value)} by a linear model of all"
        return (
            f"{TITLES[main]} {in_words(self.together, main)} together, "
            f"{short(self.alone.numbers[main].value)} with the columns of {self.label_party} alone"
            f"{straight}"
        )

    @property
    def rows_line(self) -> str:
        """Say on which rows it was measured."""
        if self.folds:
            known = [value for value in self.folds if value is not None]
            spread = f"{short(min(known))} to {short(max(known))}" if known else "unknown"
            return (
                f"on {self.together.rows:,} rows ({self.way}), each held out of one fit on "
                f"{self.trained:,} rows or more; fold by fold {spread}; intervals of 95 % by the "
                "bootstrap. The model itself is trained on all rows"
            )
        return (
            f"on {self.together.rows:,} rows held out ({self.way}), trained on {self.trained:,}; "
            "intervals of 95 % by the bootstrap"
        )

    @property
    def compared(self) -> tuple[str, ...]:
        """The titles of `table`: what is measured, column by column."""
        titles = ("measure", "together", f"{self.label_party} alone")
        return titles if self.linear is None else (*titles, "linear model of all columns")

    @property
    def table(self) -> list[tuple[str, ...]]:
        """Each measure of the model and of those that it is compared with, in words."""
        others = [self.alone] if self.linear is None else [self.alone, self.linear]
        return [
            (
                TITLES[name],
                *(
                    in_words(one, name) if name in one.numbers else ""
                    for one in (self.together, *others)
                ),
            )
            for name in self.together.numbers
        ]


def measure(reading: ScoreReading, f: Array, targets: Array, draws: int = DRAWS) -> Measures:
    """Measure f (rows, outputs) against targets: numbers, or −1 and +1 for each class."""
    return measure_parts([(reading, f, targets)], draws)


def measure_parts(
    parts: Sequence[tuple[ScoreReading, Array, Array]], draws: int = DRAWS
) -> Measures:
    """Measure several parts of the rows together, each with a reading, f and targets of its own."""
    f = np.concatenate([part[1] for part in parts])
    targets = np.concatenate([part[2] for part in parts])
    classes = parts[0][0].classes
    if not classes:
        return measure_numbers(f[:, 0], targets[:, 0], draws)
    places = targets.argmax(axis=1) if f.shape[1] > 1 else (targets[:, 0] > 0).astype(np.int64)
    predicted = np.concatenate([reading.predicted(part) for reading, part, _ in parts])
    found = [reading.probabilities(part) for reading, part, _ in parts]
    known = [one for one in found if one is not None]
    chances = np.concatenate(known) if len(known) == len(parts) else None
    if chances is not None and f.shape[1] == 1:
        chances = np.hstack([1 - chances, chances])
    return measure_classes(f, places, classes, predicted, chances, draws)
