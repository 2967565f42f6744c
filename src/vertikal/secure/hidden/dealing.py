"""Hidden phases, step 0: the dealer's keys, and the way of its numbers to the helper.

What label party or helper know by seed is grown from a key that the dealer drew and told that one
party. So all that the dealer has to send is a function of two keys and of public sizes, and can be
computed before there is a run (`secure.dealing_ahead`). A correlation that was prepared so serves
one run.

Proof sketch. A key travels once, under a pad of its pair (`padded_link`). To whoever lacks it,
arrays grown from it are uniform; label party and helper have one key each, never the other's.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from copy import copy
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from vertikal.errors import PadReused
from vertikal.mesh.interface import Mesh
from vertikal.secure.hidden.padded_link import PaddedLink
from vertikal.secure.hidden.roles import Roles
from vertikal.secure.keys.agreement import PairKeys
from vertikal.secure.keys.keystream import KEY_BYTES
from vertikal.secure.keys.prg import fresh_key
from vertikal.secure.keys.seeds import SeedSequence

Array = npt.NDArray[Any]


class PreparedCorrelation(Protocol):
    """The keys that a dealer drew ahead of one run, and all its arrays in the order of sending."""

    @property
    def keys(self) -> Mapping[str, bytes]: ...

    def take(self, step: str, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array: ...


class Dealing:
    """One role's end of the dealing. All three roles make theirs at the same point of the run."""

    def __init__(
        self, mesh: Mesh, keys: PairKeys, roles: Roles, prepared: PreparedCorrelation | None = None
    ) -> None:
        self._roles = roles
        self._prepared = prepared
        self._mesh, self._pairs = mesh, keys
        label_party, helper, dealer = roles.names
        if mesh.me == dealer:
            links = {
                name: PaddedLink(mesh, keys, name, roles, "dealt") for name in (label_party, helper)
            }
            drawn = prepared.keys if prepared else draw_keys(roles)
            for name, link in links.items():
                link.send("key", np.frombuffer(drawn[name], np.uint8).copy())
            self._link = links[helper]
        else:
            self._link = PaddedLink(mesh, keys, dealer, roles, "dealt")
            drawn = {dealer: self._link.recv("key", np.uint8, (KEY_BYTES,)).tobytes()}
        self._keys = dealt_keys(mesh.me, drawn)
        self._repetition = RepetitionCheck(mesh.me, dealer)

    def of_rows(self, first: int) -> Dealing:
        """Return the same dealing for one block of rows (`Roles.of_rows`)."""
        there = copy(self)
        there._roles = self._roles.of_rows(first)
        there._link = self._linked(there._roles)
        return there

    def _linked(self, roles: Roles) -> PaddedLink:
        peer = roles.helper if self._mesh.me == roles.dealer else roles.dealer
        return PaddedLink(self._mesh, self._pairs, peer, roles, "dealt")

    @property
    def prepared(self) -> bool:
        """T: True if the arrays were prepared ahead."""
        return self._prepared is not None

    def seeds(self, what: str, peer: str | None = None) -> SeedSequence:
        """A and H: grow arrays in common with T. T: grow arrays in common with ``peer``."""
        return SeedSequence(self._keys, peer or self._roles.dealer, what, *self._roles.purpose)

    def send(self, step: str, values: Array) -> None:
        """T: send numbers to H; ``values`` is overwritten."""
        self._link.send(step, values)

    def pass_on(self, step: str, shape: tuple[int, ...], dtype: npt.DTypeLike) -> None:
        """T: pass the next prepared array on to H."""
        if self._prepared is not None:
            self._link.send(step, self._prepared.take(step, shape, dtype))

    def recv(self, step: str, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> Array:
        """H: receive numbers from T, which must not have come before."""
        return self._repetition.check(self._link.recv(step, dtype, shape))


def draw_keys(roles: Roles) -> dict[str, bytes]:
    """T: draw a key with the label party and one with the helper, from the operating system."""
    return {roles.label_party: fresh_key(), roles.helper: fresh_key()}


def dealt_keys(me: str, drawn: Mapping[str, bytes]) -> PairKeys:
    """Put keys by peer into the form that seeds are grown from."""
    return PairKeys(me, "dealt", drawn)


_ENOUGH = 4096
_SHORTEST = 16
"""Bytes below which equal uniform arrays may happen by chance."""


class RepetitionCheck:
    """Refuses correlated randomness that ``dealer`` sends to ``me`` a second time.

    Used twice, a mask gives away the difference of what it masks. An honest dealer cannot repeat
    one, since its seeds are handed out once; here the receiver makes sure of it, by a digest of the
    first bytes of each array.
    """

    def __init__(self, me: str, dealer: str) -> None:
        self._me = me
        self._dealer = dealer
        self._seen: set[bytes] = set()
        self._lock = threading.Lock()

    def check(self, values: Array) -> Array:
        """Return ``values``, unless they came before."""
        flat = np.ascontiguousarray(values).reshape(-1)
        head = flat[: _ENOUGH // flat.itemsize].tobytes()
        if len(head) >= _SHORTEST:
            digest = hashlib.sha256(head).digest()
            with self._lock:
                known = digest in self._seen
                self._seen.add(digest)
            if known:
                raise PadReused(
                    f"{self._me}: the dealer {self._dealer} sent the same correlation twice; "
                    "nothing was computed with it"
                )
        return values
