"""A party's stored shards, found by the job that trained them."""

from __future__ import annotations

from vertikal.node.models.store import Manifest, ModelStore
from vertikal.node.storage.party_home import PartyHome


class JobModels(ModelStore):
    """The model store of one party; whatever job trained a shard, its facts name it."""

    def __init__(self, home: PartyHome) -> None:
        super().__init__(home.store / "models")
        self._home = home

    def of_job(self, digest: str) -> list[Manifest]:
        """List the shards of the job with this digest, oldest first.

        There is more than one while a run replaces the shard of an earlier run. A shard that cannot
        be read, of whatever job, is noted in the audit log and left out, so that it stops no other.
        """
        damaged: list[str] = []
        found = self.versions(damaged)
        for reason in damaged:
            self._home.note_once("damaged", reason)
        return [one for one in found if one.facts.get("job") == digest]

    def newest_of_job(self, digest: str) -> Manifest | None:
        """The last stored shard of the job with this digest, if there is one."""
        return next(reversed(self.of_job(digest)), None)
