"""A client that dials again while there is time."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from vertikal.aggregation.reconnecting import LONGEST, stay_with
from vertikal.errors import PeerStopped, SecrecyError


class Line:
    """A server that is gone so many times."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.slept: list[float] = []
        self.said: list[str] = []

    def connect(self) -> nullcontext[str]:
        self.times -= 1
        if self.times >= 0:
            raise PeerStopped.of("hall", "u00: server 'hall' is gone")
        return nullcontext("device")

    def stay(self, act, seconds: float = 1e6):
        return stay_with(
            self.connect, act, seconds=seconds, progress=self.said.append, sleep=self.slept.append
        )


def test_a_client_dials_again_later_and_later():
    line = Line(9)
    assert line.stay(lambda device, left: (device, left > 0)) == ("device", True)
    assert line.slept == [1, 2, 4, 8, 16, 32, LONGEST, LONGEST, LONGEST]
    assert line.said[0] == "u00: server 'hall' is gone; dialling again in 1 s"


def test_when_time_is_over_the_last_error_stays():
    line = Line(9)
    with pytest.raises(PeerStopped, match="server 'hall' is gone"):
        line.stay(lambda device, left: device, seconds=0.5)
    assert line.slept == []


def test_what_a_client_refuses_is_not_tried_again():
    line = Line(0)

    def refuse(device: str, left: float) -> None:
        raise SecrecyError("u00: a sum over 3 clients")

    with pytest.raises(SecrecyError):
        line.stay(refuse)
    assert line.slept == []
