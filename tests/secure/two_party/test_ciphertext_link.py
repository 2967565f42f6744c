"""The link: ciphertexts of which one half is sent, and what hides the other half of an answer."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tests.conformance.running import run
from tests.conformance.uniformity import THRESHOLD
from tests.secure.two_party.two_party_run import NAMES, ROLES
from vertikal.mesh import local_meshes
from vertikal.secure.keys import prg
from vertikal.secure.keys.agreement import agree
from vertikal.secure.two_party.ciphertext_link import CiphertextLink
from vertikal.secure.two_party.parameters import DEVIATION, FEATURES
from vertikal.secure.two_party.polynomials import PolynomialRing

RING = PolynomialRing(FEATURES)
COUNT = 4
MESSAGE = np.arange(COUNT * RING.degree).reshape(COUNT, RING.degree) * 16


@pytest.fixture(scope="module")
def sent():
    """Return what the helper has after a message, hidden twice, and what the label party reads."""
    back = {}

    def work(mesh):
        keys = agree(mesh, prg.fresh_key(), job="j", version="1", settings_digest="s", rows=1)
        link = CiphertextLink(mesh, keys, ROLES, RING, "test")
        if mesh.me == ROLES.label_party:
            link.send_encrypted("message", RING.lift(MESSAGE))
            c0, c1 = link.receive("c0", COUNT), link.receive("c1", COUNT)
            return RING.add(RING.coefficients(c0), link.times_key(c1))
        c0, c1 = link.receive_encrypted("message", COUNT)
        zero = np.zeros_like(c0)
        back["nothing"] = [link.hide(zero, zero) for _ in range(2)]
        hidden = link.hide(c0, c1)
        link.send("c0", hidden[0])
        link.send("c1", hidden[1])
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
    phase, _ = sent
    error = RING.small(phase) - MESSAGE
    # The first error, u times that of the public key, and the one on c1 times the key.
    expected = DEVIATION * np.sqrt(1 + 2 * RING.degree * 2 / 3)
    assert 0.9 < error.std() / expected < 1.1


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
