"""A device with its own connection and folder: rounds, recommendations, and what it does without.

The server runs in a thread of its own, the devices in theirs.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest

from tests.aggregation.hall import Hall
from tests.waiting import SECONDS
from vertikal import CFKOMDRecommender
from vertikal.aggregation.device import Device
from vertikal.aggregation.device_folder import DeviceFolder, sign_for
from vertikal.aggregation.opened_rounds import RoundPolicy
from vertikal.aggregation.recommending import recommend
from vertikal.aggregation.server import aggregation_server
from vertikal.aggregation.server.aggregation_server import AggregationServer
from vertikal.errors import DeadlineExceeded, InputError, PeerStopped, PeerVisibleError
from vertikal.secure.secagg.rounds import SHARE

USERS, ITEMS = 12, 10
NAMES = [f"u{i:02d}" for i in range(USERS)]
CATALOGUE = [f"book {i}" for i in range(ITEMS)]
RATINGS = (
    np.random.default_rng(3).random((USERS, ITEMS))
    < (np.arange(USERS)[:, None] % 2 == np.arange(ITEMS) % 2) * 0.6 + 0.1
).astype(int)
LENIENT = RoundPolicy(fewest=2, difference=1)


@contextmanager
def served(
    hall: Hall, task: str = 'kind = "ratings"\nitems = "items.txt"', **rounds: object
) -> Iterator[AggregationServer]:
    """Run a server, of ratings unless said otherwise, in a thread while the block lasts."""
    ready, loop, stop = threading.Event(), asyncio.new_event_loop(), asyncio.Event()
    found: list[AggregationServer] = []

    async def serve() -> None:
        settings = {"opens": USERS} | rounds
        file = hall.write(task, **settings)
        found.append(AggregationServer(file, hall.said.append))
        await found[0].run(stop, ready.set)

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    assert ready.wait(SECONDS)
    try:
        yield found[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


@pytest.fixture
def hall(tmp_path) -> Hall:
    made = Hall.build(tmp_path)
    (tmp_path / "items.txt").write_text("\n".join(CATALOGUE))
    return made


def enrolled(hall: Hall, port: int, name: str) -> DeviceFolder:
    """The folder of a device, made when it is first asked for."""
    address, folder = hall.address(port), hall.root / "devices" / name
    if not folder.exists():
        device = DeviceFolder.create(folder, address)
        device.keep_ticket(sign_for(hall.authority, address, name, device.key.public))
    device = DeviceFolder(folder)
    device.keep_server(address)
    return device


def rated(user: int) -> list[int]:
    return np.flatnonzero(RATINGS[user]).tolist()


def join(folder: DeviceFolder, items: list[int]) -> int:
    with Device.open(folder.folder, LENIENT) as device:
        device.items()
        return device.take_part_with(items, seconds=SECONDS)


def one_round(hall: Hall, port: int, more: dict[str, list[int]] | None = None) -> set[int]:
    """Let all users take part, each with its own connection and thread."""
    jobs = [
        (enrolled(hall, port, name), (more or {}).get(name) or rated(user))
        for user, name in enumerate(NAMES)
    ]
    with ThreadPoolExecutor(USERS) as pool:
        return set(pool.map(lambda job: join(*job), jobs))


def test_users_learn_and_recommend_as_if_ratings_were_pooled(hall):
    pooled = CFKOMDRecommender().fit(RATINGS)
    with served(hall) as server:
        folder = enrolled(hall, server.port, "u00")
        with Device.open(folder.folder) as device, pytest.raises(InputError, match="no round"):
            recommend(device, folder, ["book 1"], 3)
        assert one_round(hall, server.port) == {USERS}
        for user in range(3):
            folder = enrolled(hall, server.port, NAMES[user])
            mine = [CATALOGUE[i] for i in rated(user)]
            with Device.open(folder.folder) as device:
                found = recommend(device, folder, [*mine, "unheard of"], 4)
                again = recommend(device, folder, mine, 4)
            expected = [CATALOGUE[i] for i in pooled.recommend(user, 4)]
            assert [one.item for one in found.items] == expected
            assert found.unknown == ("unheard of",)
            assert found.rounds == 1
            # The cover was drawn once: both times the server saw the same items.
            assert found.asked == again.asked == len(folder.cover.items)
            assert set(rated(user)) <= set(folder.cover.items)
            assert found.asked >= min(ITEMS, 2 * len(rated(user)))
        # A user without ratings gets what most have rated.
        with Device.open(folder.folder) as device:
            common = recommend(device, enrolled(hall, server.port, "u09"), [], 2)
        best = np.argsort(-RATINGS.sum(axis=0), kind="stable")[:2]
        assert [one.item for one in common.items] == [CATALOGUE[i] for i in best]
        assert common.requests == 0


def test_new_items_and_ratings_come_with_the_next_round(hall):
    """The sum of the same users again would show who has changed: those who have refuse."""
    with served(hall) as server:
        assert one_round(hall, server.port) == {USERS}
        with (hall.root / "items.txt").open("a") as file:
            file.write("\nbook 10")
        assert one_round(hall, server.port) == {USERS}
        assert server.status().rows == ITEMS + 1
        folder = enrolled(hall, server.port, "u00")
        with Device.open(folder.folder) as device:
            assert device.items() == [*CATALOGUE, "book 10"]
            rounds, _, popularity = device.means()
        assert rounds == 2
        assert popularity.tolist() == [*RATINGS.sum(axis=0), 0]
        # An item that was put first would give all others new numbers.
        (hall.root / "items.txt").write_text("\n".join(["book -1", *CATALOGUE]))
        assert one_round(hall, server.port) == {USERS}
        assert server.status().rows == ITEMS + 1
        assert any("may be added at its end only" in line for line in hall.said)


def test_new_items_are_there_for_who_connects_before_the_round_opens(hall):
    with served(hall) as server:
        folder = enrolled(hall, server.port, "u00").folder
        with Device.open(folder) as device:
            assert device.items() == CATALOGUE
        with (hall.root / "items.txt").open("a") as file:
            file.write("\nbook 10")
        with Device.open(folder) as device:
            assert device.items() == [*CATALOGUE, "book 10"]
        newcomer = {"u00": [*rated(0), 10]}
        assert one_round(hall, server.port, newcomer) == {USERS}
        with Device.open(folder) as device:
            assert device.means()[2].tolist() == [*RATINGS.sum(axis=0), 1]


def test_new_users_and_a_changed_rating_come_with_the_next_round(hall):
    """A change hides among the newcomers, and old and new users get recommendations."""
    strict = RoundPolicy(fewest=8, difference=3)
    before = {name: rated(user) for user, name in enumerate(NAMES)}
    after = before | {"u00": [*rated(0), 10]} | {f"v{i}": [10, i] for i in range(3)}

    def take_part(name: str, items: list[int]) -> int:
        with Device.open(enrolled(hall, server.port, name).folder, strict) as device:
            return device.take_part_with(items, seconds=SECONDS)

    for people, catalogue in ((before, CATALOGUE), (after, [*CATALOGUE, "book 10"])):
        (hall.root / "items.txt").write_text("\n".join(catalogue))
        count = len(people)
        with served(hall, opens=count, difference=3) as server, ThreadPoolExecutor(count) as pool:
            assert set(pool.map(take_part, people, people.values())) == {count}
    with served(hall) as server:
        for name in ("u00", "v1"):
            folder = enrolled(hall, server.port, name)
            with Device.open(folder.folder) as device:
                _, _, popularity = device.means()
                found = recommend(device, folder, ["book 10"], 3)
            assert len(found.items) == 3
    expected = RATINGS.sum(axis=0) + np.bincount([0, 1, 2], minlength=ITEMS)
    assert popularity.tolist() == [*expected, 4]


def test_whoever_waits_for_a_slow_client_hears_that_the_server_is_there(hall, monkeypatch):
    """A device takes a server that says nothing for dead, also in the midst of a round."""
    monkeypatch.setattr(aggregation_server, "BEAT", 1)
    heard: list[str] = []

    def slowly(words: str) -> None:
        if words == SHARE:
            time.sleep(4.0)

    def patient(name: str, user: int) -> int:
        folder = enrolled(hall, server.port, name)
        progress = heard.append if user else slowly
        with Device.open(folder.folder, LENIENT, seconds=2.0) as device:
            return device.take_part_with(rated(user), seconds=SECONDS, progress=progress)

    with served(hall, deadline=3.0) as server, ThreadPoolExecutor(USERS) as pool:
        ended = [pool.submit(patient, name, user) for user, name in enumerate(NAMES)]
        assert {one.result() for one in ended[1:]} == {USERS - 1}
        with pytest.raises((PeerStopped, DeadlineExceeded), match="server 'hall' at 127"):
            ended[0].result()
    assert f"waiting: masked input: {USERS - 1} of {USERS} clients have answered" in heard


def test_a_device_and_a_store_are_used_by_one_process_at_a_time(hall):
    with served(hall) as server:
        folder = enrolled(hall, server.port, NAMES[0])
        with (
            Device.open(folder.folder),
            pytest.raises(InputError, match="device 'u00' is in use by another process"),
        ):
            Device.open(folder.folder)
        Device.open(folder.folder).close()
        with pytest.raises(InputError, match="store 'store' is in use: another server of 'hall'"):
            AggregationServer(hall.root / "server.toml", hall.said.append)


def test_rows_are_bounded(hall):
    with served(hall, daily_rows=3) as server:
        folder = enrolled(hall, server.port, "u00")
        with Device.open(folder.folder) as device:
            assert device.rows(np.array([0, 1])).shape == (2, ITEMS)
            with pytest.raises(PeerVisibleError, match="too many rows of the kernel today"):
                device.rows(np.array([0, 1]))
        with Device.open(folder.folder) as device, pytest.raises(PeerStopped, match="is gone"):
            device.rows(np.array([ITEMS]))


def test_a_server_of_columns_has_no_items(hall):
    with served(hall, 'kind = "columns"\nrows = 3') as server:
        folder = enrolled(hall, server.port, "u00")
        with (
            Device.open(folder.folder) as device,
            pytest.raises(InputError, match="'hall' sums columns and has no items; take part with"),
        ):
            recommend(device, folder, ["book 1"], 3)


def test_a_device_says_what_it_lacks(hall, tmp_path):
    with pytest.raises(InputError, match=r"'server.json' .* `vertikal aggregate enroll` makes it"):
        Device.open(tmp_path / "nothing")
    folder = enrolled(hall, 1, "u00")
    with pytest.raises(InputError, match="has a device already"):
        DeviceFolder.create(folder.folder, hall.address(1))
    other = enrolled(hall, 1, "u01")
    folder.keep_ticket(other.ticket)
    with pytest.raises(InputError, match="is for another key than device"):
        Device.open(folder.folder)
    (other.folder / "device.key").chmod(0o644)
    with pytest.raises(InputError, match="readable by its owner only"):
        Device.open(other.folder)


def test_nobody_at_the_address_is_one_line(hall):
    with served(hall) as server:
        port = server.port
    with pytest.raises(PeerStopped, match=f"the server at 127.0.0.1:{port} cannot be reached"):
        Device.open(enrolled(hall, port, "u00").folder)


def test_a_device_loads_neither_scikit_learn_nor_scipy():
    code = (
        "import sys\n"
        "import vertikal.aggregation.device, vertikal.aggregation.recommending\n"
        "print([name for name in ('sklearn', 'scipy', 'pandas', 'grpc', 'rich', 'pyarrow') "
        "if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
    assert done.stdout == "[]\n"
