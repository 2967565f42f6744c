"""Key agreement: the same key at both ends, other keys for all else, and every refusal."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from tests.conformance.running import run
from vertikal.errors import AgreementError, MeshError
from vertikal.mesh import local_meshes
from vertikal.mesh.wire import PROTOCOL_VERSION
from vertikal.secure.keys import prg
from vertikal.secure.keys.agreement import TAG, PairKeys, agree

COMMON = {"job": "job 1", "version": "1.2", "settings_digest": "abcd", "rows": 10}


def agreed(names="abc", keys=None, **changes):
    """Run the agreement at all parties; ``changes`` are party -> other arguments."""
    ends = local_meshes(names, deadline=60.0)
    keys = keys or {name: prg.fresh_key() for name in names}

    def program(mesh):
        return agree(mesh, keys[mesh.me], **{**COMMON, **changes.get(mesh.me, {})})

    return run(ends, program)


def public(private):
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def hello(**changes):
    """The message of party b, as it travels."""
    key = public(prg.fresh_key())
    said = {
        "settings" if name == "settings_digest" else name: said for name, said in COMMON.items()
    }
    return {"protocol": PROTOCOL_VERSION, **said, "key": key, **changes}


def answered(message, private=None):
    """Party a's agreement with a peer b that answers ``message``."""
    ends = local_meshes("ab", deadline=60.0)
    ends["b"].send("a", TAG, message)
    return agree(ends["a"], private or prg.fresh_key(), **COMMON)


@pytest.mark.parametrize("names", ["a", "ab", "abcde"])
def test_each_pair_has_one_key_and_no_two_pairs_share_one(names):
    keys = agreed(names).unwrap()
    pairs = {}
    for me in names:
        assert set(keys[me].shared) == set(names) - {me}
        for peer in keys[me].shared:
            assert keys[me].key(peer, "pads", "x") == keys[peer].key(me, "pads", "x")
            pairs[frozenset((me, peer))] = keys[me].key(peer, "pads", "x")
    assert len(set(pairs.values())) == len(pairs) == len(names) * (len(names) - 1) // 2
    assert {len(key) for key in pairs.values()} <= {32}


def test_purposes_have_keys_of_their_own():
    keys = agreed("ab").unwrap()["a"]
    purposes = [(), ("ab", "c"), ("a", "bc"), ("abc",), ("pads",), ("pads", "x"), ("", "pads")]
    assert len({keys.key("b", *purpose) for purpose in purposes}) == len(purposes)


def test_jobs_and_pairs_have_keys_of_their_own():
    """Even where the secret of the exchange were the same."""
    secret = bytes(32)
    keys = {
        PairKeys(me, job, {peer: secret}).key(peer, "pads")
        for me, peer, job in [
            ("a", "b", "1"),
            ("a", "c", "1"),
            ("a", "b", "2"),
            ("a1", "b", ""),
            ("a", "1b", ""),
        ]
    }
    assert len(keys) == 5
    assert PairKeys("b", "1", {"a": secret}).key("a", "pads") in keys


def test_every_run_has_fresh_keys():
    first, second = (agreed("ab").unwrap()["a"].key("b", "x") for _ in range(2))
    assert first != second


def test_the_key_is_that_of_x25519_bound_to_both_public_keys():
    mine, theirs = bytes(range(32)), bytes(range(1, 33))
    keys = agreed("ab", {"a": mine, "b": theirs}).unwrap()["a"]
    own = X25519PrivateKey.from_private_bytes(mine)
    other = X25519PrivateKey.from_private_bytes(theirs)
    both = b"".join(sorted((public(mine), public(theirs))))
    expected = hashlib.sha256(both + own.exchange(other.public_key())).digest()
    assert keys.shared["b"] == expected


def test_keys_are_not_printed():
    keys = agreed("ab").unwrap()["a"]
    assert repr(keys) == "PairKeys(me='a', job='job 1', peers=['b'])"
    assert str(keys) == repr(keys)


@pytest.mark.parametrize(
    ("field", "other", "words"),
    [
        ("version", "1.3", "library version"),
        ("settings_digest", "ef01", "digest of the settings"),
        ("rows", 11, "number of rows"),
        ("job", "job 2", "job"),
    ],
)
def test_another_job_is_refused_by_everybody(field, other, words):
    errors = agreed("abc", b={field: other}).errors
    assert set(errors) == set("abc")
    ours = COMMON[field]
    # Whoever hears of another's refusal first may stop for that reason; b's own is always its own.
    told = [str(error) for error in errors.values() if isinstance(error, AgreementError)]
    assert told
    for text in told:
        assert f" {words} is " in text
        assert repr(ours) in text
        assert repr(other) in text
        assert "all parties must run the same job on the same rows" in text
        if text.startswith("b: "):
            assert f"is {other!r} here and {ours!r} at a;" in text
        else:
            assert f"is {ours!r} here and {other!r} at b;" in text
    assert all(isinstance(error, MeshError) for error in errors.values())


def test_another_protocol_is_refused():
    with pytest.raises(AgreementError, match=r"a: protocol version is 1 here and 2 at b;"):
        answered(hello(protocol=2))


def without(field):
    message = hello()
    del message[field]
    return message


@pytest.mark.parametrize(
    "message",
    [
        {},
        without("key"),
        without("rows"),
        hello(more=1),
        hello(rows="10"),
        hello(rows=10.5),
        hello(rows=True),
        hello(protocol=None),
        hello(job=b"job 1"),
        {**hello(), "settings": {"x": 1}},
        np.zeros(3),
    ],
    ids=lambda message: str(list(message))[:60],
)
def test_a_malformed_introduction_is_refused(message):
    with pytest.raises(AgreementError, match="a: b introduced itself wrongly: "):
        answered(message)


def test_ones_own_key_sent_back_is_refused():
    private = prg.fresh_key()
    with pytest.raises(AgreementError, match="a: two parties sent the same public key"):
        answered(hello(key=public(private)), private)


def test_two_peers_with_one_key_are_refused():
    ends = local_meshes("abc", deadline=60.0)
    message = hello()
    for peer in "bc":
        ends[peer].send("a", TAG, message)
    with pytest.raises(AgreementError, match="a: two parties sent the same public key"):
        agree(ends["a"], prg.fresh_key(), **COMMON)


LOW_ORDER = [
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
    "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
]


@pytest.mark.parametrize("key", LOW_ORDER)
def test_public_keys_of_low_order_are_refused(key):
    """They make the shared secret zero, whatever the private key."""
    with pytest.raises(AgreementError, match="a: the public key of b is unusable: "):
        answered(hello(key=bytes.fromhex(key)))


@pytest.mark.parametrize("key", [b"", b"\x09" * 31, b"\x09" * 33, b"\x09" * 64, "text"])
def test_public_keys_of_another_length_are_refused(key):
    with pytest.raises(AgreementError, match="a: the public key of b is unusable: "):
        answered(hello(key=key))


def test_links_between_workers_are_offered_without_a_word_from_the_others():
    plain, offering = (
        agreed("abc", **{name: {"direct": True} for name in names}).unwrap() for names in ("", "ac")
    )
    assert [plain[name].direct for name in "abc"] == [(), (), ()]
    assert [offering[name].direct for name in "abc"] == [("c",), ("a", "c"), ("a",)]
