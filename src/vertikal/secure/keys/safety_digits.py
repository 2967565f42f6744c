"""Safety digits: a number that two parties read to each other, to see that both have true keys.

Whoever wrote the federation file may have given bank a key of its own under the name of shop, and
shop one under the name of bank. Then bank computes the digits of (bank, false shop) and shop those
of (false bank, shop), and the two numbers differ, unless the writer found two false keys that give
the same number. Among 40 digits that takes 2^66 keys, each stretched by `ROUNDS` hashes.
"""

from __future__ import annotations

import hashlib

from vertikal.secure.keys.identity import Certificate
from vertikal.secure.keys.prg import encode_texts

GROUPS = 8
GROUP_DIGITS = 5
ROUNDS = 100_000
_USE = "vertikal safety digits"


def safety_digits(one: Certificate, other: Certificate) -> str:
    """Digits of a pair of parties, the same at both: 40 of them, in groups of five.

    They are derived by SHA-256 from both names and both fingerprints, in alphabetical order of the
    names. A new certificate over the same key changes nothing.
    """
    pair = sorted((party.name, party.fingerprint) for party in (one, other))
    texts = encode_texts(_USE, *(text for entry in pair for text in entry))
    raw = hashlib.pbkdf2_hmac("sha256", texts, _USE.encode(), ROUNDS)
    digits = f"{int.from_bytes(raw, 'big') % 10 ** (GROUPS * GROUP_DIGITS):040}"
    return " ".join(digits[at : at + GROUP_DIGITS] for at in range(0, len(digits), GROUP_DIGITS))
