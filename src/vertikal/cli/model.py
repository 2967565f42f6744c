"""``vertikal model``: the shards that a party keeps."""

from __future__ import annotations

from pathlib import Path

import click

from vertikal.cli.stores import store_option


@click.group()
def model() -> None:
    """Models of which this party keeps a shard."""


@model.command("list")
@store_option
def list_(store: Path) -> None:
    """All versions of all models."""
    from vertikal.node.models.store import ModelStore

    damaged: list[str] = []
    found = ModelStore(store / "models").versions(damaged)
    for one in found:
        click.echo(
            f"{one.name:<24} {one.version:>4}  {one.created}  {one.kind:<12} {one.digest[:16]}"
        )
    for words in damaged:
        click.echo(words)
    if not found and not damaged:
        click.echo("no models")


@model.command()
@click.argument("name")
@click.option("--version", type=click.IntRange(1), help="The newest by default.")
@store_option
def show(name: str, version: int | None, store: Path) -> None:
    """What is known about the model NAME, after a check of its files."""
    from vertikal.node.models.store import ModelStore

    models = ModelStore(store / "models")
    one = models.check(name, version)
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
@click.option("--version", type=click.IntRange(1), help="All versions by default.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@store_option
def delete(name: str, version: int | None, yes: bool, store: Path) -> None:
    """Delete this party's shard of the model NAME: nobody can predict with it any more."""
    from vertikal.node.models.store import ModelStore

    models = ModelStore(store / "models")
    models.find(name, version)
    what = f"all versions of {name}" if version is None else f"version {version} of {name}"
    if not yes:
        click.confirm(f"Delete {what}?", abort=True)
    gone = models.delete(name, version)
    click.echo(f"deleted {name}, {', '.join(f'version {number}' for number in gone)}")
