"""Key agreement between each pair of parties: X25519, then HKDF-SHA256 bound to its use.

Every run makes fresh key pairs, so a key, and with it every pad, belongs to one run of one job. The
same round tells all parties that they run the same thing: protocol and library version, settings,
number of rows. That the mesh delivers a name's messages from that party is the mesh's promise.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from vertikal.errors import AgreementError, PadReused
from vertikal.mesh.interface import Mesh
from vertikal.mesh.wire import PROTOCOL_VERSION
from vertikal.records import convert
from vertikal.secure.keys.keystream import KEY_BYTES
from vertikal.secure.keys.prg import encode_texts

TAG = "agreement"


class KeyOffer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A party's public key and what it is about to run: its first message to each other party."""

    protocol: int
    version: str
    job: str
    settings: str
    rows: int
    key: bytes
    direct: bool = False
    """Workers of this party may be linked with those of others; left out if they may not."""


_COMPARED = {
    "protocol": "protocol version",
    "version": "library version",
    "job": "job",
    "settings": "digest of the settings",
    "rows": "number of rows",
}


@dataclass(frozen=True)
class PairKeys:
    """The keys that one party shares with each of its peers, for one run of one job."""

    me: str
    job: str
    shared: Mapping[str, bytes]
    direct: tuple[str, ...] = ()
    """Peers whose workers may be linked with those of others."""
    _claimed: set[tuple[str, ...]] = field(default_factory=set, repr=False, compare=False)

    def claim(self, peer: str, *purpose: str) -> bytes:
        """Derive a `key`, and refuse to derive it again.

        Two sequences of pads under one key would hand out the same pads.
        """
        if (peer, *purpose) in self._claimed:
            raise PadReused(f"{self.me}: the key with {peer} for {purpose} is in use already")
        self._claimed.add((peer, *purpose))
        return self.key(peer, *purpose)

    def key(self, peer: str, *purpose: str) -> bytes:
        """Derive 32 bytes that only this pair can derive, bound to job, pair and purpose."""
        pair = sorted((self.me, peer))
        info = encode_texts("vertikal", str(PROTOCOL_VERSION), self.job, *pair, *purpose)
        return HKDF(hashes.SHA256(), KEY_BYTES, salt=None, info=info).derive(self.shared[peer])

    def __repr__(self) -> str:
        return f"PairKeys(me={self.me!r}, job={self.job!r}, peers={sorted(self.shared)})"


def agree(
    mesh: Mesh,
    private_key: bytes,
    *,
    job: str,
    version: str,
    settings_digest: str,
    rows: int,
    direct: bool = False,
) -> PairKeys:
    """Exchange public keys with all peers and check that everybody runs the same job.

    ``private_key`` is 32 bytes from the operating system, used for this run only. ``direct`` offers
    links between workers.
    """
    own = X25519PrivateKey.from_private_bytes(private_key)
    public = own.public_key().public_bytes_raw()
    mine = KeyOffer(PROTOCOL_VERSION, version, job, settings_digest, rows, public, direct)
    told = msgspec.structs.asdict(mine)
    if not direct:
        del told["direct"]
    for peer in mesh.peers:
        mesh.send(peer, TAG, told)
    offers = {peer: _offer(mesh, peer) for peer in mesh.peers}
    for peer, theirs in offers.items():
        _compare(mesh.me, mine, peer, theirs)
    keys = [public, *(offer.key for offer in offers.values())]
    if len(set(keys)) != len(keys):
        raise AgreementError(f"{mesh.me}: two parties sent the same public key")
    shared = {}
    for peer, theirs in offers.items():
        try:
            secret = own.exchange(X25519PublicKey.from_public_bytes(theirs.key))
        except (ValueError, UnsupportedAlgorithm) as error:
            raise AgreementError(
                f"{mesh.me}: the public key of {peer} is unusable: {error}"
            ) from None
        # Both public keys enter, in one order, so that the key is bound to this exchange.
        shared[peer] = hashlib.sha256(b"".join(sorted((public, theirs.key))) + secret).digest()
    return PairKeys(mesh.me, job, shared, tuple(p for p in offers if offers[p].direct))


def _offer(mesh: Mesh, peer: str) -> KeyOffer:
    message: Any = mesh.recv(peer, TAG)
    try:
        return convert(message, KeyOffer)
    except msgspec.ValidationError as error:
        raise AgreementError(f"{mesh.me}: {peer} introduced itself wrongly: {error}") from None


def _compare(me: str, mine: KeyOffer, peer: str, theirs: KeyOffer) -> None:
    for name, what in _COMPARED.items():
        ours, other = getattr(mine, name), getattr(theirs, name)
        if ours != other:
            raise AgreementError(
                f"{me}: {what} is {ours!r} here and {other!r} at {peer}; "
                "all parties must run the same job on the same rows"
            )
