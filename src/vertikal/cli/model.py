"""``vertikal model``: the shards that a party keeps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vertikal.cli.group import OrderedGroup
from vertikal.cli.output import json_option, print_json, print_table
from vertikal.cli.party_option import party_option, store_of

if TYPE_CHECKING:
    from vertikal.node.models.store import Manifest, ModelStore


_store_option = click.option(
    "--store",
    metavar="FOLDER",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Store of a party without a party file: FOLDER/NAME of `vertikal run --out FOLDER`.",
)


@click.group(cls=OrderedGroup)
def model() -> None:
    """List, show and delete this party's shards of models."""


@model.command("list")
@json_option
@_store_option
@party_option
def list_(as_json: bool, store: Path | None, party: Path | None) -> None:
    """List all versions of all models."""
    damaged: list[str] = []
    found = _models(party, store).versions(damaged)
    if as_json:
        print_json([_told(one) for one in found])
    elif found:
        print_table(
            ("model", "version", "stored", "kind", "digest"),
            [(one.name, one.version, one.created, one.kind, one.digest) for one in found],
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
    """Check the files of the model NAME and show what is known about it."""
    one = _models(party, store).check(name, version)
    if as_json:
        print_json(_told(one))
        return
    for title, value in (
        ("model", f"{one.name}, version {one.version}"),
        ("party", one.party),
        ("kind", one.kind),
        ("stored", f"{one.created} by vertikal {one.library}"),
        ("digest", one.digest),
        *one.facts.items(),
    ):
        click.echo(f"{title:<12} {value}")
    click.echo(f"{'files':<12} {', '.join(sorted(one.files))}: as they were stored")


@model.command()
@click.argument("name")
@click.option("--version", type=click.IntRange(1), help="Version; all by default.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@_store_option
@party_option
def delete(
    name: str, version: int | None, yes: bool, store: Path | None, party: Path | None
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
    click.echo(f"deleted {name}, {', '.join(f'version {number}' for number in gone)}")


def _models(party: Path | None, store: Path | None) -> ModelStore:
    from vertikal.node.models.store import ModelStore

    return ModelStore((store or store_of(party)) / "models")


def _told(one: Manifest) -> dict[str, Any]:
    """Name the parts of a manifest that are for others to read."""
    return {
        "name": one.name,
        "version": one.version,
        "party": one.party,
        "kind": one.kind,
        "created": one.created,
        "library": one.library,
        "digest": one.digest,
        "facts": one.facts,
    }
