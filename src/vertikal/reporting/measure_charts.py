"""Curves of a model's measures as charts with captions: ROC, calibration, gain, scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from vertikal.reporting.line_chart import Series, line_chart

Figure = tuple[Markup, str]
Curves = Mapping[str, tuple[Sequence[float], Sequence[float]]]
"""Curves by name, each its x and its y."""

_CURVES = (
    (
        "roc",
        "ROC",
        "share of the others that is called positive",
        "share of the positive rows that is found",
        True,
        "The area under it is the AUC; the diagonal is chance.",
    ),
    (
        "precision_recall",
        "Precision and recall",
        "recall",
        "precision",
        False,
        "Of the rows called positive, the share that is.",
    ),
    (
        "calibration",
        "Calibration",
        "predicted probability",
        "share that came true",
        True,
        "In ten bins of as many rows each; on the diagonal probabilities are what they say.",
    ),
    (
        "gain",
        "Gain",
        "share of all rows, highest scores first",
        "share of the positive rows that is found",
        True,
        "What asking the highest scores first finds.",
    ),
)


@dataclass(frozen=True)
class MeasuredLine:
    """The curves of one model or class, and the name of its lines."""

    name: str
    curves: Curves
    dashed: bool = False


def curve_figures(lines: Sequence[MeasuredLine]) -> list[Figure]:
    """Draw one chart for each kind of curve that some of the lines have."""
    figures = []
    for key, title, x_label, y_label, diagonal, caption in _CURVES:
        series = [
            Series(line.name, *line.curves[key], dashed=line.dashed)
            for line in lines
            if key in line.curves
        ]
        if series:
            chart = line_chart(
                series, title=title, x_label=x_label, y_label=y_label, diagonal=diagonal
            )
            figures.append((chart, caption))
    return figures


def score_figure(name: str, curves: Curves) -> Figure:
    """Draw how scores are spread in a class and in the others."""
    shown = "probability" if "calibration" in curves else "score"
    chart = line_chart(
        [
            Series(name, *curves["scores_of_class"]),
            Series("others", *curves["scores_of_others"], dashed=True),
        ],
        title=f"Scores of class {name}",
        x_label=f"{shown} of {name}",
        y_label="share of the rows",
    )
    return chart, "In twenty equal steps; the less the two overlap, the better."
