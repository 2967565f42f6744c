"""Runs that are broken off open, charge and leave behind no more than was agreed, in all."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.node.services import trio
from tests.node.test_algorithms import SEALED
from tests.organisations import NAMES, RULE, lay_out, write_job
from tests.waiting import until
from vertikal.algorithms.admm import centre
from vertikal.algorithms.kernel_machine import phases
from vertikal.algorithms.kernel_machine import values as hidden
from vertikal.algorithms.kernel_machine.algorithm import FDSKL
from vertikal.algorithms.kernel_machine.stochastic.validation_curve import auc
from vertikal.errors import PeerStopped
from vertikal.node.models.store import ModelStore
from vertikal.node.runs import leader, workplaces
from vertikal.node.runs.checkpoint_folder import ROWS, SECRET, CheckpointFolder
from vertikal.node.storage.audit_log import read
from vertikal.party.checkpoints import CheckpointedTally
from vertikal.privacy.budget import BudgetFile
from vertikal.secure.hidden.hidden_features import HiddenFeatures
from vertikal.solvers import lbfgs

PASSES = 16
VALUES = (
    'disclosure = { name = "values", bits = 64, value_bits = 20, gradient_bits = 20, '
    f"max_passes = {PASSES} }}\ntol = 1e-12"
)
SEAL = 'disclosure = "sealed"\n' + SEALED.format("square")


@pytest.fixture(autouse=True)
def _quick(monkeypatch, quick_beats):
    monkeypatch.setattr(leader, "pause", lambda attempts: 0.1)


@pytest.fixture
def world(tmp_path):
    lay_out(tmp_path, 240, RULE, ("open", "values", "sealed", "rounds", "private"))
    write_job(tmp_path, directions=64, settings=VALUES)
    with trio(tmp_path) as three:
        yield three


class Opened:
    """Return what the helper opened in all runs, and what it was asked."""

    def __init__(self, monkeypatch):
        self.passes, self.questions = 0, Counter()
        add, product = CheckpointedTally.add, HiddenFeatures.product

        def counted(tally, entry):
            add(tally, entry)
            self.passes += max(0, int(entry[0]))  # gradients are booked as negative numbers

        def asked(self_, kind, vectors, *rest):
            self.questions[kind, vectors.tobytes()] += 1
            return product(self_, kind, vectors, *rest)

        monkeypatch.setattr(CheckpointedTally, "add", counted)
        monkeypatch.setattr(HiddenFeatures, "product", asked)


@pytest.fixture
def opened(monkeypatch):
    return Opened(monkeypatch)


def cut(monkeypatch, *calls):
    """Break the solver off at these line searches of the lender's, counted over all runs."""
    real, count = lbfgs.line_search, []

    def search(*arguments):
        count.append(1)
        if len(count) in calls:
            raise PeerStopped("lender: cut off here")
        return real(*arguments)

    monkeypatch.setattr(lbfgs, "line_search", search)


def before_the_second_run(monkeypatch, act):
    """Let something happen when the first run is over for the leader and no other has begun."""
    done = []

    def pause(attempts):
        if attempts == 1 and not done:
            done.append(1)
            act()
        return 0.1

    monkeypatch.setattr(leader, "pause", pause)


def forgetful(monkeypatch):
    """A lender whose answers do not come to its disk."""
    real = CheckpointFolder.entries
    monkeypatch.setattr(
        CheckpointFolder,
        "entries",
        lambda self, name: [] if name == "answers" else real(self, name),
    )


def lender_shard(world):
    return world.models("lender").load("credit", FDSKL).shard


def test_a_resumed_solver_asks_nothing_twice(world, opened, monkeypatch):
    cut(monkeypatch, 4, 9)
    digest = world.submit().digest
    world.done(digest)
    assert world.record("lender", digest).attempt >= 3
    assert max(opened.questions.values()) == 1
    assert opened.passes == PASSES
    assert lender_shard(world).training.iterations == PASSES
    for name in NAMES:
        kept = Path(world.root, name, "store", "checkpoints")
        until(lambda folder=kept: not list(folder.iterdir()), "checkpoints are gone")


def test_what_the_helper_opened_is_on_its_disk(world, opened, monkeypatch):
    cut(monkeypatch, 5)
    kept = []

    def look():
        folder = Path(world.root, "bank", "store", "checkpoints")
        kept.extend(path.name for path in folder.glob("*/*"))

    before_the_second_run(monkeypatch, look)
    world.done(world.submit().digest)
    assert f"opened-{b'lender'.hex()}.list" in kept
    assert opened.passes == PASSES


def test_answers_that_were_lost_are_not_opened_again(world, opened, monkeypatch):
    forgetful(monkeypatch)
    cut(monkeypatch, 4)
    digest = world.submit().digest
    world.done(digest)
    assert opened.passes == PASSES
    assert lender_shard(world).training.iterations == PASSES - 4


def test_a_label_party_that_does_not_heed_it_is_stopped(world, opened, monkeypatch):
    forgetful(monkeypatch)
    cut(monkeypatch, 4)
    gather = hidden.HiddenPass.gather

    def heedless(self, rows, kept):
        operator = gather(self, rows, kept)
        if operator is not None:
            operator.most_forward = None
        return operator

    monkeypatch.setattr(hidden.HiddenPass, "gather", heedless)
    digest = world.submit().digest
    for name in NAMES:
        record = world.wait(name, digest, lambda one: one.final, "stops")
        assert record.final.party == "bank"
        assert record.final.words == (
            f"bank: lender asked for forward pass {PASSES + 1} over a row; {PASSES} were agreed "
            "(max_passes), and nothing was opened"
        )
    assert opened.passes == PASSES


def test_when_nothing_is_left_the_job_says_so(world, opened, monkeypatch):
    write_job(world.root, directions=64, settings=VALUES.replace(f"= {PASSES}", "= 2"))
    forgetful(monkeypatch)
    cut(monkeypatch, 1, 2)
    digest = world.submit().digest
    for name in NAMES:
        record = world.wait(name, digest, lambda one: one.final, "stops")
        assert record.final.words == (
            "lender: broken-off runs of this job have used up the 2 passes that were agreed "
            "(max_passes); submit it again"
        )
    assert opened.passes == 2


def test_a_finished_job_cannot_be_trained_again(world, opened, monkeypatch):
    """A leader that says it has nothing yet would get as many passes once more."""
    digest = world.submit().digest
    world.done(digest)
    until(
        lambda: not any(world[name].runs.run_of(world.record(name, digest)) for name in NAMES),
        "ends",
    )
    lender = world["lender"]
    world.models("lender").delete("credit")
    record = world.record("lender", digest)
    record.done = record.settled = False
    before = opened.passes
    until(lambda: any("has finished this job" in line for line in world.said["bank"]), "refuses")
    assert opened.passes == before
    assert world.models("bank").newest_of_job(digest) is not None
    lender.answer({"command": "cancel", "job": record.id})


def test_other_common_rows_in_a_later_run_are_refused(world, monkeypatch):
    """A leader that aligns with other ids after a run was broken off."""
    cut(monkeypatch, 3)

    def take_another_table():
        path = world.root / "lender" / "people.csv"
        lines = path.read_text().splitlines()
        path.write_text("\n".join(line for line in lines if not line.startswith("1003,")))
        (kept,) = (world.root / "lender" / "store" / "checkpoints").glob(f"*/{ROWS}")
        kept.unlink()

    before_the_second_run(monkeypatch, take_another_table)
    real_digest = workplaces.table_digest

    def as_approved(home, *arguments):
        real_digest(home, *arguments)
        return _table(world, home)

    monkeypatch.setattr(workplaces, "table_digest", as_approved)
    digest = world.submit().digest
    lender = world.record("lender", digest)
    world.wait("bank", digest, lambda one: one.final, "stops")
    assert lender.attempt == 2
    said = [world.record(name, digest).note for name in ("bank", "shop")]
    assert any("the common rows are not those of an earlier run of this job" in w for w in said)


def _table(world, home):
    return next(record.table for record in world[home.me].book.all())


def test_a_secret_that_was_lost_makes_others_forget_what_they_kept(world, monkeypatch):
    write_job(world.root, directions=64, settings='disclosure = "open"')
    text = (world.root / "lender" / "credit.toml").read_text().replace("secret_seed = 7", "")
    (world.root / "lender" / "credit.toml").write_text(text)
    monkeypatch.setattr(phases, "BLOCK_BYTES", 64 * 16)
    cut(monkeypatch, 2)
    forgot = []

    def lose_the_secret():
        (kept,) = (world.root / "bank" / "store" / "checkpoints").glob(f"*/{SECRET}")
        kept.unlink()

    before_the_second_run(monkeypatch, lose_the_secret)
    forget = CheckpointFolder.forget_work

    def forgets(self):
        forgot.append(self.saved_blocks("phases"))
        forget(self)

    monkeypatch.setattr(CheckpointFolder, "forget_work", forgets)
    digest = world.submit().digest
    world.done(digest)
    assert max(forgot) == 15
    ids = tuple(str(number) for number in range(1000, 1090))
    scores = world["lender"].predict("credit", ids, None, None)
    values = np.array([one["value"] for one in scores])
    # The model that was stored answers as it was trained: its training rows are well separated, by
    # 0.87 to 0.95 as the secrets happen to be drawn. With blocks of both secrets it is 0.5.
    rows = np.loadtxt(world.root / "lender" / "people.csv", delimiter=",", skiprows=1)
    labels = {str(int(row[0])): row[-1] for row in rows}
    assert auc(values, np.array([labels[one] > 0 for one in ids])) > 0.75


def test_shards_of_two_runs_are_no_model(world, monkeypatch):
    """Sealed: the coefficients are a sum of two shares, and these are of one run or nothing."""
    write_job(world.root, directions=64, settings=SEAL)
    real, failing = ModelStore.save, {"shop": 1, "bank": 2}
    saves = Counter()

    def save(self, name, shard, algorithm, **options):
        saves[shard.party] += 1
        if saves[shard.party] == failing.get(shard.party):
            raise PeerStopped(f"{shard.party}: lost in the midst of it")
        return real(self, name, shard, algorithm, **options)

    monkeypatch.setattr(ModelStore, "save", save)
    digest = world.submit().digest
    world.done(digest)
    attempts = {name: world.models(name).newest_of_job(digest).facts["attempt"] for name in NAMES}
    assert len(set(attempts.values())) == 1
    shares = [
        world.models(name).load("credit", FDSKL).shard.coefficient_share
        for name in ("lender", "bank")
    ]
    total = (shares[0] + shares[1]).view(np.int64)
    # Shares of two runs add up to noise over the whole ring.
    assert np.abs(total).max() < 2**48


PRIVATE = """
algorithm = "admm"
timeout = 60
[settings]
max_iter = 2
[settings.privacy]
epsilon = 2.0
delta = 1e-5
[parties.lender]
table = "people"
label = "default"
[parties.bank]
table = "people"
[parties.shop]
table = "people"
"""


def private(root, epsilon):
    budget = f"\n[policy.privacy]\nepsilon = {epsilon}\ndelta = 1e-5\n"
    lay_out(root, 90, RULE + budget)
    (root / "lender" / "credit.toml").write_text(PRIVATE)


def break_once(monkeypatch):
    real, broken = centre.CentralNode.step, []

    def step(self, *arguments):
        if not broken:
            broken.append(1)
            raise PeerStopped("lender: cut off here")
        return real(self, *arguments)

    monkeypatch.setattr(centre.CentralNode, "step", step)


def entries(root, name):
    return BudgetFile(Path(root, name, "store", "budget.json")).entries


def test_columns_of_a_private_job_are_as_they_came(tmp_path):
    """Text becomes one column for each of its words, which tells something about all rows."""
    private(tmp_path, 8)
    table = tmp_path / "shop" / "people.csv"
    head, *lines = table.read_text().splitlines()
    cells = [line.split(",") for line in lines]
    for one in cells:
        one[1] = f"w{len(one[1]) % 2}"
    table.write_text("\n".join([head, *map(",".join, cells)]))
    with trio(tmp_path) as world:
        digest = world.submit().digest
        record = world.wait("shop", digest, lambda one: one.final, "stops")
        assert "columns of shop must be numbers that vary, without missing" in record.note
        assert not Path(tmp_path, "shop", "store", "budget.json").exists()


def test_each_run_with_noise_is_charged(tmp_path, monkeypatch):
    private(tmp_path, 8)
    break_once(monkeypatch)
    with trio(tmp_path) as world:
        digest = world.submit().digest
        world.done(digest)
    for name in NAMES:
        first, second = entries(tmp_path, name)
        assert first == second
        assert first.job == digest
        files = Path(tmp_path, name, "store").glob("budget*")
        assert not [path for path in files if path.stat().st_mode & 0o077]


def test_a_budget_that_allows_no_other_run_says_so(tmp_path, monkeypatch):
    private(tmp_path, 2.5)
    break_once(monkeypatch)
    with trio(tmp_path) as world:
        digest = world.submit().digest
        for name in NAMES:
            record = world.wait(name, digest, lambda one: one.final, "stops")
            assert record.final.words.endswith(": its privacy budget does not allow this run")
        who = record.final.party
        assert "this job (1 earlier runs of it are charged) would" in world.record(who, digest).note
        assert not any(world.models(name).newest_of_job(digest) for name in NAMES)
    assert [len(entries(tmp_path, name)) for name in NAMES] == [1, 1, 1]


def test_what_was_kept_goes_with_the_job_however_it_ends(world, monkeypatch):
    cut(monkeypatch, *range(3, 1000))
    digest = world.submit().digest
    folders = [Path(world.root, name, "store", "checkpoints", digest[:16]) for name in NAMES]
    until(lambda: all(folder.exists() for folder in folders), "kept")
    world["shop"].answer({"command": "cancel", "job": digest})
    for name in NAMES:
        world.wait(name, digest, lambda one: one.final, "ends")
    world.stop()
    world.start(*NAMES)
    assert not any(folder.exists() for folder in folders)


def test_an_alignment_that_ends_half_way_is_in_every_log(tmp_path):
    """The lender, which leads, knows the common ids by then and goes no further."""
    lay_out(tmp_path, 60, RULE)
    write_job(tmp_path, directions=16, settings='disclosure = "open"')
    file = tmp_path / "lender" / "party.toml"
    file.write_text(file.read_text().replace("least_rows = 20", "least_rows = 90"))
    with trio(tmp_path) as world:
        digest = world.submit().digest
        for name in NAMES:
            world.wait(name, digest, lambda one: one.final, "stops")
        assert "60 ids are common" in world.record("lender", digest).note
        for name in NAMES:
            lines = list(read(world[name].home.store / "audit.log"))
            begun = [line for line in lines if line.event == "alignment begins"]
            others = ", ".join(f"at most 100 ids of {other}" for other in NAMES if other != name)
            assert [x.facts["words"] for x in begun] == [f"attempt 1, 100 own rows, {others}"]
            assert not [line for line in lines if line.event == "aligned"]
