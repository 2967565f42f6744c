"""The first contact of a pair: each introduces itself, signed, and both compare what they run.

Nothing of a program travels before protocol, version, job, federation and capacity agree.
"""

from __future__ import annotations

from vertikal.errors import AgreementError, PeerStopped, WireError
from vertikal.mesh.packets import envelope
from vertikal.mesh.packets.envelope import Hello, SignedHello
from vertikal.mesh.packets.pair import Pair
from vertikal.mesh.packets.security import Security

_COMPARED = {
    "protocol": "protocol version",
    "version": "library version",
    "job": "job",
    "federation": "federation (names and fingerprints)",
    "capacity": "capacity",
}


def introduction(hello: Hello, security: Security) -> bytes:
    """Sign a hello and encode it for the way."""
    said = envelope.encode(hello)
    return envelope.encode(SignedHello(said, security.sign(said)))


def meet(me: str, pair: Pair, body: memoryview, security: Security) -> bool:
    """Check a peer's introduction; True for its first one, an error for a wrong one."""
    signed = envelope.decode(body, SignedHello)
    hello = envelope.decode(signed.hello, Hello)
    security.verify(pair.peer, signed.hello, signed.signature)
    if (hello.sender, hello.receiver) != (pair.peer, me):
        raise WireError(f"a hello from {hello.sender} to {hello.receiver}")
    if pair.ready:
        if hello.session != pair.session:
            raise PeerStopped(
                f"{me}: {pair.peer} was started again and has lost its part of the job; start all "
                "parties again"
            )
        return False
    said = envelope.decode(pair.hello, SignedHello).hello
    mine = envelope.decode(said, Hello)
    for name, what in _COMPARED.items():
        ours, other = getattr(mine, name), getattr(hello, name)
        if ours != other:
            raise AgreementError(
                f"{me}: {what} is {ours!r} here and {other!r} at {pair.peer}; all parties must "
                "run the same version, job and federation file"
            )
    if pair.encrypted:
        both = b"".join(sorted((said, signed.hello)))
        pair.channel = security.channel(pair.peer, hello.key, both)
    pair.session = hello.session
    return True
