"""Sums and broadcasts along every shape, over every mesh."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conformance.meshes import connected, every_mesh_often
from tests.conformance.running import run
from vertikal.errors import InputError, MeshError
from vertikal.mesh import wire
from vertikal.mesh.collectives import SHAPES, broadcast, edges, host, reduce

pytestmark = every_mesh_often

NAMES = ("ada", "bo", "cleo", "dan", "eve", "fay", "gil", "hal")
# Sixteen are in `test_meshes.test_every_number_of_parties`.
every_shape = pytest.mark.parametrize("shape", list(SHAPES))


def frame_sizes(links, tag, payload):
    return sum(wire.frame(sender, receiver, tag, payload).size for sender, receiver in links)


def sent(ends):
    """Frames and bytes that left all parties, and frames and bytes that reached them."""
    traffic = [end.traffic for end in ends.values()]
    out = sum(t.frames_sent for t in traffic), sum(t.bytes_sent for t in traffic)
    came = sum(t.frames_received for t in traffic), sum(t.bytes_received for t in traffic)
    assert out == came
    return out


@every_shape
@settings(max_examples=20)
@given(
    order=st.integers(1, 8).flatmap(lambda q: st.permutations(NAMES[:q])),
    dtype=st.sampled_from(["uint8", "uint16", "uint32", "uint64"]),
    size=st.tuples(st.integers(0, 3), st.integers(1, 4)),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_sum_is_the_plain_sum_in_q_minus_1_messages(factory, shape, order, dtype, size, seed):
    draw = np.random.default_rng(seed)
    top = np.iinfo(dtype).max
    values = {name: draw.integers(0, top, size, dtype, endpoint=True) for name in order}
    node = SHAPES[shape](order)
    with connected(factory, NAMES[: len(order)]) as ends:
        got = run(ends, lambda mesh: reduce(mesh, values[mesh.me].copy(), node, "total")).unwrap()
        moved = sent(ends)
    expected = sum(value.astype(object) for value in values.values()) % (top + 1)
    assert [name for name, value in got.items() if value is not None] == [order[0]]
    assert got[order[0]].dtype == dtype
    assert got[order[0]].tolist() == expected.tolist()
    assert len(edges(node)) == len(order) - 1
    assert moved == (len(order) - 1, frame_sizes(edges(node), "total", values[order[0]]))


@every_shape
@settings(max_examples=10)
@given(
    order=st.integers(1, 8).flatmap(lambda q: st.permutations(NAMES[:q])),
    record=st.booleans(),
)
def test_a_broadcast_reaches_everybody_in_q_minus_1_messages(factory, shape, order, record):
    payload = {"step": 3} if record else np.arange(6, dtype=np.int32).reshape(2, 3)
    node = SHAPES[shape](order)

    def program(mesh):
        return broadcast(mesh, payload if mesh.me == order[0] else None, node, "news")

    with connected(factory, NAMES[: len(order)]) as ends:
        got = run(ends, program).unwrap()
        moved = sent(ends)
    links = [(parent, child) for child, parent in edges(node)]
    assert moved == (len(order) - 1, frame_sizes(links, "news", payload))
    assert set(got) == set(order)
    for value in got.values():
        np.testing.assert_equal(value, payload)


@every_shape
def test_a_sum_of_some_leaves_the_others_alone(factory, shape):
    group = NAMES[1:4]

    def program(mesh):
        if mesh.me not in group:
            return "elsewhere"
        return reduce(mesh, np.full(2, 5, np.uint8), SHAPES[shape](group), "x")

    with connected(factory, NAMES[:5]) as ends:
        got = run(ends, program).unwrap()
    assert got.pop(group[0]).tolist() == [15, 15]
    assert got == {NAMES[0]: "elsewhere", NAMES[4]: "elsewhere", group[1]: None, group[2]: None}


def test_a_part_of_another_shape_is_refused(factory):
    with connected(factory, "ab") as ends:
        outcome = run(
            ends,
            {
                "a": lambda mesh: reduce(mesh, np.zeros(3, np.uint8), ("a", "b"), "x"),
                "b": lambda mesh: reduce(mesh, np.zeros(4, np.uint8), ("a", "b"), "x"),
            },
        )
    with pytest.raises(MeshError, match=r"a: b sent uint8 \(4,\) under 'x', expected uint8 \(3,\)"):
        raise outcome.errors["a"]


def test_a_broadcast_of_nothing_is_refused_where_it_starts(factory):
    with connected(factory, "ab") as ends:
        with pytest.raises(InputError, match="payload must be given at a"):
            broadcast(ends["a"], None, ("a", "b"), "x")
        assert ends["a"].traffic.frames_sent == 0


def test_many_rounds_along_changing_trees_do_not_mix(factory):
    def program(mesh):
        totals = []
        for i in range(12):
            order = NAMES[i % 4 : 4] + NAMES[: i % 4]
            node = SHAPES[list(SHAPES)[i % 3]](order)
            total = reduce(mesh, np.array([i], np.uint16), node, "same tag")
            news = broadcast(mesh, total, node, "same tag")
            assert (total is not None) == (host(node) == mesh.me)
            totals.append(int(news[0]))
        return totals

    with connected(factory, NAMES[:4]) as ends:
        got = run(ends, program).unwrap()
    assert all(totals == [4 * i for i in range(12)] for totals in got.values())
