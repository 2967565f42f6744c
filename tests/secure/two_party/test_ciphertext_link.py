"""The link: ciphertexts of which one half is sent, and what hides the other half of an answer."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tests.conformance.running import run
from tests.conformance.uniformity import THRESHOLD
from tests.naive.two_party import whole
from tests.secure.two_party.two_party_run import NAMES, ROLES
from vertikal.mesh import local_meshes
from vertikal.secure.keys import prg
from vertikal.secure.keys.agreement import agree
from vertikal.secure.two_party.ciphertext_link import CiphertextLink
from vertikal.secure.two_party.lattice.parameters import DEVIATION, FEATURES
from vertikal.secure.two_party.lattice.polynomials import PolynomialRing

RING = PolynomialRing(FEATURES)
COUNT = 4
MESSAGE = np.arange(COUNT * RING.degree).reshape(COUNT, RING.degree) * 16
BITS = 52
"""More than the modulus has: nothing is rounded."""
FEWER = 44
"""Three bits less than the modulus has."""


@pytest.fixture(scope="module")
def sent():
    """Return what the helper has after a message, hidden twice, and what the label party reads."""
    back = {}

    def work(mesh):
        keys = agree(mesh, prg.fresh_key(), job="j", version="1", settings_digest="s", rows=1)
        link = CiphertextLink(mesh, keys, ROLES, RING, "test")
        if mesh.me == ROLES.label_party:
            phases = []
            for bits in (BITS, FEWER):
                link.send_encrypted("message", RING.lift(MESSAGE), bits)
                c0 = mesh.recv("bob", "c0")
                phases.append(RING.add(c0, link.receive_hidden("c1", COUNT, BITS)))
            return phases
        back["nothing"] = [
            link.hide(zero, zero)
            for zero in np.zeros((2, len(RING.primes), COUNT, RING.degree), np.uint32)
        ]
        for bits in (BITS, FEWER):
            c0, c1 = link.hide(*link.receive_encrypted("message", COUNT, bits))
            mesh.send("ada", "c0", RING.coefficients(c0))
            link.send_hidden("c1", c1, BITS)
        return link

    outcome = run(local_meshes(NAMES, 20.0), work).unwrap()
    return outcome["ada"], back["nothing"]


def is_uniform(coefficients):
    for limb, prime in zip(coefficients, RING.primes, strict=True):
        counts = np.bincount(limb.ravel().astype(np.int64) * 64 // prime, minlength=64)
        if stats.chisquare(counts).pvalue <= THRESHOLD:
            return False
    return True


def test_a_hidden_ciphertext_has_the_same_message(sent):
    (phase, _), _ = sent
    error = (whole(phase, RING.primes) - MESSAGE).astype(float)
    # The first error, u times that of the public key, and the one on c1 times the key.
    expected = DEVIATION * np.sqrt(1 + 2 * RING.degree * 2 / 3)
    assert 0.9 < error.std() / expected < 1.1


def test_rounding_adds_an_error_of_its_own_length(sent):
    (phase, rounded), _ = sent
    exact, error = (
        (whole(one, RING.primes) - MESSAGE).astype(float).std() for one in (phase, rounded)
    )
    added = RING.modulus / 2**FEWER / np.sqrt(12)
    assert 0.9 < error / np.hypot(exact, added) < 1.1


def test_what_is_added_to_hide_is_uniform_and_never_the_same(sent):
    _, ((_, first), (_, second)) = sent
    difference = RING.add(first, RING.negative(second))
    for hiding in (first, second, difference):
        assert is_uniform(RING.coefficients(hiding.copy()))


def test_it_is_no_multiple_of_the_public_key_alone(sent):
    """Without an error on c1 the quotient of c0 and c1 would be that of the public key."""
    _, ((b_first, a_first), (b_second, a_second)) = sent
    zero = np.zeros_like(a_first)
    left = RING.multiply_add(b_first, a_second, zero)
    right = RING.multiply_add(b_second, a_first, zero)
    assert is_uniform(RING.coefficients(RING.add(left, RING.negative(right))))
