"""`vertikal model` and `vertikal audit`: what they print and how they end."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from tests.node.shards import shard_of
from vertikal.algorithms.kernel_machine.algorithm import FDSKL
from vertikal.cli import main
from vertikal.node.models.store import ModelStore
from vertikal.node.storage.audit_log import AuditLog, verify


@pytest.fixture
def store(tmp_path):
    folder = tmp_path / "store"
    folder.mkdir(mode=0o700)
    models = ModelStore(folder / "models")
    models.save("credit", shard_of(8), FDSKL, facts={"job": "7", "rows": 300})
    models.save("credit", shard_of(16), FDSKL)
    log = AuditLog(folder / "audit.log", "bank")
    log.record("approval", job="7", bytes={"phases": 12}, parties=["bank", "shop"])
    log.record("end", job="7")
    return folder


def call(store, *words, **options):
    return CliRunner().invoke(main, [*words, "--store", str(store)], **options)


def test_models_are_listed_shown_and_deleted(store):
    listed = call(store, "model", "list").output.splitlines()
    assert [line.split()[:2] for line in listed] == [["credit", "1"], ["credit", "2"]]
    shown = call(store, "model", "show", "credit", "--version", "1").output
    for words in ("credit, version 1", "bank", "Shard", "rows         300", "as they were stored"):
        assert words in shown
    kept = call(store, "model", "delete", "credit", "--version", "1", input="n\n")
    assert kept.exit_code != 0
    gone = call(store, "model", "delete", "credit", "--version", "1", input="y\n")
    assert gone.output.endswith("deleted credit, version 1\n")
    assert call(store, "model", "delete", "credit", "--yes").output == (
        "deleted credit, version 2\n"
    )
    assert call(store, "model", "list").output == "no models\n"


def test_nothing_secret_is_shown(store):
    seed = shard_of().seed
    for words in (("list",), ("show", "credit")):
        output = call(store, "model", *words).output
        assert seed.hex() not in output


def test_a_model_that_is_not_there_or_was_changed(store):
    missing = call(store, "model", "show", "fraud")
    assert missing.exit_code == 1
    assert missing.output == "error: model 'fraud' is not in this store; it has models ['credit']\n"
    (store / "models/credit/1/manifest.json").write_text("")
    listed = call(store, "model", "list").output.splitlines()
    assert listed[0].split()[:2] == ["credit", "2"]
    assert listed[1].startswith("model 'credit', version 1: manifest.json cannot be read")
    (store / "models/credit/2/shard.json").write_text("{}")
    changed = call(store, "model", "show", "credit")
    assert changed.exit_code == 1
    assert "shard.json is not what was stored" in changed.output


def test_the_log_is_read(store):
    lines = call(store, "audit", "log").output.splitlines()
    assert lines[0].split()[0] == "1"
    assert lines[0].endswith("job=7  bytes=phases:12  parties=bank,shop")
    assert call(store, "audit", "log", "--last", "1").output.splitlines() == lines[1:]
    raw = call(store, "audit", "log", "--json").output
    assert raw == (store / "audit.log").read_text()


def test_the_log_is_verified(store):
    head = call(store, "audit", "head").output.strip()
    assert head == str(verify(store / "audit.log"))
    good = call(store, "audit", "verify")
    assert good.exit_code == 0
    assert good.output.startswith("2 lines, each bound")
    assert "only against a head" in good.output
    AuditLog(store / "audit.log", "bank").record("job")
    assert "nothing before it changed" in call(store, "audit", "verify", "--head", head).output
    path = store / "audit.log"
    path.write_text(path.read_text().replace("approval", "refusal."))
    bad = call(store, "audit", "verify")
    assert bad.exit_code == 1
    assert bad.output.startswith("error: audit log 'audit.log', line 1 was altered")


def test_a_store_that_is_not_there(tmp_path):
    gone = call(tmp_path / "gone", "audit", "verify")
    assert gone.exit_code == 2
    assert "does not exist" in gone.output
