"""SecGram for many clients: exact over those who stay, by real secure aggregation."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive.dot_product import linear
from vertikal.algorithms.gram.client_gram import secure_gram
from vertikal.algorithms.gram.packing import (
    packed_length,
    packed_products,
    packed_tile,
    smallest_ring,
    unpacked,
)
from vertikal.errors import InputError, RingError, ThresholdMissed
from vertikal.ring.integers import Ring
from vertikal.secure.secagg.in_one_process import aggregate
from vertikal.secure.secagg.neighbours import everybody, plan_neighbours
from vertikal.secure.secagg.rounds import STAGES


def columns(clients: int, rows: int, largest: int, seed: int = 0) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    return {
        f"u{i:03d}": generator.integers(-largest, largest + 1, (rows, 1 + i % 2))
        for i in range(clients)
    }


@settings(max_examples=12, deadline=None)
@given(
    st.integers(2, 10), st.integers(1, 8), st.sampled_from([1, 300, 10**5, 10**9 // 2]), st.data()
)
def test_exact_over_those_who_stay(clients, rows, largest, data):
    held = columns(clients, rows, largest)
    room = clients - everybody(clients).threshold
    leavers = data.draw(st.lists(st.sampled_from(sorted(held)), max_size=room, unique=True))
    drops = {name: data.draw(st.sampled_from(STAGES)) for name in leavers}
    found = secure_gram(held, partial(aggregate, drops=drops), largest=largest)
    X = np.concatenate([held[name] for name in found.survivors], axis=1)
    assert found.values.tolist() == linear(X, X)


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(st.integers(2, 200), st.booleans(), st.data())
def test_exact_for_up_to_two_hundred_clients_with_the_most_drop_outs_at_any_stage(
    clients, ring, data
):
    """Zero, some or as many as may drop out, all at one stage or each at its own."""
    held = columns(clients, 3, 300)
    graph = plan_neighbours(clients) if ring and clients > 2 else everybody(clients)
    # On a ring every client must keep a threshold of neighbours: as many as `plan` reckons with.
    most = clients - graph.threshold if graph.complete else clients * 15 // 100
    leavers = sorted(held)[: data.draw(st.sampled_from([0, most // 2, most]))]
    together = data.draw(st.sampled_from([None, *STAGES]))
    drops = {name: together or data.draw(st.sampled_from(STAGES)) for name in leavers}
    found = secure_gram(held, partial(aggregate, plan=graph, drops=drops), largest=300)
    early = {name for name, stage in drops.items() if STAGES.index(stage) <= 3}
    assert set(found.survivors) == set(held) - early
    X = np.concatenate([held[name] for name in found.survivors], axis=1)
    assert np.array_equal(found.values, X @ X.T)


@pytest.mark.slow
def test_two_hundred_clients_with_drop_outs():
    held = {
        f"u{i:03d}": x for i, x in enumerate(np.random.default_rng(0).integers(0, 2, (200, 12)))
    }
    drops = {name: STAGES[i % 6] for i, name in enumerate(sorted(held)[:20])}
    found = secure_gram(
        held, partial(aggregate, plan=plan_neighbours(200), drops=drops), binary=True
    )
    X = np.stack([held[name] for name in found.survivors], axis=1)
    assert len(found.survivors) == 186
    assert np.array_equal(found.values, X @ X.T)
    assert found.ring == Ring(16)


@pytest.mark.parametrize(
    ("count", "largest", "bits"),
    [(943, 1, 16), (32767, 1, 16), (32768, 1, 32), (10, 5000, 32), (10, 10**6, 64)],
)
def test_the_smallest_ring_that_holds_the_kernel(count, largest, bits):
    assert smallest_ring(count, largest) == Ring(bits)


def test_a_kernel_beyond_all_rings_is_refused():
    with pytest.raises(RingError, match="beyond 64 bits"):
        smallest_ring(10, 10**9)


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_packing_is_undone(bits):
    block = np.random.default_rng(bits).integers(-50, 50, (7, 3))
    block[2] = 0
    packed = packed_products(block, Ring(bits))
    assert packed.shape == (28,)
    assert np.array_equal(unpacked(packed, 7, Ring(bits)), block @ block.T)


def refused(held, **options):
    return secure_gram(held, aggregate, **options)


def test_what_does_not_fit_is_refused_by_the_client_it_belongs_to():
    good = {"a": np.ones(3), "b": np.ones(3)}
    with pytest.raises(RingError, match=r"columns of b: at most 1 in magnitude .* got 4"):
        refused({**good, "b": np.array([1, 4, 0])})
    with pytest.raises(InputError, match="columns of b must be whole numbers"):
        refused({**good, "b": np.array([1, 0.5, 0])})
    with pytest.raises(InputError, match="columns of b must be finite"):
        refused({**good, "b": np.array([1, np.nan, 0])})
    with pytest.raises(InputError, match=r"columns of b must be 0 or 1 .* got -1"):
        refused({**good, "b": np.array([1, -1, 0])}, binary=True)
    with pytest.raises(InputError, match=r"one number of rows at all clients, got .*3, 4"):
        refused({**good, "b": np.ones(4)})


def test_too_few_survivors_open_nothing():
    held = columns(9, 4, 1)
    drops = dict.fromkeys(sorted(held)[:3], STAGES[3])
    with pytest.raises(ThresholdMissed, match="6 of 9 clients are there, at least 7"):
        secure_gram(held, partial(aggregate, drops=drops))


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_a_tile_is_the_matching_part_of_the_kernel(bits):
    block = np.random.default_rng(bits).integers(-9, 10, (7, 3))
    whole = block @ block.T
    ring = Ring(bits)
    corner = packed_tile(block[:4], None, ring)
    assert np.array_equal(unpacked(corner, 4, ring), whole[:4, :4])
    assert len(corner) == packed_length(4, 4, True)
    side = packed_tile(block[:4], block[4:], ring)
    assert np.array_equal(side.view(f"int{bits}").reshape(4, 3), whole[:4, 4:])
    assert len(side) == packed_length(4, 3, False)
