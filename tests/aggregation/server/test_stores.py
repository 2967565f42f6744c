"""Files that a server keeps: opened rounds, the book of rounds, and the kernel in tiles."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from vertikal.aggregation.opened_rounds import OpenedRounds, RoundPolicy
from vertikal.aggregation.server.kernel_store import KernelStore
from vertikal.aggregation.server.round_book import RoundBook
from vertikal.aggregation.task import Task, Tile
from vertikal.algorithms.fedcfk.fedcfk import ServerKernel
from vertikal.algorithms.gram.packing import packed_tile
from vertikal.errors import InputError, SecrecyError

TILE = Tile(0, 3, 0, 3)
POLICY = RoundPolicy(fewest=2, difference=2)


def test_opened_rounds_are_remembered(tmp_path):
    file = tmp_path / "opened"
    OpenedRounds(file).add(TILE, ["a", "b", "c"], b"1")
    kept = OpenedRounds(file)
    assert len(kept) == 1
    kept.check("me", POLICY, TILE, ["a", "b", "c"], b"1")
    # Another tile has other numbers.
    kept.check("me", POLICY, Tile(0, 3, 3, 6), ["a", "b"], b"1")
    for clients, numbers in ((["a", "b"], b"1"), (["a", "b", "c"], b"2")):
        with pytest.raises(SecrecyError):
            kept.check("me", POLICY, TILE, clients, numbers)
    # A larger tile at the same place has the old entries too.
    with pytest.raises(SecrecyError, match="differ by 1 clients"):
        kept.check("me", POLICY, Tile(0, 4, 0, 4), ["a", "b"], b"1")


def test_a_sum_that_was_expected_is_remembered_until_it_is_known(tmp_path):
    file = tmp_path / "opened"
    kept = OpenedRounds(file)
    assert kept.expect(TILE, ["a", "b", "c", "d"], b"1")
    assert not kept.expect(TILE, ["a", "b", "c", "d"], b"1")
    for again in (kept, OpenedRounds(file)):
        again.check_offer("me", POLICY, TILE, ["a", "b", "c"], b"1")
        again.check_offer("me", POLICY, TILE, ["a", "b", "x", "y"], b"2")
        with pytest.raises(SecrecyError, match="1 of the clients offered were not in it"):
            again.check_offer("me", POLICY, TILE, ["a", "b", "x"], b"2")
        with pytest.raises(SecrecyError, match="or may have had"):
            again.check("me", POLICY, TILE, ["a", "b"], b"2")
    kept.add(TILE, ["a", "b", "c"], b"1", ["a", "b", "c", "d"])
    assert len(kept) == len(OpenedRounds(file)) == 1
    assert kept.check("me", POLICY, TILE, ["a", "b", "c"], b"1")
    assert not kept.check("me", POLICY, TILE, list("cdefgh"), b"1")


def test_so_many_different_sums_that_single_clients_follow_are_refused():
    opened = OpenedRounds()
    people = [f"c{i}" for i in range(8)]
    for group in (people[:4], people[4:]):
        opened.check("me", POLICY, TILE, group, b"")
        opened.add(TILE, group, b"")
    with pytest.raises(SecrecyError, match=r"3 different sums over 8 clients .* at most 2"):
        opened.check("me", POLICY, TILE, people[2:6], b"")


def test_a_list_that_cannot_be_read_opens_nothing(tmp_path):
    file = tmp_path / "opened"
    file.write_bytes(b"\x93")
    with pytest.raises(InputError, match="nobody knows which sums may be opened"):
        OpenedRounds(file)
    file.write_bytes(msgspec.msgpack.encode({"rounds": [], "format": 2}))
    with pytest.raises(InputError, match="has format 2"):
        OpenedRounds(file)


@pytest.mark.parametrize(
    ("tile", "shares"),
    [
        (Tile(0, 8, 0, 8), True),
        (Tile(0, 4, 4, 8), True),
        (Tile(4, 8, 4, 8), True),
        # The kernel is symmetric: rows with columns is columns with rows.
        (Tile(4, 8, 0, 4), True),
        (Tile(7, 9, 0, 2), True),
        (Tile(0, 8, 8, 16), False),
        (Tile(8, 16, 8, 16), False),
    ],
)
def test_a_server_that_cuts_the_kernel_anew_opens_nothing_more(tile, shares):
    opened = OpenedRounds()
    people = [f"c{number}" for number in range(40)]
    opened.add(Tile(0, 8, 0, 8), people, b"")
    if shares:
        with pytest.raises(SecrecyError, match="differ by 1 clients"):
            opened.check("me", POLICY, tile, people[1:], b"")
    else:
        opened.check("me", POLICY, tile, people[1:], b"")


@pytest.mark.parametrize("announced", [False, True])
def test_a_round_that_a_crash_ended_is_abandoned_and_never_opened_again(tmp_path, announced):
    book = RoundBook(tmp_path / "store", POLICY)
    record = book.begin("0" * 32, TILE, 4)
    if announced:
        record = book.announce(record, ("a", "b", "c"))
    again = RoundBook(tmp_path / "store", POLICY)
    (ended,) = again.records.values()
    assert ended.state == "abandoned"
    assert ended.reason.startswith("the server ended in its midst")
    assert ("may have been opened" in ended.reason) is announced
    assert again.begin("1" * 32, TILE, 4).number == 2
    if announced:
        with pytest.raises(SecrecyError, match="differ by 1 clients"):
            again.announce(again.begin("2" * 32, TILE, 4), ("a", "b"))
    else:
        again.announce(again.begin("2" * 32, TILE, 4), ("a", "b"))


def test_survivors_are_on_disk_before_announce_returns(tmp_path):
    book = RoundBook(tmp_path / "store", POLICY)
    book.announce(book.begin("0" * 32, TILE, 3), ("a", "b", "c"))
    assert len(OpenedRounds(tmp_path / "store" / "opened")) == 1
    with pytest.raises(SecrecyError):
        book.announce(book.begin("1" * 32, TILE, 3), ("a", "b"))
    assert len(OpenedRounds(tmp_path / "store" / "opened")) == 1


def sums_of(ratings: np.ndarray, task: Task) -> list[tuple[Tile, np.ndarray]]:
    """The sum of a round over all users, tile by tile."""
    block = ratings.T.astype(np.int64)  # (items, users)
    found = []
    for tile in task.tiles():
        side = None if tile.diagonal else block[tile.left : tile.right]
        found.append((tile, packed_tile(block[tile.top : tile.bottom], side, task.ring)))
    return found


@pytest.mark.parametrize("tile", [3, 5, 8, 100])
def test_a_kernel_in_tiles_is_the_whole_kernel(tmp_path, tile):
    (tmp_path / "store").mkdir(mode=0o700)
    task = Task(kind="ratings", rows=8, tile=tile)
    store, twin = KernelStore(tmp_path / "store", task), ServerKernel(8)
    generator = np.random.default_rng(tile)
    for _ in range(2):
        ratings = generator.integers(0, 2, (20, 8))
        for where, total in sums_of(ratings, task):
            store.improve(where, total, 20)
        twin.improve(ratings.T @ ratings)
    whole = twin.normalised()
    assert np.array_equal(store.lengths(), twin.counts.diagonal())
    assert np.allclose(store.row_means(), whole.mean(axis=1))
    assert np.allclose(store.rows([7, 0, 3, 3]), whole[[7, 0, 3, 3]])


def test_new_items_are_new_rows(tmp_path):
    (tmp_path / "store").mkdir(mode=0o700)
    store = KernelStore(tmp_path / "store", Task(kind="ratings", rows=4, tile=3))
    ratings = np.random.default_rng(0).integers(0, 2, (20, 6))
    for where, total in sums_of(ratings[:, :4], store.task):
        store.improve(where, total, 20)
    store.task = Task(kind="ratings", rows=6, tile=3)
    assert store.lengths().tolist() == [*ratings[:, :4].sum(axis=0), 0, 0]
    assert store.rows([0]).shape == (1, 6)
    for where, total in sums_of(ratings, store.task):
        store.improve(where, total, 20)
    twin = ServerKernel(6)
    twin.improve(ratings.T @ ratings)
    assert np.allclose(store.rows(list(range(6))), twin.normalised())


def test_counts_that_no_ratings_give_are_refused(tmp_path):
    (tmp_path / "store").mkdir(mode=0o700)
    store = KernelStore(tmp_path / "store", Task(kind="ratings", rows=3))
    for wrong in (4, -1):
        total = np.full(6, wrong).astype(store.task.ring.dtype)
        with pytest.raises(InputError, match="counts from 0 to 3; some client sent no ratings"):
            store.improve(TILE, total, 3)
    assert not store.lengths().any()
