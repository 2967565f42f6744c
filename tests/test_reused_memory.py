"""Memory that is used again: by one array at a time, and only as long as a run lasts."""

from __future__ import annotations

import threading
import tracemalloc

import numpy as np
import pytest

from vertikal import reused_memory
from vertikal.reused_memory import ALIGNMENT, SMALLEST, MemoryPool, aligned, aligned_empty

SHAPE = (4, SMALLEST)


def place(array):
    return array.ctypes.data


@pytest.fixture
def pool():
    return MemoryPool(lasting=0)


def test_memory_of_an_array_that_is_gone_serves_the_next(pool):
    with pool():
        first = pool.empty(SHAPE, np.uint8)
        where = place(first)
        del first
        assert place(pool.empty(SHAPE, np.uint8)) == where
        assert place(pool.empty((SMALLEST,), np.uint32)) == where  # as many bytes


@pytest.mark.parametrize(
    "view",
    [
        lambda array: array[1:2],
        lambda array: array.reshape(-1).view(np.uint16)[3:5],
        lambda array: array.T,
        lambda array: array.reshape(-1).view(np.uint8).data,
        lambda array: np.asarray(array[0]),
    ],
)
def test_memory_is_not_used_again_while_there_is_a_view_of_it(pool, view):
    with pool():
        first = pool.empty(SHAPE, np.uint8)
        where, seen = place(first), view(first)
        del first
        other = pool.empty(SHAPE, np.uint8)
        assert place(other) != where
        del seen
        assert place(pool.empty(SHAPE, np.uint8)) == where


@pytest.mark.parametrize("dtype", [np.uint8, np.uint32, np.uint64, np.float64])
def test_arrays_are_as_asked_for_and_begin_a_cache_line(pool, dtype):
    with pool():
        array = pool.empty((SMALLEST, 3), dtype)
        assert (array.shape, array.dtype) == ((SMALLEST, 3), np.dtype(dtype))
        assert array.flags.c_contiguous
        assert array.flags.writeable
        assert place(array) % ALIGNMENT == 0
        array[...] = 7
        assert (array == 7).all()


@pytest.mark.parametrize("shape", [(), (0,), (0, SMALLEST), (SMALLEST - 1,)])
def test_small_arrays_are_ordinary(pool, shape):
    with pool():
        array = pool.empty(shape, np.uint8)
        assert array.shape == shape
        assert array.base is None


def traced():
    return tracemalloc.get_traced_memory()[0]


@pytest.fixture
def tracing():
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.usefixtures("tracing")
def test_memory_is_let_go_after_the_last_run(pool):
    before = traced()
    with pool():
        with pool():
            pool.empty(SHAPE, np.uint8)
        assert traced() - before > SMALLEST, "another run still lasts"
    assert traced() - before < SMALLEST


@pytest.mark.usefixtures("tracing")
@pytest.mark.parametrize(("lasting", "stay"), [(0, 0), (5, 2), (6, 3), (100, 3)])
def test_no_more_than_a_limit_stays_for_the_next_run(lasting, stay):
    """Three arrays of two units of memory: as many stay as the limit has room for."""
    pool, before = MemoryPool(lasting=lasting * SMALLEST), traced()
    with pool():
        held = [pool.empty((2 * SMALLEST,), np.uint8) for _ in range(3)]
        del held
    left = traced() - before
    assert abs(left - stay * 2 * SMALLEST) < SMALLEST
    with pool():
        again = [pool.empty((2 * SMALLEST,), np.uint8) for _ in range(stay)]
        assert traced() - before - left < SMALLEST, "what stayed was not used"
        del again
    pool.let_go()
    assert traced() - before < SMALLEST


def test_memory_serves_arrays_of_nearly_its_size(pool):
    with pool():
        first = pool.empty((2 * SMALLEST - 1000,), np.uint8)
        where = place(first)
        del first
        again = pool.empty((2 * SMALLEST - 8,), np.uint8)
        assert again.shape == (2 * SMALLEST - 8,)
        assert place(again) == where
        assert place(pool.empty((2 * SMALLEST + 1,), np.uint8)) != where


@pytest.mark.usefixtures("tracing")
def test_the_only_memory_of_its_size_stays_rather_than_one_of_many():
    pool = MemoryPool(lasting=10 * SMALLEST)
    with pool():
        held = [pool.empty((2 * SMALLEST,), np.uint8) for _ in range(4)]
        held.append(pool.empty((4 * SMALLEST,), np.uint8))
        del held
    before = traced()
    with pool():
        held = [pool.empty((4 * SMALLEST,), np.uint8)]
        held += [pool.empty((2 * SMALLEST,), np.uint8) for _ in range(3)]
        assert traced() - before < SMALLEST, "what stayed was not used"
        held.append(pool.empty((2 * SMALLEST,), np.uint8))
        assert traced() - before > SMALLEST, "more than the limit stayed"


@pytest.fixture
def timers(monkeypatch):
    """Timers that a test lets run out."""
    made = []

    class Held(threading.Timer):
        def start(self):
            made.append(self)

        def run_out(self):
            self.interval = 0.0
            super().start()
            self.join()

    monkeypatch.setattr(reused_memory.threading, "Timer", Held)
    return made


@pytest.mark.usefixtures("tracing")
def test_more_stays_for_a_while(timers):
    pool, before = MemoryPool(lasting=2 * SMALLEST, soon=6 * SMALLEST), traced()
    for _ in range(2):
        with pool():
            held = [pool.empty((2 * SMALLEST,), np.uint8) for _ in range(4)]
            del held
        assert abs(traced() - before - 6 * SMALLEST) < SMALLEST
    first, second = timers
    first.run_out()
    assert traced() - before > 5 * SMALLEST, "another run has begun since"
    second.run_out()
    assert abs(traced() - before - 2 * SMALLEST) < SMALLEST


@pytest.mark.usefixtures("tracing")
def test_nothing_is_let_go_while_a_run_lasts(timers):
    pool = MemoryPool(lasting=0, soon=2 * SMALLEST)
    with pool():
        pool.empty((2 * SMALLEST,), np.uint8)
    with pool():
        timers[0].run_out()
        before = traced()
        held = pool.empty((2 * SMALLEST,), np.uint8)
        assert traced() - before < SMALLEST, "what stayed was not used"
        del held
    pool.let_go()
    timers[1].run_out()


def test_no_thread_waits_where_nothing_is_to_be_let_go(timers):
    pool = MemoryPool(lasting=8 * SMALLEST, soon=9 * SMALLEST)
    with pool():
        pool.empty((8 * SMALLEST,), np.uint8)
    assert not timers


@pytest.mark.usefixtures("tracing")
def test_without_a_thread_to_wait_memory_goes_at_once(monkeypatch):
    class Refused(threading.Timer):
        def start(self):
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(reused_memory.threading, "Timer", Refused)
    pool, before = MemoryPool(lasting=0, soon=2 * SMALLEST), traced()
    with pool():
        pool.empty((2 * SMALLEST,), np.uint8)
    assert traced() - before < SMALLEST


@pytest.mark.parametrize(
    ("texts", "kept"),
    [
        ([], 1 << 30),
        (["max\n"], 1 << 30),
        ([f"{1 << 40}\n"], 1 << 30),
        ([f"{1 << 31}\n"], 1 << 27),
        (["max\n", f"{1 << 32}\n"], 1 << 28),
    ],
)
def test_a_container_keeps_a_sixteenth_of_its_memory(tmp_path, monkeypatch, texts, kept):
    pages = {"SC_PHYS_PAGES": 1 << 23, "SC_PAGE_SIZE": 1 << 12}
    monkeypatch.setattr(reused_memory.os, "sysconf", pages.__getitem__)
    paths = [tmp_path / str(number) for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    assert reused_memory.memory_to_keep([*paths, tmp_path / "none"]) == kept


def test_where_nobody_knows_the_memory_no_more_is_kept_than_after_a_while(monkeypatch):
    monkeypatch.delattr(reused_memory.os, "sysconf")
    assert reused_memory.memory_to_keep([]) == reused_memory.LASTING


def test_the_process_may_end_while_memory_waits(timers):
    pool = MemoryPool(lasting=0, soon=2 * SMALLEST, rest=600)
    with pool():
        pool.empty((2 * SMALLEST,), np.uint8)
    assert timers[0].daemon
    assert timers[0].interval == 600
    pool.let_go()
    assert timers[0].finished.is_set()


@pytest.mark.usefixtures("tracing")
def test_an_array_that_outlives_its_run_takes_its_memory_along(pool):
    before = traced()
    with pool():
        kept = pool.empty(SHAPE, np.uint8)
    kept[...] = 3
    with pool():
        assert place(pool.empty(SHAPE, np.uint8)) != place(kept)
        assert (kept == 3).all()
    del kept
    assert traced() - before < SMALLEST


@pytest.mark.usefixtures("tracing")
def test_nothing_is_kept_without_a_run(pool):
    before = traced()
    array = pool.empty(SHAPE, np.uint8)
    assert place(array) % ALIGNMENT == 0
    del array
    assert traced() - before < SMALLEST


@pytest.mark.parametrize("shape", [(), (3,), (5, 7)])
@pytest.mark.parametrize("dtype", [np.uint8, np.float64])
def test_aligned_arrays_begin_a_cache_line(shape, dtype):
    for _ in range(5):  # by chance one in four would anyway
        array = aligned_empty(shape, dtype)
        assert (array.shape, array.dtype) == (shape, np.dtype(dtype))
        assert place(array) % ALIGNMENT == 0


def test_an_aligned_copy_is_in_the_order_of_c():
    given = np.arange(35.0).reshape(5, 7).T
    copied = aligned(given)
    assert place(copied) % ALIGNMENT == 0
    assert copied.flags.c_contiguous
    assert np.array_equal(copied, given)
    assert not np.shares_memory(copied, given)


def test_no_two_threads_have_the_same_memory(pool):
    wrong = []

    def work(mark):
        for _ in range(300):
            array = pool.empty((SMALLEST,), np.uint8)
            array[:] = mark
            if not (array == mark).all():
                wrong.append(mark)

    with pool():
        threads = [threading.Thread(target=work, args=(mark,)) for mark in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong
