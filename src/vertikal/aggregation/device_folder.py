"""The files of a device: its key, its ticket, which server it trusts, and what it remembers.

device.key     the secret of its signing key, readable by its owner only
ticket.json    name and public key, signed by the authority
server.json    name, address and pinned key of the server, and the authority's public key
opened         rounds in which it has opened a sum
cover.json     the items that its requests for rows of the kernel have named
lock           locked while a process of the device is connected
"""

from __future__ import annotations

from pathlib import Path
from typing import IO, Annotated, TypeVar

import msgspec

from vertikal.aggregation.enrolment import Name, PublicKey, Ticket, check_ticket, enrol
from vertikal.aggregation.opened_rounds import OpenedRounds
from vertikal.errors import InputError
from vertikal.files import lock_file, private_folder, write_whole
from vertikal.records import check_format, from_json
from vertikal.secure.keys.prg import fresh_key
from vertikal.secure.secagg.client_keys import SigningKey

FORMAT = 1
LARGEST_FILE = 1 << 24

T = TypeVar("T")


class ServerAddress(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The server that a device dials, and by which keys it knows server and authority."""

    aggregation: Name
    address: Annotated[str, msgspec.Meta(max_length=300)]
    fingerprint: Annotated[str, msgspec.Meta(max_length=100)]
    authority: PublicKey
    format: int = FORMAT


class Cover(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Numbers of the items that requests name, and the key that draws decoys."""

    items: list[int]
    key: bytes
    format: int = FORMAT


class DeviceFolder:
    """The folder of one device."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def create(cls, folder: Path, server: ServerAddress | None = None) -> DeviceFolder:
        """Make a device with a fresh key; it has no ticket yet."""
        made = cls(private_folder(folder))
        if made._key_file.exists():
            raise InputError(f"folder {folder.name!r} has a device already; take another one")
        write_whole(made._key_file, fresh_key().hex().encode())
        if server is not None:
            made.keep_server(server)
        return made

    @property
    def _key_file(self) -> Path:
        return self.folder / "device.key"

    @property
    def key(self) -> SigningKey:
        """The signing key of this device."""
        if self._key_file.exists() and self._key_file.stat().st_mode & 0o077:
            raise InputError(
                f"{self._key_file.name!r} must be readable by its owner only; run `chmod 600` on it"
            )
        try:
            return SigningKey.of(bytes.fromhex(self._raw("device.key").decode()))
        except (ValueError, UnicodeDecodeError):
            raise InputError(f"{self._key_file.name!r} must hold 64 hexadecimal digits") from None

    @property
    def server(self) -> ServerAddress:
        return self._read("server.json", ServerAddress)

    @property
    def ticket(self) -> Ticket:
        """The ticket, if it is this device's, and signed by the authority that it knows."""
        ticket, server = self._read("ticket.json", Ticket), self.server
        check_ticket(ticket, server.aggregation, server.authority)
        if ticket.key != self.key.public:
            raise InputError(f"ticket.json of {ticket.name!r} is for another key than device.key")
        return ticket

    def keep_server(self, server: ServerAddress) -> None:
        """Write which server this device dials, and by which keys it is known."""
        write_whole(self.folder / "server.json", msgspec.json.encode(server))

    def keep_ticket(self, ticket: Ticket) -> None:
        """Write the ticket that the authority has signed."""
        write_whole(self.folder / "ticket.json", msgspec.json.encode(ticket))

    def lock(self) -> IO[bytes]:
        """Lock the folder until the file that is returned is closed.

        Two processes of one device would each know half of the rounds that it has opened.
        """
        refusal = f"device {self.folder.name!r} is in use by another process; wait until it ends"
        return lock_file(private_folder(self.folder) / "lock", refusal)

    @property
    def opened(self) -> OpenedRounds:
        return OpenedRounds(self.folder / "opened")

    @property
    def cover(self) -> Cover:
        """The cover of earlier requests; an empty one with a fresh key if there were none."""
        if not (self.folder / "cover.json").exists():
            return Cover([], fresh_key())
        return self._read("cover.json", Cover)

    def keep_cover(self, cover: Cover) -> None:
        write_whole(self.folder / "cover.json", msgspec.json.encode(cover))

    def _raw(self, name: str) -> bytes:
        try:
            with (self.folder / name).open("rb") as file:
                return file.read(LARGEST_FILE)
        except OSError as error:
            raise InputError(
                f"{name!r} of the device in {self.folder.name!r} cannot be read: {error.strerror}; "
                "`vertikal aggregate enroll` makes it"
            ) from None

    def _read(self, name: str, kind: type[T]) -> T:
        raw = self._raw(name)
        check_format(raw, FORMAT, f"{name!r}")
        try:
            return from_json(raw, kind)
        except (msgspec.DecodeError, ValueError) as error:
            raise InputError(f"{name!r} of {self.folder.name!r}: {error}") from None


def make_authority(folder: Path) -> SigningKey:
    """Read the authority's key from a folder, or make it there."""
    file = private_folder(folder) / "authority.key"
    if not file.exists():
        write_whole(file, fresh_key().hex().encode())
    try:
        key = SigningKey.of(bytes.fromhex(file.read_text(encoding="utf-8").strip()))
    except (OSError, ValueError) as error:
        raise InputError(f"authority key {file.name!r} cannot be read: {error}") from None
    write_whole(folder / "authority.pub", f"{key.public.hex()}\n".encode())
    return key


def sign_for(authority: SigningKey, server: ServerAddress, name: str, key: bytes) -> Ticket:
    """Enrol a client; refuse a name that cannot travel."""
    if not name.isprintable() or not 0 < len(name) <= 64:
        raise InputError.of("name", "1 to 64 printable characters", name)
    return enrol(authority, server.aggregation, name, key)
