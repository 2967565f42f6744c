"""A label party that deviates: numbers of its choice, as many and as precise as are counted."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from tests.conformance.running import run
from tests.conformance.uniformity import check_uniform
from tests.secure.hidden.hidden_run import cosines, draw_phases
from tests.secure.meddling import changing
from tests.secure.two_party.test_views import frames
from tests.secure.two_party.two_party_run import NAMES, ROLES, hide_between_two
from vertikal.errors import PassesUsedUp
from vertikal.mesh import local_meshes
from vertikal.secure.keys import prg
from vertikal.secure.keys.agreement import agree
from vertikal.secure.two_party.ciphertext_link import EXACT_BITS, CiphertextLink, proof_bits
from vertikal.secure.two_party.lattice.key_switching import DIGITS
from vertikal.secure.two_party.lattice.parameters import FEATURES, PRIME_BITS, PRODUCTS
from vertikal.secure.two_party.lattice.polynomials import PolynomialRing
from vertikal.secure.two_party.wire_words import pack, unpack

ROWS, WIDTH = 96, 64
PHASES = draw_phases(ROWS, WIDTH, 2, names=NAMES)


def test_a_gradient_with_all_weight_on_one_row_is_its_features():
    """As with a dealer; the rest of each number is the helper's noise, and they are counted."""
    read = []

    def program(hidden):
        for row in range(ROWS):
            read.append(hidden.product("adjoint", np.eye(ROWS)[:, [row]])[:, 0])

    session = hide_between_two(PHASES, program, gradients=10**6, gradient_bits=14, bits_per_row=2)
    assert isinstance(session.outcome.errors["bob"], PassesUsedUp)
    assert len(read) == ROWS * 2 // 14
    error = np.array(read) - cosines(PHASES)[: len(read)]
    # 14 bits of each coefficient are about 11 of a feature, beside errors of 0.8 %.
    assert 0.006 < error.std() < 0.01


@pytest.mark.parametrize("step", ["forward", "cosines"])
def test_whatever_is_sent_comes_back_uniform(step):
    """Zeros in place of ciphertexts: phases are then c1·s, and no word says more than its bits."""
    zeros = changing(step, np.zeros_like)
    session = hide_between_two(
        PHASES,
        lambda hidden: hidden.product("forward", np.ones((WIDTH, 4)) / WIDTH),
        value_bits=6,
        wires={"ada": zeros},
    )
    seen = frames(session)
    check_uniform(seen["bob", "features/hidden"])


@pytest.mark.parametrize("parameters", [FEATURES, PRODUCTS], ids=["features", "products"])
@pytest.mark.parametrize("power", [0, 30])
def test_a_public_key_that_would_show_the_helpers_secret_is_refused(parameters, power):
    """With b = 2^30 the secret u stands in c0 above what words round off; with b = 1 below."""
    ring = PolynomialRing(parameters)
    bits = proof_bits(ring.modulus)

    def work(mesh):
        keys = agree(mesh, prg.fresh_key(), job="j", version="1", settings_digest="s", rows=1)
        if mesh.me == ROLES.helper:
            return CiphertextLink(mesh, keys, ROLES, ring, "test").me
        b = np.zeros((len(ring.primes), 1, ring.degree), np.uint32)
        for limb, prime in zip(b, ring.primes, strict=True):
            limb[0, 0] = pow(2, power, prime)
        tag = ROLES.tag("test/key")
        mesh.send("bob", tag, pack(b, PRIME_BITS))
        mesh.recv("bob", f"{tag}/proof")
        packed = np.asarray(mesh.recv("bob", f"{tag}/proof/c0"))
        c0 = ring.scaled(unpack(packed, (1, ring.degree), EXACT_BITS), EXACT_BITS)
        # The best guess: what is added to the numbers, 2^power·u, is below their lowest bit.
        guess = ring.fractions(c0, bits).astype("<u8")
        answer = hashlib.sha256(b"answer" + guess.tobytes()).digest()
        mesh.send("bob", f"{tag}/proof/answer", np.frombuffer(answer, np.uint8))
        return guess

    outcome = run(local_meshes(NAMES, 20.0), work)
    assert 1 < ring.modulus >> (bits + 1) < 1 << 30
    if power == 0:
        assert outcome.unwrap()["bob"] == "bob"
    else:
        assert "ada cannot read what was encrypted under its public key" in str(
            outcome.errors["bob"]
        )


@pytest.mark.parametrize(("digit", "refused"), [(0, False), (7, True)])
def test_a_switching_key_that_would_show_digits_of_the_helpers_numbers_is_refused(digit, refused):
    """With 2^digit·2^9 on one b of the key, a digit times that much stands in every c0.

    For digit 0 this is 2^13 at most, as large as the key's own errors are together, and below what
    words round off; for digit 7 it is a bit of words.
    """
    added = 1 << (9 + digit)

    def meddle(packed):
        shape = (len(FEATURES.primes), 4, 4 * DIGITS, FEATURES.degree)
        residues = unpack(packed, shape, PRIME_BITS)
        for limb, prime in zip(residues, FEATURES.primes, strict=True):
            limb[0, 0, 0] = (int(limb[0, 0, 0]) + added) % prime
        return pack(residues, PRIME_BITS)

    phases = draw_phases(1024, 8, names=NAMES)
    session = hide_between_two(
        phases, lambda _: "done", wires={"ada": changing("switching", meddle)}
    )
    if refused:
        # An honest label party finds that the proof does not fit, before it answers.
        assert "did not encrypt under the public key" in str(session.outcome.errors["ada"])
        assert not frames(session)["ada", "features/cosines"]
    else:
        assert session.result == "done"


def test_who_cannot_read_what_was_switched_gets_no_answer():
    """The label party that meddled guesses the hash: the helper goes on with the right one only."""
    phases = draw_phases(1024, 8, names=NAMES)
    wires = {"ada": changing("features/key/proof/answer", lambda packed: packed ^ np.uint8(1))}
    session = hide_between_two(phases, lambda _: None, wires=wires)
    assert "cannot read what was encrypted" in str(session.outcome.errors["bob"])
    assert ("bob", "features/hidden") not in frames(session)


def test_a_label_party_tells_nothing_of_what_the_helper_has_not_encrypted():
    """Or the helper could have anything decrypted, 2^30·s first of all."""
    for step in ("proof", "c0", "c1"):
        wires = {"bob": changing(step, lambda packed: packed ^ np.uint8(85))}
        session = hide_between_two(PHASES, lambda _: None, wires=wires)
        assert "did not encrypt under the public key" in str(session.outcome.errors["ada"])
        assert ("ada", "features/key/proof/answer") not in frames(session)


def test_the_same_question_twice_has_other_noise_and_other_numbers():
    one = np.ones((WIDTH, 1))
    session = hide_between_two(
        PHASES,
        lambda hidden: [hidden.product("forward", one) for _ in range(2)],
        value_bits=6,
    )
    first, second = session.result
    # Twice uniform noise of 2^-6 of full scale, which is 64 and a margin of 5 %; the deviation of
    # 96 rows is right to 6 %, so that five times as much leaves no run to chance.
    assert 0.75 < (first - second).std() / np.sqrt(2 / 3) < 1.4
    answers = frames(session)["bob", "products/forward/answer/hidden"]
    assert not np.array_equal(*answers)
