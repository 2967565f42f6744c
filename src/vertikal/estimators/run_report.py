"""A trained AUC model as one HTML page: the curves of its run, who learned what, and the cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vertikal.algorithms.kernel_machine.shard import Training
from vertikal.estimators.report import Report
from vertikal.party.party import AGREEMENT
from vertikal.privacy.ledger import Ledger
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
from vertikal.version import __version__


def run_page(
    title: str,
    settings: Mapping[str, Any],
    trainings: Mapping[str, Training],
    ledger: Ledger,
    report: Report,
) -> Page:
    """The page of one run; ``trainings`` are those of the label parties, by name."""
    page = Page(title, _subtitle(settings), versions={"vertikal": __version__})
    _add_facts(page, settings, trainings, ledger, report)
    page.add_section("How it went")
    _add_curves(page, trainings)
    page.add_section("Who learned what")
    _add_ledger(page, settings, ledger)
    page.add_section("Where the time went")
    parts: dict[str, dict[str, float]] = {}
    for stage, party, seconds, _ in report.rows():
        parts.setdefault(party, {})[stage] = seconds
    page.add_figure(
        bar_chart(
            [BarGroup(party, stages) for party, stages in parts.items()],
            title="Seconds by party and stage",
            value_text=seconds_text,
        ),
        "Waiting for others is included.",
    )
    page.add_section("Settings")
    page.add_table(("setting", "value"), [(name, str(value)) for name, value in settings.items()])
    return page


def _subtitle(settings: Mapping[str, Any]) -> str:
    parties, label_parties = settings["parties"], settings["label_parties"]
    return f"{len(parties)} parties, {len(label_parties)} of them with labels"


def _add_facts(
    page: Page,
    settings: Mapping[str, Any],
    trainings: Mapping[str, Training],
    ledger: Ledger,
    report: Report,
) -> None:
    facts = {"training": seconds_text(report.wall), "sent": bytes_text(ledger.bytes)}
    scores = [m.auc for t in trainings.values() for m in t.moments if m.auc is not None]
    if scores:
        facts["AUC, held-out rows"] = f"{scores[-1]:.4f}"
    if settings["solver"] == "dsg":
        ages = [age for training in trainings.values() for age in training.staleness]
        facts["updates"] = f"{sum(sum(t.staleness.values()) for t in trainings.values()):,}"
        facts["oldest reading"] = f"{max(ages, default=0)} updates"
    missing = {name for training in trainings.values() for name in training.missing}
    if missing:
        facts["vanished"] = ", ".join(sorted(missing))
    page.add_facts(facts)


def _add_curves(page: Page, trainings: Mapping[str, Training]) -> None:
    """The curves of the live view; for the exact solver, its objective."""
    curves = {name: t.moments for name, t in trainings.items() if t.moments}
    if not curves:
        first = next(iter(trainings.values()))
        page.add_figure(
            line_chart(
                [Series("", range(len(first.objective)), first.objective)],
                title="Objective by iteration",
                x_label="iteration",
                y_label="regularised loss over pairs",
            ),
            f"Over {first.pairs}." if first.pairs else "",
        )
        return
    scored = [m for moments in curves.values() for m in moments if m.auc is not None]
    if scored:
        page.add_figure(
            line_chart(
                [Series("", [m.seconds for m in scored], [m.auc or 0.0 for m in scored])],
                title="AUC on the held-out rows",
                x_label="seconds",
                y_label="AUC",
            ),
            "Measured by the first label party while all go on.",
        )
    page.add_figure(
        line_chart(
            [
                Series(name, [m.seconds for m in moments], [m.updates for m in moments])
                for name, moments in curves.items()
            ],
            title="Updates by label party",
            x_label="seconds",
            y_label="updates",
        ),
        "A slow party makes fewer; the others do not wait for it.",
    )
    page.add_figure(
        line_chart(
            [
                Series(name, [m.seconds for m in moments], [m.staleness for m in moments])
                for name, moments in curves.items()
            ],
            title="Staleness by label party",
            x_label="seconds",
            y_label="updates of the others",
        ),
        "Updates that the others made between one reading of a party and its next, on average.",
    )


def _add_ledger(page: Page, settings: Mapping[str, Any], ledger: Ledger) -> None:
    page.add_figure(
        flow_diagram(
            tuple(settings["parties"]),
            [
                Flow(e.sender, e.receiver, e.disclosure.name, e.bytes, e.disclosure.masked)
                for e in ledger.entries()
                if e.disclosure.name != AGREEMENT.name
            ],
            label_parties=tuple(settings["label_parties"]),
            title="Who sent what to whom in training",
        )
    )
    page.add_table(
        ("what", "form", "what its receiver learns"),
        [(d.what, "masked" if d.masked else "open", d.learns) for d in ledger.disclosures()],
    )
