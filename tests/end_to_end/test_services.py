"""Services as real processes on loopback: the walk, and kill -9 at every stage of it."""

from __future__ import annotations

import hashlib
import resource
import subprocess

import msgspec
import numpy as np
import pytest

from tests.organisations import NAMES, RULE, WITH_NOTARY, lay_out, write_job
from tests.service_processes import COMMAND, ServiceProcesses
from tests.waiting import until
from vertikal.node.control import ask
from vertikal.node.models.store import ModelStore

SMALL_BLOCKS = 2048
"""Directions at which some thousands of rows make several blocks."""

VALUES = 'disclosure = { name = "values", bits = 64, value_bits = 28, gradient_bits = 20 }'
"""With as little of the helper's noise as there can be, so that two models can be compared."""


@pytest.fixture
def parties(tmp_path):
    world = ServiceProcesses(tmp_path)
    yield world
    world.stop()


def undisturbed(parties, names=NAMES, **job):
    """The shards of a run in which nothing happens."""
    write_job(parties.root, **job)
    parties.start(*names)
    parties.tell("lender", "job", "submit", "credit.toml")
    parties.done(names=names)
    return models(parties, names)


def models(parties, names=NAMES):
    return {name: parties.model(name) for name in names}


def digests(shards):
    """Return what is the same for the same shard, bit for bit."""
    return {
        name: hashlib.sha256(msgspec.json.encode(shard, enc_hook=lambda one: one.tolist())).digest()
        for name, shard in shards.items()
    }


def test_the_walk_with_a_party_killed_and_started_again(parties):
    """Submit, show, approve, train, kill -9 in the midst, resume, predict, audit."""
    lay_out(parties.root)
    write_job(parties.root, settings='disclosure = "open"')
    parties.start("lender", "bank")
    parties.start("shop", killed="sum")
    assert "waits for the approval of bank, shop" in parties.tell(
        "lender", "job", "submit", "credit.toml"
    )
    parties.wait("bank", 1, "asked", bool)
    parties.wait("shop", 1, "asked", bool)
    assert "asks for your approval" in parties.tell("bank", "job", "list")
    shown = parties.tell("bank", "job", "show", parties.job("bank")["job"])
    assert "balance, deposit_regularity" in shown
    assert "Who learns what" in shown
    for name in ("bank", "shop"):
        job = parties.job("lender")
        told = parties.tell(name, "job", "approve", job["job"])
        assert f"approved credit of lender, digest {job['digest']}\n" in told
    parties.ended("shop")
    # The others say who is missing, and wait.
    for name in ("lender", "bank"):
        parties.wait(name, 1, "names shop", lambda one: "shop is not connected" in one["state"])
    parties.start("shop")
    parties.done()
    disturbed = digests(models(parties))
    assert parties.job("shop")["attempt"] > 1
    # The same job once more, without a fault: the same model, bit for bit.
    parties.tell("lender", "job", "submit", "credit.toml")
    for name in ("bank", "shop"):
        parties.wait(name, 2, "asked", bool)
        parties.tell(name, "job", "approve", parties.job("lender", 2)["job"])
    parties.done(2)
    assert digests(models(parties)) == disturbed

    ids = parties.root / "lender" / "new.csv"
    ids.write_text("customer\n1000\n1001\nnobody\n")
    told = parties.tell("lender", "predict", "credit", "--ids", "new.csv", "-o", "scores.csv")
    assert "2 ok, 1 unknown" in told
    for name in NAMES:
        parties.tell(name, "audit", "verify")
    assert "predicted" in parties.tell("bank", "audit", "show")
    assert "1 " in parties.tell("shop", "model", "list")


CASES = [
    *((place, name, "open") for place in ("alignment", "sum", "model") for name in NAMES),
    ("spread", "lender", "open"),
    ("spread", "shop", "open"),
    ("block", "lender", "open"),
    ("solver", "lender", "open"),
    ("written", "lender", "open"),
    ("written", "bank", "open"),
    ("alignment", "bank", "values"),
    ("serving", "bank", "values"),
    ("serving", "shop", "values"),
    ("solver", "lender", "values"),
    ("model", "lender", "values"),
    ("round", "lender", "admm"),
    ("sum", "bank", "admm"),
    ("model", "shop", "admm"),
    ("block", "lender", "avfkam"),
    ("solver", "lender", "avfkam"),
    ("model", "bank", "avfkam"),
    ("hearing", "notary", "dealt"),
    ("serving", "notary", "dealt"),
    ("solver", "lender", "dealt"),
    ("model", "notary", "dealt"),
    ("sum", "bank", "folds"),
    ("solver", "lender", "folds"),
    ("measuring", "lender", "folds"),
    ("judging", "lender", "hidden folds"),
    ("serving", "shop", "hidden folds"),
    ("sum", "shop", "search"),
    ("choosing", "lender", "search"),
    ("judging", "bank", "hidden search"),
    ("choosing", "lender", "hidden search"),
    ("sum", "shop", "kernel"),
    ("solver", "lender", "kernel"),
    ("serving", "bank", "hidden kernel"),
    ("solver", "lender", "hidden kernel"),
    ("sharing", "bank", "sealed"),
    ("sharing", "notary", "sealed"),
    ("model", "lender", "sealed"),
    ("block", "lender", "gram"),
    ("sum", "bank", "gram"),
    ("machine", "lender", "gram"),
    ("block", "lender", "gram landmarks"),
    ("sum", "shop", "gram landmarks"),
    ("model", "bank", "gram landmarks"),
]


FOLDS = "[evaluation]\nfolds = 2\n"
SEARCH = "[evaluation]\nlinear = false\n[search.settings]\nbandwidth = [1e-3, 4.0]\n"
MEASURED = {"folds": FOLDS, "hidden folds": FOLDS, "search": SEARCH, "hidden search": SEARCH}
"""Jobs that make several fits, and what they say of them."""


def names_of(kind):
    return WITH_NOTARY if kind in ("dealt", "sealed") else NAMES


def job_of(kind):
    if kind == "dealt":
        settings = VALUES.replace("28", '28, dealer = "notary"')
        return {"settings": settings, "directions": 32, "rest": "[parties.notary]"}
    if kind == "sealed":
        settings = (
            'disclosure = { name = "sealed", dealer = "notary" }\n'
            'loss = "square"\nbandwidth = "mean"'
        )
        return {"settings": settings, "directions": 32, "rest": "[parties.notary]"}
    if kind == "avfkam":
        settings = 'disclosure = "open"'
        return {"top": 'algorithm = "avfkam"', "settings": settings, "directions": SMALL_BLOCKS}
    if kind.startswith("gram"):
        settings = 'machine = "ridge"' + ("\nlandmarks = 40" if "landmarks" in kind else "")
        return {"top": 'algorithm = "gram"', "settings": settings, "directions": None}
    if kind == "admm":
        return {"top": 'algorithm = "admm"', "settings": "max_iter = 30", "directions": None}
    hidden = kind.startswith("hidden")
    settings = VALUES if hidden else 'disclosure = "open"'
    if kind.endswith("kernel"):
        # Four passes of 16 values, of as many bits as the account allows.
        settings = settings.replace("28", "15")
        top = 'algorithm = "kernel"'
        return {"top": top, "settings": settings, "directions": 64, "scale": None}
    if kind in MEASURED:
        return {"settings": settings, "directions": 32 if hidden else 64, "rest": MEASURED[kind]}
    if kind == "values":
        return {"settings": VALUES, "directions": 32}
    return {"settings": f'disclosure = "{kind}"', "directions": SMALL_BLOCKS}


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """By kind of job: a folder laid out, and the shards of an undisturbed run in a copy of it."""
    found = {}

    def of(kind):
        if kind not in found:
            world = ServiceProcesses(tmp_path_factory.mktemp(kind))
            lay_out_for(world.root, kind)
            try:
                found[kind] = undisturbed(world, names_of(kind), **job_of(kind))
            finally:
                world.stop()
        return found[kind]

    return of


ROWS = {"open": 9000, "avfkam": 9000, "gram": 2500, "gram landmarks": 4500}
"""Rows that make several blocks or tiles, where one is to be lost."""

KERNEL_TILES = {
    "gram": [524_800, 1024 * 1024, 1024 * 452, 524_800, 1024 * 452, 452 * 453 // 2],
    "gram landmarks": [40, *[1024 * 41] * 4, 404 * 41],
}
"""Ring elements, of four bytes, in each sum of a kernel."""


def lay_out_for(root, kind):
    levels = ("open", "values", "sealed", "rounds", "kernel", "private")
    lay_out(root, ROWS.get(kind, 240), RULE, levels, names=names_of(kind))


@pytest.mark.slow
@pytest.mark.parametrize(("place", "victim", "kind"), CASES)
def test_killed_anywhere_the_job_resumes_to_the_same_model(parties, expected, place, victim, kind):
    wanted, names = expected(kind), names_of(kind)
    lay_out_for(parties.root, kind)
    write_job(parties.root, **job_of(kind))
    parties.start(*(name for name in names if name != victim))
    parties.start(victim, killed=place)
    parties.tell("lender", "job", "submit", "credit.toml", code=0)
    parties.ended(victim)
    for name in names:
        if name != victim:
            parties.wait(
                name,
                1,
                f"names {victim}",
                lambda one: victim in one["state"] or victim in one["waits_for"],
            )
    parties.start(victim)
    parties.done(names=names)
    found = models(parties, names)
    if kind in MEASURED:
        kept = ModelStore(parties.root / "lender" / "store" / "models").details("credit")
        assert kept.evaluation.together.numbers["auc"].value > 0.5
        assert kept.search is None or kept.search.chosen == {"bandwidth": 4.0}
    if kind in ("values", "dealt") or kind.startswith("hidden"):
        # Fresh masks round differently, as in two undisturbed runs; all else is the same.
        assert close(*(coefficients(shards["lender"]) for shards in (found, wanted)))
        del found["lender"]
        assert digests(found) == {name: digests(wanted)[name] for name in found}
    elif kind == "sealed":
        assert close(opened(found), opened(wanted))
    else:
        assert digests(found) == digests(wanted)
    if place == "block":
        assert "resumed" in parties.tell("lender", "audit", "show")
    if place == "block" and kind in KERNEL_TILES:
        # Two tiles were kept, and the bank has sent the rest.
        rest = 4 * sum(KERNEL_TILES[kind][2:])
        assert rest <= sent(parties, "bank", "kernel") < 1.01 * rest


def sent(parties, name, message):
    """Bytes of a kind of message that left a party in its last run."""
    lines = parties.tell(name, "audit", "show", "--json").splitlines()
    facts = [msgspec.json.decode(line)["facts"] for line in lines]
    return next(one["bytes"][f"{message} to lender"] for one in facts[::-1] if "bytes" in one)


def coefficients(shard):
    """Coefficients of all directions, of a kernel machine or of a tuned one."""
    return np.vstack([one.coefficients for one in getattr(shard, "blocks", (shard,))])


def opened(shards):
    """Sealed coefficients, from both shares of them."""
    total = shards["lender"].coefficient_share + shards["bank"].coefficient_share
    return total.view(np.int64).astype(float)


def close(found, wanted):
    return np.linalg.norm(found - wanted) < 0.01 * np.linalg.norm(wanted)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("victim", "kind"),
    [("bank", "open"), ("lender", "open"), ("shop", "dealt"), ("notary", "dealt")],
)
def test_killed_during_a_prediction(parties, victim, kind):
    names = names_of(kind)
    lay_out(parties.root, policy=RULE, names=names)
    undisturbed(parties, names, **job_of(kind))
    parties.running[victim].terminate()
    parties.ended(victim)
    parties.start(victim, killed="prediction")
    (parties.root / "lender" / "new.csv").write_text("customer\n1000\n")
    command = ("predict", "credit", "--ids", "new.csv", "-o", "scores.csv")
    parties.connected()
    told = parties.tell("lender", *command, code=1)
    if victim != "lender":
        assert victim in told
    parties.ended(victim)
    parties.start(victim)
    until(lambda: _scored(parties, command), "scores after the restart")


def _scored(parties, command):
    done = subprocess.run(
        [*COMMAND, *command],
        cwd=parties.root / "lender",
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    return "1 ok" in done.stdout


@pytest.mark.slow
def test_a_key_is_renewed_and_a_member_removed_while_the_others_run(parties):
    """By command, with a job under way both times; no service is started again."""
    lay_out(parties.root, 9000, policy=RULE)
    write_job(parties.root, settings='disclosure = "open"', directions=SMALL_BLOCKS)
    parties.start(*NAMES)
    parties.connected()
    parties.tell("bank", "federation", "verify", "shop", "--compared")
    parties.tell("lender", "job", "submit", "credit.toml")
    parties.wait("shop", 1, "runs", lambda one: one.get("attempt", 0) == 1)
    told = parties.tell("shop", "federation", "rotate")
    new = told.split()[-1]
    assert new.startswith("sha256:")
    for name in NAMES:
        until(lambda n=name: new in parties.tell(n, "federation", "changes"), f"{name} has it")
    # The run goes on over the new links.
    parties.done()
    assert [parties.job(name)["attempt"] for name in NAMES] == [1, 1, 1]
    until(lambda: _all_fit(parties, "bank"), "bank is connected to all", parties.told)
    # A comparison is about keys, and that key is gone.
    assert parties.tell("bank", "federation", "verify", "shop").split()[-1] == "no"

    parties.tell("lender", "job", "submit", "credit.toml", "--name", "second")
    parties.wait("shop", 2, "runs", lambda one: one.get("attempt", 0) == 1)
    digest = parties.tell("lender", "federation", "remove", "shop").splitlines()[-1].split()[0]
    until(lambda: digest in parties.tell("bank", "federation", "changes"), "proposed")
    assert "federation of lender, bank; serial 2" in parties.tell(
        "bank", "federation", "accept", digest
    )
    reason = "shop was removed from the federation by bank, lender"
    for name in ("lender", "bank"):
        parties.wait(name, 2, "ended", lambda one: not one["open"])
        assert reason in parties.tell(name, "job", "show", parties.job(name, 2)["job"])
        until(lambda n=name: _all_fit(parties, n), "the others are connected", parties.told)
        assert "shop" not in parties.tell(name, "federation", "check")
        assert "shop removed" in parties.tell(name, "audit", "show")
    until(lambda: "this party was removed from the federation" in parties.said("shop"), "told")
    assert "'shop' is not in the federation file" in parties.tell(
        "lender", "job", "submit", "credit.toml", "--name", "third", code=1
    )
    for name in NAMES:
        parties.tell(name, "audit", "verify")
        assert len(list((parties.root / name).glob("service-*.log"))) == 1


def _all_fit(parties, name):
    return not any(one["faults"] for one in ask(parties.root / name / "store", "peers"))


@pytest.mark.slow
def test_a_process_that_may_write_no_more(parties):
    """A limit on the size of files, as of a quota: taken off, the job goes on by itself."""
    lay_out(parties.root, policy=RULE)
    write_job(parties.root, settings='disclosure = "open"', directions=SMALL_BLOCKS)
    parties.start(*NAMES)
    pid = parties.running["shop"].pid
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    # Jobs, logs and checkpoints of the shop are smaller, its shard with known answers is not.
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (100_000, before[1]))
    parties.tell("lender", "job", "submit", "credit.toml")
    told = parties.wait("shop", 1, "says it", lambda one: "disk" in one.get("words", ""))
    assert "store/models/credit' was not written; free some space there" in told["words"]
    parties.wait("lender", 1, "names it", lambda one: "disk of shop's store" in one["state"])
    models_ = parties.root / "shop" / "store" / "models" / "credit"
    assert not models_.exists() or list(models_.iterdir()) == []
    resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
    parties.done()
    assert parties.model("shop").party == "shop"
    assert parties.running["shop"].poll() is None


@pytest.mark.slow
def test_twenty_jobs_in_a_row_leave_nothing_behind(parties):
    lay_out(parties.root, policy=RULE)
    write_job(parties.root, settings='disclosure = "open"')
    parties.start(*NAMES)
    resident = []
    for number in range(1, 21):
        parties.tell("lender", "job", "submit", "credit.toml")
        parties.done(number)
        resident.append(sum(parties.resident(name) for name in NAMES))
    # The first jobs load libraries and fill caches that stay.
    assert resident[-1] < 1.05 * resident[4], resident
    for name in NAMES:
        left = parties.root / name / "store" / "checkpoints"
        until(lambda folder=left: list(folder.iterdir()) == [], "checkpoints are gone")
