"""The views of both parties: residues and words that are uniform, whatever the data.

Residues of public keys are below primes, so that they are compared with the uniform distribution
on 64 equal parts of the range of each prime.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from scipy import stats

from tests.conformance.uniformity import THRESHOLD, check_uniform, check_unrelated
from tests.secure.hidden.hidden_run import draw_phases
from tests.secure.kept import matrices_in
from tests.secure.two_party.two_party_run import NAMES, hide_between_two
from vertikal.secure.two_party.lattice.key_switching import DIGITS
from vertikal.secure.two_party.lattice.parameters import FEATURES, PRIME_BITS, PRODUCTS
from vertikal.secure.two_party.wire_words import pack, unpack, wire_bytes
from vertikal.secure.two_party.word_lengths import WordLengths

ROWS, WIDTH, OUTPUTS = 96, 64, 2
PARTS = 64


def constant(value):
    return {name: np.full((ROWS, WIDTH), value, np.uint8) for name in NAMES}


ADVERSARIAL = {
    "all zero": constant(0),
    "equal rows": {
        name: np.repeat(part, ROWS, axis=0)
        for name, part in draw_phases(1, WIDTH, names=NAMES).items()
    },
    "drawn": draw_phases(ROWS, WIDTH, 5, names=NAMES),
}
every_data = pytest.mark.parametrize("data", ADVERSARIAL.values(), ids=ADVERSARIAL)


def same_vectors_again(hidden):
    forward, adjoint = np.ones((WIDTH, OUTPUTS)) / WIDTH, np.zeros((ROWS, OUTPUTS))
    return [
        (hidden.product("forward", forward), hidden.product("adjoint", adjoint)) for _ in range(2)
    ]


def frames(session):
    """Arrays by (receiver's peer, step), in the order of sending."""
    found = defaultdict(list)
    for one in session.tape:
        tag = one.header.tag
        if tag.startswith("two-party/") and not tag.endswith("/request"):
            found[one.header.sender, tag.split("/", 3)[3]].append(np.asarray(one.payload()))
    return found


def residues_of(parameters, packed):
    count = packed.nbytes * 8 // PRIME_BITS // (len(parameters.primes) * parameters.degree)
    return unpack(packed, (len(parameters.primes), count, parameters.degree), PRIME_BITS)


def check_residues(parameters, arrays):
    for i, prime in enumerate(parameters.primes):
        limbs = np.concatenate([residues_of(parameters, one)[i].ravel() for one in arrays])
        counts = np.bincount(limbs.astype(np.int64) * PARTS // prime, minlength=PARTS)
        assert stats.chisquare(counts).pvalue > THRESHOLD
    assert len({one.tobytes() for one in arrays}) == len(arrays), "a frame came twice"


@every_data
def test_every_frame_is_uniform(data):
    session = hide_between_two(data, same_vectors_again)
    assert session.result is not None
    seen = frames(session)
    assert sorted(seen) == [
        ("ada", "features/cosines"),
        ("ada", "features/key"),
        ("ada", "features/key/proof/answer"),
        ("ada", "products/adjoint"),
        ("ada", "products/forward"),
        ("ada", "products/key"),
        ("ada", "products/key/proof/answer"),
        ("bob", "features/hidden"),
        *(("bob", f"features/key/proof{part}") for part in ("", "/c0", "/c1")),
        ("bob", "products/adjoint/answer"),
        ("bob", "products/adjoint/answer/hidden"),
        ("bob", "products/forward/answer"),
        ("bob", "products/forward/answer/hidden"),
        *(("bob", f"products/key/proof{part}") for part in ("", "/c0", "/c1")),
    ]
    # What the helper reads, and the half of each answer that is to say nothing.
    check_residues(FEATURES, seen["ada", "features/key"])
    check_residues(PRODUCTS, seen["ada", "products/key"])
    check_uniform(seen["ada", "features/cosines"])
    check_uniform(seen["bob", "features/hidden"])
    for kind in ("forward", "adjoint"):
        check_uniform(seen["ada", f"products/{kind}"])
        check_uniform(seen["bob", f"products/{kind}/answer/hidden"])


@pytest.mark.parametrize("value", [0, 77])
def test_every_frame_is_uniform_where_answers_share_their_half(value):
    """With more rows, a switching key; one half comes back for four rows."""
    rows = 1030
    data = {name: np.full((rows, 8), value, np.uint8) for name in NAMES}
    seen = frames(hide_between_two(data, lambda hidden: hidden.product("forward", np.ones((8, 1)))))
    for key, polynomials in (("", 1), ("/answers", 4), ("/switching", 4 * 4 * DIGITS)):
        (packed,) = seen["ada", f"features/key{key}"]
        assert residues_of(FEATURES, packed).shape[1] == polynomials
        check_residues(FEATURES, [packed])
    check_uniform(seen["ada", "features/cosines"])
    check_uniform(seen["bob", "features/hidden"])
    bits = WordLengths(rows).hidden
    sent = sum(one.nbytes for one in seen["bob", "features/hidden"])
    assert sent == wire_bytes(-(-rows // 4) * FEATURES.degree, bits)


@every_data
def test_the_words_of_an_answer_say_nothing_without_the_key(data):
    """They are opened to the label party, and uniform to anybody else on the way."""
    seen = frames(hide_between_two(data, same_vectors_again))
    check_uniform(seen["bob", "products/adjoint/answer"])
    bits = WordLengths(ROWS).answered(14)
    words = np.concatenate(
        [unpack(one, (ROWS, OUTPUTS), bits) for one in seen["bob", "products/forward/answer"]]
    ).ravel()
    counts = np.bincount(words >> np.uint32(bits - 4), minlength=16)
    assert stats.chisquare(counts).pvalue > THRESHOLD


def test_no_frame_of_one_run_fits_another():
    """The same data and vectors again, under other keys."""
    first, second = (
        frames(hide_between_two(ADVERSARIAL["drawn"], same_vectors_again)) for _ in range(2)
    )
    hidden = "bob", "features/hidden"
    check_unrelated(first[hidden], second[hidden])
    for step in first:
        assert all(not np.array_equal(a, b) for a, b in zip(first[step], second[step], strict=True))


def test_neither_party_keeps_the_features():
    """Kept matrices are uniform: at the label party words, at the helper residues of tiles."""
    session = hide_between_two(ADVERSARIAL["all zero"], same_vectors_again)
    (own,) = matrices_in(session.parts["ada"], (ROWS, 1024))
    lengths = WordLengths(ROWS)
    check_uniform([pack(own >> np.uint32(lengths.unit), lengths.shared)])
    assert session.parts["ada"].nbytes == own.nbytes
    (kept,) = matrices_in(session.parts["bob"], (3, 6, 4, PRODUCTS.degree))
    assert session.parts["bob"].nbytes == kept.nbytes
    for limb, prime in zip(kept, PRODUCTS.primes, strict=True):
        counts = np.bincount(limb.ravel().astype(np.int64) * PARTS // prime, minlength=PARTS)
        assert stats.chisquare(counts).pvalue > THRESHOLD
