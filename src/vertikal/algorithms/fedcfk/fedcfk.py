"""FedCFK: a kernel recommender whose users keep their ratings (Polato et al., ESANN).

Phase 1: the server learns by secure aggregation how many of the users present have rated items i
and j together, and keeps the largest count of all rounds (`ServerKernel`). Phase 2: each user asks
for rows of the kernel behind a cover (`Requests`), solves its own programme (KOMD), and ranks the
items that it has not rated (`scores`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.errors import InputError
from vertikal.kernels.dot_product import normalised
from vertikal.solvers.komd import komd

Array = npt.NDArray[Any]


class ServerKernel:
    """Item kernel as the server estimates it; it only improves (SecGram 3.1)."""

    def __init__(self, items: int) -> None:
        self.counts = np.zeros((items, items), np.int64)
        self.rounds = 0

    def improve(self, counts: Array) -> None:
        """Keep the larger of the old and the new count, entry by entry.

        A count over some users never exceeds that over all, so the larger count is the better one.
        That is true of ratings that are zeros and ones; anything else is refused.
        """
        diagonal = counts.diagonal()
        binary = counts.min(initial=0) >= 0 and (counts <= diagonal[:, None]).all()
        if counts.shape != self.counts.shape or counts.dtype.kind not in "iu" or not binary:
            raise InputError.of(
                "counts",
                f"{self.counts.shape} counts of users with zeros and ones, none above its diagonal",
                f"{counts.dtype} {counts.shape}",
            )
        np.maximum(self.counts, counts, out=self.counts)
        self.rounds += 1

    def normalised(self) -> Array:
        """Return K_ij / √(K_ii·K_jj), float64."""
        lengths = self.counts.diagonal()
        return normalised(self.counts, lengths, lengths)


@dataclass(frozen=True)
class Requests:
    """Requests of one user for the rows of its items, which do not name them (SecGram 3.2).

    The paper adds fresh decoys to each request, so that a reader of two requests can intersect
    them. Here a user draws its decoys once: ``cover`` holds its items and the decoys, and every
    request is a random part of the cover, in which an item and a decoy are equally likely. Requests
    show the cover and no more; some contain no item of the user at all. A cover does not hide that
    a user's items are more alike than its decoys.
    """

    cover: Array  # item numbers, sorted
    share: float

    @classmethod
    def draw(
        cls, positives: Array, popularity: Array, ratio: float, share: float, uniforms: Array
    ) -> Requests:
        """Draw a cover ``ratio`` times as large as ``positives``, with decoys by popularity.

        ``uniforms`` (items,) are secret numbers in (0, 1); ``popularity`` (items,) is public.
        """
        if not ratio >= 1 or not 0 < share <= 1:
            raise InputError.of("ratio and share", "at least 1, and in (0, 1]", (ratio, share))
        others = np.setdiff1d(np.arange(len(popularity)), positives)
        wanted = min(len(others), round(len(positives) * (ratio - 1)))
        # The smallest of exponential numbers of these rates: a draw without replacement.
        rates = np.maximum(popularity[others].astype(np.float64), 1e-9)
        arrivals = -np.log(uniforms[others]) / rates
        decoys = others[np.argsort(arrivals)[:wanted]]
        return cls(np.sort(np.concatenate((positives, decoys))).astype(np.int64), share)

    def next(self, uniforms: Array) -> Array:
        """Draw one request, with the same chance for each row of the cover.

        ``uniforms`` (cover,) are secret numbers in (0, 1).
        """
        return self.cover[uniforms < self.share]


@dataclass
class UserRows:
    """Rows of the kernel that a user has received, the latest of each."""

    positives: Array
    rows: dict[int, Array]

    def receive(self, asked: Array, answer: Array) -> None:
        for item, row in zip(asked.tolist(), answer, strict=True):
            self.rows[item] = row

    @property
    def usable(self) -> Array:
        """Positive items whose rows have been received."""
        return np.array([i for i in self.positives.tolist() if i in self.rows], np.int64)

    def scores(self, means: Array, penalty: float, tolerance: float = 1e-6) -> Array:
        """Score every item, by KOMD on the rows that have been received."""
        usable = self.usable
        if not len(usable):
            return np.zeros(len(means))
        held = np.stack([self.rows[i] for i in usable.tolist()])  # (positives, items)
        small = np.arange(len(usable))
        weights = komd(held[:, usable], means[usable], [small], penalty, tolerance)[0]
        return np.asarray(weights @ held - means)


def scores(
    kernel: Array, means: Array, positives: list[Array], penalty: float, tolerance: float = 1e-6
) -> Array:
    """Score the items for all users at once by CF-KOMD: K·a − q, (users, items).

    A user without items gets zeros.
    """
    weights = komd(kernel, means, positives, penalty, tolerance)
    values = np.zeros((len(positives), len(means)))
    for user, (p, a) in enumerate(zip(positives, weights, strict=True)):
        if len(p):
            values[user] = a @ kernel[p] - means
    return values


def ask_as_published(
    user: UserRows,
    fresh: Callable[[], Requests],
    serve: Callable[[Array], Array],
    draw: Callable[[int], Array],
) -> list[Array]:
    """Send requests with fresh decoys each until all rows of the user's items have come.

    As published, "always different sets of items": a server that counts finds the items, which come
    again and again.
    """
    seen: list[Array] = []
    while len(user.usable) < len(user.positives):
        requests = fresh()
        asked = requests.next(draw(len(requests.cover)))
        seen.append(asked)
        user.receive(asked, serve(asked))
    return seen


def ask_until_complete(
    user: UserRows,
    requests: Requests,
    serve: Callable[[Array], Array],
    draw: Callable[[int], Array],
) -> list[Array]:
    """Send requests until all rows of the cover have come, and return the requests."""
    seen: list[Array] = []
    while not np.isin(requests.cover, list(user.rows)).all():
        asked = requests.next(draw(len(requests.cover)))
        seen.append(asked)
        user.receive(asked, serve(asked))
    return seen
