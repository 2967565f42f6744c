"""FedCFK at a device: rows of the kernel behind a cover, the user's own programme, its best items.

The server sees requests for rows of a cover, of which a part are the user's items. A device draws
its cover once and keeps it. For items that the user has rated since, it is enlarged by these and
by as many decoys each as before; decoys that have become ratings change nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from vertikal.aggregation.device_folder import Cover
from vertikal.algorithms.fedcfk.fedcfk import Requests, UserRows, ask_until_complete
from vertikal.algorithms.fedcfk.settings import FedcfkSettings
from vertikal.errors import InputError
from vertikal.secure.keys.prg import derive_key, fresh_key, uniform_reals

Array = npt.NDArray[Any]


class KernelSource(Protocol):
    """Part of a `Device` that a recommender uses."""

    def items(self) -> list[str]: ...
    def means(self) -> tuple[int, Array, Array]: ...
    def rows(self, items: Array) -> Array: ...


class CoverKeeper(Protocol):
    """Part of a `DeviceFolder` that a recommender uses."""

    @property
    def cover(self) -> Cover: ...
    def keep_cover(self, cover: Cover) -> None: ...


@dataclass(frozen=True)
class Recommendation:
    """One item and its score: the higher, the more like those that the user has rated."""

    item: str
    score: float


@dataclass(frozen=True)
class Recommendations:
    """The best items that the user has not rated, and what the server was told for them."""

    items: tuple[Recommendation, ...]
    rounds: int
    unknown: tuple[str, ...]  # rated items that the catalogue does not have yet
    asked: int  # different rows that the server was asked for
    requests: int


def recommend(
    source: KernelSource,
    keeper: CoverKeeper,
    rated: Sequence[str],
    count: int,
    settings: FedcfkSettings | None = None,
) -> Recommendations:
    """Recommend ``count`` items to a user that has rated these; nothing else leaves the device."""
    settings = settings or FedcfkSettings()
    names = source.items()
    positives = numbers_of(rated, names)
    unknown = tuple(sorted(set(rated) - set(names)))
    rounds, means, popularity = source.means()
    if len(means) != len(names) or len(popularity) != len(names):
        raise InputError.of("kernel", f"of {len(names)} items, ask again", len(means))
    if rounds == 0:
        raise InputError(
            "no round is finished yet; take part in one with `vertikal aggregate join`"
        )
    device, seen = UserRows(positives, {}), []
    values = popularity
    if len(positives):
        requests = enlarged(keeper, positives, popularity, settings)

        def draw(size: int) -> Array:
            return uniform_reals(fresh_key(), (size,))

        seen = ask_until_complete(device, requests, source.rows, draw)
        values = device.scores(means, settings.alpha, settings.tol)
    left = np.setdiff1d(np.arange(len(names)), positives)
    best = left[np.argsort(-values[left], kind="stable")[:count]]
    return Recommendations(
        tuple(Recommendation(names[i], float(values[i])) for i in best.tolist()),
        rounds,
        unknown,
        len(device.rows),
        len(seen),
    )


def numbers_of(rated: Sequence[str], names: Sequence[str]) -> Array:
    """Look up the numbers of rated items, sorted; items that the catalogue lacks are left out."""
    places = {name: number for number, name in enumerate(names)}
    return np.array(sorted({places[one] for one in rated if one in places}), np.int64)


def enlarged(
    keeper: CoverKeeper, positives: Array, popularity: Array, settings: FedcfkSettings
) -> Requests:
    """Keep the cover of earlier requests; add new items to it, with decoys of their own."""
    old = keeper.cover
    before = np.array(sorted({i for i in old.items if 0 <= i < len(popularity)}), np.int64)
    fresh = np.setdiff1d(positives, before)
    cover = before
    if len(fresh):
        free = np.setdiff1d(np.arange(len(popularity)), before)
        uniforms = uniform_reals(derive_key(old.key, "cover", str(len(before))), (len(free),))
        places = np.searchsorted(free, fresh)
        drawn = Requests.draw(
            places, popularity[free], settings.cover, settings.request_share, uniforms
        )
        cover = np.sort(np.concatenate((before, free[drawn.cover])))
        keeper.keep_cover(Cover(cover.tolist(), old.key))
    return Requests(cover, settings.request_share)
