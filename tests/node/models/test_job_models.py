"""Stored shards by the job that trained them."""

from __future__ import annotations

from tests.node.shards import shard_of
from tests.organisations import lay_out
from vertikal.algorithms.kernel_machine.algorithm import FDSKL
from vertikal.node.models.job_models import JobModels
from vertikal.node.storage import audit_log
from vertikal.node.storage.party_home import PartyHome


def test_a_damaged_model_stops_no_job_and_is_noted_once(tmp_path):
    lay_out(tmp_path, rows=30)
    home = PartyHome(tmp_path / "bank" / "party.toml")
    models = JobModels(home)
    for job in ("one", "two"):
        models.save("credit", shard_of(8), FDSKL, facts={"job": job})
    (home.store / "models" / "credit" / "1" / "manifest.json").write_bytes(b"")
    assert [models.newest_of_job("two").version, models.newest_of_job("one")] == [2, None]
    assert JobModels(home).newest_of_job("two").version == 2
    noted = [line.facts["words"] for line in audit_log.read(home.store / "audit.log")]
    assert len(noted) == 1
    assert noted[0].startswith("model 'credit', version 1: manifest.json cannot be read")
    home.close()
