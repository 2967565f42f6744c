"""The format of a party's store: one number for all of its files, beside those that files have.

The number stands in ``format.json`` of the store, with the release that wrote it last. A release
reads stores of its own number and of all before it, and refuses later ones before it touches them:
counts that it did not understand would go back. Files that may leave the store say their own
format too (`records.check_format`): models, job records, budgets and backups.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from vertikal.errors import InputError
from vertikal.files import write_whole
from vertikal.records import from_json
from vertikal.version import __version__

FORMAT = 1
FILE = "format.json"


class StoreFormat(msgspec.Struct, frozen=True):
    """Content of the file; what a later release adds to it is passed over."""

    format: int
    library: str


def check_store(store: Path) -> StoreFormat:
    """Refuse a store of a later format; mark one without a mark, or of an older release."""
    own = StoreFormat(FORMAT, __version__)
    try:
        found = from_json((store / FILE).read_bytes(), StoreFormat)
    except FileNotFoundError:
        found = None
    except (OSError, msgspec.DecodeError) as error:
        raise InputError(
            f"{FILE} of store {store.name!r} cannot be read: {error}; restore it from a copy: it "
            'says {"format": NUMBER, "library": RELEASE}'
        ) from None
    if found is not None and found.format > FORMAT:
        raise InputError(
            f"store {store.name!r} was written by vertikal {found.library[:40]} (format "
            f"{found.format}), this release reads formats up to {FORMAT}; install that release "
            "again"
        )
    if found != own:
        write_whole(store / FILE, msgspec.json.encode(own))
    return own
