"""The demonstration's results as one page."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from markupsafe import Markup

from vertikal.demo.comparison import OPEN_TITLE, DataSetComparison, Sweep, form_text
from vertikal.estimators.reports.run_page import iteration_chart, ledger_diagram, stage_chart
from vertikal.reporting.line_chart import Series, line_chart
from vertikal.reporting.rendering import render_page
from vertikal.reporting.units import bytes_text, seconds_text

PACKAGES = ("vertikal", "numpy", "scipy", "scikit-learn", "numba", "cryptography")


def demo_page(comparisons: Sequence[DataSetComparison], curve: Sweep, seed: int) -> str:
    """Render the whole page; ``curve`` belongs to the last comparison."""
    main = comparisons[-1]
    names = dict.fromkeys(name for comparison in comparisons for name in comparison.settings)
    return render_page(
        "vertikal.demo",
        "report.html",
        title="Vertikal: a demonstration",
        subtitle="Three parties, different columns about the same people, one kernel machine",
        versions=_versions(),
        main=main,
        comparisons=[(c, _tables(c), _charts(c)) for c in comparisons],
        sweep_charts=_sweep_charts(main, curve),
        open_title=OPEN_TITLE,
        ledger=[
            (e.sender, e.receiver, e.disclosure.what, form_text(e), e.frames, bytes_text(e.bytes))
            for e in main.ledger
        ],
        learned=[(line.receivers, line.what, line.learns) for line in main.ledger_lines()],
        data_titles=[comparison.data.title for comparison in comparisons],
        settings=[(name, *(c.settings.get(name) for c in comparisons)) for name in names],
        results=_results(comparisons, curve, seed),
    )


def _tables(comparison: DataSetComparison) -> dict[str, list[tuple[str | None, ...]]]:
    """Rows about the parties, and about the models."""
    data = comparison.data
    return {
        "parties": [
            (name, f"{'label' if name == data.label_party else 'feature'} party", ", ".join(held))
            for name, held in data.columns.items()
        ],
        "models": [
            (
                model.name,
                f"{model.accuracy:.3f}",
                f"{model.auc:.3f}",
                seconds_text(model.seconds),
                None if model.mesh_bytes is None else bytes_text(model.mesh_bytes),
                model.columns,
            )
            for model in comparison.models.values()
        ],
    }


def _charts(comparison: DataSetComparison) -> dict[str, Markup]:
    data = comparison.data
    return {
        "roc": line_chart(
            [
                Series(f"{model.name} ({model.auc:.3f})", *model.roc, dashed=key == "pooled")
                for key, model in comparison.models.items()
            ],
            title="ROC curves (area under each)",
            x_label="false positive rate",
            y_label="true positive rate",
            diagonal=True,
        ),
        "stages": stage_chart(comparison.stages),
        "objective": iteration_chart(
            "Objective by iteration", "regularised loss", comparison.objective
        ),
        "gradient": iteration_chart(
            "Gradient by iteration", "preconditioned norm", comparison.gradient, log_y=True
        ),
        "flows": ledger_diagram(tuple(data.columns), (data.label_party,), comparison.ledger),
    }


def _sweep_charts(main: DataSetComparison, curve: Sweep) -> tuple[Markup, Markup]:
    """AUC, and what is sent, by number of directions."""
    names = {key: model.name for key, model in main.models.items()}
    level = [curve.directions[0], curve.directions[-1]]
    quality = line_chart(
        [
            *(
                Series(names[key], level, [main.models[key].auc] * 2)
                for key in ("alone", "linear", "federated")
            ),
            Series("plain fit", curve.directions, curve.federated),
            Series("plain fit, pooled", curve.directions, curve.pooled, dashed=True),
        ],
        title="AUC by number of directions",
        x_label="directions D",
        y_label="AUC",
        log_x=True,
    )
    cost = line_chart(
        [Series("", curve.directions, [size / 1e6 for size in curve.mesh_bytes])],
        title="Sent in training by number of directions",
        x_label="directions D",
        y_label="MB, all parties together",
        log_x=True,
        log_y=True,
    )
    return quality, cost


def _results(comparisons: Sequence[DataSetComparison], curve: Sweep, seed: int) -> dict[str, Any]:
    """Numbers of the tables once more, for programs."""
    return {
        "seed": seed,
        "data": {
            comparison.data.name: {
                "train_rows": comparison.train_rows,
                "test_rows": comparison.test_rows,
                "positives": comparison.positives,
                "models": {
                    key: {
                        "name": model.name,
                        "accuracy": model.accuracy,
                        "auc": model.auc,
                        "seconds": model.seconds,
                        "mesh_bytes": model.mesh_bytes,
                    }
                    for key, model in comparison.models.items()
                },
                "objective": comparison.objective,
                "gradient": comparison.gradient,
                "ledger": [
                    {"name": entry.disclosure.name, **entry.row()} for entry in comparison.ledger
                ],
            }
            for comparison in comparisons
        },
        "directions": {
            "D": curve.directions,
            "federated_auc": curve.federated,
            "pooled_auc": curve.pooled,
            "mesh_bytes": curve.mesh_bytes,
        },
    }


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
