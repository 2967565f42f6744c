"""A backup: party file, key, certificate, federation file and store of a party, in one tar archive.

The first entry says the format and whose backup it is, the last one lists the digest of every file,
so that half an archive is refused. The archive is readable by its owner only, and encrypted if
a passphrase is given.

Left out are checkpoints, since a run that goes on from an old one would open things that were
opened before; correlations of dealers, of which each serves one run; tables, tokens, passphrase
files and sessions of the console. A backup may be made while the service runs: each file is whole,
logs are copied after their heads, and models after the records of their jobs.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import IO, Any

import msgspec

from vertikal.errors import InputError
from vertikal.node.config.party_file import PartyFile
from vertikal.records import check_format, from_json
from vertikal.secure.keys.encrypted_stream import EncryptedReader, EncryptedWriter, is_encrypted
from vertikal.version import __version__

FORMAT = 1
HEAD, DIGESTS = "backup.json", "digests.json"
PARTY, KEY, CERTIFICATE, FEDERATION, STORE = "party", "key", "certificate", "federation", "store"
_PIECE = 1 << 20
_LEFT_OUT = {"checkpoints", "console", "lock", "control.sock", "room", "restored.json"}
_PASSING = re.compile(r"\..+\.[0-9a-f]{8}|\.(new|gone)-[0-9a-f]+|.*\.lock|.*\.new")
"""Names of files that are being written, or are locks."""


class BackupHead(msgspec.Struct, frozen=True):
    """The first entry: whose backup it is and when it was made."""

    format: int
    library: str
    party: str
    party_file: str
    """Name of the party file."""
    created: str


class _Digests(msgspec.Struct, frozen=True):
    files: dict[str, str]


@dataclass(frozen=True)
class Restored:
    """A backup that was read into a folder, under the names of this module."""

    head: BackupHead
    folder: Path

    @property
    def party_file(self) -> PartyFile:
        return PartyFile.load(self.folder / PARTY)


def write_backup(party: Path, out: Path, passphrase: bytes | None) -> BackupHead:
    """Write a backup of the party to a new file."""
    content = PartyFile.load(party)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    head = BackupHead(FORMAT, __version__, content.name, party.name, now)
    part = out.with_name(f".{out.name}.part")
    if out.exists():
        raise InputError(f"{out.name!r} is there already; a backup is not written over")
    try:
        number = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(number, "wb") as file:
            target: Any = file if passphrase is None else EncryptedWriter(file, passphrase)
            _write(target, party, content, head)
            if passphrase is not None:
                target.close()
            file.flush()
            os.fsync(file.fileno())
        os.link(part, out)
    except OSError as error:
        raise InputError(f"backup {out.name!r} cannot be written: {error.strerror}") from None
    finally:
        part.unlink(missing_ok=True)
    return head


def _write(target: Any, party: Path, content: PartyFile, head: BackupHead) -> None:
    digests: dict[str, str] = {}
    with tarfile.open(fileobj=target, mode="w|", format=tarfile.PAX_FORMAT) as archive:
        _add(archive, HEAD, msgspec.json.encode(head))
        for name, path in _files(party, content):
            # Whole in memory: a log grows while it is copied, and tar has to know its length.
            try:
                raw = path.read_bytes()
            except FileNotFoundError:
                if not name.startswith(f"{STORE}/"):
                    raise InputError(f"backup: {path.name!r} is not there") from None
                continue  # a model that was deleted meanwhile
            digests[name] = hashlib.sha256(raw).hexdigest()
            _add(archive, name, raw)
        _add(archive, DIGESTS, msgspec.json.encode(_Digests(digests)))


def _files(party: Path, content: PartyFile) -> Iterator[tuple[str, Path]]:
    """List the files of a party under their names in a backup."""
    folder = party.parent
    yield PARTY, party
    yield KEY, folder / content.key
    yield CERTIFICATE, folder / content.certificate
    yield FEDERATION, folder / content.federation
    store = folder / content.store
    if not store.is_dir():
        return
    # `os.walk` passes over folders that a running service has removed meanwhile.
    listed = (Path(place, name) for place, _, names in os.walk(store) for name in names)
    found = [
        path
        for path in listed
        if path.is_file()
        and not path.is_symlink()
        and path.relative_to(store).parts[0] not in _LEFT_OUT
        and not any(_PASSING.fullmatch(part) for part in path.relative_to(store).parts)
    ]
    for path in sorted(found, key=lambda one: (_turn(one.relative_to(store)), one)):
        yield f"{STORE}/{path.relative_to(store).as_posix()}", path


def _turn(path: Path) -> int:
    """Order files so that a backup beside a running service fits together."""
    if path.suffix == ".head":
        return 0
    return {"jobs": 1, "models": 3}.get(path.parts[0], 2)


def _add(archive: tarfile.TarFile, name: str, raw: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(raw), 0o600
    archive.addfile(entry, io.BytesIO(raw))


def read_backup(path: Path, into: Path, passphrase: bytes | None) -> Restored:
    """Read a backup into an empty private folder; InputError unless all of it is as written."""
    head: BackupHead | None = None
    seen: dict[str, str] = {}
    listed: dict[str, str] | None = None
    try:
        with _opened(path, passphrase) as archive:
            for entry in archive:
                if listed is not None:
                    raise InputError("an entry after the last one")
                content = archive.extractfile(entry) if entry.isreg() else None
                if content is None:
                    raise InputError(f"an entry that is no file: {entry.name[:80]!r}")
                if head is None:
                    head = _head(entry.name, content)
                elif entry.name == DIGESTS:
                    listed = from_json(content.read(), _Digests).files
                else:
                    seen[entry.name] = _extract(entry.name, content, into)
    except tarfile.ReadError:
        raise InputError(
            f"backup {path.name!r} cannot be used: it is no file that `vertikal party backup` "
            "wrote, or a damaged one"
        ) from None
    except (tarfile.TarError, msgspec.DecodeError, OSError, ValueError, EOFError) as error:
        raise InputError(f"backup {path.name!r} cannot be used: {error}") from None
    if head is None or listed is None:
        raise InputError(f"backup {path.name!r} cannot be used: it ends too early")
    if seen != listed or not {PARTY, KEY, CERTIFICATE, FEDERATION} <= set(seen):
        raise InputError(f"backup {path.name!r} cannot be used: its files are not those written")
    return Restored(head, into)


@contextmanager
def _opened(path: Path, passphrase: bytes | None) -> Iterator[tarfile.TarFile]:
    with path.open("rb") as file:
        encrypted = is_encrypted(file.read(16))
        file.seek(0)
        if encrypted and passphrase is None:
            raise InputError("it is encrypted; give its passphrase")
        source: Any = EncryptedReader(file, passphrase or b"") if encrypted else file
        with tarfile.open(fileobj=source, mode="r|") as archive:
            yield archive


def _head(name: str, content: IO[bytes]) -> BackupHead:
    if name != HEAD:
        raise InputError("it is no backup of a party")
    raw = content.read(1 << 16)
    check_format(raw, FORMAT, "it")
    return from_json(raw, BackupHead)


def _extract(name: str, content: IO[bytes], into: Path) -> str:
    """Write one file below the folder; returns its digest."""
    parts = PurePosixPath(name).parts
    inside = name in (PARTY, KEY, CERTIFICATE, FEDERATION) or (
        len(parts) > 1 and parts[0] == STORE and not {"..", "/", ""} & set(parts)
    )
    if not inside:
        raise InputError(f"an entry that no backup has: {name[:80]!r}")
    target = into.joinpath(*parts)
    folder = into
    for part in parts[:-1]:
        folder /= part
        folder.mkdir(mode=0o700, exist_ok=True)
    digest = hashlib.sha256()
    number = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(number, "wb") as file:
        while piece := content.read(_PIECE):
            digest.update(piece)
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest()
