"""Messages to others from a party that cannot go on: no cell, no column, no id of it."""

from __future__ import annotations

import threading

import pytest

from vertikal.errors import (
    BudgetSpent,
    DiskFull,
    InputError,
    MeshError,
    PeerStopped,
    PeerVisibleError,
    VertikalError,
)
from vertikal.mesh import local_meshes
from vertikal.node.config.job_file import Job
from vertikal.node.links.run_mesh import RunMesh
from vertikal.node.peer_message import peer_message
from vertikal.node.runs.launch import run_one

JOB = """
timeout = 20
[parties.lender]
table = "lender.csv"
label = "y"
[parties.clinic]
table = "clinic.csv"
"""


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MeshError("bank: shop is\nsilent"), "bank: shop is silent"),
        (PeerVisibleError("policy of bank: no"), "policy of bank: no"),
        (KeyboardInterrupt(), "interrupted"),
        (DiskFull("'rows' was not written"), "bank: the disk of its store is full"),
        (BudgetSpent("2.3 of 3"), "bank: its privacy budget does not allow this run"),
        (InputError("line 3: Jane Roe"), "bank cannot go on; its owner knows why"),
        (KeyError("Jane Roe"), "bank: KeyError; its owner knows more"),
    ],
)
def test_what_is_told_of_an_error(error, said):
    assert peer_message("bank", error) == said


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("status,income\n1,52000\n1,48200,Jane Roe\n", "'clinic.csv', line 3 must have 2 cells"),
        ("status,income\n1,5\n1,5\n", "'status': it is the same number in each row"),
        (None, "'clinic.csv' cannot be read"),
    ],
)
def test_words_about_a_table_stay_with_its_party(tmp_path, text, own):
    (tmp_path / "job.toml").write_text(JOB)
    (tmp_path / "lender.csv").write_text("x,y\n" + "".join(f"{i},{i % 2}\n" for i in range(20)))
    if text is not None:
        (tmp_path / "clinic.csv").write_text(text)
    job = Job.load(tmp_path / "job.toml")
    meshes, errors, ended = local_meshes(job.names, 20), {}, {}

    def tell(report):
        ended[report.party] = report.ended

    def one(name):
        try:
            run_one(tmp_path / "job.toml", job, meshes[name], None, tell)
        except VertikalError as error:
            errors[name] = error

    threads = [threading.Thread(target=one, args=(name,), daemon=True) for name in job.names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert isinstance(errors["lender"], PeerStopped)
    assert "clinic stopped (clinic cannot go on; its owner knows why)" in str(errors["lender"])
    assert own in str(errors["clinic"])
    assert own in ended["clinic"]


def broken(world, name):
    """A table gets an id twice."""
    table = world.root / name / "people.csv"
    lines = table.read_text().splitlines()
    table.write_text("\n".join([*lines, lines[1]]))


def test_a_rule_that_finds_a_broken_table_rejects_without_its_words(world):
    broken(world, "bank")
    digest = world.submit().digest
    record = world.wait("lender", digest, lambda one: one.final, "is rejected")
    assert record.final.words == "bank cannot go on; its owner knows why"
    assert "distinct" in world.record("bank", digest).note


def test_predictions_over_a_broken_table_are_refused_without_its_words(world, monkeypatch):
    world.done(world.submit().digest)
    assert world["lender"].predict("credit", ("1001",), None, None)[0]["status"] == "ok"
    broken(world, "bank")
    refused = r"bank refused these predictions: bank cannot go on; its owner knows why$"
    with pytest.raises(VertikalError, match=refused):
        world["lender"].predict("credit", ("1001",), None, None)
    assert "distinct" in (world.root / "bank" / "store" / "audit.log").read_text()
    told, fail = [], RunMesh.fail

    def failing(mesh, reason):
        told.append((mesh.me, reason))
        fail(mesh, reason)

    monkeypatch.setattr(RunMesh, "fail", failing)
    broken(world, "lender")
    with pytest.raises(InputError, match="distinct"):
        world["lender"].predict("credit", ("1001",), None, None)
    assert ("lender", "lender cannot go on; its owner knows why") in told
