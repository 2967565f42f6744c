"""The demonstration's results as tables for the terminal, and the words that go with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.box import HORIZONTALS, SIMPLE_HEAD
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table

from vertikal.demo.models import FEDERATED, Comparison
from vertikal.reporting import bytes_text, count_text, seconds_text

OPEN_TITLE = 'Disclosure "open": what the label party could do'
OPEN_WARNING = (
    "On the way the sums are masked: whoever intercepts or relays a message about the columns sees "
    'noise. But with disclosure "open" the label party ({label_party}) in the end holds the sums '
    "themselves: {directions} phases of each person. From these it can recover other parties' "
    "columns by statistical means (blind source separation), yes/no columns almost exactly, "
    "although no column was ever sent. That suits experiments, such as this one, and the "
    "reproduction of papers. Between organisations, use it only where each owner would also show "
    "its columns to the label party."
)


def open_warning(comparison: Comparison) -> str:
    """What disclosure "open" means for this run, in plain words."""
    return OPEN_WARNING.format(
        label_party=comparison.data.label_party, directions=count_text(comparison.directions)
    )


def comparison_table(comparison: Comparison) -> Table:
    """The four models, the federated one standing out."""
    table = Table(
        box=HORIZONTALS,
        title=escape(f"{comparison.data.title}: {split_text(comparison)}"),
        title_justify="left",
        title_style="bold",
    )
    table.add_column("model", no_wrap=True)
    for name in ("accuracy", "AUC", "training", "on the mesh"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("columns used")
    for place, model in enumerate(comparison.models):
        table.add_row(
            escape(("▶ " if place == FEDERATED else "  ") + model.name),
            f"{model.accuracy:.3f}",
            f"{model.auc:.3f}",
            seconds_text(model.seconds),
            "–" if model.mesh_bytes is None else bytes_text(model.mesh_bytes),
            escape(model.columns),
            style="bold green" if place == FEDERATED else "",
        )
    return table


def split_text(comparison: Comparison) -> str:
    """How many rows, and how many of them are positive."""
    return (
        f"trained on {count_text(comparison.train_rows)} rows, tested on "
        f"{count_text(comparison.test_rows)} others, {comparison.positives:.0%} positive"
    )


def ledger_table(comparison: Comparison) -> Table:
    """Who sent how much of what to whom, and what the receivers learn from it."""
    table = Table(
        box=SIMPLE_HEAD,
        title="Ledger: all that left a party in training",
        title_justify="left",
        title_style="bold",
    )
    for name, widest in (("from", 14), ("to", 14), ("what", 24), ("form", 6)):
        table.add_column(name, max_width=widest)
    table.add_column("bytes", justify="right", no_wrap=True)
    table.add_column("what the receiver learns", ratio=1)
    for line in ledger_lines(comparison):
        table.add_row(
            *(escape(text) for text in (line.senders, line.receivers, line.what, line.form)),
            bytes_text(line.size),
            escape(line.learns),
        )
    return table


@dataclass(frozen=True)
class LedgerLine:
    """All messages of one kind."""

    senders: str
    receivers: str
    what: str
    form: str
    size: int
    learns: str


def ledger_lines(comparison: Comparison) -> list[LedgerLine]:
    """The ledger by kind of message, as it says who learns what."""
    kinds: dict[str, list[Mapping[str, Any]]] = {}
    for row in comparison.ledger:
        kinds.setdefault(row["name"], []).append(row)
    order = tuple(comparison.data.parties)
    return [
        LedgerLine(
            _people({row["sender"] for row in rows}, order),
            _people({row["receiver"] for row in rows}, order),
            rows[0]["what"],
            form_text(rows[0]),
            sum(row["bytes"] for row in rows),
            rows[0]["learns"],
        )
        for rows in kinds.values()
    ]


def _people(names: set[str], order: Sequence[str]) -> str:
    return "all" if names == set(order) else ", ".join(name for name in order if name in names)


def form_text(row: Mapping[str, Any]) -> str:
    """Whether a message is noise to everyone but the party that gets the sum."""
    return "masked" if row["masked"] else "open"


def warning_panel(comparison: Comparison) -> Panel:
    """The plain-words warning in a frame."""
    return Panel(
        escape(open_warning(comparison)),
        title=escape(OPEN_TITLE),
        title_align="left",
        border_style="yellow",
    )
