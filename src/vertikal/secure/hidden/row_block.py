"""One block of rows on its way into hidden features.

Blocks are hidden apart: each has seeds, pads and tags of its own, named by its first row. So a
party may work on several of them at a time, in whatever order, and the other parties need not do as
it does.
"""

from __future__ import annotations

from dataclasses import dataclass

from vertikal.secure.hidden.dealing import Dealing
from vertikal.secure.hidden.roles import Roles


@dataclass(frozen=True)
class RowBlock:
    """Rows, and the roles and the dealing of these rows alone; no dealing without a role."""

    rows: slice
    roles: Roles
    dealing: Dealing | None

    @classmethod
    def of(cls, rows: slice, roles: Roles, dealing: Dealing | None) -> RowBlock:
        """Begin a block of these rows; all parties cut the same blocks."""
        own = None if dealing is None else dealing.of_rows(rows.start)
        return cls(rows, roles.of_rows(rows.start), own)
