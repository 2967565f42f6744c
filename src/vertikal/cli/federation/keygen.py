"""``vertikal keygen``: make a party's key, certificate and entry for the federation file."""

from __future__ import annotations

import os
from pathlib import Path

import click

from vertikal.errors import InputError


@click.command()
@click.argument("name")
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="Folder for NAME.key, NAME.crt and NAME.toml; the current one by default.",
)
@click.option(
    "--listens",
    metavar="HOST:PORT",
    help="Address that the others dial, if they do.",
)
@click.option(
    "--days",
    type=click.IntRange(1, 3650),
    default=825,
    show_default=True,
    help="Days until the certificate ends.",
)
@click.option(
    "--passphrase",
    is_flag=True,
    help="Encrypt the key with the passphrase in VERTIKAL_PASSPHRASE, or with one to be typed.",
)
@click.option("--force", is_flag=True, help="Replace a key that is there already.")
def keygen(
    name: str, folder: Path, listens: str | None, days: int, passphrase: bool, force: bool
) -> None:
    """Make the key and the certificate of the party NAME.

    NAME.key stays with you. NAME.toml is for the others: the federation file consists of the
    entries of all parties, one after the other.
    """
    from vertikal.files import move_over
    from vertikal.mesh.addresses import check_address
    from vertikal.node.config.federation_file import check_party_name, entry_of
    from vertikal.secure.keys.identity import Identity

    check_party_name(name, "NAME")
    if listens is not None:
        check_address(listens, plaintext=False)
    key, certificate, entry = (folder / f"{name}.{end}" for end in ("key", "crt", "toml"))
    if key.exists() and not force:
        raise InputError(
            f"{key.name} is there already; --force replaces it, and the others then need the new "
            f"{entry.name}"
        )
    secret = _passphrase() if passphrase else None
    identity = Identity.create(name, days)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        identity.save(key, certificate, secret)
        move_over(entry, entry_of(identity, listens).encode(), mode=0o666)
    except OSError as error:
        raise InputError(
            f"--folder must be a folder that can be written to: {error.strerror}"
        ) from None
    kept = "keep it and its passphrase secret" if secret else "keep it secret"
    click.echo(f"key          {key.name} ({kept})")
    click.echo(f"entry        {entry.name} (send it to the others)")
    click.echo(f"fingerprint  {identity.certificate.fingerprint}")
    click.echo(f"good until   {identity.certificate.expires:%Y-%m-%d}")


def _passphrase() -> bytes:
    """Take the passphrase from the environment, or ask for it twice."""
    given = os.environ.get("VERTIKAL_PASSPHRASE")
    text: str = given or click.prompt("Passphrase", hide_input=True, confirmation_prompt=True)
    if len(text) < 8:
        raise InputError("the passphrase must have 8 characters at least")
    return text.encode()
