"""``vertikal party backup`` and ``restore``: a party's files in one archive, and back."""

from __future__ import annotations

import os
from pathlib import Path

import click

from vertikal.cli.terminal.party_option import party_argument, party_file
from vertikal.errors import InputError

PASSPHRASE = "VERTIKAL_BACKUP_PASSPHRASE"
_PATH = click.Path(path_type=Path, dir_okay=False)


@click.command()
@party_argument
@click.option("-o", "--out", type=_PATH, required=True, help="The backup, a new file.")
@click.option("--passphrase", is_flag=True, help=f"Encrypt it; asked for, or {PASSPHRASE}.")
def backup(file: Path | None, out: Path, passphrase: bool) -> None:
    """Back up the party in FILE: its key, files, jobs, models and logs.

    The service may run meanwhile. Checkpoints, tables and tokens are left out. The file is readable
    by its owner only; without a passphrase whoever reads it has the party's key and shards.
    """
    from vertikal.node.backup.archive import write_backup

    secret = _ask(confirm=True) if passphrase else None
    head = write_backup(party_file(file), out, secret)
    how = "encrypted" if secret else "not encrypted: keep it as you keep the store"
    click.echo(f"backup  {out.name} of {head.party}, {out.stat().st_size:,} bytes, {how}")


@click.command()
@click.argument("backup", type=_PATH)
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="Folder of the party file; this one by default.",
)
@click.option("--models", is_flag=True, help="Bring back shards that are missing, nothing else.")
@click.option("--nothing-since", is_flag=True, help="The service did nothing after this backup.")
@click.option(
    "--row-bits", type=click.IntRange(0), help="Bits about a row opened to one receiver since."
)
@click.option(
    "--questions", type=click.IntRange(0), help="Questions about one person with one model since."
)
def restore(
    backup: Path,
    folder: Path,
    models: bool,
    nothing_since: bool,
    row_bits: int | None,
    questions: int | None,
) -> None:
    """Restore a party from BACKUP into a place where there is none.

    What was opened after the backup is not in it, so the worst is assumed: the disclosure account
    stands at its limit, every person has been asked about as often as may be, the rows of today and
    the privacy budget are spent. Open jobs are ended. If you know better, say it by the options;
    the audit log keeps what you said.
    """
    from vertikal.node.backup.restoring import NOTHING, Since, restore, restore_models

    if nothing_since and (row_bits is not None or questions is not None):
        raise click.UsageError("--nothing-since says that --row-bits and --questions are 0")
    secret = _ask(confirm=False) if _is_encrypted(backup) else None
    if models:
        if nothing_since or row_bits is not None or questions is not None:
            raise click.UsageError("--models changes no count: leave the other options out")
        brought = restore_models(backup, _only_party(folder), secret)
        for one in brought:
            click.echo(f"restored  {one}")
        if not brought:
            click.echo("no shard of this backup is missing")
        return
    since = NOTHING if nothing_since else Since(row_bits, questions)
    head, party = restore(backup, folder, secret, since)
    click.echo(f"restored  {head.party} as of {head.created}, party file {party.name}")
    if nothing_since:
        click.echo("counts are as in the backup: the audit log says that nothing happened since")
    else:
        click.echo("what was opened since is not known: `vertikal audit account` shows what counts")
    click.echo("jobs that were open end when the service starts; tables and tokens are not in it")


def _only_party(folder: Path) -> Path:
    found = [one for one in sorted(folder.glob("*.toml")) if _has_store(one)]
    if len(found) != 1:
        raise InputError.of("--folder", "one with exactly one party file", str(folder))
    return found[0]


def _has_store(path: Path) -> bool:
    from vertikal.node.config.party_file import PartyFile

    try:
        return bool(PartyFile.load(path).store)
    except InputError:
        return False


def _is_encrypted(path: Path) -> bool:
    from vertikal.secure.keys.encrypted_stream import is_encrypted

    try:
        with path.open("rb") as file:
            return is_encrypted(file.read(16))
    except OSError as error:
        raise InputError(f"backup {path.name!r} cannot be read: {error.strerror}") from None


def _ask(*, confirm: bool) -> bytes:
    given = os.environ.get(PASSPHRASE)
    if not given:
        given = click.prompt(
            "Passphrase of the backup", hide_input=True, confirmation_prompt=confirm, err=True
        )
    return str(given).encode()
