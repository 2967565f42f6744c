"""The demonstration's results as one self-contained HTML page."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from html import escape
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from vertikal.demo.models import ALONE, FEDERATED, LINEAR, POOLED, Comparison, Sweep
from vertikal.demo.tables import OPEN_TITLE, form_text, ledger_lines, open_warning, split_text
from vertikal.party.party import AGREEMENT
from vertikal.reporting import (
    BarGroup,
    Flow,
    Page,
    Series,
    bar_chart,
    bytes_text,
    flow_diagram,
    line_chart,
    seconds_text,
)

PACKAGES = ("vertikal", "numpy", "scipy", "scikit-learn", "numba", "cryptography")
RESULTS_ID = "results"
PARTIES_RAN = {
    "network": (
        "Each party of this demonstration was a process of its own that read its own columns, "
        "connected to the others by mutual TLS; a party that only dials spoke to another such one "
        "through the label party, encrypted from end to end."
    ),
    "local": "All parties of this demonstration ran as threads of one process.",
}
"""By mesh."""


def demo_page(comparisons: Sequence[Comparison], curve: Sweep, seed: int) -> Page:
    """The whole report; the last comparison is the one that ``curve`` belongs to."""
    main = comparisons[-1]
    page = Page(
        "Vertikal: a demonstration",
        "Three parties, different columns about the same people, one kernel machine",
        versions=_versions(),
    )
    _add_summary(page, main)
    for comparison in comparisons:
        page.add_section(comparison.data.title)
        _add_comparison(page, comparison)
    page.add_section("How many directions?")
    _add_sweep(page, main, curve)
    page.add_section("Who learned what")
    _add_ledger(page, main)
    page.add_section("Settings")
    _add_settings(page, comparisons)
    page.add_html(_results(comparisons, curve, seed))
    return page


def _add_summary(page: Page, main: Comparison) -> None:
    alone, federated, pooled = (main.models[i] for i in (ALONE, FEDERATED, POOLED))
    page.add_text(
        "Several organisations hold different columns about the same people. None sends its "
        "columns to another, and together they train a non-linear model. "
        f"{PARTIES_RAN[main.mesh]} What they sent one another is what they would send between "
        f"organisations. The headline numbers are those of the {main.data.title.lower()} data."
    )
    page.add_facts(
        {
            "AUC, federated": f"{federated.auc:.3f}",
            "AUC, columns pooled": f"{pooled.auc:.3f}",
            f"AUC, {alone.name}": f"{alone.auc:.3f}",
            "sent in training": bytes_text(federated.mesh_bytes or 0),
            "training": seconds_text(federated.seconds),
        }
    )


def _add_comparison(page: Page, comparison: Comparison) -> None:
    data = comparison.data
    page.add_text(data.story)
    page.add_table(
        ("party", "role", "columns"),
        [
            (
                party,
                "label party" if party == data.label_party else "feature party",
                ", ".join(columns),
            )
            for party, columns in data.parties.items()
        ],
    )
    page.add_table(
        ("model", "accuracy", "AUC", "training", "sent on the mesh", "columns used"),
        [
            (
                model.name,
                f"{model.accuracy:.3f}",
                f"{model.auc:.3f}",
                seconds_text(model.seconds),
                None if model.mesh_bytes is None else bytes_text(model.mesh_bytes),
                model.columns,
            )
            for model in comparison.models
        ],
        caption=f"Four models, {split_text(comparison)}.",
        highlight_row=FEDERATED,
    )
    page.add_figure(_roc_chart(comparison), "Up and to the left is better; the diagonal guesses.")
    page.add_figure(
        _stage_chart(comparison),
        "Time of each party in training, by stage; waiting for others is included, starting the "
        "party is not. The solver runs at the label party.",
    )
    page.add_figure(_objective_chart(comparison), "What the label party's solver minimises.")
    page.add_figure(_gradient_chart(comparison), "It stops when the gradient has shrunk enough.")
    page.add_figure(
        _flows(comparison),
        "Point at an arrow for the full list of its messages. Left out: public keys and a digest "
        "of the settings, which each pair of parties exchanges first.",
    )


def _flows(comparison: Comparison) -> str:
    return flow_diagram(
        tuple(comparison.data.parties),
        [
            Flow(row["sender"], row["receiver"], row["name"], row["bytes"], row["masked"])
            for row in comparison.ledger
            if row["name"] != AGREEMENT.name
        ],
        label_parties=(comparison.data.label_party,),
        title="Who sent what to whom in training",
    )


def _roc_chart(comparison: Comparison) -> str:
    return line_chart(
        [
            Series(f"{model.name} ({model.auc:.3f})", *model.roc, dashed=place == POOLED)
            for place, model in enumerate(comparison.models)
        ],
        title="ROC curves (area under each)",
        x_label="false positive rate",
        y_label="true positive rate",
        diagonal=True,
    )


def _objective_chart(comparison: Comparison) -> str:
    values = comparison.objective
    return line_chart(
        [Series("", range(len(values)), values)],
        title="Objective by iteration",
        x_label="iteration",
        y_label="regularised loss",
    )


def _gradient_chart(comparison: Comparison) -> str:
    values = comparison.gradient
    return line_chart(
        [Series("", range(len(values)), values)],
        title="Gradient by iteration",
        x_label="iteration",
        y_label="preconditioned norm",
        log_y=True,
    )


def _stage_chart(comparison: Comparison) -> str:
    parts: dict[str, dict[str, float]] = {party: {} for party in comparison.data.parties}
    for stage, party, seconds, _ in comparison.stages:
        parts[party][stage] = seconds
    return bar_chart(
        [BarGroup(party, stages) for party, stages in parts.items()],
        title="Seconds by party and stage",
        value_text=seconds_text,
        width=480,
    )


def _add_sweep(page: Page, main: Comparison, curve: Sweep) -> None:
    page.add_text(
        f"Each direction is one random feature of all columns together ({main.data.title.lower()} "
        "data). More of them follow the kernel more closely; traffic grows in proportion, and time "
        "somewhat faster. For these curves the parties ran as threads of one process, which gives "
        "the same models."
    )
    ends = [curve.directions[0], curve.directions[-1]]
    alone, linear = ([main.models[i].auc] * 2 for i in (ALONE, LINEAR))
    page.add_figure(
        line_chart(
            [
                Series(main.models[ALONE].name, ends, alone),
                Series(main.models[LINEAR].name, ends, linear),
                Series(main.models[FEDERATED].name, curve.directions, curve.federated),
                Series(main.models[POOLED].name, curve.directions, curve.pooled, dashed=True),
            ],
            title="AUC by number of directions",
            x_label="directions D",
            y_label="AUC",
            log_x=True,
        ),
        "The models without directions are level lines.",
    )
    page.add_figure(
        line_chart(
            [Series("", curve.directions, [size / 1e6 for size in curve.mesh_bytes])],
            title="Sent in training by number of directions",
            x_label="directions D",
            y_label="MB, all parties together",
            log_x=True,
            log_y=True,
        ),
        f"{main.settings['bits of a phase']} bits per person, direction and sender.",
    )


def _add_ledger(page: Page, main: Comparison) -> None:
    page.add_html(f"<p><strong>{escape(OPEN_TITLE)}.</strong> {escape(open_warning(main))}</p>")
    page.add_table(
        ("from", "to", "what", "form", "messages", "bytes"),
        [
            (
                row["sender"],
                row["receiver"],
                row["what"],
                form_text(row),
                row["frames"],
                bytes_text(row["bytes"]),
            )
            for row in main.ledger
        ],
        caption=f"Ledger: all that left a party in training ({main.data.title.lower()} data).",
    )
    page.add_table(
        ("receiver", "gets", "and learns"),
        [(line.receivers, line.what, line.learns) for line in ledger_lines(main)],
        caption="What the receivers learn from it.",
    )


def _add_settings(page: Page, comparisons: Sequence[Comparison]) -> None:
    names = list(dict.fromkeys(name for c in comparisons for name in c.settings))
    page.add_table(
        ("setting of the federated model", *(c.data.title for c in comparisons)),
        [(name, *(c.settings.get(name) for c in comparisons)) for name in names],
    )


def _results(comparisons: Sequence[Comparison], curve: Sweep, seed: int) -> str:
    """The numbers of the tables once more, for programs."""
    content = {
        "seed": seed,
        "data": {c.data.name: _plain(c) for c in comparisons},
        "directions": {
            "D": curve.directions,
            "federated_auc": curve.federated,
            "pooled_auc": curve.pooled,
            "mesh_bytes": curve.mesh_bytes,
        },
    }
    # "<" would end the element early if a text held "</script>".
    text = json.dumps(content, ensure_ascii=True).replace("<", "\\u003c")
    return f'<script type="application/json" id="{RESULTS_ID}">{text}</script>'


def _plain(comparison: Comparison) -> dict[str, Any]:
    keys = ("alone", "linear", "federated", "pooled")
    return {
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
            for key, model in zip(keys, comparison.models, strict=True)
        },
        "objective": comparison.objective,
        "gradient": comparison.gradient,
        "ledger": comparison.ledger,
    }


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
