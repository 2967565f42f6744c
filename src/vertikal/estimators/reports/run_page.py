"""A trained model as one page: how good it is, how its run went, who learned what, the cost.

The charts that a page about any run wants stand here too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from vertikal.algorithms.kernel_machine.shard import Training
from vertikal.estimators.reports.report import Report
from vertikal.metrics.measures import TITLES, Measures
from vertikal.metrics.wording import in_words
from vertikal.party.party import AGREEMENT
from vertikal.privacy.ledger import Entry, Ledger
from vertikal.reporting.bar_chart import bar_chart
from vertikal.reporting.flow_diagram import Flow, flow_diagram
from vertikal.reporting.line_chart import Series, line_chart
from vertikal.reporting.measure_charts import Figure, MeasuredLine, curve_figures, score_figure
from vertikal.reporting.rendering import render_page
from vertikal.reporting.units import bytes_text, seconds_text
from vertikal.version import __version__


def run_page(
    title: str,
    settings: Mapping[str, Any],
    trainings: Mapping[str, Training],
    ledger: Ledger,
    report: Report,
    *,
    objective: Sequence[float] = (),
    measures: Measures | None = None,
) -> str:
    """Render the page of one run.

    ``trainings`` are those of the label parties by name, where the algorithm keeps them, else
    ``objective`` are the values of its iterations. ``measures`` are of the rows given to it.
    """
    parties, label_parties = tuple(settings["parties"]), tuple(settings["label_parties"])
    return render_page(
        "vertikal.estimators",
        "run.html",
        title=title,
        subtitle=f"{len(parties)} parties, {len(label_parties)} of them with labels",
        versions={"vertikal": __version__},
        run_facts=_facts(settings, trainings, ledger, report, measures),
        measured=measures.rows if measures else 0,
        measures=_measures(measures) if measures else [],
        measure_figures=_measure_figures(measures) if measures else [],
        curves=_curves(trainings) if trainings else _objective(objective),
        flows=ledger_diagram(parties, label_parties, ledger.entries()),
        disclosures=[
            (d.what, "masked" if d.masked else "open", d.learns) for d in ledger.disclosures()
        ],
        stages=stage_chart(report.rows()),
        settings=[(name, str(value)) for name, value in settings.items()],
    )


def _measures(measures: Measures) -> list[tuple[str, str]]:
    return [(TITLES[name], in_words(measures, name)) for name in measures.numbers]


def _measure_figures(measures: Measures) -> list[Figure]:
    classes = measures.classes
    lines = [
        MeasuredLine(name if len(classes) > 1 else "", one.curves) for name, one in classes.items()
    ]
    return curve_figures(lines) + [score_figure(name, one.curves) for name, one in classes.items()]


def _objective(values: Sequence[float]) -> list[Figure]:
    if not values:
        return []
    return [(iteration_chart("Objective by iteration", "regularised loss", values), "")]


def ledger_diagram(
    parties: Sequence[str], label_parties: Collection[str], entries: Iterable[Entry]
) -> Markup:
    """Draw who sent what to whom; the agreement on keys, which all pairs make, is left out."""
    return flow_diagram(
        parties,
        [
            Flow(e.sender, e.receiver, e.disclosure.name, e.bytes, e.disclosure.masked)
            for e in entries
            if e.disclosure.name != AGREEMENT.name
        ],
        label_parties=label_parties,
        title="Who sent what to whom in training",
    )


def stage_chart(stages: Iterable[tuple[str, str, float, int]]) -> Markup:
    """Draw the seconds of each party from rows of (stage, party, seconds, bytes sent)."""
    bars: dict[str, dict[str, float]] = {}
    for stage, party, seconds, _ in stages:
        bars.setdefault(party, {})[stage] = seconds
    return bar_chart(bars, title="Seconds by party and stage", value_text=seconds_text)


def iteration_chart(
    title: str, y_label: str, values: Sequence[float], *, log_y: bool = False
) -> Markup:
    """Draw one number per iteration of a solver."""
    series = Series("", range(len(values)), values)
    return line_chart([series], title=title, x_label="iteration", y_label=y_label, log_y=log_y)


def _facts(
    settings: Mapping[str, Any],
    trainings: Mapping[str, Training],
    ledger: Ledger,
    report: Report,
    measures: Measures | None,
) -> dict[str, str]:
    facts = {"training": seconds_text(report.wall), "sent": bytes_text(ledger.bytes)}
    if measures is not None:
        main = measures.main
        facts[f"{TITLES[main]}, rows given"] = in_words(measures, main)
    scores = [m.auc for t in trainings.values() for m in t.moments if m.auc is not None]
    if scores:
        facts["AUC, rows of validation"] = f"{scores[-1]:.4f}"
    if settings.get("solver") == "dsg":
        ages = [age for training in trainings.values() for age in training.staleness]
        facts["updates"] = f"{sum(sum(t.staleness.values()) for t in trainings.values()):,}"
        facts["oldest reading"] = f"{max(ages, default=0)} updates"
    missing = {name for training in trainings.values() for name in training.missing}
    if missing:
        facts["vanished"] = ", ".join(sorted(missing))
    return facts


def _curves(trainings: Mapping[str, Training]) -> list[tuple[Markup, str]]:
    """Charts with captions: the curves of the live view, or the exact solver's objective."""
    curves = {name: t.moments for name, t in trainings.items() if t.moments}
    if not curves:
        first = next(iter(trainings.values()))
        if not first.objective:
            return []
        of_pairs = " over pairs" if first.pairs else ""
        chart = iteration_chart(
            "Objective by iteration", f"regularised loss{of_pairs}", first.objective
        )
        return [(chart, f"Over {first.pairs}." if first.pairs else "")]
    charts = []
    scored = [m for moments in curves.values() for m in moments if m.auc is not None]
    if scored:
        auc = Series("", [m.seconds for m in scored], [m.auc or 0.0 for m in scored])
        chart = line_chart(
            [auc], title="AUC on the held-out rows", x_label="seconds", y_label="AUC"
        )
        charts.append((chart, "Measured by the first label party while all go on."))
    for what, y_label, caption in (
        ("updates", "updates", "A slow party makes fewer; the others do not wait for it."),
        (
            "staleness",
            "updates of the others",
            "Updates that the others made between one reading of a party and its next, on average.",
        ),
    ):
        chart = line_chart(
            [
                Series(name, [m.seconds for m in moments], [getattr(m, what) for m in moments])
                for name, moments in curves.items()
            ],
            title=f"{what.capitalize()} by label party",
            x_label="seconds",
            y_label=y_label,
        )
        charts.append((chart, caption))
    return charts
