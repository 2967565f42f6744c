"""The server over real TLS: sums over those who stay, and clients that cheat, vanish or come late.

Everything runs in one event loop, so that nothing depends on who is faster.
"""

from __future__ import annotations

import asyncio
import ssl

import numpy as np
import pytest

from tests.aggregation.hall import ROWS, Hall, LeaveRound, columns_of, plain_kernel, together
from vertikal.aggregation.contribution import Contribution
from vertikal.aggregation.messages import HEAD, VECTOR, Ready, head, packed
from vertikal.aggregation.opened_rounds import RoundPolicy
from vertikal.aggregation.server.status_page import status_page
from vertikal.errors import SecrecyError, VertikalError
from vertikal.secure.secagg.client_keys import SigningKey
from vertikal.secure.secagg.rounds import MASK, STAGES

NAMES = [f"c{i}" for i in range(10)]
OTHERS = [pytest.param(stage, marks=pytest.mark.slow) for stage in STAGES if stage != MASK]


@pytest.fixture
def hall(tmp_path) -> Hall:
    return Hall.build(tmp_path)


def kernel_of(hall: Hall) -> np.ndarray:
    (file,) = (hall.root / "store" / "kernel").glob("*.npy")
    return np.load(file)


def leaving(stage: str):
    def act(at: str, frame: bytes) -> list[bytes]:
        if at == stage:
            raise LeaveRound
        return [frame]

    return act


def test_a_round_is_the_sum_over_all_and_the_next_one_too(hall):
    async def scenario() -> None:
        async with hall.serving() as server:
            for _ in range(2):
                ended = await together(hall, server.port, NAMES)
                assert set(ended.values()) == {10}
                assert np.array_equal(kernel_of(hall), plain_kernel(set(NAMES)))
            first, second = server.status().rounds
            assert (first["state"], first["survivors"], first["clients"]) == ("finished", 10, 10)
            assert first["received"] > 10 * ROWS * (ROWS + 1) // 2
            assert first["reference"] != second["reference"]
            page = status_page(server.status())
            assert "aggregation server at 127.0.0.1" in page
            assert "0 clients are ready, 10 must be" in page
            assert page.count("<td>finished</td>") == 2

    asyncio.run(scenario())


@pytest.mark.parametrize("stage", STAGES)
def test_whoever_leaves_is_not_missed(hall, stage):
    async def scenario() -> None:
        async with hall.serving() as server:
            ended = await together(hall, server.port, NAMES, {"c3": leaving(stage)})
            (told,) = server.status().rounds
        stayed = set(NAMES) - {"c3"}
        # Whoever leaves after its vector was taken is still in the sum.
        summed = stayed if STAGES.index(stage) <= STAGES.index(MASK) else set(NAMES)
        assert told["state"] == "finished", told
        assert isinstance(ended["c3"], LeaveRound)
        assert {ended[name] for name in stayed} == {len(summed)}
        assert np.array_equal(kernel_of(hall), plain_kernel(summed))

    asyncio.run(scenario())


def cut_short(at: str, frame: bytes):
    yield frame[:-1]
    raise LeaveRound


CHEATS = {
    "garbage": lambda at, frame: [head(40, frame[4]) + bytes(range(40))],
    "a huge length": lambda at, frame: [head(2**32 - 1, frame[4])],
    "another kind": lambda at, frame: [frame[:4] + bytes([9]) + frame[HEAD:]],
    "the same twice": lambda at, frame: [frame + frame],
    "out of turn": lambda at, frame: [packed(Ready())],
    "cut short": cut_short,
    "a longer vector": lambda at, frame: [head(len(frame), VECTOR) + frame[HEAD:] + b"12345"],
}


@pytest.mark.parametrize("how", CHEATS)
@pytest.mark.parametrize("stage", [MASK, *OTHERS])
def test_whoever_cheats_loses_its_place_and_nobody_else_does(hall, how, stage):
    def act(at: str, frame: bytes):
        return CHEATS[how](at, frame) if at == stage else [frame]

    async def scenario() -> None:
        async with hall.serving() as server:
            ended = await together(hall, server.port, NAMES, {"c3": act})
            (told,) = server.status().rounds
            assert "c3" in server.status().faults or how == "cut short"
        assert told["state"] == "finished", told
        honest = set(NAMES) - {"c3"}
        # The vector of a client that cheats afterwards is in the sum, and a second one is not.
        late = STAGES.index(stage) > STAGES.index(MASK)
        taken = late or (stage == MASK and how == "the same twice")
        summed = set(NAMES) if taken else honest
        assert {ended[name] for name in honest} == {len(summed)}
        assert np.array_equal(kernel_of(hall), plain_kernel(summed))

    asyncio.run(scenario())


def test_an_answer_of_an_earlier_round_is_not_taken_again(hall):
    kept: dict[str, bytes] = {}

    def keep(at: str, frame: bytes) -> list[bytes]:
        kept.setdefault(at, frame)
        return [frame]

    def replay(at: str, frame: bytes) -> list[bytes]:
        return [kept[at]]

    async def scenario() -> None:
        async with hall.serving() as server:
            await together(hall, server.port, NAMES, {"c3": keep})
            ended = await together(hall, server.port, NAMES, {"c3": replay})
            assert "server: the keys of c3 are not signed" in server.status().faults["c3"]
            assert isinstance(ended["c3"], Exception)
            assert np.array_equal(kernel_of(hall), plain_kernel(set(NAMES) - {"c3"}))

    asyncio.run(scenario())


def test_a_round_that_loses_too_many_is_given_up_and_the_next_one_opens(hall):
    acts = {name: leaving("share keys") for name in NAMES[:4]}

    async def scenario() -> None:
        async with hall.serving() as server:
            trying = asyncio.create_task(together(hall, server.port, NAMES, acts))
            while not any(one["state"] == "abandoned" for one in server.status().rounds):
                await asyncio.sleep(0.01)
            again = asyncio.create_task(together(hall, server.port, NAMES[:4]))
            ended = await trying | await again
            assert set(ended.values()) == {10}
            states = [one["state"] for one in server.status().rounds]
            assert states == ["finished", "abandoned"]
            assert "at least" in server.status().rounds[1]["reason"]

    asyncio.run(scenario())


def test_late_clients_join_the_next_round(hall):
    async def scenario() -> None:
        started = asyncio.Event()

        def late(at: str, frame: bytes) -> list[bytes]:
            started.set()
            return [frame]

        async with hall.serving(opens=5) as server:
            first = asyncio.create_task(together(hall, server.port, NAMES[:5], {"c0": late}))
            await started.wait()
            second = asyncio.create_task(together(hall, server.port, NAMES[5:]))
            assert set((await first).values()) == {5}
            assert set((await second).values()) == {5}
            assert [one["clients"] for one in server.status().rounds] == [5, 5]

    asyncio.run(scenario())


def test_rounds_that_differ_by_few_clients_do_not_open(hall):
    """Also after the server was started again."""

    async def first() -> None:
        async with hall.serving(difference=3) as server:
            assert set((await together(hall, server.port, NAMES)).values()) == {10}

    async def second() -> None:
        async with hall.serving(opens=9, difference=3) as server:
            trying = asyncio.create_task(together(hall, server.port, NAMES[1:]))
            while "differ by 1 clients" not in server.status().waits:
                await asyncio.sleep(0.01)
            assert [one["state"] for one in server.status().rounds] == ["finished"]
            # With one more these are the same clients again.
            assert await together(hall, server.port, NAMES[:1]) == {"c0": 10}
            assert set((await trying).values()) == {10}

    asyncio.run(first())
    asyncio.run(second())


def test_clients_refuse_what_a_server_with_another_policy_would_open(hall):
    """The server allows a difference of one client, the clients do not."""
    strict = RoundPolicy(fewest=2, difference=3)

    async def first() -> None:
        async with hall.serving() as server:
            assert set((await together(hall, server.port, NAMES, policy=strict)).values()) == {10}

    async def second() -> None:
        async with hall.serving(opens=9) as server:
            ended = await together(hall, server.port, NAMES[1:], policy=strict)
            assert all(isinstance(one, SecrecyError) for one in ended.values())
            assert all("differ by 1 clients" in str(one) for one in ended.values())
            while server.status().rounds[0]["state"] != "abandoned":
                await asyncio.sleep(0.01)

    asyncio.run(first())
    asyncio.run(second())
    assert np.array_equal(kernel_of(hall), plain_kernel(set(NAMES)))


def test_strangers_get_no_further_than_the_challenge(hall):
    async def scenario() -> None:
        async with hall.serving() as server:
            folder = hall.root / "other"
            folder.mkdir()
            stranger = Hall.build(folder).client("c0", server.port)
            stranger.server = hall.address(server.port)
            with pytest.raises(VertikalError, match=r"Refused, not Welcome.*'c0' is not enrolled"):
                await stranger.take_part(lambda task: Contribution(columns_of("c0"), task))
            thief = hall.client("c1", server.port)
            thief.key = SigningKey.fresh()
            with pytest.raises(VertikalError, match="has not signed with its own key"):
                await thief.take_part(lambda task: Contribution(columns_of("c1"), task))

    asyncio.run(scenario())


def test_another_server_is_not_greeted(hall):
    async def scenario() -> None:
        async with hall.serving() as server:
            client = hall.client("c0", server.port)
            pinned = hall.address(server.port)
            client.server = type(pinned)(
                "hall", pinned.address, "sha256:" + "0" * 64, pinned.authority
            )
            with pytest.raises(VertikalError, match=r"showed the key sha256:.*nothing was sent"):
                await client.take_part(lambda task: Contribution(columns_of("c0"), task))
            assert client.sent == 0

    asyncio.run(scenario())


def test_older_tls_and_plain_text_are_refused(hall):
    async def scenario() -> None:
        async with hall.serving() as server:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            context.maximum_version = ssl.TLSVersion.TLSv1_2
            with pytest.raises((ssl.SSLError, ConnectionError)):
                await asyncio.open_connection("127.0.0.1", server.port, ssl=context)
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(bytes(100))
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await reader.readexactly(100)
            writer.close()

    asyncio.run(scenario())


def test_a_client_has_a_quota(hall):
    async def scenario() -> None:
        async with hall.serving(opens=9, daily_bytes=600, hourly_connections=2) as server:
            for _ in range(2):
                client = hall.client("c0", server.port)
                trying = asyncio.create_task(
                    client.take_part(lambda task: Contribution(columns_of("c0"), task))
                )
                while server.status().ready < 1:
                    await asyncio.sleep(0.01)
                trying.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await trying
                while server.status().connected:
                    await asyncio.sleep(0.01)
            with pytest.raises(VertikalError, match="too many connections in this hour"):
                await client.take_part(lambda task: Contribution(columns_of("c0"), task))
            # A round costs more bytes than this quota has.
            await together(hall, server.port, NAMES[1:])
            faults = server.status().faults.values()
            assert any(one.endswith("more bytes than its quota") for one in faults)

    asyncio.run(scenario())


def test_one_upload_at_a_time_is_enough(hall):
    async def scenario() -> None:
        async with hall.serving(uploads=1) as server:
            assert set((await together(hall, server.port, NAMES)).values()) == {10}
        assert np.array_equal(kernel_of(hall), plain_kernel(set(NAMES)))

    asyncio.run(scenario())


def test_a_kernel_of_several_tiles_is_one_round_each(hall):
    task = f'kind = "columns"\nrows = {ROWS}\nlargest = 9\ntile = 4'

    async def scenario() -> None:
        async with hall.serving(task) as server:
            for _ in range(3):
                assert set((await together(hall, server.port, NAMES)).values()) == {10}
        whole = plain_kernel(set(NAMES))
        tiles = {
            file.stem: np.load(file) for file in (hall.root / "store" / "kernel").glob("*.npy")
        }
        assert np.array_equal(tiles["0000000-0000000"], whole[:4, :4])
        assert np.array_equal(tiles["0000000-0000004"], whole[:4, 4:])
        assert np.array_equal(tiles["0000004-0000004"], whole[4:, 4:])

    asyncio.run(scenario())


def test_the_server_tells_what_is_wrong_with_its_file(hall):
    for task, wrong in (
        ('kind = "ratings"', "must name items for ratings"),
        ('kind = "columns"', "must name rows for columns"),
        ('kind = "columns"\nrows = 3\nlargest = 1000000\ncolumns = 1000000', "beyond 64 bits"),
        ('kind = "ratings"\nitems = "none.txt"', "cannot be read"),
    ):
        with pytest.raises(VertikalError, match=wrong):
            asyncio.run(_start(hall, task))


async def _start(hall: Hall, task: str) -> None:
    async with hall.serving(task):
        pass
