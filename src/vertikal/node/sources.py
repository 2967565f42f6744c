"""A party's own tables, as its party file offers them: ids, columns, and a digest of the content."""

from __future__ import annotations

import csv
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vertikal.errors import InputError
from vertikal.node.approvals import Proposal
from vertikal.node.policy import offered

if TYPE_CHECKING:
    from vertikal.node.site import Site


@dataclass(frozen=True)
class Seen:
    rows: int
    digest: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Loaded:
    ids: list[str]
    columns: dict[str, list[str]]
    digest: str

    @property
    def rows(self) -> int:
        return len(self.ids)

    def column(self, name: str):
        import numpy as np
        return np.array(self.columns[name], float)


    def means(self, names):
        import numpy as np
        return np.array([self.column(n).mean() for n in names])


def look_at(site: Site, proposal: Proposal) -> Seen:
    offer, columns = offered(site.file, proposal)
    loaded = load(site, proposal)
    return Seen(loaded.rows, loaded.digest, columns)


def load(site: Site, proposal: Proposal) -> Loaded:
    offer, columns = offered(site.file, proposal)
    path = site.folder / offer.source
    raw = path.read_bytes()
    rows = list(csv.DictReader(raw.decode().splitlines()))
    label = proposal.job.parties[site.me].label
    wanted = [*columns, *([label] if label else [])]
    return Loaded(
        [row[offer.id] for row in rows],
        {name: [row[name] for row in rows] for name in wanted},
        hashlib.sha256(raw).hexdigest(),
    )

