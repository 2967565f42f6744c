"""The mesh of one run: nonsense in it is blamed on its sender, and ends no link."""

from __future__ import annotations

import pytest

from tests.conformance.networks import credentials
from vertikal.errors import WireError
from vertikal.mesh.packets import envelope
from vertikal.node.links.run_mesh import RunMesh

NAMES = ("lender", "bank", "shop")


class Unconnected:
    """Standing links of the shop, over which nothing goes."""

    me = "shop"

    def relayed(self, parties):
        return ("bank",)

    def attach(self, run):
        pass

    def detach(self, run):
        pass

    def is_up(self, name):
        return False

    def post(self, *arguments, **options):
        raise AssertionError("nobody is there")


@pytest.mark.parametrize(
    ("places", "said"),
    [((1, 9), "packet from party 1 to party 9 of 3"), ((0, 2), "a packet of another pair")],
)
def test_a_packet_of_nobody_is_blamed_on_its_sender_and_its_link_stays(places, said):
    """The relay cannot know which places a run's parties have: its link is not to suffer."""
    mesh = RunMesh(
        Unconnected(), NAMES, credentials("shop", NAMES), name="run", deadline=5.0, patience=5.0
    )
    try:
        mesh.parcel("bank", envelope.pack_head(envelope.STATE, 0, *places, 0))
        with pytest.raises(WireError, match=f"shop: bank sent {said}"):
            mesh.recv("bank", "x", 5.0)
    finally:
        mesh.stop(0.0)
