"""Pages of the console about the party file and the audit log."""

from __future__ import annotations

from tests.console.test_jobs import words_of
from vertikal.node.storage.audit_log import read


def test_every_setting_has_its_meaning_and_line(world, owner):
    text = words_of(owner.get("/tables").text)
    lines = (world.root / "bank" / "party.toml").read_text().splitlines()
    number = next(i for i, line in enumerate(lines, start=1) if line.startswith("least_rows"))
    assert (
        f"least_rows 20 fewest people whom all parties must have for a job to go on {number}"
        in (text)
    )
    assert "most_fits 50 most fits of one job, those of folds and of a search included default" in (
        text
    )
    assert "Table people" in text


def test_tables_are_checked_on_request(world, owner):
    before = words_of(owner.get("/tables").text)
    assert "100 rows, ok" not in before
    reply = owner.post("/tables/check", owner.token())
    assert "people 100 rows, ok" in words_of(reply.text)
    (world.root / "bank" / "people.csv").unlink()
    reply = owner.post("/tables/check", owner.token())
    assert "cannot be used as it is" in words_of(reply.text)
    assert owner.post("/tables/check", {}).status == 403


def test_a_file_that_cannot_be_read_is_told(world, owner):
    path = world.root / "bank" / "party.toml"
    path.write_text(path.read_text().replace("least_rows = ", "least_rowz = "))
    for reply in (owner.get("/tables"), owner.post("/tables/check", owner.token())):
        assert reply.status == 200
        assert "party.toml cannot be read as it is now" in words_of(reply.text)
        assert "least_rowz" in words_of(reply.text)


def test_the_log_is_shown_searched_and_paged(world, owner):
    log = world.service.home.log
    for number in range(130):
        log.record("tested", place=f"place {number}")
    text = words_of(owner.get("/audit").text)
    assert "130 lines" in text
    assert "place 129" in text
    assert "place 29" not in text.replace("place 129", "")
    assert "page 1 of 2" in text
    assert "place 3" in words_of(owner.get("/audit?page=2").text)
    assert "place 3" in words_of(owner.get("/audit?page=99").text)
    assert "page 1 of 2" in words_of(owner.get("/audit?page=-3x").text)
    found = words_of(owner.get("/audit?search=PLACE%2012").text)
    assert "11 found" in found
    log.record("later")
    assert "131 lines" in words_of(owner.get("/audit").text)
    evil = owner.get("/audit?search=%22%3E%3Cscript%3Ealert(1)%3C/script%3E").text
    assert "<script>alert" not in evil


def test_the_chain_is_verified_and_the_log_exported(world, owner, tmp_path):
    log = world.service.home.log
    for number in range(3):
        log.record("tested", place=number)
    assert "3 lines, each bound" in words_of(owner.post("/audit/verify", owner.token()).text)
    kept = tmp_path / "kept.jsonl"
    kept.write_bytes(owner.get("/audit/file").body)
    assert [line.facts["place"] for line in read(kept)] == [0, 1, 2]
    path = world.service.home.store / "audit.log"
    path.write_text(path.read_text().replace('"place":1', '"place":7'))
    text = words_of(owner.post("/audit/verify", owner.token()).text)
    assert "Not as it was written" in text
    assert "line 2 was altered" in text


def test_a_viewer_may_look_at_both(viewer):
    assert viewer.get("/tables").status == 200
    assert viewer.post("/audit/verify", viewer.token()).status in (200, 400)
    assert viewer.get("/audit").status == 200
