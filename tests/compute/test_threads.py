"""The limit of BLAS threads, when several runs of one process overlap."""

import threading

import pytest
import scipy.linalg  # noqa: F401 (its BLAS is a library of its own)
from threadpoolctl import threadpool_info, threadpool_limits

from vertikal.compute.threads import one_blas_thread
from vertikal.compute.workers.shard_worker import ShardWorker


def blas_threads():
    return {info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"}


@pytest.fixture
def two_threads():
    """Set and put back by threads that end: while they live, others may not change the limit."""
    before = next(iter(blas_threads()))
    in_a_thread(lambda: threadpool_limits(2, "blas"))
    yield
    in_a_thread(lambda: threadpool_limits(before, "blas"))


def in_a_thread(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join(10)


@pytest.mark.usefixtures("two_threads")
def test_the_limit_lasts_until_the_last_run_ends():
    begun, may_end = threading.Event(), threading.Event()

    def other():
        with one_blas_thread():
            begun.set()
            may_end.wait(10)

    thread = threading.Thread(target=other)
    with one_blas_thread():
        assert blas_threads() == {1}
        thread.start()
        assert begun.wait(10)
    # This run is over, the other one is not: its products must not change on the way.
    assert blas_threads() == {1}
    may_end.set()
    thread.join(10)
    assert blas_threads() == {2}


@pytest.mark.usefixtures("two_threads")
def test_a_failure_ends_the_limit_too():
    with pytest.raises(ZeroDivisionError), one_blas_thread():
        raise ZeroDivisionError
    assert blas_threads() == {2}


@pytest.mark.usefixtures("two_threads")
def test_a_worker_has_the_limit_from_one_greeting_to_the_end_of_its_run():
    """A worker waits in its process for the next run, where other work goes on."""
    worker = ShardWorker("cpu", 1)
    assert blas_threads() == {2}
    for _ in range(2):
        worker.hello()
        worker.hello()
        assert blas_threads() == {1}
        worker.close()
        assert blas_threads() == {2}
