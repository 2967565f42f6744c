"""All measures of one model on one set of rows, as one record that can be kept and drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from vertikal.metrics import decisions, deviations
from vertikal.metrics.intervals import DRAWS, Interval, bootstrap
from vertikal.metrics.ranking import Curve, Ranking

Array = npt.NDArray[Any]
Measure = Callable[[Array], float]

TITLES = {
    "auc": "AUC",
    "average_precision": "average precision",
    "log_loss": "log-loss",
    "brier": "Brier score",
    "accuracy": "accuracy",
    "f1": "F1",
    "r2": "R²",
    "rmse": "RMSE",
    "mae": "MAE",
}
"""Names of measures in words. Of `SMALL_IS_GOOD` the smaller is the better."""
SMALL_IS_GOOD = frozenset({"log_loss", "brier", "rmse", "mae"})


class ClassMeasures(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Measures of one class against all others."""

    rows: int
    """Rows that are of this class."""
    numbers: dict[str, Interval]
    curves: dict[str, Curve]


class Measures(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Measures of a model on ``rows`` rows."""

    rows: int
    numbers: dict[str, Interval]
    """Measures by name, the one that stands first in a report first."""
    classes: dict[str, ClassMeasures] = {}
    """By class: of two, the positive one alone. None for numbers."""

    @property
    def main(self) -> str:
        """Name of the measure that stands first."""
        return next(iter(self.numbers))


def measure_numbers(predicted: Array, targets: Array, draws: int = DRAWS) -> Measures:
    """Measure predictions (rows,) of numbers."""
    functions: dict[str, Measure] = {
        name: lambda weights, one=one: one(predicted, targets, weights)  # type: ignore[misc]
        for name, one in (
            ("r2", deviations.r2),
            ("rmse", deviations.rmse),
            ("mae", deviations.mae),
        )
    }
    return Measures(len(targets), bootstrap(functions, len(targets), draws=draws))


def measure_classes(
    scores: Array,
    places: Array,
    classes: tuple[str, ...],
    predicted: Array,
    probabilities: Array | None,
    draws: int = DRAWS,
) -> Measures:
    """Measure predictions of classes, of which ``places`` (rows,) are the true ones by number.

    ``scores`` are (rows, 1) of the second of two classes, or (rows, classes). ``predicted`` are the
    classes that were decided for, by number; ``probabilities`` are (rows, classes), if there are
    any. Of several classes the AUC and the average precision are means over the classes, by
    probabilities where there are any: these add up to 1, which single scores do not.
    """
    rows, two = len(places), len(classes) == 2
    judged = (1,) if two else range(len(classes))
    of_class: dict[int, dict[str, Measure]] = {}
    curves: dict[int, dict[str, Curve]] = {}
    for place in judged:
        score, positive = scores[:, 0 if two else place], places == place
        chance = None if probabilities is None else probabilities[:, place]
        if not two and chance is not None:
            score = chance
        ranking = Ranking.of(score, positive)
        of_class[place] = _of_class(ranking, predicted == place, chance)
        curves[place] = _curves(ranking, score, chance)
    functions: dict[str, Measure] = {
        name: _mean([of_class[place][name] for place in judged])
        for name in ("auc", "average_precision")
    }
    if probabilities is not None:
        chances = probabilities
        functions["log_loss"] = lambda weights: decisions.log_loss(chances, places, weights)
    functions["accuracy"] = lambda weights: decisions.accuracy(predicted, places, weights)
    if two:
        functions = {**functions, **of_class[1]}
    found = bootstrap(functions, rows, draws=draws)
    return Measures(
        rows,
        found,
        {
            classes[place]: ClassMeasures(
                int((places == place).sum()),
                {name: found[name] for name in of_class[place]}
                if two
                else bootstrap(of_class[place], rows, draws=draws),
                curves[place],
            )
            for place in judged
        },
    )


def _of_class(ranking: Ranking, called: Array, chance: Array | None) -> dict[str, Measure]:
    """List the measures of one class as functions of row weights."""
    positive = ranking.positive
    found: dict[str, Measure] = {
        "auc": ranking.auc,
        "average_precision": ranking.average_precision,
    }
    if chance is not None:
        found["brier"] = lambda weights: decisions.brier(chance, positive, weights)
    found["f1"] = lambda weights: decisions.f1(called, positive, weights)
    return found


def _curves(ranking: Ranking, score: Array, chance: Array | None) -> dict[str, Curve]:
    """Draw the curves of one class; scores are probabilities where there are any."""
    positive = ranking.positive
    found = {
        "roc": ranking.roc(),
        "precision_recall": ranking.precision_recall(),
        "gain": ranking.gain(),
    }
    shown, low, high = score, float(score.min()), float(score.max())
    if chance is not None:
        found["calibration"] = decisions.calibration(chance, positive)
        shown, low, high = chance, 0.0, 1.0
    found["scores_of_class"] = decisions.histogram(shown[positive], low, high)
    found["scores_of_others"] = decisions.histogram(shown[~positive], low, high)
    return found


def _mean(measures: list[Measure]) -> Measure:
    return lambda weights: float(np.mean([one(weights) for one in measures]))
