"""Draws of each party from its seed, against the plain draw, and who could draw them too."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from tests.naive.phases import directions, offsets
from tests.options import grouped
from vertikal.algorithms.kernel_machine.directions import draw_directions
from vertikal.algorithms.kernel_machine.settings import FdsklSettings
from vertikal.algorithms.kernel_machine.shard import Shard
from vertikal.data.scaling import Scaling

SETTINGS = FdsklSettings(parties=("a", "b"), label_parties=("a", "b"), n_components=50, seed=11)


def make_shard(party="a", **settings):
    return Shard(
        party,
        msgspec.structs.replace(SETTINGS, **grouped(**settings)),
        ("x", "y", "z"),
        Scaling([1.0, 2.0, 3.0], [1.0, 0.5, 4.0]),
        1.5,
        party.encode() * 32,
    )


@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "matern12", "matern32", "matern52"])
@pytest.mark.parametrize("kind", ["private", "shared"])
@pytest.mark.parametrize("owner", ["a", "b"])
def test_the_plain_draw(kernel, kind, owner):
    shard = make_shard(kernel=kernel, feature_map__directions=kind)
    drawn = draw_directions(shard, owner)
    np.testing.assert_allclose(drawn.directions, directions(shard, owner), rtol=1e-9)
    assert drawn.offsets.tolist() == offsets(shard, owner)
    assert drawn.centre.tolist() == [1.0, 2.0, 3.0]


def test_the_same_shard_draws_the_same_every_time():
    one, two = (draw_directions(make_shard(), "a") for _ in range(2))
    np.testing.assert_array_equal(one.directions, two.directions)
    np.testing.assert_array_equal(one.offsets, two.offsets)


def test_every_seed_owner_and_party_draws_something_else():
    shard = make_shard()
    draws = [
        draw_directions(shard, "a"),
        draw_directions(shard, "b"),
        draw_directions(replace(shard, seed=b"c" * 32), "a"),
    ]
    for i, one in enumerate(draws):
        for other in draws[:i]:
            assert (one.directions != other.directions).all()
            assert (one.offsets != other.offsets).mean() > 0.8


def test_private_directions_need_the_secret_seed():
    """The public settings say nothing about them; shared ones they say all about."""
    guess = replace(make_shard(), seed=bytes(32))
    assert (
        draw_directions(guess, "a").directions != draw_directions(make_shard(), "a").directions
    ).all()
    shared, guessed = (
        make_shard(feature_map__directions="shared"),
        replace(make_shard(feature_map__directions="shared"), seed=bytes(32)),
    )
    np.testing.assert_array_equal(
        draw_directions(guessed, "a").directions, draw_directions(shared, "a").directions
    )
    assert (
        draw_directions(guessed, "a").offsets != draw_directions(shared, "a").offsets
    ).mean() > 0.8


@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
def test_product_measures_do_not_depend_on_the_public_seed(kernel):
    one, two = (draw_directions(make_shard(kernel=kernel, seed=seed), "a") for seed in (1, 2))
    np.testing.assert_array_equal(one.directions, two.directions)


def test_matern_parties_share_the_length_of_a_direction_only():
    matern = [
        draw_directions(make_shard(party, kernel="matern32"), "a").directions
        for party in ("a", "b")
    ]
    plain = [draw_directions(make_shard(party), "a").directions for party in ("a", "b")]
    ratios = [m / p for m, p in zip(matern, plain, strict=True)]
    for ratio in ratios:  # one positive scalar per direction, the same at both parties
        np.testing.assert_allclose(ratio, np.broadcast_to(ratios[0][0], ratio.shape), rtol=1e-9)
    assert (ratios[0] > 0).all()
    assert abs(np.corrcoef(plain[0][0], plain[1][0])[0, 1]) < 0.6


def test_a_wider_ring_rounds_the_same_offsets():
    narrow, middle, wide = (
        draw_directions(make_shard(feature_map__bits=bits), "a").offsets for bits in (8, 16, 32)
    )
    assert (narrow.dtype, middle.dtype, wide.dtype) == (np.uint8, np.uint16, np.uint32)
    np.testing.assert_array_equal(middle >> 8, narrow)
    np.testing.assert_array_equal(wide >> 16, middle)
