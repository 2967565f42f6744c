"""Two jobs over almost the same people: seen also when they run at once."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import pytest

from vertikal.errors import InputError
from vertikal.node.approval import differencing
from vertikal.node.approval.differencing import check_difference

IDS = [b"%d" % number for number in range(40)]


@pytest.fixture
def home(tmp_path):
    policy = SimpleNamespace(least_difference=10, differencing="refuse")
    (tmp_path / "store").mkdir(mode=0o700)
    return SimpleNamespace(
        store=tmp_path / "store", me="bank", policy=policy, note=lambda *words: None
    )


def record_of(letter):
    job = SimpleNamespace(parties={"bank": SimpleNamespace(table="people")})
    return SimpleNamespace(digest=letter * 64, words="", proposal=SimpleNamespace(job=job))


def test_of_two_close_jobs_at_once_one_is_refused(home, monkeypatch):
    real, inside, refused = differencing.least_difference, [], []

    def slow(*arguments):
        found = real(*arguments)
        inside.append(1)
        end = time.monotonic() + 0.3
        while len(inside) < 2 and time.monotonic() < end:
            time.sleep(0.01)
        return found

    def job(letter, ids):
        try:
            check_difference(home, record_of(letter), ids)
        except InputError as error:
            refused.append(str(error))

    monkeypatch.setattr(differencing, "least_difference", slow)
    threads = [
        threading.Thread(target=job, args=one) for one in (("a", IDS), ("b", [*IDS[1:], b"77"]))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 1
    assert "differ from those of an earlier job by 2" in refused[0]


def test_two_first_jobs_draw_one_key(home, monkeypatch):
    """Another process, or thread, draws a key while this one does."""
    real, first = differencing.os.urandom, []

    def urandom(size):
        if not first:
            first.append(b"")
            first[0] = differencing._key(home.store)
        return real(size)

    monkeypatch.setattr(differencing.os, "urandom", urandom)
    assert differencing._key(home.store) == first[0]
    assert [path.name for path in home.store.iterdir()] == [".key"]
