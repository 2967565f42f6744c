"""An aggregation server over real TLS on loopback, and clients as tasks of the same event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from vertikal.aggregation.contribution import Contribution
from vertikal.aggregation.device_folder import ServerAddress, make_authority, sign_for
from vertikal.aggregation.many_clients import Act, TaskClient, faithfully
from vertikal.aggregation.opened_rounds import OpenedRounds, RoundPolicy
from vertikal.aggregation.server.aggregation_server import AggregationServer
from vertikal.errors import VertikalError
from vertikal.secure.keys.identity import Identity
from vertikal.secure.secagg.client_keys import SigningKey

ROWS = 6


class LeaveRound(Exception):
    """Raised by what a client does in a test: it hangs up."""


LENIENT = RoundPolicy(fewest=2, difference=1)
GONE = (LeaveRound, VertikalError, OSError, EOFError, asyncio.IncompleteReadError)
"""Errors of a client that did not get to the end of a round."""


@dataclass
class Hall:
    """Files of a server, and clients that are enrolled with it."""

    root: Path
    identity: Identity
    authority: SigningKey
    clients: dict[str, TaskClient] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)

    @classmethod
    def build(cls, root: Path) -> Hall:
        identity = Identity.create("hall")
        identity.save(root / "hall.key", root / "hall.crt")
        return cls(root, identity, make_authority(root / "authority"))

    def write(self, task: str = "", **rounds: object) -> Path:
        """Write the server file; ``rounds`` are settings of its section."""
        task = task or f'kind = "columns"\nrows = {ROWS}\nlargest = 9'
        usual = {"opens": 10, "fewest": 4, "difference": 1, "gather": 0.0, "deadline": 60.0}
        settings = usual | rounds
        lines = "\n".join(f"{name} = {value}" for name, value in settings.items())
        file = self.root / "server.toml"
        file.write_text(
            'name = "hall"\nlisten = "127.0.0.1:0"\nkey = "hall.key"\ncertificate = "hall.crt"\n'
            f'authority = "authority/authority.pub"\n[task]\n{task}\n[rounds]\n{lines}\n'
        )
        return file

    def address(self, port: int) -> ServerAddress:
        mine = self.identity.certificate.fingerprint
        return ServerAddress("hall", f"127.0.0.1:{port}", mine, self.authority.public)

    def client(self, name: str, port: int, policy: RoundPolicy = LENIENT) -> TaskClient:
        """Make a client, or find it: it remembers which rounds it has opened."""
        address = self.address(port)
        if name not in self.clients:
            key = SigningKey.fresh()
            ticket = sign_for(self.authority, address, name, key.public)
            self.clients[name] = TaskClient(address, ticket, key, policy, OpenedRounds())
        self.clients[name].server = address
        return self.clients[name]

    @asynccontextmanager
    async def serving(self, task: str = "", **rounds: object) -> AsyncIterator[AggregationServer]:
        """Run the server while the block lasts."""
        stop, ready = asyncio.Event(), asyncio.Event()
        server = AggregationServer(self.write(task, **rounds), self.said.append)
        running = asyncio.create_task(server.run(stop, ready.set))
        starting = asyncio.create_task(ready.wait())
        await asyncio.wait([running, starting], return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            running.result()
        try:
            yield server
        finally:
            stop.set()
            await running


def columns_of(name: str, rows: int = ROWS) -> np.ndarray:
    """Numbers of a client, which follow from its name."""
    return np.random.default_rng(list(name.encode())).integers(-9, 10, rows)


def plain_kernel(names: set[str], rows: int = ROWS) -> np.ndarray:
    """The sum of outer products, without any protocol."""
    total = np.zeros((rows, rows), np.int64)
    for name in names:
        total += np.outer(columns_of(name, rows), columns_of(name, rows))
    return total


async def together(
    hall: Hall,
    port: int,
    names: list[str],
    acts: dict[str, Act] | None = None,
    policy: RoundPolicy = LENIENT,
) -> dict[str, int | Exception]:
    """Let these clients take part in one round, and say how it ended for each."""

    async def one(name: str) -> int | Exception:
        client = hall.client(name, port, policy)
        try:
            return await client.take_part(
                lambda task: Contribution(columns_of(name), task),
                (acts or {}).get(name, faithfully),
            )
        except GONE as error:
            return error

    return dict(zip(names, await asyncio.gather(*map(one, names)), strict=True))
