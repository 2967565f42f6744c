"""``vertikal demo``: train with three parties on two data sets, and write a report."""

from __future__ import annotations

from pathlib import Path

import click

from vertikal.cli.terminal.loading import loading


@click.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("vertikal-demo"),
    show_default=True,
    help="Folder of the report; created if missing, an older report is replaced.",
)
@click.option(
    "--rows",
    type=click.IntRange(200, 1_000_000),
    default=12_000,
    show_default=True,
    help="Rows of the generated credit population.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    default=0,
    show_default=True,
    help="The same seed gives the same data and models; only the seconds differ.",
)
@click.option(
    "--mesh",
    type=click.Choice(["network", "local"]),
    default="network",
    show_default=True,
    help="Parties as processes over mutual TLS, or as threads of this process.",
)
@click.option("--no-open-hint", is_flag=True, help="Do not say how to open the report.")
@click.option(
    "--recommender",
    is_flag=True,
    help="Instead: a recommender on a small generated catalogue, printed; no report.",
)
@click.option(
    "--console",
    is_flag=True,
    help="Instead: three services with a job that waits, and a link to the web page of each.",
)
def demo(
    out: Path,
    rows: int,
    seed: int,
    mesh: str,
    no_open_hint: bool,
    recommender: bool,
    console: bool,
) -> None:
    """Train with three parties, compare, and show who learned what.

    Each party is a process of its own on this machine (with --mesh local a thread); nothing is sent
    anywhere else.
    """
    with loading():
        from vertikal.demo import show
    if console:
        show.open_consoles(rows, seed)
    elif recommender:
        show.recommend(seed)
    else:
        show.show(out, rows, seed, mesh, hint=not no_open_hint)
