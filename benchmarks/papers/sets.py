"""The data sets that a benchmark runs on: those that were asked for and are in the data folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping


def at_hand(given: str, names: Iterable[str], absent: Mapping[str, str]) -> Iterator[str]:
    """Yield the names in ``given``, with commas between, or all; say which are left out.

    ``absent`` has the file that each set would be read from.
    """
    for name in given.split(",") if given else names:
        if name in absent:
            print(f"left out: {name} ({absent[name]} is not in the data folder)", flush=True)
        else:
            yield name
