"""Messages between services: signed by the sender, for one receiver, in one form."""

from __future__ import annotations

import msgspec
import pytest

from tests.conformance.networks import credentials
from vertikal.errors import CertificateMismatch, WireError
from vertikal.node.links.messages import (
    MAX_PARTS,
    Beat,
    BeatAssembly,
    Begin,
    JobNews,
    pack,
    split_beat,
    unpack,
)

NAMES = ("lender", "bank", "shop")


@pytest.fixture(scope="module")
def keys():
    return {name: credentials(name, NAMES) for name in NAMES}


def test_a_message_arrives_as_it_was_sent(keys):
    packed = pack("bank", "shop", Begin("d", 3), keys["bank"])
    assert unpack("bank", "shop", packed, keys["shop"]) == Begin("d", 3)


def test_messages_of_others_are_not_believed(keys):
    packed = pack("bank", "shop", Beat("0.1.0", 1.0), keys["bank"])
    # A relay that says that another sent it, or hands it to another.
    for sender, receiver in (("lender", "shop"), ("bank", "lender")):
        with pytest.raises(WireError, match="from 'bank' to 'shop'"):
            unpack(sender, receiver, packed, keys[receiver])
    forged = pack("bank", "shop", Beat("0.1.0", 1.0), keys["lender"])
    with pytest.raises(CertificateMismatch, match="in the name of 'bank'"):
        unpack("bank", "shop", forged, keys["shop"])


def test_every_changed_bit_is_noticed(keys):
    packed = pack("bank", "shop", Begin("digest", 3), keys["bank"])
    for place in range(0, len(packed), 3):
        changed = bytearray(packed)
        changed[place] ^= 0x10
        with pytest.raises((WireError, CertificateMismatch)):
            unpack("bank", "shop", bytes(changed), keys["shop"])


def test_nonsense_is_a_wire_error(keys):
    for raw in (b"", b"\x00" * 40, b"\x82", b"\x91" * 5000, msgspec.msgpack.encode({"raw": b"x"})):
        with pytest.raises(WireError):
            unpack("bank", "shop", raw, keys["shop"])


def news(number, done=False):
    return JobNews(f"{number:064}", 1, False, done, ("lender", "bank"), False, True)


def joined(parts, assembly=None, sender="bank"):
    assembly = assembly or BeatAssembly()
    return [assembly.add(sender, one) for one in parts]


@pytest.mark.parametrize("jobs", [0, 1, 10, 1000])
def test_parts_make_the_beat_again(jobs):
    beat = Beat("1", 7.0, tuple(news(number) for number in range(jobs)), True)
    parts = split_beat(beat, 2000)
    assert len(parts) == max(1, -(-jobs // (2000 // len(msgspec.msgpack.encode(news(0))))))
    assert joined(parts) == [None] * (len(parts) - 1) + [beat]


def test_a_beat_of_one_part_is_as_short_as_it_can_be():
    (part,) = split_beat(Beat("1", 7.0))
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(part)) == {
        "type": "Beat",
        "version": "1",
        "time": 7.0,
    }


def test_open_jobs_come_before_those_that_are_done():
    beat = Beat("1", 7.0, (news(1, done=True), news(2)))
    assert [one.jobs[0].done for one in split_beat(beat, 1)] == [False, True]
    assert len(split_beat(Beat("1", 7.0, tuple(map(news, range(MAX_PARTS + 5)))), 1)) == MAX_PARTS


def test_parts_of_which_one_is_missing_are_dropped():
    first, second, third = split_beat(Beat("1", 7.0, tuple(map(news, range(3)))), 1)
    later = split_beat(Beat("1", 8.0, tuple(map(news, range(3)))), 1)
    assert joined([first, third]) == [None, None]
    assert joined([second, third]) == [None, None]
    assert joined([first, second, later[2]]) == [None, None, None]
    whole = joined([first, second, *later])[-1]
    assert (whole.time, len(whole.jobs)) == (8.0, 3)


def test_peers_do_not_get_into_one_anothers_way():
    parts, assembly = split_beat(Beat("1", 7.0, tuple(map(news, range(2)))), 1), BeatAssembly()
    assert joined(parts[:1], assembly, "bank") == [None]
    assert joined(parts[:1], assembly, "shop") == [None]
    assert len(joined(parts[1:], assembly, "bank")[0].jobs) == 2


@pytest.mark.parametrize(("part", "parts"), [(0, 0), (1, 1), (-1, 1), (0, MAX_PARTS + 1)])
def test_parts_that_cannot_be_are_left_out(part, parts):
    assert BeatAssembly().add("bank", Beat("1", 7.0, (), False, part, parts)) is None
