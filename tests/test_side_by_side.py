"""Tasks side by side: each is done once, by several threads, and an error ends them."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from vertikal.side_by_side import PartiesAtWork, cores, in_background, in_order, side_by_side

TASKS = list(range(200))


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("count", [0, 1, 2, 200])
def test_every_task_is_done_once(threads, count):
    done = []
    side_by_side(done.append, TASKS[:count], threads)
    assert sorted(done) == TASKS[:count]


def test_tasks_run_at_the_same_time():
    """The thread that asks is one of them."""
    met, seen = threading.Barrier(2), set()

    def work(_):
        seen.add(threading.get_ident())
        met.wait(10)

    side_by_side(work, TASKS[:2], 2)
    assert len(seen) == 2
    assert threading.get_ident() in seen


def test_it_returns_when_all_are_done():
    done = []

    def work(task):
        time.sleep(0.001)
        done.append(task)

    side_by_side(work, TASKS, 2)
    assert len(done) == len(TASKS)


@pytest.mark.parametrize("elsewhere", [False, True], ids=["the asking thread", "another"])
def test_an_error_of_any_thread_is_raised_and_ends_the_rest(elsewhere):
    asking, met, begun = threading.get_ident(), threading.Barrier(2), []

    def work(task):
        begun.append(task)
        if task < 2:
            met.wait(10)
            if (threading.get_ident() != asking) is elsewhere:
                raise ZeroDivisionError(task)
        time.sleep(0.01)

    with pytest.raises(ZeroDivisionError):
        side_by_side(work, TASKS, 2)
    assert len(begun) < len(TASKS)


def test_tasks_may_have_tasks_of_their_own():
    done = []

    def work(task):
        side_by_side(lambda inner: done.append((task, inner)), TASKS[:5], 4)

    side_by_side(work, TASKS[:20], 4)
    assert sorted(done) == [(task, inner) for task in TASKS[:20] for inner in TASKS[:5]]


def test_many_may_ask_at_once():
    done = []
    parties = [
        threading.Thread(target=side_by_side, args=(done.append, TASKS, 2)) for _ in range(8)
    ]
    for party in parties:
        party.start()
    for party in parties:
        party.join(20)
    assert sorted(done) == sorted(TASKS * 8)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own():
    side_by_side(lambda _: None, TASKS, 2)
    child = os.fork()
    if child == 0:
        met = threading.Barrier(2)
        try:
            side_by_side(lambda _: met.wait(5), TASKS[:2], 2)
        except BaseException:
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_cores_are_counted_where_the_system_has_no_affinity(monkeypatch):
    assert cores() >= 1
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert cores() == (os.cpu_count() or 1)


def test_work_in_the_background_goes_on_while_the_one_who_asked_does_something_else():
    met = threading.Barrier(2)

    def work():
        met.wait(10)
        return threading.get_ident()

    result = in_background(work)
    met.wait(10)
    assert result() != threading.get_ident()
    assert result() == result()


def test_an_error_in_the_background_reaches_the_one_who_waits():
    result = in_background(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        result()


def test_no_more_is_done_in_the_background_at_once_than_there_are_cores():
    """Also where all who asked wait, each in a thread of its own."""
    lock, now, seen = threading.Lock(), [], []

    def work():
        with lock:
            now.append(1)
            seen.append(len(now))
        time.sleep(0.01)
        with lock:
            now.pop()

    with ThreadPoolExecutor(4 * cores()) as pool:
        list(pool.map(lambda _: in_background(work)(), range(4 * cores())))
    assert max(seen) == cores()


def test_parties_of_one_process_share_its_cores(monkeypatch):
    monkeypatch.setattr("vertikal.side_by_side.cores", lambda: 12)
    at_work = PartiesAtWork()
    assert at_work.cores_of_each == 12
    with at_work(3):
        assert at_work.cores_of_each == 4
        with at_work(20):
            assert at_work.cores_of_each == 1
        with pytest.raises(ZeroDivisionError), at_work(8):
            raise ZeroDivisionError
        assert at_work.cores_of_each == 4
    assert at_work.cores_of_each == 12


@pytest.mark.parametrize("at_a_time", [1, 2, 5, 300])
def test_results_come_in_the_order_of_the_tasks(at_a_time):
    def task(number):
        time.sleep(0.0005 * (number % 3))
        return number

    assert list(in_order((partial(task, one) for one in TASKS), at_a_time)) == TASKS


@pytest.mark.parametrize("at_a_time", [1, 3])
def test_no_task_begins_before_there_is_room_for_it(at_a_time):
    begun, done, most = [], [], []

    def task():
        most.append(len(begun) - len(done))
        time.sleep(0.001)
        done.append(1)

    def tasks():
        for _ in range(20):
            begun.append(1)
            yield task

    assert sum(1 for _ in in_order(tasks(), at_a_time)) == 20
    assert max(most) == at_a_time


def test_tasks_in_order_run_at_the_same_time():
    met = threading.Barrier(3)
    assert len({*in_order([lambda: (met.wait(10), threading.get_ident())[1]] * 3, 3)}) == 3


@pytest.mark.parametrize("at_a_time", [1, 2])
def test_an_error_of_a_task_ends_those_to_come(at_a_time):
    begun = []

    def task(number):
        begun.append(number)
        if number == 3:
            raise ZeroDivisionError
        return number

    found = []
    with pytest.raises(ZeroDivisionError):
        found.extend(in_order((partial(task, one) for one in TASKS), at_a_time))
    assert len(begun) < 3 + 2 * at_a_time
