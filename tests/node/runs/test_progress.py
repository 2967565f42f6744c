"""Progress of a party: what it waits for, what the others wait for, and the bytes by peer."""

from __future__ import annotations

import threading

import numpy as np

from tests.conformance.networks import network
from tests.waiting import until
from vertikal.node.runs.progress import ProgressReporter


def test_it_tells_who_waits_for_whom_and_the_bytes_by_peer():
    ends, cleanup = network("abc", 120.0)
    reporter = ProgressReporter(ends["a"], lambda progress: None, every=0.05)
    waiting = [
        threading.Thread(target=ends["a"].recv, args=("b", "answer")),
        threading.Thread(target=ends["b"].recv, args=("c", "question")),
    ]
    try:
        for thread in waiting:
            thread.start()
        until(
            lambda: (
                {(one.who, one.peer) for one in reporter.progress().waits}
                == {("a", "b"), ("b", "c")}
            ),
            "a hears of both waits",
        )
        assert "answer" in reporter.progress().waits[0].what
        assert reporter.progress("done").waits == ()
        ends["b"].send("a", "answer", np.zeros(1000))
        ends["c"].send("b", "question", {})
        for thread in waiting:
            thread.join(120)
        traffic = reporter.progress().traffic
        assert set(traffic) == {"b", "c"}
        assert traffic["b"].bytes_in > 8000
        assert traffic["c"].bytes_in == traffic["c"].bytes_out == 0
        assert reporter.progress().bytes_in == traffic["b"].bytes_in
    finally:
        reporter.close("done")
        cleanup()
