"""FDSKL Algorithm 1, line 1: label parties take turns, each with its own directions Λ^ℓ."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.options import grouped
from vertikal.algorithms.kernel_machine.settings import FdsklSettings
from vertikal.algorithms.kernel_machine.stochastic.learner import number_of_steps
from vertikal.algorithms.kernel_machine.stochastic.round_robin import turns

NAMES = ("a", "b", "c")


def make(label_parties=1, **settings):
    options = grouped(solver="dsg", **settings)
    return FdsklSettings(parties=NAMES, label_parties=NAMES[:label_parties], **options)


def as_lists(settings):
    return [(owner, list(range(columns.start, columns.stop))) for owner, columns in turns(settings)]


def test_one_label_party_walks_through_its_directions():
    assert as_lists(make(n_components=3, solver__block_size=1)) == [
        ("a", [0]),
        ("a", [1]),
        ("a", [2]),
    ]


def test_label_parties_take_turns():
    assert as_lists(make(2, n_components=4, solver__block_size=1)) == [
        ("a", [0]),
        ("b", [0]),
        ("a", [1]),
        ("b", [1]),
    ]


def test_a_step_takes_a_block_and_the_last_one_what_is_left():
    assert as_lists(make(2, n_components=10, solver__block_size=3)) == [
        ("a", [0, 1, 2]),
        ("b", [0, 1, 2]),
        ("a", [3, 4]),
        ("b", [3, 4]),
    ]


@pytest.mark.parametrize("label_parties", [1, 2, 3])
@pytest.mark.parametrize("n_components", [3, 7, 12, 65])
@pytest.mark.parametrize("features", [1, 4, 64])
def test_by_default_every_direction_is_used_once(label_parties, n_components, features):
    settings = make(label_parties, n_components=n_components, solver__block_size=features)
    used = Counter((owner, column) for owner, block in as_lists(settings) for column in block)
    wanted = {(o, j) for o, width in settings.widths().items() for j in range(width)}
    assert set(used) == wanted
    assert set(used.values()) == {1}
    assert len(as_lists(settings)) == number_of_steps(settings)


@pytest.mark.parametrize("n_components", [12, 13])
def test_several_passes_use_every_direction_as_often(n_components):
    one = as_lists(make(2, n_components=n_components, solver__block_size=2))
    three = as_lists(
        make(2, n_components=n_components, solver__block_size=2, solver__n_steps=3 * len(one))
    )
    assert three == one * 3


def test_steps_can_stop_in_the_middle():
    whole = as_lists(make(2, n_components=12, solver__block_size=2))
    assert as_lists(make(2, n_components=12, solver__block_size=2, solver__n_steps=3)) == whole[:3]


@pytest.mark.parametrize("label_parties", [1, 2, 3])
def test_directions_are_cut_evenly(label_parties):
    widths = make(label_parties, n_components=100).widths()
    assert list(widths) == list(NAMES[:label_parties])
    assert sum(widths.values()) == 100
    assert max(widths.values()) - min(widths.values()) <= 1
