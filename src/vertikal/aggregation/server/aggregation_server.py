"""An aggregation server: clients dial in, wait, and take part in rounds as these open.

One thread and one event loop carry all connections; an idle one costs a socket and the 32 KiB that
TLS is read into.
One round runs at a time, over one tile of the kernel. The server keeps the book of rounds and the
kernel on disk, and nothing else: whatever moment it is killed at, it starts again between two
rounds.
"""

from __future__ import annotations

import asyncio
import os
import resource
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from vertikal.aggregation.enrolment import Ticket, check_ticket, hello_parts
from vertikal.aggregation.messages import (
    HEAD,
    MOST_NAMES,
    NONCE_BYTES,
    PROTOCOL,
    RECORD,
    SMALL,
    VECTOR,
    Abandoned,
    AskItems,
    AskMeans,
    AskRows,
    Challenge,
    ClientHello,
    Done,
    Items,
    KernelRows,
    Means,
    Ready,
    Refused,
    RoundPending,
    Up,
    Welcome,
    head,
    packed,
    read_head,
    unpacked_up,
)
from vertikal.aggregation.server.connection import (
    READ_LIMIT,
    ClientConnection,
    bound_read_buffers,
)
from vertikal.aggregation.server.kernel_store import KernelStore
from vertikal.aggregation.server.round_book import RoundBook, RoundRecord
from vertikal.aggregation.server.round_run import Deadlines, RoundRun, RoundSum
from vertikal.aggregation.server.server_file import ServerFile, read_items
from vertikal.aggregation.task import Tile
from vertikal.aggregation.tls import server_context
from vertikal.errors import (
    DiskFull,
    IdentityError,
    InputError,
    SecrecyError,
    VertikalError,
    WireError,
)
from vertikal.files import lock_file, private_folder, write_whole
from vertikal.node.printable import printable
from vertikal.node.rate_limit import RateLimit
from vertikal.records import from_json
from vertikal.secure.keys.identity import Identity
from vertikal.secure.secagg.client_keys import is_signed

HANDSHAKE = 10.0
"""Seconds that a new connection has for TLS and its ticket."""
STRANGERS = 1024
"""Connections at once that have not shown a ticket."""
BACKLOG = 1024
BEAT = 15.0
"""Seconds between two words to clients that wait."""
DAY, HOUR = 86_400.0, 3600.0
QUOTAS = 100_000
"""Clients whose quotas are remembered; the one that came first is forgotten first."""
SHOWN = 50
"""Rounds in the status."""
MOST_ROWS_SERVED = 60_000
"""Items of which means and counts fit into one message."""


@dataclass
class _Quota:
    """Limits on what one client may cost, over all its connections."""

    bytes: RateLimit
    rows: RateLimit
    connections: RateLimit


@dataclass
class ServerStatus:
    """State of a server, as its status shows it."""

    name: str
    address: str
    kind: str
    rows: int
    connected: int
    ready: int
    opens: int
    waits: str
    round: dict[str, Any] | None
    rounds: list[dict[str, Any]]
    faults: dict[str, str]
    memory_mb: float
    written: float = field(default_factory=time.time)


class AggregationServer:
    """The server of one aggregation; see `run`."""

    def __init__(self, path: Path, say: Callable[[str], None], secret: bytes | None = None) -> None:
        folder = path.parent
        self.file = content = ServerFile.load(path)
        self._folder = folder
        self._say = say
        identity = Identity.load(folder / content.key, folder / content.certificate, secret)
        identity.certificate.check_time()
        self._fingerprint = identity.certificate.fingerprint
        self._tls = server_context(identity)
        self._authority = read_authority(folder / content.authority)
        self._items: tuple[str, ...] = ()
        self._items_written = 0
        if content.task.items is not None:
            self._items = read_items(folder / content.task.items)
        store = private_folder(folder / content.store)
        self._store = store
        in_use = f"store {store.name!r} is in use: another server of {content.name!r} runs already"
        self._lock = lock_file(store / "lock", in_use)
        self._book = RoundBook(store, content.rounds.policy)
        rows = content.task.rows or len(self._items)
        self._kernel = KernelStore(store, content.make_task(rows))
        self._connections: dict[str, ClientConnection] = {}
        self._ready: dict[str, ClientConnection] = {}
        self._quotas: dict[str, _Quota] = {}
        self._faults: dict[str, str] = {}
        self._strangers = 0
        self._changed = asyncio.Event()
        self._round: RoundRun | None = None
        self._waits = "no client is ready"
        self.port = 0

    async def run(self, stop: asyncio.Event, began: Callable[[], object] = bool) -> None:
        """Serve until ``stop`` is set; ``began`` is called once clients can come."""
        bound_read_buffers()
        _raise_file_limit(self.file.rounds.most_connections + STRANGERS)
        host, _, port = self.file.listen.rpartition(":")
        try:
            listening = await asyncio.start_server(
                self._accept,
                host.strip("[]"),
                int(port),
                ssl=self._tls,
                limit=READ_LIMIT,
                backlog=BACKLOG,
                ssl_handshake_timeout=HANDSHAKE,
            )
        except OSError as error:
            raise InputError(
                f"{self.file.name}: cannot listen at {self.file.listen}: {error.strerror}"
            ) from None
        self.port = int(listening.sockets[0].getsockname()[1])
        tasks = [asyncio.create_task(one()) for one in (self._rounds, self._beat)]
        stopping = asyncio.create_task(stop.wait())
        began()
        try:
            # A task that ends by itself ends by a defect, which must be seen.
            done, _ = await asyncio.wait([stopping, *tasks], return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            listening.close()
            for task in (*tasks, stopping):
                task.cancel()
            for connection in list(self._connections.values()):
                connection.close()
            await asyncio.gather(*tasks, stopping, return_exceptions=True)
            self._lock.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Let a stranger show its ticket, then listen to the client."""
        limits = self.file.rounds
        if self._strangers >= STRANGERS:
            writer.transport.abort()
            return
        if len(self._connections) >= limits.most_connections:
            await self._turn_away(writer, "as many clients are connected as may be; come later")
            return
        self._strangers += 1
        try:
            async with asyncio.timeout(HANDSHAKE):
                ticket = await self._greeted(reader, writer)
        except (TimeoutError, OSError, asyncio.IncompleteReadError, ssl.SSLError):
            writer.transport.abort()
            return
        except VertikalError as error:
            self._fault("strangers", str(error))
            await self._turn_away(writer, _short(error))
            return
        finally:
            self._strangers -= 1
        await self._listen_to(ticket, reader, writer)

    @staticmethod
    async def _turn_away(writer: asyncio.StreamWriter, reason: str) -> None:
        with suppress(OSError):
            writer.write(packed(Refused(reason)))
            writer.close()

    async def _listen_to(
        self, ticket: Ticket, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        quota = self._quota(ticket.name)
        if not quota.connections.take():
            await self._turn_away(writer, "too many connections in this hour")
            return
        connection = ClientConnection(ticket, reader, writer, quota.bytes)
        old = self._connections.get(ticket.name)
        if old is not None:
            # It came back before its old connection was seen to be dead.
            self._forget(old)
            old.close()
        self._connections[ticket.name] = connection

        async def request(said: Up) -> None:
            await self._request(connection, quota, said)

        self._take_new_items()
        await connection.tell(packed(Welcome(self._kernel.task)))
        await connection.listen(request)
        self._forget(connection)
        if connection.fault:
            self._fault(connection.name, connection.fault)

    async def _greeted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Ticket:
        nonce = os.urandom(NONCE_BYTES)
        writer.write(packed(Challenge(PROTOCOL, self.file.name, nonce)))
        size, kind = read_head(await reader.readexactly(HEAD))
        if kind != RECORD or size > SMALL:
            raise WireError(f"a greeting of {size} bytes, at most {SMALL} are allowed")
        said = unpacked_up(await reader.readexactly(size))
        if not isinstance(said, ClientHello):
            raise WireError(f"{type(said).__name__}, not ClientHello, which was due")
        check_ticket(said.ticket, self.file.name, self._authority)
        parts = hello_parts(self.file.name, self._fingerprint, nonce)
        if not is_signed(said.ticket.key, said.signature, *parts):
            raise IdentityError(f"{said.ticket.name!r} has not signed with its own key")
        return said.ticket

    async def _request(self, connection: ClientConnection, quota: _Quota, said: Up) -> None:
        """Answer what a client asks outside rounds."""
        match said:
            case Ready():
                self._ready[connection.name] = connection
                connection.in_round = True  # from here on the server asks
                self._changed.set()
            case AskItems():
                names = list(self._items[said.first : said.first + MOST_NAMES])
                await connection.tell(packed(Items(said.first, len(self._items), names)))
            case AskMeans():
                task = self._kernel.task
                if task.kind != "ratings" or task.rows > MOST_ROWS_SERVED:
                    raise WireError("no kernel is served here")
                means = self._kernel.row_means().astype("<f8").tobytes()
                popularity = self._kernel.lengths().astype("<f8").tobytes()
                rounds = sum(one.state == "finished" for one in self._book.records.values())
                await connection.tell(packed(Means(rounds, means, popularity)))
            case AskRows():
                await self._serve_rows(connection, quota, said)
            case _:
                raise WireError(f"{type(said).__name__} outside a round")

    async def _serve_rows(self, connection: ClientConnection, quota: _Quota, said: AskRows) -> None:
        task = self._kernel.task
        if task.kind != "ratings" or max(said.items) >= task.rows:
            raise WireError("rows that the kernel does not have")
        if not quota.rows.take(len(said.items)):
            await connection.tell(packed(Refused("too many rows of the kernel today")))
            return
        rows = self._kernel.rows(said.items).astype("<f8")
        body = np.ascontiguousarray(rows).tobytes()
        start = packed(KernelRows(len(said.items), task.rows))
        await connection.tell(start + head(len(body), VECTOR) + body)

    async def _rounds(self) -> None:
        """Run one round after another, each on the tile that has had the fewest."""
        while True:
            tile, chosen = await self._enough()
            await self._one_round(tile, chosen)

    async def _enough(self) -> tuple[Tile, dict[str, ClientConnection]]:
        """Wait until enough clients are ready, and some time for others to come."""
        limits = self.file.rounds
        loop = asyncio.get_running_loop()
        since: float | None = None
        while True:
            self._changed.clear()
            self._ready = {name: one for name, one in self._ready.items() if one.open}
            count = len(self._ready)
            wait: float | None = None
            if count < limits.opens:
                since = None
                self._waits = f"{count} clients are ready, {limits.opens} must be"
            else:
                since = loop.time() if since is None else since
                wait = since + limits.gather - loop.time()
                if count >= limits.most_clients or wait <= 0:
                    self._take_new_items()
                    tile = self._next_tile()
                    chosen = dict(list(self._ready.items())[: limits.most_clients])
                    try:
                        self._book.check(tile, frozenset(chosen))
                        self._ready = {k: v for k, v in self._ready.items() if k not in chosen}
                        self._waits = ""
                        return tile, chosen
                    except SecrecyError as error:
                        self._waits, wait = str(error), None
                else:
                    self._waits = f"{count} clients are ready, others have {wait:.0f} s to come"
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._changed.wait()

    def _take_new_items(self) -> None:
        """Read the items anew: those at the end that were not there are rows of the next round.

        Nothing is read while a round is under way, or if the file is as it was.
        """
        if self.file.task.items is None or self._round is not None:
            return
        path = self._folder / self.file.task.items
        try:
            written = path.stat().st_mtime_ns
            if written == self._items_written:
                return
            self._items_written = written
            items = read_items(path)
            if items[: len(self._items)] != self._items:
                raise InputError(
                    "items file: items may be added at its end only; the old ones are used"
                )
        except (InputError, OSError) as error:
            self._say(str(error))
            return
        self._items = items
        self._kernel.task = self.file.make_task(len(items))

    def _next_tile(self) -> Tile:
        """Choose the tile with the fewest finished rounds."""
        counts: dict[tuple[int, int], int] = {}
        for one in self._book.records.values():
            if one.state == "finished":
                at = (one.tile.top, one.tile.left)
                counts[at] = counts.get(at, 0) + 1
        return min(self._kernel.task.tiles(), key=lambda t: counts.get((t.top, t.left), 0))

    async def _one_round(self, tile: Tile, chosen: dict[str, ClientConnection]) -> None:
        limits = self.file.rounds
        run = self._round = RoundRun(
            self.file.name,
            self._kernel.task,
            tile,
            chosen,
            dropping=limits.dropping,
            deadlines=Deadlines(limits.deadline, limits.upload_deadline),
            uploads=limits.uploads,
            fewest=limits.fewest,
            folder=self._store,
        )
        record = self._book.begin(run.progress.reference, tile, len(chosen))
        before = {name: (one.received, one.sent) for name, one in chosen.items()}
        began = time.monotonic()
        said: list[RoundRecord] = [record]

        def announce(survivors: tuple[str, ...]) -> None:
            said[0] = self._book.announce(said[0], survivors)

        def measured() -> RoundRecord:
            return msgspec.structs.replace(
                said[0],
                reference=run.progress.reference,
                seconds=time.monotonic() - began,
                received=sum(one.received - before[name][0] for name, one in chosen.items()),
                sent=sum(one.sent - before[name][1] for name, one in chosen.items()),
                dropped=dict(run.progress.dropped),
            )

        try:
            found: RoundSum = await run.run(announce)
            survivors = len(found.survivors)
            await asyncio.to_thread(self._kernel.improve, tile, found.total, survivors)
        except VertikalError as error:
            # Where the disk is full, the error names files of this server.
            reason = "the server's disk is full" if isinstance(error, DiskFull) else _short(error)
            ended = self._book.end(measured(), "abandoned", reason)
            self._say(f"round {ended.number} was abandoned: {ended.reason}")
            await self._tell_all(run.there, packed(Abandoned(ended.reference, ended.reason)))
            # Who stayed takes part in the next one, unless this server cannot bear it either.
            self._ready.update(run.there)
            await asyncio.sleep(min(1.0, limits.deadline))
        else:
            ended = self._book.end(measured(), "finished")
            self._say(
                f"round {ended.number} is finished: {ended.survivors} of {ended.clients} clients, "
                f"{ended.seconds:.1f} s"
            )
            for one in run.there.values():
                one.in_round = False
            await self._tell_all(run.there, packed(Done(ended.reference, ended.survivors)))
        self._round = None
        self._write_status()

    @staticmethod
    async def _tell_all(connections: dict[str, ClientConnection], frame: bytes) -> None:
        await asyncio.gather(*(one.tell(frame) for one in connections.values()))

    async def _beat(self) -> None:
        """Say to those who wait that they wait, and to whoever looks how things are.

        A client in a round waits for the slowest one: without a word it would take the server for
        dead.
        """
        beats = 0
        while True:
            self._write_status()
            await asyncio.sleep(1.0)
            beats += 1
            if beats % int(BEAT) == 0:
                frame = packed(RoundPending(len(self._ready), self._waits[:500]))
                await self._tell_all(dict(self._ready), frame)
                if self._round is not None:
                    now = self._round.progress
                    words = f"{now.stage}: {now.answered} of {now.clients} clients have answered"
                    there = self._round.there
                    await self._tell_all(there, packed(RoundPending(len(there), words)))

    def status(self) -> ServerStatus:
        """Describe how things are."""
        run = self._round
        recent = list(self._book.records.values())[-SHOWN:]
        return ServerStatus(
            name=self.file.name,
            address=f"{self.file.listen.rpartition(':')[0]}:{self.port}",
            kind=self._kernel.task.kind,
            rows=self._kernel.task.rows,
            connected=len(self._connections),
            ready=len(self._ready),
            opens=self.file.rounds.opens,
            waits=self._waits,
            round=None if run is None else asdict(run.progress) | {"there": len(run.there)},
            rounds=[msgspec.to_builtins(one) for one in reversed(recent)],
            faults=dict(self._faults),
            memory_mb=_memory_mb(),
        )

    def _write_status(self) -> None:
        raw = msgspec.json.encode(self.status())
        write_whole(self._store / "status.json", raw, durable=False)

    def _quota(self, name: str) -> _Quota:
        limits = self.file.rounds
        if name not in self._quotas:
            if len(self._quotas) >= QUOTAS:
                self._quotas.pop(next(iter(self._quotas)))
            self._quotas[name] = _Quota(
                RateLimit(limits.daily_bytes, DAY),
                RateLimit(limits.daily_rows, DAY),
                RateLimit(limits.hourly_connections, HOUR),
            )
        return self._quotas[name]

    def _forget(self, connection: ClientConnection) -> None:
        for book in (self._connections, self._ready):
            if book.get(connection.name) is connection:
                del book[connection.name]
        self._changed.set()

    def _fault(self, name: str, reason: str) -> None:
        """Remember the last faults, of so many clients, and when they were."""
        self._faults.pop(name, None)
        self._faults[name] = f"{time.strftime('%Y-%m-%d %H:%M:%S')} {printable(reason)[:200]}"
        while len(self._faults) > SHOWN:
            self._faults.pop(next(iter(self._faults)))


def read_status(store: Path) -> ServerStatus:
    """Read the status that a server wrote last."""
    try:
        return from_json((store / "status.json").read_bytes(), ServerStatus)
    except OSError:
        raise InputError(
            f"store {store.name!r} has no status; was `vertikal aggregate serve` started?"
        ) from None
    except (msgspec.DecodeError, ValueError) as error:
        raise InputError(f"status of store {store.name!r} cannot be read: {error}") from None


def read_authority(path: Path) -> bytes:
    """Read the authority's public key, 64 hexadecimal digits."""
    try:
        key = bytes.fromhex(path.read_text(encoding="utf-8").strip())
    except (OSError, ValueError, UnicodeDecodeError) as error:
        raise InputError(f"authority file {path.name!r} cannot be read: {error}") from None
    if len(key) != 32:
        raise InputError.of(f"authority file {path.name!r}", "64 hexadecimal digits", len(key) * 2)
    return key


def _raise_file_limit(wanted: int) -> None:
    """Let this process have as many connections as it should, if the system allows it.

    A process often may have 1,024 files unless it asks for more.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted + 256 if hard == resource.RLIM_INFINITY else min(wanted + 256, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _short(error: Exception) -> str:
    return printable(" ".join(str(error).split()))[:500]


def _memory_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
