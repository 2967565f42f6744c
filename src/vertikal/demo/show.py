"""The demonstration from beginning to end: train, print, write the report."""

from __future__ import annotations

import signal
import sys
import tempfile
import time
from pathlib import Path

from rich.box import HORIZONTALS, SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table

from vertikal.data.file_formats import arrow
from vertikal.demo.comparison import (
    OPEN_TITLE,
    DataSetComparison,
    compare,
    federate,
    sweep,
    warm_up,
)
from vertikal.demo.credit import credit_population
from vertikal.demo.data_sets import DataSet, breast_cancer
from vertikal.demo.recommender import show_recommender
from vertikal.demo.report import demo_page
from vertikal.errors import InputError
from vertikal.files import move_over
from vertikal.node.runs.live_table import LiveTable
from vertikal.reporting.units import bytes_text, seconds_text

REPORT = "report.html"
PLAIN_WIDTH = 110
MOST_PEOPLE = 3000
"""People of the services: enough for a model, and few enough for a visitor who waits."""


def show(out: Path, rows: int, seed: int, mesh: str, *, hint: bool) -> None:
    """Run the whole demonstration; ``hint`` says how to open the report."""
    began = time.perf_counter()
    _prepare(out)
    arrow()
    if mesh == "network":
        _need_grpc()
    console = _console()
    with console.status("loading the inner loops (compiled once per installation)"):
        warm_up()
    cancer = _show(console, breast_cancer(), seed, mesh)
    loans = _show(console, credit_population(rows, seed), seed, mesh)
    with console.status("AUC against the number of directions"):
        curve = sweep(loans.data, seed)
    console.print(_ledger_table(loans))
    warning = escape(loans.open_warning)
    console.print(
        Panel(warning, title=escape(OPEN_TITLE), title_align="left", border_style="yellow")
    )
    _write(out / REPORT, demo_page([cancer, loans], curve, seed))
    took = seconds_text(time.perf_counter() - began)
    console.print(f"\n{took} in all. Report: {escape(_shown(out / REPORT))}", soft_wrap=True)
    if hint:
        address = (out / REPORT).resolve().as_uri()
        console.print(f"Open it in a browser: {escape(address)}", soft_wrap=True)
        console.print(
            f"Decide about a job in a browser, as an owner: {escape(_command())} demo --console",
            soft_wrap=True,
        )


def recommend(seed: int) -> None:
    """Run the recommender, and print what it does."""
    show_recommender(_console(), seed)


def open_consoles(rows: int, seed: int) -> None:
    """Serve three parties with a job that waits until the user stops it, and print their links."""
    from vertikal.demo.federation import FIRST, NAMES, WAITING, DemoFederation, lay_out

    console = _console()
    # Whoever ends this process ends the services too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="vertikal-demo-") as folder:
        lay_out(Path(folder), min(rows, MOST_PEOPLE), seed)
        federation = DemoFederation(Path(folder))
        try:
            with console.status("starting the services of lender, bank and shop"):
                federation.start()
                federation.submit(FIRST)
                federation.submit(WAITING)
            console.print(
                f"Three parties run on this machine. Job [bold]{FIRST}[/] trains now, approved by "
                f"rule; job [bold]{WAITING}[/] waits for the owner of the bank.\n"
                "Each party has its own web page; a link is good once, for ten minutes:\n"
            )
            for name in NAMES:
                told = "  decide here" if name == "bank" else ""
                # The link stands alone on its line, so that a terminal can open it.
                print(f"  {name:<7}{federation.link(name)}{told}", flush=True)
            console.print("\nCtrl-C stops all of it, and removes its folder.")
            while True:
                time.sleep(3600)
        finally:
            with console.status("stopping"):
                federation.stop()


def _command() -> str:
    """Name this program as it was called."""
    called = Path(sys.argv[0])
    return _shown(called) if called.name == "vertikal" and called.exists() else "vertikal"


def _show(console: Console, data: DataSet, seed: int, mesh: str) -> DataSetComparison:
    """Say what is to be learned, train with a live table, print the comparison."""
    console.rule(f"[bold]{escape(data.title)}", align="left")
    console.print(escape(data.story))
    for party, columns in data.columns.items():
        role = " (label party)" if party == data.label_party else ""
        held = f"{party}{role}: {', '.join(columns)}"
        console.print(Padding(escape(held), (0, 0, 0, 2)), style="dim")
    with LiveTable(tuple(data.columns)) as live:
        federated = federate(data, seed, mesh, live.tell)
    comparison = compare(data, seed, federated)
    console.print()
    console.print(_comparison_table(comparison))
    console.print()
    return comparison


def _comparison_table(comparison: DataSetComparison) -> Table:
    """Tabulate the four models, the federated one standing out."""
    table = Table(
        box=HORIZONTALS,
        title=escape(f"{comparison.data.title}: {comparison.split}"),
        title_justify="left",
        title_style="bold",
    )
    table.add_column("model", no_wrap=True)
    for name in ("accuracy", "AUC", "training", "on the mesh"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("columns used")
    for key, model in comparison.models.items():
        table.add_row(
            escape(("▶ " if key == "federated" else "  ") + model.name),
            f"{model.accuracy:.3f}",
            f"{model.auc:.3f}",
            seconds_text(model.seconds),
            "–" if model.mesh_bytes is None else bytes_text(model.mesh_bytes),
            escape(model.columns),
            style="bold green" if key == "federated" else "",
        )
    return table


def _ledger_table(comparison: DataSetComparison) -> Table:
    """Tabulate who sent how much of what to whom, and what the receivers learn from it."""
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
    for line in comparison.ledger_lines():
        table.add_row(
            *(escape(text) for text in (line.senders, line.receivers, line.what, line.form)),
            bytes_text(line.size),
            escape(line.learns),
        )
    return table


def _need_grpc() -> None:
    """Refuse before any work where the network mesh cannot be had."""
    try:
        import vertikal.mesh.network  # noqa: F401
    except InputError as error:
        raise InputError(f"{error}; or run the parties as threads: --mesh local") from None


def _console() -> Console:
    """Open standard output; where it is no terminal, make it wide enough for the tables."""
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


def _write(path: Path, page: str) -> None:
    try:
        move_over(path, page.encode(), mode=0o666)
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> InputError:
    reason = error.strerror or type(error).__name__
    return InputError(f"--out must be a folder that can be written to, got '{path}': {reason}")


def _shown(path: Path) -> str:
    """Name a path relative to the current directory where it lies inside."""
    whole, here = path.resolve(), Path.cwd().resolve()
    return str(whole.relative_to(here) if whole.is_relative_to(here) else whole)
