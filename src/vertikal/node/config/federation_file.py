"""The federation file: who takes part, by which key each is known, and who listens where.

    [[party]]
    name = "bank"
    fingerprint = "sha256:6f0c..."
    listens = "bank.example:7700"        # left out by parties that only dial
    certificate = '''
    -----BEGIN CERTIFICATE-----
    ...
    '''

`vertikal keygen` writes one such entry; the file is the entries of all parties, in an order that
all of them share. Changes of keys and members, signed (`federation_changes`), follow the entries:

    [[change]]
    statement = "ha1ub2..."
    signatures = {"bank" = "MEUCIQ..."}

The members are those that follow from both. The number of changes that hold is the serial number.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from vertikal.errors import CertificateMismatch, InputError, NameTaken, PartyUnknown
from vertikal.files import disk_error, move_over
from vertikal.mesh.addresses import check_address
from vertikal.mesh.wire import MAX_NAME
from vertikal.node.config.federation_changes import (
    History,
    Removal,
    SignedChange,
    follow,
    root_of,
)
from vertikal.node.printable import is_plain
from vertikal.records import convert
from vertikal.secure.keys.credentials import Credentials
from vertikal.secure.keys.identity import Certificate, Identity


class Member(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One party's entry."""

    name: str
    fingerprint: str
    certificate: str
    listens: str | None = None
    bind: str | None = None
    """The address at which this party itself listens, if the others dial another one (a router)."""


class _Entries(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    party: tuple[Member, ...]


class _WrittenChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    statement: str
    signatures: dict[str, str]


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    party: tuple[Member, ...]
    change: tuple[_WrittenChange, ...] = ()


_CHANGE = "[[change]]"


@dataclass(frozen=True)
class FederationFile:
    """All parties of a federation; names, keys and addresses are checked."""

    members: tuple[Member, ...]
    """Of the present day."""
    founders: tuple[Member, ...] = ()
    """The entries, with the keys that the federation began with."""
    history: History = field(default_factory=lambda: History({}, {}, (), ()), compare=False)

    @classmethod
    def load(cls, path: Path) -> FederationFile:
        content = read_toml(path, _File, "federation file")
        try:
            changes = tuple(_read_change(one) for one in content.change)
        except ValueError:
            raise InputError(f"federation file {path.name!r}: a change is damaged") from None
        return cls.of(content.party, changes)

    @classmethod
    def of(
        cls, members: tuple[Member, ...], changes: tuple[SignedChange, ...] = ()
    ) -> FederationFile:
        """Check that names, keys and addresses fit together, and apply the changes that hold."""
        names = [member.name for member in members]
        for name in names:
            if names.count(name) > 1:
                raise NameTaken(f"federation file: two entries claim the name {name!r}")
        for member in members:
            _check_printable(member.name, "federation file: name")
            certificate = Certificate.parse(member.certificate.strip().encode())
            if certificate.name != member.name:
                raise CertificateMismatch(
                    f"federation file: the entry of {member.name!r} has a certificate made out to "
                    f"{certificate.name!r}"
                )
            if certificate.fingerprint != member.fingerprint:
                raise CertificateMismatch(
                    f"federation file: the certificate of {member.name!r} has the fingerprint "
                    f"{certificate.fingerprint}, listed is {member.fingerprint}"
                )
            for address in (member.listens, member.bind):
                if address is not None:
                    check_address(address, plaintext=False)
        if not any(member.listens for member in members):
            raise InputError(
                "federation file: one party at least must listen, but no entry has 'listens'"
            )
        certificates = {
            member.name: Certificate.parse(member.certificate.strip().encode())
            for member in members
        }
        listening = {member.name for member in members if member.listens}
        history = follow(certificates, listening, changes)
        present = tuple(
            _renewed(member, history.certificates[member.name])
            for member in members
            if member.name in history.certificates
        )
        return cls(present, members, history)

    @property
    def root(self) -> str:
        """Digest of the entries, on which changes rest."""
        founders = {
            member.name: Certificate.parse(member.certificate.strip().encode())
            for member in self.founders
        }
        return root_of(founders)

    @property
    def changes(self) -> tuple[SignedChange, ...]:
        return (*self.history.applied, *self.history.pending)

    @property
    def serial(self) -> int:
        """Number of changes that hold."""
        return len(self.history.applied)

    @property
    def state(self) -> str:
        """Digest of all changes and of who has signed them, by which parties compare theirs."""
        marks = sorted(
            f"{change.digest} {' '.join(sorted(change.signatures))}" for change in self.changes
        )
        return hashlib.sha256("\n".join(marks).encode()).hexdigest()

    def with_change(self, change: SignedChange) -> FederationFile:
        """This file with one change more, or with more signatures under one that it has.

        One that does not hold leaves the file as it is.
        """
        found = {one.digest: one for one in self.changes}
        known = found.get(change.digest)
        if known is not None:
            # What was checked before is not replaced by what was not.
            change = SignedChange(change.raw, {**change.signatures, **known.signatures})
        found[change.digest] = change
        return FederationFile.of(self.founders, tuple(found.values()))

    def why_not(self, name: str) -> str:
        """Say why somebody is not a member: it was removed, or was never listed."""
        for change in self.history.applied:
            statement = change.statement
            if isinstance(statement, Removal) and name in statement.removed:
                return f"was removed from the federation by {', '.join(statement.remaining)}"
        return f"is not in the federation file; listed are {self.names}"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(member.name for member in self.members)

    def member(self, name: str) -> Member:
        for member in self.members:
            if member.name == name:
                return member
        raise PartyUnknown(f"{name!r} {self.why_not(name)}")

    def certificate(self, name: str) -> Certificate:
        return Certificate.parse(self.member(name).certificate.strip().encode())

    def addresses(self) -> dict[str, str | None]:
        return {member.name: member.listens for member in self.members}

    def credentials(self, identity: Identity) -> Credentials:
        """Make the credentials of this party's mesh; refuse an identity that is not listed."""
        self.member(identity.name)
        listed = {name: self.certificate(name) for name in self.names}
        return Credentials(identity, listed, self.history.earlier)

    def save(self, path: Path) -> None:
        """Write the changes behind the entries that stand in the file at ``path``.

        The entries stay as they are written there, with the owner's remarks.
        """
        if FederationFile.load(path).root != self.root:
            raise InputError(
                f"federation file {path.name!r} has other entries than the service began with; "
                "start the service again"
            )
        path = path.resolve()
        entries, _, _ = path.read_text(encoding="utf-8").partition(f"\n{_CHANGE}")
        text = "\n".join([entries.rstrip("\n") + "\n", *map(_rendered_change, self.changes)])
        try:
            move_over(path, text.encode(), mode=os.stat(path).st_mode & 0o777)
        except OSError as error:
            raise disk_error(path, error) from None


def check_party_name(name: str, what: str = "name") -> None:
    """Refuse a name that cannot be printed, or that as a file's name would lead elsewhere."""
    _check_printable(name, what)
    if Path(name).name != name or name == ".." or "\\" in name:
        raise InputError(f"{what} must be usable as the name of a file, got {name!r}")


def _check_printable(name: str, what: str) -> None:
    if not name or not is_plain(name, MAX_NAME):
        raise InputError(
            f"{what} must be 1 to {MAX_NAME} printable characters, got {name[: MAX_NAME + 1]!r}"
        )


def entry_of(identity: Identity, listens: str | None = None) -> str:
    """Write this identity's entry of a federation file."""
    certificate = identity.certificate
    return render(
        Member(certificate.name, certificate.fingerprint, certificate.pem.decode(), listens)
    )


def render(*members: Member) -> str:
    """Write a federation file of these entries, with nothing else in it."""
    return "\n".join(_rendered(member) for member in members)


def _rendered(member: Member) -> str:
    lines = [
        "[[party]]",
        f"name = {_quoted(member.name)}",
        f"fingerprint = {_quoted(member.fingerprint)}",
    ]
    if member.listens:
        lines.append(f"listens = {_quoted(member.listens)}")
    if member.bind:
        lines.append(f"bind = {_quoted(member.bind)}")
    # Written anew by the library, since the text of another party could end the quotes.
    certificate = Certificate.parse(member.certificate.strip().encode())
    lines.append(f"certificate = '''\n{certificate.pem.decode()}'''")
    return "\n".join(lines) + "\n"


def _renewed(member: Member, certificate: Certificate) -> Member:
    """This entry with the key of the present day."""
    if certificate.fingerprint == member.fingerprint:
        return member
    return msgspec.structs.replace(
        member, fingerprint=certificate.fingerprint, certificate=certificate.pem.decode()
    )


def _rendered_change(change: SignedChange) -> str:
    signatures = ", ".join(
        f"{_quoted(name)} = {_quoted(base64.b64encode(signature).decode())}"
        for name, signature in sorted(change.signatures.items())
    )
    statement = _quoted(base64.b64encode(change.raw).decode())
    return f"{_CHANGE}\nstatement = {statement}\nsignatures = {{ {signatures} }}\n"


def _read_change(written: _WrittenChange) -> SignedChange:
    signatures = {
        name: base64.b64decode(text, validate=True) for name, text in written.signatures.items()
    }
    return SignedChange(base64.b64decode(written.statement, validate=True), signatures)


def parse_members(text: str) -> tuple[Member, ...]:
    """Read the entries in this text; refuse a text that holds anything else."""
    try:
        content: _Entries = convert(tomllib.loads(text), _Entries)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise InputError(f"entry: {error}") from None
    except RecursionError:
        raise InputError("entry: arrays or tables are nested too deeply") from None
    return content.party


def read_toml(path: Path, kind: Any, what: str) -> Any:
    """Read a TOML file of this schema; InputError says what is wrong in it, and where."""
    try:
        return convert(tomllib.loads(path.read_text(encoding="utf-8")), kind)
    except OSError as error:
        raise InputError(f"{what} {path.name!r} cannot be read: {error.strerror}") from None
    except msgspec.ValidationError as error:
        raise InputError(f"{what} {path.name!r}: {_in_toml_words(str(error))}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{what} {path.name!r}: {error}") from None
    except RecursionError:
        raise InputError(f"{what} {path.name!r}: arrays or tables are nested too deeply") from None


_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`")
_LACKING = re.compile(r"Object missing required field `(.*)`")


def _in_toml_words(error: str) -> str:
    """Say what msgspec found by names of TOML: "there is no setting 'wo' in [policy]"."""
    words, _, place = error.partition(" - at `$")
    place = place.rstrip("`").removeprefix(".").replace("[...]", "")
    if found := _UNKNOWN.fullmatch(words):
        return f"there is no setting {found[1]!r} in {f'[{place}]' if place else 'its first lines'}"
    if found := _LACKING.fullmatch(words):
        return f"{f'[{place}]' if place else 'it'} must have the setting {found[1]!r}"
    return f"{words}, at {place}" if place else words


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()
