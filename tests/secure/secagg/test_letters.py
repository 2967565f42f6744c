"""Slots of neighbours, by which letters are kept: one number for each, and back."""

from __future__ import annotations

import pytest

from vertikal.secure.secagg.letters import LettersInMemory
from vertikal.secure.secagg.neighbours import NeighbourPlan, Neighbours, everybody

NAMES = tuple(f"c{i:02d}" for i in range(11))
PLANS = [everybody(11), everybody(10), NeighbourPlan(11, 4, 3), NeighbourPlan(10, 8, 5)]


def graph_of(plan: NeighbourPlan) -> Neighbours:
    return Neighbours(b"seed", NAMES[: plan.clients], plan)


@pytest.mark.parametrize("plan", PLANS)
def test_slots_number_a_client_and_its_neighbours(plan):
    graph = graph_of(plan)
    for client in graph.clients:
        slots = {name: graph.slot(client, name) for name in (client, *graph.of(client))}
        assert sorted(slots.values()) == list(range(plan.degree + 1))
        assert slots[client] == 0
        assert {name: graph.at_slot(client, slot) for name, slot in slots.items()} == {
            name: name for name in slots
        }
        for stranger in set(graph.clients) - slots.keys():
            assert graph.slot(client, stranger) is None
    assert sorted(map(graph.place, graph.clients)) == list(range(plan.clients))
    assert graph.slot("nobody", NAMES[0]) is None
    assert graph.slot(NAMES[0], "nobody") is None


def test_letters_go_between_neighbours_only():
    graph = graph_of(PLANS[2])
    letters = LettersInMemory(graph, 1)
    me, near = NAMES[0], graph.of(NAMES[0])
    far = next(name for name in NAMES[1:] if name not in near)
    letters.put(me, {me: b"a", near[0]: b"b", far: b"c", "nobody": b"d"})
    letters.put(near[1], {me: b"e"})
    letters.put(near[1], {me: b"f"})
    assert letters.to(me) == {me: b"a", near[1]: b"f"}
    assert letters.to(near[0]) == {me: b"b"}
    assert letters.to(far) == {}
