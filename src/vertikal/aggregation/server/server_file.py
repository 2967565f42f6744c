"""The server file: what an aggregation server sums, where it listens, and when rounds open.

    name = "library"
    listen = "0.0.0.0:7400"
    key = "library.key"
    certificate = "library.crt"
    authority = "authority.pub"      # the public key that signs clients' tickets
    store = "store"                  # rounds and kernel, readable by the owner only

    [task]
    kind = "ratings"                 # or "columns"
    items = "items.txt"              # one item a line; new ones are added at its end

    [rounds]
    opens = 200                      # clients that must be ready
    fewest = 100                     # clients that a sum must have
    gather = 60.0                    # seconds for others to come

Paths are relative to the server file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec

from vertikal.aggregation.enrolment import Name
from vertikal.aggregation.messages import MOST_CLIENTS
from vertikal.aggregation.opened_rounds import FEWEST, RoundPolicy
from vertikal.aggregation.task import LARGEST, MOST_COLUMNS, MOST_ROWS, MOST_TILE, TILE, Task
from vertikal.errors import InputError
from vertikal.mesh.addresses import check_address, is_loopback
from vertikal.node.config.federation_file import read_toml
from vertikal.node.printable import is_plain
from vertikal.secure.secagg.differences import FEWEST_BETWEEN

MOST_ITEM = 200
"""Characters of an item's name."""

Seconds = Annotated[float, msgspec.Meta(gt=0, le=86_400)]
Count = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]


class TaskSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Sum that is taken: ratings of ``items``, or columns over ``rows`` rows."""

    kind: Literal["ratings", "columns"]
    items: str | None = None
    rows: Annotated[int, msgspec.Meta(ge=1, le=MOST_ROWS)] | None = None
    columns: Annotated[int, msgspec.Meta(ge=1, le=MOST_COLUMNS)] = 1
    largest: Annotated[int, msgspec.Meta(ge=1, le=LARGEST)] = 1
    tile: Annotated[int, msgspec.Meta(ge=1, le=MOST_TILE)] = TILE


class RoundsSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Conditions of rounds: when they open, how long a stage takes, what a client may cost.

    A round opens once ``opens`` clients are ready and others have had ``gather`` seconds to come;
    its sum is over at least ``fewest``.
    """

    opens: Annotated[int, msgspec.Meta(ge=2, le=MOST_CLIENTS)] = 2 * FEWEST
    fewest: Annotated[int, msgspec.Meta(ge=2, le=MOST_CLIENTS)] = FEWEST
    difference: Annotated[int, msgspec.Meta(ge=1)] = FEWEST_BETWEEN
    most_clients: Annotated[int, msgspec.Meta(ge=2, le=MOST_CLIENTS)] = MOST_CLIENTS
    dropping: Annotated[float, msgspec.Meta(ge=0, lt=0.5)] = 0.15
    gather: Annotated[float, msgspec.Meta(ge=0, le=86_400)] = 30.0
    deadline: Seconds = 60.0
    upload_deadline: Seconds = 3600.0
    uploads: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 16
    most_connections: Count = 20_000
    daily_bytes: Annotated[int, msgspec.Meta(ge=1)] = 1 << 30
    daily_rows: Count = 20_000
    hourly_connections: Count = 120

    @property
    def policy(self) -> RoundPolicy:
        return RoundPolicy(fewest=self.fewest, difference=self.difference)


class ServerFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A server file as it stands."""

    name: Name
    listen: str
    key: str
    certificate: str
    authority: str
    task: TaskSection
    store: str = "store"
    status: str | None = None
    """Address on loopback at which a browser finds the status page."""
    rounds: RoundsSection = RoundsSection()

    @classmethod
    def load(cls, path: Path) -> ServerFile:
        """Read and check a server file."""
        content: ServerFile = read_toml(path, cls, "server file")
        if not content.name.isprintable():
            raise InputError.of("server file: name", "printable", content.name)
        check_address(content.listen, plaintext=False)
        if content.status is not None:
            check_address(content.status, plaintext=False)
            if not is_loopback(content.status.rpartition(":")[0].strip("[]")):
                raise InputError.of("server file: status", "an address on loopback", content.status)
        task = content.task
        if (task.kind == "ratings") != (task.items is not None):
            raise InputError("server file: [task] must name items for ratings, and only then")
        if (task.kind == "columns") != (task.rows is not None):
            raise InputError("server file: [task] must name rows for columns, and only then")
        limits = content.rounds
        if not limits.fewest <= limits.opens <= limits.most_clients:
            raise InputError.of(
                "server file: opens",
                f"from fewest, {limits.fewest}, to most_clients, {limits.most_clients}",
                limits.opens,
            )
        content.make_task(1 if task.rows is None else task.rows)
        return content

    def make_task(self, rows: int) -> Task:
        """Make the task for so many rows or items."""
        return Task(
            kind=self.task.kind,
            rows=rows,
            columns=self.task.columns,
            largest=self.task.largest,
            most_clients=self.rounds.most_clients,
            tile=self.task.tile,
        )


def read_items(path: Path) -> tuple[str, ...]:
    """Read the names of items, one a line; refuse empty, long and repeated ones."""
    try:
        names = tuple(path.read_text(encoding="utf-8").splitlines())
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"items file {path.name!r} cannot be read: {error}") from None
    if not 1 <= len(names) <= MOST_ROWS:
        raise InputError.of("items file", f"of 1 to {MOST_ROWS} lines", len(names))
    seen: set[str] = set()
    for line, name in enumerate(names, 1):
        if not name or not is_plain(name, MOST_ITEM) or name in seen:
            raise InputError(
                f"items file {path.name!r}, line {line}: an item must be new, printable and of 1 "
                f"to {MOST_ITEM} characters, got {name[:80]!r}"
            )
        seen.add(name)
    return names
