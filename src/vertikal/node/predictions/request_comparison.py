"""Comparison of requests for predictions, among the parties that are told their ids.

A leader that deviates could ask one party about one person and another party about somebody else:
each would find its own list in order, and the score would be about one party's row by itself. So
all that are told ids compare a digest of the ids and of the rows chosen, each with each and not by
way of the leader, before anything is computed from their rows.

The digest is an HMAC-SHA256 under a key made of a fresh salt of every member for this session. Ids
are easy to guess, so a plain digest, or one under a salt that is written beside it, would let its
reader try ids. The salts go from member to member only, encrypted from end to end: a relay, a
dealer without data and whoever reads an audit log cannot try any. Members have the ids anyway. Two
lists with one digest would be a collision of SHA-256, also for somebody who chooses its salt last.
The number of the request is in the digest too, so that no answer to an earlier one serves again.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

from vertikal.errors import AgreementError, MeshError
from vertikal.party.party import Party
from vertikal.privacy.ledger import Disclosure
from vertikal.secure.keys.keystream import KEY_BYTES
from vertikal.secure.keys.prg import encode_texts, fresh_key

SALT = Disclosure(
    "request salts",
    "a fresh random number of each party, for this session",
    "nothing: it keeps digests of requests from whoever is not told the ids",
    masked=False,
)
DIGEST = Disclosure(
    "request digests",
    "a digest of the ids asked for and of the rows chosen, under everybody's salts",
    "whether all parties were asked for the same rows",
    masked=False,
)


class RequestComparison:
    """One member's part in one session: for each request `digest`, then `compare`.

    ``members`` are the parties that are told ids; all of them make this object in step.
    """

    def __init__(self, party: Party, members: tuple[str, ...]) -> None:
        self._party = party
        self._others = tuple(name for name in members if name != party.name)
        self._number = 0
        salts = {party.name: fresh_key()}
        for name in self._others:
            party.tell(name, {"bytes": salts[party.name]}, SALT)
        for name in self._others:
            salts[name] = self._hear(name, SALT)
        listed = b"".join(encode_texts(name) + salts[name] for name in sorted(salts))
        self._key = hashlib.sha256(encode_texts("request") + listed).digest()

    def digest(self, ids: tuple[str, ...], degraded: bool) -> bytes:
        """Compute the digest of the next request, which audit logs keep."""
        self._number += 1
        kind = "degraded" if degraded else "common"
        return self._mac(encode_texts("ids", str(self._number), kind, *ids))

    def compare(self, digest: bytes, chosen: Any) -> None:
        """Raise AgreementError unless all members have this digest and these rows chosen.

        A session that breaks off before all were heard raises what ended it.
        """
        flags = chosen.astype("uint8").tobytes()
        mine = self._mac(encode_texts("chosen") + digest + flags)
        for name in self._others:
            self._party.tell(name, {"bytes": mine}, DIGEST)
        differing, broken = [], None
        for name in self._others:
            try:
                if not hmac.compare_digest(self._hear(name, DIGEST), mine):
                    differing.append(name)
            except MeshError as error:
                # Whoever hears of a difference first ends the session, before the others hear it.
                broken = error
                break
        if differing:
            raise AgreementError(
                f"{self._party.name}: this request of {self._party.leader} is another one at "
                f"{' and '.join(differing)}, with other ids or other rows chosen; nothing was "
                "computed. Compare the requests in the audit logs"
            ) from broken
        if broken is not None:
            raise broken

    def _mac(self, message: bytes) -> bytes:
        return hmac.digest(self._key, message, "sha256")

    def _hear(self, name: str, disclosure: Disclosure) -> bytes:
        told: Any = self._party.hear(name, disclosure)
        found = told.get("bytes") if isinstance(told, dict) else None
        if not isinstance(found, bytes) or len(found) != KEY_BYTES:
            raise AgreementError(
                f"{self._party.name}: {name} must send {KEY_BYTES} bytes as {disclosure.name}, got "
                "something else"
            )
        return found
