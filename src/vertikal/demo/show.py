"""The demonstration from beginning to end: train, print, write the report."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding

from vertikal.demo.data_sets import DataSet, breast_cancer, credit
from vertikal.demo.models import Comparison, Sweep, compare, federate, sweep, warm_up
from vertikal.demo.recommender import show_recommender
from vertikal.demo.report import demo_page
from vertikal.demo.tables import comparison_table, ledger_table, warning_panel
from vertikal.errors import InputError
from vertikal.node.runs.live_table import LiveTable
from vertikal.reporting import seconds_text

REPORT = "report.html"
PLAIN_WIDTH = 110


def show(out: Path, rows: int, seed: int, mesh: str, *, hint: bool) -> None:
    """The whole demonstration; ``hint`` says how to open the report."""
    began = time.perf_counter()
    _prepare(out)
    if mesh == "network":
        _need_grpc()
    console = _console()
    with console.status("loading the inner loops (compiled once per installation)"):
        warm_up()
    cancer = _show(console, breast_cancer(), seed, mesh)
    loans = _show(console, credit(rows, seed), seed, mesh)
    with console.status("AUC against the number of directions"):
        curve = sweep(loans.data, seed)
    console.print(ledger_table(loans))
    console.print(warning_panel(loans))
    _write(out / REPORT, [cancer, loans], curve, seed)
    took = seconds_text(time.perf_counter() - began)
    console.print(f"\n{took} in all. Report: {escape(_shown(out / REPORT))}", soft_wrap=True)
    if hint:
        address = (out / REPORT).resolve().as_uri()
        console.print(f"Open it in a browser: {escape(address)}", soft_wrap=True)


def recommend(seed: int) -> None:
    """The recommender, printed."""
    show_recommender(_console(), seed)


def _show(console: Console, data: DataSet, seed: int, mesh: str) -> Comparison:
    """Say what is to be learned, train with a live table, print the comparison."""
    console.rule(f"[bold]{escape(data.title)}", align="left")
    console.print(escape(data.story))
    for party, columns in data.parties.items():
        role = " (label party)" if party == data.label_party else ""
        held = f"{party}{role}: {', '.join(columns)}"
        console.print(Padding(escape(held), (0, 0, 0, 2)), style="dim")
    with LiveTable(tuple(data.parties)) as live:
        federated = federate(data, seed, mesh, live.tell)
    comparison = compare(data, seed, federated)
    console.print()
    console.print(comparison_table(comparison))
    console.print()
    return comparison


def _need_grpc() -> None:
    """Refuse before any work where the network mesh cannot be had."""
    try:
        import vertikal.mesh.network  # noqa: F401
    except InputError as error:
        raise InputError(f"{error}; or run the parties as threads: --mesh local") from None


def _console() -> Console:
    """Standard output; where it is no terminal, wide enough for the tables."""
    console = Console(highlight=False)
    if console.is_terminal:
        return console
    return Console(highlight=False, width=max(PLAIN_WIDTH, console.width))


def _prepare(out: Path) -> None:
    """Make sure before any work that the report can be written."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise _unwritable(out, error) from error
    if (out / REPORT).is_dir():
        raise InputError(f"--out must be a folder for {REPORT}, got '{out}', where it is a folder")


def _write(path: Path, comparisons: list[Comparison], curve: Sweep, seed: int) -> None:
    try:
        demo_page(comparisons, curve, seed).write(path)
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> InputError:
    reason = error.strerror or type(error).__name__
    return InputError(f"--out must be a folder that can be written to, got '{path}': {reason}")


def _shown(path: Path) -> str:
    """Relative to the current directory where it lies inside."""
    whole, here = path.resolve(), Path.cwd().resolve()
    return str(whole.relative_to(here) if whole.is_relative_to(here) else whole)
