"""The model store of a party's service, which notes in its audit log what it cannot read."""

from __future__ import annotations

from functools import partial

from vertikal.node.models.store import ModelStore
from vertikal.node.storage.party_home import PartyHome


class JobModels(ModelStore):
    """The models of one party at home."""

    def __init__(self, home: PartyHome) -> None:
        super().__init__(home.store / "models", partial(home.note_once, "damaged"))
