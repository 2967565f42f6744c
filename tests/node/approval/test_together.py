"""Jobs beside one another and beside what must not be: models, versions, logs, sessions."""

from __future__ import annotations

import threading
import time

import msgspec
import pytest

from tests.node.services import trio
from tests.organisations import DEGRADED, NAMES, RULE, lay_out, until, write_job
from vertikal.algorithms.kernel_machine.algorithm import FDSKL
from vertikal.errors import InputError, PeerStopped, PredictionRefused
from vertikal.node.config.job_file import Job
from vertikal.node.links.messages import Beat, Serve
from vertikal.node.models.store import ModelStore
from vertikal.node.predictions.prediction import WAIT
from vertikal.node.storage.audit_log import read
from vertikal.solvers import lbfgs

pytestmark = pytest.mark.usefixtures("quick_beats")


def submit(world, name, directions):
    write_job(world.root, directions=directions, settings='disclosure = "open"')
    job = Job.load(world.root / "lender" / "credit.toml")
    return world["lender"].council.submit(name, job).digest


def shards(world, name):
    """The model with this name at all parties, bit for bit."""
    found = (world[party].models.load(name, FDSKL).shard for party in NAMES)
    return [msgspec.json.encode(one, enc_hook=lambda array: array.tolist()) for one in found]


def test_two_jobs_at_once_give_the_models_of_jobs_alone(world, monkeypatch):
    real, met, meeting = lbfgs.line_search, set(), threading.Barrier(2, timeout=60)

    def search(*arguments):
        # Neither solver goes on before both are under way.
        if threading.get_ident() not in met:
            met.add(threading.get_ident())
            meeting.wait()
        return real(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(lbfgs, "line_search", search)
        together = [submit(world, "small", 16), submit(world, "large", 48)]
        for digest in together:
            world.done(digest)
    assert len(met) == 2
    found = {name: shards(world, name) for name in ("small", "large")}
    for name, directions in (("small", 16), ("large", 48)):
        world.done(submit(world, name, directions))
        assert world["shop"].models.show(name).version == 2
        assert shards(world, name) == found[name]


@pytest.mark.parametrize("who", NAMES)
def test_a_job_that_is_not_approved_yet_can_be_cancelled_by_anybody(tmp_path, who):
    lay_out(tmp_path, rows=60)
    write_job(tmp_path, directions=16, settings='disclosure = "open"')
    with trio(tmp_path) as world:
        digest = world.submit().digest
        number = world.record(who, digest).number
        world[who].answer({"command": "cancel", "number": number, "words": "no"})
        for name in NAMES:
            record = world.wait(name, digest, lambda one: one.final, "ends")
            assert record.state(name) == f"cancelled by {who}"
        other = next(name for name in ("bank", "shop") if name != who)
        with pytest.raises(InputError, match="is decided already"):
            world[other].council.approve(world.record(other, digest).number)
        assert not any(world[name].models.newest_of_job(digest) for name in NAMES)


def test_no_run_begins_with_an_older_version_and_it_does_with_the_same(world, monkeypatch):
    shop = world["shop"].council
    tell = shop.tell

    def old(name, message):
        if isinstance(message, Beat):
            message = msgspec.structs.replace(message, version="0.0.9")
        tell(name, message)

    monkeypatch.setattr(shop, "tell", old)
    lender = world["lender"].council
    until(lambda: lender.beats["shop"][0].version == "0.0.9", "an old beat")
    digest = world.submit().digest
    record = world.wait("lender", digest, lambda one: one.approved_by_all, "approved")
    state = world["lender"].answer({"command": "list"})[0]["state"]
    assert "shop runs vertikal 0.0.9" in state
    assert "install the same release" in state
    seen = lender.beats["shop"][0].time
    until(lambda: lender.beats["shop"][0].time > seen + 1.0, "some beats")
    assert record.attempt == 0
    monkeypatch.setattr(shop, "tell", tell)
    world.done(digest)


def test_who_submits_by_a_clock_that_is_ahead_is_told(tmp_path, monkeypatch):
    lay_out(tmp_path, rows=60)
    write_job(tmp_path, directions=16, settings='disclosure = "open"')
    with trio(tmp_path) as world:
        bank, lender = world["bank"].council, world["lender"]
        tell = bank.tell

        def late(name, message):
            if isinstance(message, Beat):
                message = msgspec.structs.replace(message, time=message.time - 4000)
            tell(name, message)

        monkeypatch.setattr(bank, "tell", late)
        until(lambda: lender.council.beats["bank"][2] < -3000, "a late beat")
        world.submit()
        state = lender.answer({"command": "list"})[0]["state"]
        assert state.startswith("waits for the approval of bank, shop; the clock of lender is 4000")
        assert "ahead of that of bank, which refuses it; set them right, cancel this job" in state


def refused(world, words):
    """Whether the bank has noted that it refused something with these words."""
    log = world["bank"].home.store / "audit.log"
    told = [line for line in read(log) if line.event == "refused"]
    return any(words in str(line.facts["words"]) for line in told)


def test_a_session_is_opened_by_the_leader_of_a_finished_job_only(world):
    digest = world.submit().digest
    world.done(digest)
    world["shop"].council.tell("bank", Serve(digest, "predict/x"))
    until(lambda: refused(world, f"predictions with job {digest[:12]}"), "not its leader")
    world["lender"].council.tell("bank", Serve("f" * 64, "predict/x"))
    until(lambda: refused(world, f"predictions with job {'f' * 12}"), "no such job")
    assert world["bank"]._predictions is None


def test_a_deleted_shard_ends_predictions_at_once_also_in_a_session(world):
    """The store is another process's here as well: `vertikal model delete` beside the service."""
    digest = world.submit().digest
    world.done(digest)
    lender, ids = world["lender"], ("1001", "1002")
    assert {one["status"] for one in lender.predict("credit", ids, None, None)} == {"ok"}
    ModelStore(world.root / "bank" / "store" / "models").delete("credit")
    with pytest.raises(PredictionRefused, match=r"bank refused .*: bank has no model of this job"):
        lender.predict("credit", ids, None, None)
    # The same where the next request opens a session of its own.
    lender.predictions._close(digest, "")
    with pytest.raises(PeerStopped, match="bank has no model of this job"):
        lender.predict("credit", ids, None, None)
    assert "no model of this job" in str([*read(world.root / "bank" / "store" / "audit.log")])
    ModelStore(world.root / "lender" / "store" / "models").delete("credit")
    with pytest.raises(InputError, match="model 'credit' is not in this store"):
        lender.predict("credit", ids, None, None)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('["open", "values"]', '["values"]', "disclosure 'open' is not allowed"),
        ('who = ["lender"]', "who = []", "lender may not submit jobs"),
        ('"balance", ', "", "offers no column 'balance'"),
    ],
)
def test_predictions_end_with_the_policy_that_allowed_them(world, before, after, said):
    if "balance" in before:
        write_job(
            world.root, directions=16, settings='disclosure = "open"', bank='columns = ["balance"]'
        )
    world.done(world.submit().digest)
    lender, ids = world["lender"], ("1001", "1002")
    assert {one["status"] for one in lender.predict("credit", ids, None, None)} == {"ok"}
    world.stop("bank")
    file = world.root / "bank" / "party.toml"
    policy, rules = file.read_text().split("[[policy.standing]]")
    assert before in policy
    file.write_text(f"{policy.replace(before, after)}[[policy.standing]]{rules}")
    world.start("bank")
    world.connected()
    began = time.monotonic()
    with pytest.raises(PeerStopped, match=said):
        lender.predict("credit", ids, None, None)
    assert time.monotonic() - began < 0.5 * WAIT
    until(lambda: refused(world, said), "noted")


MARK = "idzz"


@pytest.mark.parametrize("level", ["open", "values"])
def test_no_id_and_no_cell_is_written_anywhere_but_in_the_models(tmp_path, level):
    lay_out(
        tmp_path,
        rows=60,
        policy={"bank": "predictions_per_day = 4\n" + DEGRADED + RULE, "shop": DEGRADED + RULE},
    )
    for name in NAMES:
        table = tmp_path / name / "people.csv"
        head, *lines = table.read_text().splitlines()
        split = [line.split(",") for line in lines]
        cells = [f"{float(parts[1]) + 0.0123456789:.10f}" for parts in split]
        for parts, cell in zip(split, cells, strict=True):
            parts[:2] = [MARK + parts[0], cell]
        table.write_text("\n".join([head, *map(",".join, split)]))
    assert min(map(len, cells)) > 11
    write_job(tmp_path, directions=16, settings=f'disclosure = "{level}"')
    with trio(tmp_path) as world:
        world.done(world.submit().digest)
        lender = world["lender"]
        lender.predict("credit", (f"{MARK}1001", f"{MARK}nobody"), True, None)
        with pytest.raises(Exception, match="bank refused"):
            lender.predict("credit", tuple(f"{MARK}{n}" for n in range(1000, 1010)), None, None)
        # A run that fails on the data: a cell that is no number, in a column of numbers.
        table = tmp_path / "shop" / "people.csv"
        table.write_text(table.read_text().replace(f",{cells[0]}", f",{MARK}secret", 1))
        digest = world.submit().digest
        world.wait("shop", digest, lambda one: one.final or one.done, "ends")
        words = "\n".join(f"{name}: {line}" for name in NAMES for line in world.said[name])
        heard = [str(world.record(name, digest).final) for name in ("lender", "bank")]
    assert MARK not in "\n".join(heard)
    assert MARK not in words
    for name in NAMES:
        store = tmp_path / name / "store"
        kept = [path for path in store.rglob("*") if path.is_file() and "models" not in path.parts]
        assert any(path.name == "audit.log" for path in kept)
        for path in kept:
            raw = path.read_bytes()
            assert MARK.encode() not in raw, path
            assert not [cell for cell in cells if cell.encode() in raw], path
