"""A stored model as one page: how good it is, what it is of, and what left the party for it.

At the label party the page has the measures; at another it has that party's own part.
"""

from __future__ import annotations

import re
from typing import Any

from markupsafe import Markup

from vertikal.metrics.measures import TITLES
from vertikal.metrics.wording import short
from vertikal.node.models.evaluation import Evaluation
from vertikal.node.models.model_card import describe, what_left
from vertikal.node.models.search_table import SearchTable
from vertikal.node.models.store import Manifest
from vertikal.node.models.training_record import TrainingRecord
from vertikal.reporting.bar_chart import bar_chart
from vertikal.reporting.measure_charts import Figure, MeasuredLine, curve_figures, score_figure
from vertikal.reporting.rendering import render_page
from vertikal.reporting.units import bytes_text, seconds_text
from vertikal.version import __version__

_RELEVANCE = re.compile(r"(?:^|, )(.+?) (\d+\.\d\d)(?=, |$)")
"""A column and its number in the fact ``relevance`` of a model."""


def model_page(
    manifest: Manifest,
    record: TrainingRecord | None,
    evaluation: Evaluation | None,
    search: SearchTable | None = None,
) -> str:
    """Render the page of a model."""
    return render_page(
        "vertikal.node.models",
        "model.html",
        title=f"{manifest.name}, version {manifest.version}",
        subtitle=evaluation.first_line if evaluation else f"the shard of {manifest.party}",
        versions={"vertikal": manifest.library, "page": __version__},
        **model_content(manifest, record, evaluation, search),
    )


def model_content(
    manifest: Manifest,
    record: TrainingRecord | None,
    evaluation: Evaluation | None,
    search: SearchTable | None = None,
) -> dict[str, Any]:
    """Gather the numbers, rows and charts that "model_sections.html" shows."""
    return {
        "headline": _headline(manifest, evaluation),
        "rows_line": evaluation.rows_line if evaluation else "",
        "compared": evaluation.compared if evaluation else (),
        "measures": evaluation.table if evaluation else [],
        "classes": _class_rows(evaluation) if evaluation else [],
        "figures": _figures(evaluation) if evaluation else [],
        "contributions": _contributions(evaluation) if evaluation else None,
        "relevance": _relevance(manifest),
        "folds": _folds(evaluation) if evaluation else None,
        "search_line": search.first_line if search else "",
        "tries": search.rows() if search else [],
        "judged_by": TITLES[search.measure] if search else "",
        "facts": describe(manifest, None),
        "left": [(*row[:3], bytes_text(row[3]), row[4]) for row in what_left(record)],
        "stages": stage_chart(record),
    }


def _headline(manifest: Manifest, evaluation: Evaluation | None) -> dict[str, str]:
    facts = {}
    if evaluation is not None:
        main = evaluation.together.main
        facts[f"{TITLES[main]} together"] = short(evaluation.together.numbers[main].value)
        facts[f"{TITLES[main]} of {evaluation.label_party} alone"] = short(
            evaluation.alone.numbers[main].value
        )
        if evaluation.linear is not None:
            facts[f"{TITLES[main]} of a linear model"] = short(
                evaluation.linear.numbers[main].value
            )
        facts["rows held out"] = f"{evaluation.together.rows:,}"
    if "rows" in manifest.facts:
        facts["rows of training"] = f"{manifest.facts['rows']:,}"
    return facts


def _folds(evaluation: Evaluation) -> Markup | None:
    """Draw the first measure of each fold, where all have one."""
    values = [value for value in evaluation.folds if value is not None]
    if not values or len(values) < len(evaluation.folds) or min(values) < 0:
        return None
    return bar_chart(
        {f"fold {number + 1}": {"": value} for number, value in enumerate(values)},
        title=f"{TITLES[evaluation.together.main]} by fold",
        value_text=lambda value: f"{value:.3f}",
    )


def _class_rows(evaluation: Evaluation) -> list[tuple[str, ...]]:
    """List the measures of each class, where there are several."""
    if len(evaluation.together.classes) < 2:
        return []
    return [
        (name, f"{one.rows:,}", *(short(one.numbers[key].value) for key in ("auc", "f1")))
        for name, one in evaluation.together.classes.items()
    ]


def _figures(evaluation: Evaluation) -> list[Figure]:
    """Draw all curves: of several classes beside one another, of two beside the other models."""
    classes = evaluation.together.classes
    if len(classes) == 1:
        lines = [MeasuredLine("together", one.curves) for one in classes.values()]
        others = {f"{evaluation.label_party} alone": evaluation.alone}
        if evaluation.linear is not None:
            others["linear"] = evaluation.linear
        for name, measures in others.items():
            lines += [MeasuredLine(name, one.curves, True) for one in measures.classes.values()]
    else:
        lines = [MeasuredLine(name, one.curves) for name, one in classes.items()]
    return curve_figures(lines) + [score_figure(name, one.curves) for name, one in classes.items()]


def _contributions(evaluation: Evaluation) -> Markup | None:
    """Draw what each party adds to the first measure; less than nothing is drawn as nothing."""
    if not evaluation.contributions:
        return None
    main = TITLES[evaluation.together.main]
    return bar_chart(
        {
            name: {"": max(0.0, loss)} if loss is not None else {}
            for name, loss in evaluation.contributions.items()
        },
        title=f"{main} lost when a party's rows are shuffled",
        value_text=lambda value: f"{value:.3f}",
    )


def _relevance(manifest: Manifest) -> Markup | None:
    """Draw how much each of the party's own columns matters, as far as the model tells it."""
    found = _RELEVANCE.findall(str(manifest.facts.get("relevance", "")))
    if not found:
        return None
    return bar_chart(
        {name: {"": float(value)} for name, value in found},
        title=f"How much the columns of {manifest.party} matter",
        value_text=lambda value: f"{value:.2f}",
    )


def stage_chart(record: TrainingRecord | None) -> Markup | None:
    """Draw the seconds of each stage of training."""
    if record is None or not record.stages:
        return None
    bars = {name: {"": stage.seconds} for name, stage in record.stages.items()}
    return bar_chart(bars, title="Seconds by stage", value_text=seconds_text)
