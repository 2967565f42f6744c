"""Neighbours: the clients with whom a client shares pads and secrets, all others or k of them.

With few clients each pair agrees on a pad. With many, Bell, Bonawitz, Gascón, Lepoint and Raykova
(2020) let each client deal with k of them only. Clients are put on a circle in an order that a
hash of a seed and their names decides, and each is joined to the k/2 next on either side (a Harary
graph). The seed comes from coins that are committed to before any is shown (`coins`): who knew it
could choose names that surround a victim. `plan_neighbours` finds the smallest k for which, with n
clients of which at most a share γ is corrupt and a share δ drops out,

    no client has as many corrupt neighbours as the threshold        but with chance 2^-σ,
    the honest clients that stay hang together                       but with chance 2^-σ,
    every client keeps as many neighbours as the threshold           but with chance 2^-η.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

from vertikal.errors import InputError, SecrecyError
from vertikal.secure.keys.prg import encode_texts

SECURITY = 40
CORRECTNESS = 30
CORRUPT = 0.1
DROPPING = 0.15


@dataclass(frozen=True)
class NeighbourPlan:
    """k and t: each client has ``degree`` neighbours, and ``threshold`` holders open a secret.

    A client holds a share of its own secrets too, so there are ``degree`` + 1 holders of each.
    """

    clients: int
    degree: int
    threshold: int

    def __post_init__(self) -> None:
        if self.clients < 2:
            raise InputError.of("clients", "at least 2", self.clients)
        complete = self.degree == self.clients - 1
        if not complete and (self.degree % 2 or not 2 <= self.degree < self.clients):
            raise InputError.of(
                "degree", f"even, or {self.clients - 1} (everybody with everybody)", self.degree
            )
        # Two sets of so many holders overlap: no two halves can open both secrets of a client.
        lowest = (self.degree + 1) // 2 + 1
        if not lowest <= self.threshold <= self.degree + 1:
            raise InputError.of(
                "threshold",
                f"from {lowest} to {self.degree + 1}, more than half of the holders",
                self.threshold,
            )

    @property
    def complete(self) -> bool:
        return self.degree == self.clients - 1


def everybody(clients: int, threshold: int | None = None) -> NeighbourPlan:
    """Join each pair of clients; two thirds of them open a secret unless said otherwise."""
    return NeighbourPlan(
        clients, clients - 1, 2 * clients // 3 + 1 if threshold is None else threshold
    )


def plan_neighbours(
    clients: int,
    *,
    corrupt: float = CORRUPT,
    dropping: float = DROPPING,
    security: int = SECURITY,
    correctness: int = CORRECTNESS,
) -> NeighbourPlan:
    """Find the smallest number of neighbours that is safe; everybody where that is no fewer."""
    for name, share in (("corrupt", corrupt), ("dropping", dropping)):
        if not 0 <= share < 1 or corrupt + dropping >= 1:
            raise InputError.of(name, "a share of the clients, in all below 1", share)
    for degree in range(2, clients - 1, 2):
        threshold = _threshold(clients, degree, corrupt, dropping, security, correctness)
        if threshold is not None:
            return NeighbourPlan(clients, degree, threshold)
    return everybody(clients, max(clients // 2 + 1, math.floor((1 - dropping) * clients)))


def _threshold(
    clients: int, degree: int, corrupt: float, dropping: float, security: int, correctness: int
) -> int | None:
    """Find the lowest threshold that meets all three conditions with this degree, if any does."""
    union = math.log2(clients)
    lost = corrupt + dropping
    # A circle falls apart only where two separate runs of k/2 neighbours are gone.
    if lost and 2 * union - 1 + degree * math.log2(lost) > -security:
        return None
    bad, gone = math.floor(corrupt * clients), math.floor(dropping * clients)
    # The last threshold at which all but 2^-η find enough neighbours still there.
    bound = -(correctness + union)
    highest = degree - next(
        k for k in range(degree + 1) if log2_more_than(k, clients - 1, gone, degree) <= bound
    )
    lowest = (degree + 1) // 2 + 1
    for threshold in range(lowest, highest + 1):
        if log2_more_than(threshold - 1, clients - 1, bad, degree) <= -(security + union):
            return threshold
    return None


@lru_cache(maxsize=64)
def check_secrecy(plan: NeighbourPlan, corrupt: float = CORRUPT, security: int = SECURITY) -> None:
    """Refuse a plan by which so many corrupt clients would open another's vector.

    A client asks this of the plan that a server announces. Whether enough clients stay is the
    server's concern.
    """
    if plan.complete:
        return
    union = math.log2(plan.clients)
    bad = math.floor(corrupt * plan.clients)
    surrounded = log2_more_than(plan.threshold - 1, plan.clients - 1, bad, plan.degree)
    apart = 2 * union - 1 + plan.degree * math.log2(corrupt) if corrupt else -math.inf
    if max(surrounded + union, apart) > -security:
        raise SecrecyError(
            f"plan of {plan.degree} neighbours and threshold {plan.threshold} for {plan.clients} "
            f"clients is not safe against {corrupt:.0%} corrupt ones; take more neighbours"
        )


def log2_more_than(count: int, population: int, marked: int, drawn: int) -> float:
    """Compute log2 of the chance that more than ``count`` of ``drawn`` clients are marked.

    The tail of the hypergeometric distribution, its terms added in logarithms.
    """
    whole = _log_choose(population, drawn)
    terms = [
        _log_choose(marked, k) + _log_choose(population - marked, drawn - k) - whole
        for k in range(max(count + 1, drawn - (population - marked)), min(marked, drawn) + 1)
    ]
    if not terms:
        return -math.inf
    top = max(terms)
    return (top + math.log(sum(math.exp(term - top) for term in terms))) / math.log(2)


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


class Neighbours:
    """The graph of one job: whoever knows the seed and the clients can draw it."""

    def __init__(self, seed: bytes, clients: tuple[str, ...], plan: NeighbourPlan) -> None:
        if len(set(clients)) != len(clients):
            raise InputError.of("clients", "distinct names", list(clients))
        if plan.clients != len(clients):
            raise InputError.of("plan", f"for {len(clients)} clients", plan.clients)
        self.plan = plan
        self.clients = clients
        self._circle = sorted(
            clients, key=lambda name: hashlib.sha256(seed + encode_texts("circle", name)).digest()
        )
        self._places = {name: place for place, name in enumerate(self._circle)}

    def of(self, client: str) -> tuple[str, ...]:
        """The neighbours of a client, without itself."""
        n, place = len(self._circle), self._places[client]
        if self.plan.complete:
            return tuple(name for name in self._circle if name != client)
        half = self.plan.degree // 2
        return tuple(self._circle[(place + step) % n] for step in range(-half, half + 1) if step)

    def place(self, client: str) -> int:
        """The place of a client on the circle, from 0 on."""
        return self._places[client]

    def slot(self, client: str, other: str) -> int | None:
        """Number ``other`` among the neighbours of ``client``, from 1 to k; None if it is none.

        The client itself has slot 0. Neighbours after it on the circle come first.
        """
        n, degree = len(self._circle), self.plan.degree
        if client not in self._places or other not in self._places:
            return None
        step = (self._places[other] - self._places[client]) % n
        if self.plan.complete or step <= degree // 2:
            return step
        return step - n + degree + 1 if step >= n - degree // 2 else None

    def at_slot(self, client: str, slot: int) -> str:
        """The neighbour with this slot."""
        n, degree = len(self._circle), self.plan.degree
        step = slot if self.plan.complete or slot <= degree // 2 else slot - degree - 1
        return self._circle[(self._places[client] + step) % n]

    def connected(self, remaining: Collection[str]) -> bool:
        """Check that pads join all who remain, so that only one sum opens."""
        places = sorted(self._places[name] for name in remaining)
        if self.plan.complete or len(places) < 2:
            return True
        after = [*places[1:], places[0] + len(self._circle)]
        reach = self.plan.degree // 2
        breaks = sum(b - a > reach for a, b in zip(places, after, strict=True))
        return breaks < 2
