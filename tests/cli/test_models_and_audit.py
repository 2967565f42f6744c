"""`vertikal model` and `vertikal audit`: what they print and how they end."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from tests.node.models.test_evaluation import evaluation
from tests.node.shards import shard_of
from vertikal.algorithms.kernel_machine.algorithm import FDSKL
from vertikal.cli import main
from vertikal.node.models.store import ModelStore
from vertikal.node.storage.audit_log import AuditLog, verify
from vertikal.node.storage.disclosure_account import DisclosureAccount, Opening
from vertikal.node.storage.question_count import QuestionCount
from vertikal.privacy.accountant import epsilon_of
from vertikal.privacy.budget import BudgetFile

PARTY = """
name = "bank"
key = "bank.key"
certificate = "bank.crt"
federation = "federation.toml"
store = "store"
"""


@pytest.fixture
def store(tmp_path):
    (tmp_path / "party.toml").write_text(PARTY)
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
    party = str(store.parent / "party.toml")
    return CliRunner().invoke(main, [*words, "--party", party], **options)


def test_models_are_listed_shown_and_deleted(store):
    titles, *listed = call(store, "model", "list").output.splitlines()
    assert titles.split() == ["model", "version", "stored", "algorithm", "state", "digest"]
    assert [line.split()[:2] for line in listed] == [["credit", "1"], ["credit", "2"]]
    assert [len(line.split()[-1]) for line in listed] == [64, 64]
    told = json.loads(call(store, "model", "list", "--json").output)
    assert [one["digest"] for one in told] == [line.split()[-1] for line in listed]
    shown = call(store, "model", "show", "credit", "--version", "1").output
    for words in ("credit, version 1", "bank", "Shard", "rows         300", "as they were stored"):
        assert words in shown
    told = json.loads(call(store, "model", "show", "credit", "--version", "1", "--json").output)
    assert (told["version"], told["facts"]) == (1, {"job": "7", "rows": 300})
    kept = call(store, "model", "delete", "credit", "--version", "1", input="n\n")
    assert kept.exit_code != 0
    gone = call(store, "model", "delete", "credit", "--version", "1", input="y\n")
    assert gone.output.endswith("deleted credit, version 1\n")
    assert call(store, "model", "delete", "credit", "--yes").output == (
        "deleted credit, version 2\n"
    )
    assert call(store, "model", "list").output == "no models\n"


def test_a_model_that_was_evaluated_is_shown_reported_and_compared(store):
    models = ModelStore(store / "models")
    models.save("judged", shard_of(8), FDSKL, evaluation=evaluation(), facts={"rows": 300})
    shown = call(store, "model", "show", "judged").output
    assert shown.startswith("result            AUC 0.9")
    told = json.loads(call(store, "model", "show", "judged", "--json").output)
    assert told["evaluation"]["together"]["rows"] == 100
    page = store.parent / "page.html"
    assert call(store, "model", "report", "judged", "-o", str(page)).output == "report  page.html\n"
    assert "Line chart: ROC." in page.read_text()
    told = json.loads(call(store, "model", "report", "judged", "--json").output)
    assert (told["left"], told["evaluation"]["way"]) == ([], "at random")
    compared = call(store, "model", "compare", "judged", "credit:1")
    assert "judged, version 1" in compared.stdout
    assert "not both were evaluated here" in compared.stderr
    told = json.loads(call(store, "model", "compare", "judged", "judged:1", "--json").output)
    assert {row["better"] for row in told["rows"]} == {"open", ""}
    wrong = call(store, "model", "compare", "judged:x", "credit")
    assert (wrong.exit_code, "NAME:VERSION" in wrong.output) == (2, True)


def test_a_store_without_a_party_file(store):
    (store.parent / "party.toml").unlink()
    listed = CliRunner().invoke(main, ["model", "list", "--store", str(store)])
    assert [line.split()[0] for line in listed.output.splitlines()] == ["model", "credit", "credit"]
    gone = CliRunner().invoke(main, ["model", "list", "--store", str(store / "gone")])
    assert gone.exit_code == 2
    assert "does not exist" in gone.output


def test_nothing_secret_is_shown(store):
    seed = shard_of().seed
    for words in (("list",), ("list", "--json"), ("show", "credit"), ("show", "credit", "--json")):
        output = call(store, "model", *words).output
        assert seed.hex() not in output


def test_a_model_that_is_not_there_or_was_changed(store):
    missing = call(store, "model", "show", "fraud")
    assert missing.exit_code == 1
    assert missing.output == "error: model 'fraud' is not in this store; it has models ['credit']\n"
    (store / "models/credit/1/manifest.json").write_text("")
    listed = call(store, "model", "list")
    assert listed.stdout.splitlines()[1].split()[:2] == ["credit", "2"]
    damaged = "damaged: model 'credit', version 1: manifest.json cannot be read"
    assert listed.stderr.startswith(damaged)
    (store / "models/credit/2/shard.json").write_text("{}")
    changed = call(store, "model", "show", "credit")
    assert changed.exit_code == 1
    assert "shard.json is not what was stored" in changed.output


def test_the_log_is_read(store):
    titles, *lines = call(store, "audit", "show").output.splitlines()
    assert titles.split() == ["line", "time", "event", "facts"]
    assert lines[0].split()[0] == "1"
    assert lines[0].endswith("job=7  bytes=phases:12  parties=bank,shop")
    last = call(store, "audit", "show", "--last", "1").output.splitlines()[1:]
    assert [line.split() for line in last] == [lines[1].split()]
    raw = call(store, "audit", "show", "--json").output
    assert raw == (store / "audit.log").read_text()


def test_the_log_is_verified(store):
    head = call(store, "audit", "head").output.strip()
    assert head == str(verify(store / "audit.log"))
    good = call(store, "audit", "verify")
    assert good.exit_code == 0
    assert good.output.startswith("2 lines, each bound")
    assert "only against a head" in good.output
    AuditLog(store / "audit.log", "bank").record("job")
    assert "nothing before it has changed" in call(store, "audit", "verify", "--head", head).output
    path = store / "audit.log"
    path.write_text(path.read_text().replace("approval", "refusal."))
    bad = call(store, "audit", "verify")
    assert bad.exit_code == 1
    assert bad.output.startswith("error: audit log 'audit.log', line 1 was altered")


def test_a_store_that_is_not_there(tmp_path):
    (tmp_path / "party.toml").write_text(PARTY)
    for words in (("audit", "verify"), ("model", "list")):
        gone = call(tmp_path / "store", *words)
        assert gone.exit_code == 1
        assert gone.output.startswith("error: bank has no store yet (no folder 'store' beside")
    assert not (tmp_path / "store").exists()


def test_the_account_is_shown_and_verified(store):
    assert call(store, "audit", "account").output == (
        "no job has opened anything about the rows of this party's tables\n"
    )
    told = {"name": "credit", "table": "accounts", "receiver": "lender", "rows": 60}
    account = DisclosureAccount(store, "bank")
    values = Opening(
        job="a", level="values", values=50, value_bits=6, gradients=59, prediction_bits=12, **told
    )
    phases = Opening(job="b", level="open", values=8, value_bits=8, bounded=False, **told)
    account.book([values], lambda: None)
    account.book([phases], lambda: None)
    QuestionCount(store / "questions", 32).book("a", {0: b"eve", 1: b"bob", 2: b"eve"})
    BudgetFile.create(store / "budget.json", epsilon=2.0, delta=1e-5).charge("bank", "c", 0.1, 1)
    titles, row, *rest = call(store, "audit", "account").output.splitlines()
    assert titles.split("  ")[0] == "table"
    assert row.split() == ["accounts", "lender", "2", "58", "300", "1000"]
    assert rest == [
        "lender and accounts: 64 bits more about each row by jobs whose level shows them all "
        "('open', 'rounds', 'kernel')",
        "lender and accounts: 59 sums over rows for each direction; one that deviates can have "
        "had as many rows' features",
        "lender and accounts: 2 predictions of one person at most with the model of job "
        "credit-a, 24 bits; the limit is 32",
        f"differential privacy: epsilon {epsilon_of(0.1, 1e-5):.4g} of 2 is spent, at delta 1e-05, "
        "by all jobs at that level",
    ]
    told = json.loads(call(store, "audit", "account", "--json").output)
    assert (told["most_row_bits"], told["privacy"]["epsilon"]) == (1000, 2.0)
    openings = told["balances"][0]["openings"]
    assert [(one["job"], one["asked"]) for one in openings] == [("a", 2), ("b", 0)]
    assert "disclosure account: 2 lines" in call(store, "audit", "verify").output
    path = store / "account.log"
    path.write_text(path.read_text().replace('"values":50', '"values":1'))
    assert call(store, "audit", "verify").exit_code != 0
