"""Answers that pages share: asked once, kept for a while, and never an error."""

from __future__ import annotations

import threading

import pytest

from vertikal.console.recent import Recent


def test_an_answer_serves_until_it_is_old_or_forgotten():
    made = []
    recent = Recent(3600.0)

    def make():
        made.append(True)
        return len(made)

    assert [recent.get("a", make), recent.get("a", make), recent.get("b", make)] == [1, 1, 2]
    recent.forget()
    assert recent.get("a", make) == 3
    assert [Recent(0.0).get("a", make) for _ in range(2)] == [4, 5]


def test_an_error_is_not_kept():
    recent = Recent(3600.0)
    with pytest.raises(ZeroDivisionError):
        recent.get("a", lambda: 1 // 0)
    assert recent.get("a", lambda: 7) == 7


def test_who_comes_at_once_waits_for_the_same_answer():
    recent, begun, go = Recent(3600.0), threading.Event(), threading.Event()
    made, found = [], []

    def make():
        made.append(True)
        begun.set()
        assert go.wait(30)
        return "answer"

    threads = [
        threading.Thread(target=lambda: found.append(recent.get("a", make))) for _ in range(5)
    ]
    for thread in threads:
        thread.start()
    assert begun.wait(30)
    go.set()
    for thread in threads:
        thread.join(30)
    assert (made, found) == ([True], ["answer"] * 5)
