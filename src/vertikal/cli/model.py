"""``vertikal model``: the shards that a party keeps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from vertikal.cli.drift import drift
from vertikal.cli.group import OrderedGroup
from vertikal.cli.terminal.output import json_option, print_json, print_table
from vertikal.cli.terminal.party_option import party_option, store_of
from vertikal.node.printable import printable

if TYPE_CHECKING:
    from vertikal.node.models.store import ModelStore


_store_option = click.option(
    "--store",
    metavar="FOLDER",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Store of a party without a party file: FOLDER/NAME of `vertikal run --out FOLDER`.",
)


@click.group(cls=OrderedGroup)
def model() -> None:
    """List, show, compare and delete this party's shards of models."""


@model.command("list")
@json_option
@_store_option
@party_option
def list_(as_json: bool, store: Path | None, party: Path | None) -> None:
    """List all versions of all models."""
    damaged: list[str] = []
    found = _models(party, store).versions(damaged)
    if as_json:
        from vertikal.node.models.model_card import card

        print_json([card(one) for one in found])
    elif found:
        from vertikal.node.models.succession import KEPT_BACK

        print_table(
            ("model", "version", "stored", "algorithm", "state", "digest"),
            [
                (
                    one.name,
                    one.version,
                    one.created,
                    one.algorithm,
                    "kept back" if KEPT_BACK in one.facts else "stored",
                    one.digest,
                )
                for one in found
            ],
        )
    elif not damaged:
        click.echo("no models")
    for fault in damaged:
        click.echo(f"damaged: {fault}", err=True)


@model.command()
@click.argument("name")
@click.option("--version", type=click.IntRange(1), help="Version; the newest by default.")
@json_option
@_store_option
@party_option
def show(
    name: str, version: int | None, as_json: bool, store: Path | None, party: Path | None
) -> None:
    """Check and show the model NAME.

    A model of a job with [evaluation] says at the label party how good it is.
    """
    from vertikal.node.models.model_card import card, describe

    one, _, evaluation, search = _models(party, store).details(name, version)
    if as_json:
        print_json(card(one, evaluation, search))
        return
    lines = describe(one, evaluation, search)
    lines += _drift(store or store_of(party), one.digest)
    lines.append(("files", f"{', '.join(sorted(one.files))}: as they were stored"))
    width = max(12, *(len(title) for title, _ in lines))
    for title, words in lines:
        click.echo(f"{title:<{width}} {printable(words)}")


@model.command()
@click.argument("name")
@click.option("--version", type=click.IntRange(1), help="Version; the newest by default.")
@click.option(
    "-o", "--out", type=click.Path(path_type=Path, dir_okay=False), help="The page, NAME.html."
)
@json_option
@_store_option
@party_option
def report(
    name: str,
    version: int | None,
    out: Path | None,
    as_json: bool,
    store: Path | None,
    party: Path | None,
) -> None:
    """Write a page about the model NAME.

    It has curves, measures, columns, and what left this party. With --json its numbers are printed
    in place of the page.
    """
    from vertikal.files import write_whole
    from vertikal.node.models.model_card import card, what_left
    from vertikal.node.models.model_page import model_page

    one, account, evaluation, search = _models(party, store).details(name, version)
    if as_json:
        titles = ("to", "what", "form", "bytes", "learns")
        left = [dict(zip(titles, row, strict=True)) for row in what_left(account)]
        print_json({**card(one, evaluation, search), "left": left})
        return
    path = out or Path(f"{one.name}.html")
    write_whole(path, model_page(one, account, evaluation, search).encode())
    click.echo(f"report  {path.name}")


@model.command()
@click.argument("first")
@click.argument("second")
@json_option
@_store_option
@party_option
def compare(first: str, second: str, as_json: bool, store: Path | None, party: Path | None) -> None:
    """Compare two models, NAME or NAME:VERSION each.

    First come the measures, then all that differs. A measure is "open" where the intervals of the
    two overlap.
    """
    from vertikal.node.models import model_card

    models = _models(party, store)
    found = [models.details(*_numbered(text)) for text in (first, second)]
    pairs = [(one.manifest, one.evaluation) for one in found]
    rows = model_card.compare(*pairs)
    if as_json:
        titles = ("what", "first", "second", "better")
        models_told = [model_card.card(*pair) for pair in pairs]
        print_json(
            {"models": models_told, "rows": [dict(zip(titles, row, strict=True)) for row in rows]}
        )
        return
    names = [f"{one.name}, version {one.version}" for one, _ in pairs]
    print_table(("", *names, "better"), rows)
    if any(evaluation is None for _, evaluation in pairs):
        click.echo("not both were evaluated here; the label party keeps the measures", err=True)


@model.command()
@click.argument("name")
@click.option("--version", type=click.IntRange(1), help="Version; the newest by default.")
@click.option(
    "--mlflow",
    "uri",
    metavar="URI",
    required=True,
    help="The MLflow server, as https://mlflow.example or file:///srv/runs.",
)
@click.option("--experiment", default="vertikal", help="Experiment of MLflow; vertikal by default.")
@json_option
@_store_option
@party_option
def log(
    name: str,
    version: int | None,
    uri: str,
    experiment: str,
    as_json: bool,
    store: Path | None,
    party: Path | None,
) -> None:
    """Log the model NAME in MLflow.

    Settings, measures, the card and the page become one run there; the shard stays here.
    """
    from vertikal.node.models.mlflow_log import log_model

    found = _models(party, store).details(name, version)
    run = log_model(found, uri, experiment)
    if as_json:
        print_json({"model": name, "version": found.manifest.version, "run": run})
        return
    click.echo(f"logged {name}, version {found.manifest.version}, as run {run}")


def _numbered(text: str) -> tuple[str, int | None]:
    """Read NAME or NAME:VERSION."""
    name, colon, number = text.rpartition(":")
    if not colon:
        return text, None
    if not number.isdigit():
        raise click.UsageError(f"a model is NAME or NAME:VERSION, got {text!r}")
    return name, int(number)


@model.command()
@click.argument("name")
@click.option("--version", type=click.IntRange(1), help="Version; all by default.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@json_option
@_store_option
@party_option
def delete(
    name: str,
    version: int | None,
    yes: bool,
    as_json: bool,
    store: Path | None,
    party: Path | None,
) -> None:
    """Delete this party's shard of the model NAME.

    Nobody can predict with the model any more.
    """
    models = _models(party, store)
    models.find(name, version)
    what = f"all versions of {name}" if version is None else f"version {version} of {name}"
    if not yes:
        click.confirm(f"Delete {what}?", abort=True)
    gone = models.delete(name, version)
    if as_json:
        print_json({"model": name, "deleted": gone})
        return
    click.echo(f"deleted {name}, {', '.join(f'version {number}' for number in gone)}")


def _models(party: Path | None, store: Path | None) -> ModelStore:
    from vertikal.node.models.store import ModelStore

    return ModelStore((store or store_of(party)) / "models")


def _drift(store: Path, digest: str) -> list[tuple[str, str]]:
    """Say what has changed in the tables since training, when they were last read to be scored."""
    from vertikal.node.storage.drift_notes import DriftNotes

    return [
        ("drift", f"{table}, column {one.column}: {one.words} (seen {note.when})")
        for table, note in DriftNotes(store).read(digest).items()
        for one in note.found
    ]


model.add_command(drift)
