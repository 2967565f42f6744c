"""Beats in parts: nothing is lost, nothing is made up, and what is incomplete is left out."""

from __future__ import annotations

import msgspec
import pytest

from vertikal.node.links.heartbeats import MOST_PARTS, Joining, cut
from vertikal.node.links.messages import Beat, JobNews


def news(number, done=False):
    return JobNews(f"{number:064}", 1, False, done, ("lender", "bank"), False, True)


def joined(parts, joining=None, sender="bank"):
    joining = joining or Joining()
    return [joining.add(sender, one) for one in parts]


@pytest.mark.parametrize("jobs", [0, 1, 10, 1000])
def test_parts_make_the_beat_again(jobs):
    beat = Beat("1", 7.0, tuple(news(number) for number in range(jobs)), True)
    parts = cut(beat, 2000)
    assert len(parts) == max(1, -(-jobs // (2000 // len(msgspec.msgpack.encode(news(0))))))
    assert joined(parts) == [None] * (len(parts) - 1) + [beat]


def test_a_beat_of_one_part_is_as_short_as_it_can_be():
    (part,) = cut(Beat("1", 7.0))
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(part)) == {
        "type": "Beat",
        "version": "1",
        "time": 7.0,
    }


def test_open_jobs_come_before_those_that_are_done():
    beat = Beat("1", 7.0, (news(1, done=True), news(2)))
    assert [one.jobs[0].done for one in cut(beat, 1)] == [False, True]
    assert len(cut(Beat("1", 7.0, tuple(map(news, range(MOST_PARTS + 5)))), 1)) == MOST_PARTS


def test_parts_of_which_one_is_missing_are_dropped():
    first, second, third = cut(Beat("1", 7.0, tuple(map(news, range(3)))), 1)
    later = cut(Beat("1", 8.0, tuple(map(news, range(3)))), 1)
    assert joined([first, third]) == [None, None]
    assert joined([second, third]) == [None, None]
    assert joined([first, second, later[2]]) == [None, None, None]
    whole = joined([first, second, *later])[-1]
    assert (whole.time, len(whole.jobs)) == (8.0, 3)


def test_peers_do_not_get_into_one_anothers_way():
    parts, joining = cut(Beat("1", 7.0, tuple(map(news, range(2)))), 1), Joining()
    assert joined(parts[:1], joining, "bank") == [None]
    assert joined(parts[:1], joining, "shop") == [None]
    assert len(joined(parts[1:], joining, "bank")[0].jobs) == 2


@pytest.mark.parametrize(("part", "parts"), [(0, 0), (1, 1), (-1, 1), (0, MOST_PARTS + 1)])
def test_parts_that_cannot_be_are_left_out(part, parts):
    assert Joining().add("bank", Beat("1", 7.0, (), False, part, parts)) is None
