"""``vertikal model drift``: whether this party's columns are still as they were in training."""

from __future__ import annotations

from pathlib import Path

import click

from vertikal.cli.terminal.output import json_option, print_json, print_table
from vertikal.cli.terminal.party_option import party_file, party_option, store_of
from vertikal.errors import InputError


@click.command()
@click.argument("name")
@click.option("--version", type=click.IntRange(1), help="Version; the newest by default.")
@click.option("--table", help="One table; all whose people the model may score by default.")
@json_option
@party_option
def drift(
    name: str, version: int | None, table: str | None, as_json: bool, party: Path | None
) -> None:
    """Compare this party's tables with the training of the model NAME.

    It names columns whose types, ranges, distributions, categories or missing cells have changed.
    Only this party's own tables are read, and nothing is sent. People scored last who stand in the
    table of training are named by themselves.
    """
    from vertikal.data.drift.comparison import compare
    from vertikal.node.approval.offers import OwnTables
    from vertikal.node.models.store import ModelStore
    from vertikal.node.storage.drift_notes import DriftNotes

    own = OwnTables.of(party_file(party))
    manifest, profile = ModelStore(store_of(party) / "models").profile(name, version)
    if profile is None:
        raise InputError(
            f"model {name!r} was stored without a profile of its training rows; train it again"
        )
    scored = list(own.file.tables_to_score(own.trained_on(manifest.facts)))
    if table is not None and table not in scored:
        raise InputError.of("--table", f"one whose people the model may score, of {scored}", table)
    found = {
        one: compare(profile, own.open(one)) for one in scored if table is None or one == table
    }
    # People scored are known from requests alone: what the service noted of the last ones.
    notes = DriftNotes(store_of(party)).read(manifest.digest)
    found |= {one: note.found for one, note in notes.items() if table is None and one not in scored}
    if as_json:
        print_json(found)
        return
    rows = [(one, drift.column, drift.words) for one, many in found.items() for drift in many]
    if rows:
        print_table(("table", "column", "since training"), rows)
    else:
        click.echo(f"no drift: {', '.join(found)} as in training")
