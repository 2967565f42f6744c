from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import hypergeom

from vertikal.errors import InputError, SecrecyError
from vertikal.secure.secagg.neighbours import (
    NeighbourPlan,
    Neighbours,
    check_secrecy,
    everybody,
    log2_more_than,
    plan_neighbours,
)


def names(count: int) -> tuple[str, ...]:
    return tuple(f"c{i:03d}" for i in range(count))


def components(graph: Neighbours, remaining: set[str]) -> int:
    """Connected parts among those who remain, by walking."""
    left, parts = set(remaining), 0
    while left:
        parts += 1
        edge = [left.pop()]
        while edge:
            reached = set(graph.of(edge.pop())) & left
            left -= reached
            edge.extend(reached)
    return parts


@pytest.mark.parametrize("degree", [2, 6, 19])
def test_the_graph_is_regular_and_mutual(degree):
    graph = Neighbours(b"seed", names(20), NeighbourPlan(20, degree, degree // 2 + 2))
    for name in graph.clients:
        assert len(set(graph.of(name))) == degree
        assert name not in graph.of(name)
        assert all(name in graph.of(peer) for peer in graph.of(name))


def test_the_circle_depends_on_the_seed_and_on_nothing_else():
    first, again = (Neighbours(b"seed", names(30), NeighbourPlan(30, 4, 4)) for _ in range(2))
    other = Neighbours(b"another", names(30), NeighbourPlan(30, 4, 4))
    assert [first.of(n) for n in names(30)] == [again.of(n) for n in names(30)]
    assert [first.of(n) for n in names(30)] != [other.of(n) for n in names(30)]


@settings(max_examples=60, deadline=None)
@given(st.integers(5, 24), st.integers(1, 4), st.data())
def test_connected_is_what_walking_finds(count, half, data):
    degree = min(2 * half, (count - 2) // 2 * 2)
    graph = Neighbours(b"seed", names(count), NeighbourPlan(count, degree, degree // 2 + 2))
    remaining = set(data.draw(st.lists(st.sampled_from(names(count)), min_size=1, unique=True)))
    assert graph.connected(remaining) == (components(graph, remaining) == 1)


@pytest.mark.parametrize("count", [100, 300, 943])
def test_a_plan_is_smaller_than_everybody_and_holds_in_draws(count):
    chosen = plan_neighbours(count, corrupt=0.1, dropping=0.15)
    assert chosen.degree < count - 1
    assert not chosen.complete
    generator = np.random.default_rng(0)
    graph = Neighbours(b"seed", names(count), chosen)
    neighbours = {name: set(graph.of(name)) for name in graph.clients}
    for _ in range(20):
        shuffled = generator.permutation(graph.clients)
        gone = set(shuffled[: math.floor(0.15 * count)])
        corrupt = set(shuffled[-math.floor(0.1 * count) :])
        assert graph.connected(set(graph.clients) - gone - corrupt)
        for name in graph.clients:
            assert len(neighbours[name] - gone) >= chosen.threshold
            assert len(neighbours[name] & corrupt) < chosen.threshold


def test_harder_conditions_need_more_neighbours():
    degrees = [plan_neighbours(500, dropping=share).degree for share in (0.0, 0.05, 0.1, 0.2)]
    assert all(a <= b for a, b in pairwise(degrees))
    assert degrees[0] < degrees[-1]
    assert plan_neighbours(500, security=80).degree > plan_neighbours(500).degree
    assert plan_neighbours(500, corrupt=0, dropping=0).degree == 2


def test_few_clients_are_everybody():
    for count in range(2, 12):
        assert plan_neighbours(count).complete
        assert everybody(count).threshold > count / 2
    # Where no ring is safe, everybody shares with everybody, and the threshold leaves room.
    chosen = plan_neighbours(10, dropping=0.3)
    assert (chosen.degree, chosen.threshold) == (9, 7)


@pytest.mark.parametrize(
    ("build", "parameter"),
    [
        (lambda: NeighbourPlan(1, 0, 1), "clients"),
        (lambda: NeighbourPlan(10, 3, 3), "degree"),
        (lambda: NeighbourPlan(10, 10, 6), "degree"),
        (lambda: NeighbourPlan(10, 4, 2), "threshold"),
        (lambda: NeighbourPlan(10, 9, 5), "threshold"),
        (lambda: NeighbourPlan(10, 9, 11), "threshold"),
        (lambda: plan_neighbours(10, corrupt=-0.1), "corrupt"),
        (lambda: plan_neighbours(10, corrupt=0.5, dropping=0.5), "corrupt"),
        (lambda: plan_neighbours(10, corrupt=0.1, dropping=-1.0), "dropping"),
        (lambda: Neighbours(b"seed", ("a", "a"), everybody(2)), "clients"),
        (lambda: Neighbours(b"seed", ("a", "b"), everybody(3)), "plan"),
    ],
)
def test_bad_plans_are_refused(build, parameter):
    with pytest.raises(InputError, match=f"^{parameter} must be"):
        build()


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 900), st.data())
def test_the_chance_of_many_marked_is_that_of_scipy(population, data):
    marked = data.draw(st.integers(0, population))
    drawn = data.draw(st.integers(0, population))
    count = data.draw(st.integers(-1, drawn))
    expected = hypergeom.logsf(count, population, marked, drawn) / math.log(2)
    found = log2_more_than(count, population, marked, drawn)
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-6) or max(found, expected) < -900


@pytest.mark.parametrize("count", [2, 10, 40, 100, 943, 6040])
def test_plans_that_we_make_are_safe(count):
    check_secrecy(plan_neighbours(count))


@pytest.mark.parametrize("plan", [NeighbourPlan(1000, 2, 3), NeighbourPlan(1000, 40, 21)])
def test_a_client_refuses_a_plan_that_corrupt_clients_could_use(plan):
    with pytest.raises(SecrecyError, match=f"plan of {plan.degree} neighbours .* is not safe"):
        check_secrecy(plan)


def test_a_plan_may_have_few_neighbours_where_nobody_is_corrupt():
    check_secrecy(NeighbourPlan(1000, 2, 3), corrupt=0.0)
