"""The checks of all meshes before a transport sees anything."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conformance.running import start
from vertikal.errors import InputError
from vertikal.mesh import local_meshes
from vertikal.mesh.interface import DEADLINE, Mesh


class Bare(Mesh):
    """A mesh without a transport: nothing but what all meshes inherit."""

    def put_frame(self, to, frame):
        raise NotImplementedError

    def get_frame(self, from_, tag, timeout):
        raise NotImplementedError

    def close(self):
        raise NotImplementedError

    def fail(self, reason):
        raise NotImplementedError


def mesh(me="a", parties=("a", "b"), deadline=1.0):
    return Bare(me, parties, deadline)


def test_who_is_who():
    middle = mesh("b", ("c", "b", "a"))
    assert (middle.me, middle.parties, middle.peers) == ("b", ("c", "b", "a"), ("c", "a"))


def test_the_default_deadline_is_finite():
    assert local_meshes("ab")["a"].deadline == DEADLINE == 300.0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"me": "z"}, r"me must be one of the parties \['a', 'b'\], got 'z'"),
        ({"parties": ("a", "b", "b")}, "parties must be distinct names"),
        ({"deadline": 0}, "deadline must be a positive number of seconds, got 0"),
        ({"deadline": -1.0}, "deadline must be a positive number of seconds, got -1.0"),
        ({"deadline": float("nan")}, "deadline must be a positive number of seconds, got nan"),
        ({"deadline": float("inf")}, "deadline must be a positive number of seconds, got inf"),
        ({"deadline": "5"}, "deadline must be a positive number of seconds, got '5'"),
        ({"deadline": True}, "deadline must be a positive number of seconds, got True"),
    ],
)
def test_what_is_refused(arguments, said):
    with pytest.raises(InputError, match=said):
        mesh(**arguments)


@pytest.mark.parametrize("timeout", [-1.0, float("inf"), float("nan"), "5", True])
def test_timeouts_that_are_no_time_are_refused(timeout):
    """Not a number is neither before nor after any moment: such a wait would never end."""
    ends = local_meshes("ab")
    raised = []

    def waiting():
        try:
            ends["a"].recv("b", "x", timeout)
        except Exception as error:
            raised.append(error)

    thread = start("waiting", waiting)
    thread.join(1.0)
    ends["b"].fail("over")
    thread.join(10.0)
    (error,) = raised
    assert isinstance(error, InputError)
    assert "timeout must be a number of seconds" in str(error)


def test_what_workers_send_apart_counts_as_the_frame_that_it_would_have_been():
    values = np.zeros((30, 7), np.uint16)
    ends = local_meshes("ab")
    ends["a"].send("b", "sum/x/1", values)
    ends["b"].recv("a", "sum/x/1")
    apart = {name: mesh(name) for name in "ab"}
    apart["a"].sent_apart("b", "sum/x/1", values.dtype, values.shape)
    apart["b"].received_apart("a", "sum/x/1", values.dtype, values.shape)
    for name in "ab":
        assert repr(apart[name].traffic) == repr(ends[name].traffic)
