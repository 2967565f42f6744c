"""The number of places at which two parties hold the same, and not which places these are.

Both hold a list of as many things. With secret exponents a and b, P(x) the hash of x to the group:

1. A sends a·P(x_i) of its things x_i.
2. B answers b·a·P(x_i) in a shuffled order, and b·P(y_i) of its own things, shuffled too.
3. A computes a·b·P(y_i), counts the points that are in both lists, and tells B.

A thing is hashed with its place, so that only equal things at the same place give equal points. B
sees points that are random to it; A sees which points of two shuffled lists are equal, and so the
number alone. Both are taken to follow the protocol.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from vertikal.errors import MeshError
from vertikal.mesh.interface import Mesh
from vertikal.secure.keys import prg
from vertikal.secure.psi.group import POINT_BYTES, Exponent, hash_to_points, workers


def count_equal(
    mesh: Mesh,
    peer: str,
    things: Sequence[bytes],
    session: str,
    booked: AbstractContextManager[None],
) -> int:
    """Count the places at which ``peer`` holds the same thing; both call it in step.

    The party whose name comes first asks. ``session`` tells counts under one mesh apart, and
    ``booked`` opens the ledger's entry for all messages.
    """
    first, second = sorted((mesh.me, peer))
    tag = f"equal/{session}"
    shape = (len(things), POINT_BYTES)
    domain = prg.encode_texts("equal", first, second, session)
    placed = [place.to_bytes(8, "big") + thing for place, thing in enumerate(things)]
    exponent = Exponent()
    with booked, workers() as threads:
        own = exponent.times(hash_to_points(placed, domain, threads), threads)
        if mesh.me == first:
            mesh.send(peer, f"{tag}/blinded", own)
            evaluated = mesh.recv_array(peer, f"{tag}/evaluated", np.uint8, shape)
            theirs = mesh.recv_array(peer, f"{tag}/others", np.uint8, shape)
            both = exponent.times(theirs, threads)
            equal = len({p.tobytes() for p in evaluated} & {p.tobytes() for p in both})
            mesh.send(peer, f"{tag}/count", {"equal": equal})
            return equal
        blinded = mesh.recv_array(peer, f"{tag}/blinded", np.uint8, shape)
        answer = exponent.times(blinded, threads)
        mesh.send(peer, f"{tag}/evaluated", answer[prg.shuffled(len(things))])
        mesh.send(peer, f"{tag}/others", own[prg.shuffled(len(things))])
        told: Any = mesh.recv(peer, f"{tag}/count")
    count = told.get("equal") if isinstance(told, dict) else None
    if type(count) is not int or not 0 <= count <= len(things):
        raise MeshError(f"{mesh.me}: {peer} sent no count of equal things")
    return count
