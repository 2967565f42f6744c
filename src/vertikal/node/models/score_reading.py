"""A model's predictions f in words: values, probabilities and classes by their names."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.algorithms.algorithm import Algorithm

Array = npt.NDArray[Any]

UNNAMED = ("first class", "second class")
"""Names of the classes of a model that was stored without them."""


@dataclass(frozen=True)
class ScoreReading:
    """Reads f (rows, outputs) of one model; ``classes`` are empty for a regression.

    One function is learned for two classes, whose second is the positive one, else one for each.
    """

    algorithm: Algorithm[Any, Any]
    settings: Any
    classes: tuple[str, ...]
    threshold: float = 0.0

    @classmethod
    def of(
        cls, algorithm: Algorithm[Any, Any], settings: Any, shard: Any, classes: Sequence[str]
    ) -> ScoreReading:
        """Make the reading of a label party's shard."""
        known = () if settings.regression else tuple(classes) or UNNAMED
        return cls(algorithm, settings, known, algorithm.threshold(shard))

    def records(self, f: Array) -> list[dict[str, Any]]:
        """Make one record per row; a row whose f is not finite was not scored, and has None.

        ``value`` is f, or f by class if there are more than two. ``probability`` is by class: that
        of the positive one of two. ``predicted`` is the name of the class.
        """
        scored = np.asarray(np.isfinite(f).all(axis=1))
        several = f.shape[1] > 1
        columns: dict[str, list[Any]] = {}
        names = self.classes if several else self.classes[1:]
        columns["value"] = _by_class(names, f, scored) if several else _plain(f[:, 0], scored)
        chances = self.probabilities(f)
        if chances is not None:
            columns["probability"] = _by_class(names, chances, scored)
        if self.classes:
            columns["predicted"] = [
                self.classes[place] if there else None
                for place, there in zip(self.predicted(f), scored, strict=True)
            ]
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def predicted(self, f: Array) -> Array:
        """Return the number of the class that each row is predicted to be of."""
        if f.shape[1] > 1:
            return np.asarray(f.argmax(axis=1))
        return (f[:, 0] > self.threshold).astype(np.int64)

    def probabilities(self, f: Array) -> Array | None:
        """Return the probability of each output's class; of several they add up to 1."""
        chances = self.algorithm.probabilities(self.settings, f) if self.classes else None
        if chances is None or f.shape[1] == 1:
            return chances
        total = chances.sum(axis=1, keepdims=True)
        even = np.full_like(chances, 1 / chances.shape[1])
        return np.asarray(np.divide(chances, total, out=even, where=total > 0))


def flat(record: Mapping[str, Any]) -> dict[str, Any]:
    """Make a line of a table of a record: ``probability`` by class becomes ``probability_NAME``."""
    found: dict[str, Any] = {}
    for key, value in record.items():
        if isinstance(value, Mapping):
            found |= {f"{key}_{name}": one for name, one in value.items()}
        else:
            found[key] = value
    return found


def titles_of(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Name the columns of such lines; one that was refused has no probabilities."""
    return list(dict.fromkeys(title for row in rows for title in row)) or ["id"]


def scores_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Write such lines as the text of a CSV file."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, titles_of(rows))
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _plain(values: Array, scored: Array) -> list[float | None]:
    return [float(one) if there else None for one, there in zip(values, scored, strict=True)]


def _by_class(names: Sequence[str], values: Array, scored: Array) -> list[dict[str, float | None]]:
    columns = [_plain(values[:, place], scored) for place in range(len(names))]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
