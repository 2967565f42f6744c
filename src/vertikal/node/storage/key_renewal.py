"""A party's key files while a new key takes the place of the old one.

The new key and its certificate are written beside the old ones, then the federation file that lists
it, then both are moved into place. A crash before the federation file is written leaves the old key
in use; after that, the next start moves the new files into place. The old key is then gone.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import msgspec

from vertikal.errors import VertikalError
from vertikal.files import disk_error, move_over, sync_folder
from vertikal.node.config.federation_file import parse_members, render
from vertikal.secure.keys.identity import Certificate, Identity


def save_renewal(
    identity: Identity, key: Path, certificate: Path, passphrase: bytes | None
) -> None:
    """Write a new key beside the one in use, encrypted if that is."""
    try:
        locked = b"ENCRYPTED" in key.read_bytes()
        identity.save(_fresh(key), _fresh(certificate), passphrase if locked else None)
        for path in (_fresh(key), _fresh(certificate)):
            with path.open("rb") as file:
                os.fsync(file.fileno())
        sync_folder(key.parent)
    except OSError as error:
        raise disk_error(key, error) from None


def finish_renewal(key: Path, certificate: Path, listed: str) -> None:
    """Move a new key into place if the federation file lists it, and its entry with it."""
    fresh = _fresh(certificate)
    try:
        if not fresh.exists():
            return
        new = Certificate.parse(fresh.read_bytes())
        if new.fingerprint != listed:
            # Begun and never announced: nobody knows this key.
            return
        if _fresh(key).exists():
            os.replace(_fresh(key), key)
        os.replace(fresh, certificate)
        sync_folder(key.parent)
    except OSError as error:
        raise disk_error(key, error) from None
    _renew_entry(certificate.with_name(f"{new.name}.toml"), new)


def _renew_entry(path: Path, new: Certificate) -> None:
    """Write the new certificate into the entry that `vertikal keygen` made, where there is one."""
    with suppress(OSError, VertikalError, UnicodeDecodeError):
        (member,) = parse_members(path.read_text(encoding="utf-8"))
        if member.name == new.name:
            renewed = msgspec.structs.replace(
                member, fingerprint=new.fingerprint, certificate=new.pem.decode()
            )
            move_over(path, render(renewed).encode(), mode=path.stat().st_mode & 0o777)


def _fresh(path: Path) -> Path:
    return path.with_name(f"{path.name}.new")
