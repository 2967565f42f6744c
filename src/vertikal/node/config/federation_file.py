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
all of them share.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from vertikal.errors import CertificateMismatch, InputError, NameTaken, PartyUnknown
from vertikal.mesh.addresses import check_address
from vertikal.mesh.wire import MAX_NAME
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


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    party: tuple[Member, ...]


@dataclass(frozen=True)
class FederationFile:
    """All parties of a federation; names, keys and addresses are checked."""

    members: tuple[Member, ...]

    @classmethod
    def load(cls, path: Path) -> FederationFile:
        content = read_toml(path, _File, "federation file")
        return cls.of(content.party)

    @classmethod
    def of(cls, members: tuple[Member, ...]) -> FederationFile:
        """Check that names, keys and addresses fit together."""
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
        return cls(members)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(member.name for member in self.members)

    def member(self, name: str) -> Member:
        for member in self.members:
            if member.name == name:
                return member
        raise PartyUnknown(f"{name!r} is not in the federation file; listed are {self.names}")

    def certificate(self, name: str) -> Certificate:
        return Certificate.parse(self.member(name).certificate.strip().encode())

    def addresses(self) -> dict[str, str | None]:
        return {member.name: member.listens for member in self.members}

    def credentials(self, identity: Identity) -> Credentials:
        """Make the credentials of this party's mesh; refuse an identity that is not listed."""
        self.member(identity.name)
        listed = {name: self.certificate(name) for name in self.names}
        return Credentials(identity, listed)


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


def parse_members(text: str) -> tuple[Member, ...]:
    """Read the entries in this text; refuse a text that holds anything else."""
    try:
        content: _File = convert(tomllib.loads(text), _File)
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
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise InputError(f"{what} {path.name!r}: {error}") from None
    except RecursionError:
        raise InputError(f"{what} {path.name!r}: arrays or tables are nested too deeply") from None


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()
