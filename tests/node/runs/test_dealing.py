"""A dealer without data as a service: no table, no id, and a model that needs it."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from tests.node.services import trio
from tests.node.test_algorithms import IDS, ROWS, SEALED, labels_by_id
from tests.organisations import DEGRADED, RULE, WITH_NOTARY, lay_out, write_job
from tests.waiting import until
from vertikal.algorithms.kernel_machine.algorithm import FDSKL
from vertikal.algorithms.kernel_machine.stochastic.validation_curve import auc
from vertikal.errors import InputError
from vertikal.node.approval.policy import objections
from vertikal.node.approval.proposals import Proposal
from vertikal.node.config.job_file import Job, Part
from vertikal.node.config.party_file import PartyFile
from vertikal.node.runs import party_run
from vertikal.node.storage.audit_log import read
from vertikal.party.party import Party

NOTARY = "[parties.notary]"
LEVELS = {
    "values": 'disclosure = { name = "values", value_bits = 20, prediction_bits = 20, '
    'dealer = "notary" }',
    "sealed": 'disclosure = { name = "sealed", dealer = "notary" }\n' + SEALED.format("square"),
}


pytestmark = pytest.mark.usefixtures("quick_beats")


def begin(root, level="values", names=WITH_NOTARY, **policy):
    rules = {name: policy.get(name, DEGRADED + RULE) for name in names if name != "lender"}
    lay_out(root, ROWS, rules, ("values", "sealed"), names=names)
    write_job(root, directions=64, settings=LEVELS[level], rest=NOTARY)
    if "shop" not in names:
        path = root / "lender" / "credit.toml"
        path.write_text(path.read_text().replace('[parties.shop]\ntable = "people"\n', ""))


@pytest.mark.parametrize(
    "names",
    [WITH_NOTARY, pytest.param(("lender", "bank", "notary"), marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("level", ["values", pytest.param("sealed", marks=pytest.mark.slow)])
def test_owners_and_a_dealer_without_data(tmp_path, level, names):
    begin(tmp_path, level, names, notary="predictions_per_day = 160\n" + RULE)
    with trio(tmp_path, names) as world:
        lender, notary = world["lender"], world["notary"]
        job = Job.load(tmp_path / "lender" / "credit.toml")
        planned = lender.answer({"command": "plan", "job": msgspec.to_builtins(job)})
        assert planned["parties"]["notary"]["bytes_sent"] > 0
        digest = world.submit().digest
        world.done(digest)
        shard = world.models("notary").load("credit", FDSKL).shard
        assert (shard.columns, shard.coefficients, shard.coefficient_share) == ((), None, None)
        # Everybody lacks twenty people: without the shop, twenty more are common.
        common = ROWS + 20 * (len(WITH_NOTARY) - len(names))
        scores = lender.predict("credit", (*IDS, "nobody"), False, None)
        assert [one["status"] for one in scores] == ["ok"] * ROWS + ["unknown"]
        assert "notary" not in scores[-1]["unknown_at"]
        values = np.array([one["value"] for one in scores[:-1]])
        assert auc(values, labels_by_id(world)) > 0.7
        degraded = lender.predict("credit", ("1000", "nobody"), True, None)
        assert [one["status"] for one in degraded] == ["ok", "degraded"]
        # Each has noise of its own: of 12 bits of the sum of all coefficients' magnitudes.
        assert degraded[0]["value"] == pytest.approx(values[0], abs=0.05)
        with pytest.raises(Exception, match="notary refused these predictions: 10 rows asked for"):
            lender.predict("credit", IDS[:10], False, None)
        shown = notary.answer({"command": "show", "job": digest})["text"]
        lender.predictor.close()
        notary.predictor.close()
    assert "none: you are the dealer, and send random masks to lender, bank" in shown
    assert "you learn how many rows the others have in common, and no id" in shown
    assert "against your policy" not in shown
    events = list(read(tmp_path / "notary" / "store" / "audit.log"))
    aligned = next(line for line in events if line.event == "aligned")
    assert aligned.facts["words"] == f"{common} rows of the others"
    # What the dealer is sent says nothing of ids, in training and in predictions.
    said = (tmp_path / "notary" / "store" / "audit.log").read_text()
    sent = "".join(
        str(line.facts.get("bytes", ""))
        for name in names
        for line in read(tmp_path / name / "store" / "audit.log")
    )
    assert "rows asked for to notary" in sent
    assert "common rows to notary" in sent
    for kind in (
        *("ids asked for", "id counts", "blinded ids", "rows chosen", "common ids"),
        *("request salts", "request digests"),
    ):
        assert f"'{kind} to notary'" not in sent
    assert '"1000"' not in said


def test_a_dealer_that_is_told_different_numbers(tmp_path, monkeypatch):
    real = Party.tell

    def tell(self, to, payload, disclosure):
        if disclosure is party_run.COMMON and self.name == "bank":
            payload = {"rows": ROWS + 1}
        real(self, to, payload, disclosure)

    monkeypatch.setattr(Party, "tell", tell)
    begin(tmp_path)
    with trio(tmp_path, WITH_NOTARY) as world:
        digest = world.submit().digest
        for name in WITH_NOTARY:
            record = world.wait(name, digest, lambda one: one.final, "stops")
            assert record.final.words == (
                "notary: the others must agree on the number of their common rows: "
                "lender says 150, bank says 151, shop says 150"
            )
        assert not any(world.models(name).newest_of_job(digest) for name in WITH_NOTARY)


def test_a_dealer_that_is_started_again(tmp_path, monkeypatch):
    """It keeps the number of rows, and is not told again."""
    begin(tmp_path)
    with trio(tmp_path, WITH_NOTARY) as world:
        real, broken = party_run.prepare, []

        def prepare(place, rows=None):
            columns = real(place, rows)
            if place.me == "notary" and not broken:
                broken.append(columns.table.rows)
                world["notary"].runs.run_of(place.record).end("taken away")
            return columns

        monkeypatch.setattr(party_run, "prepare", prepare)
        digest = world.submit().digest
        until(lambda: broken, "broken off")
        world.done(digest)
        assert broken == [ROWS]
        assert world.record("notary", digest).attempt == 2
    events = [line.event for line in read(tmp_path / "notary" / "store" / "audit.log")]
    assert events.count("aligned") == 1
    told = [
        (name, line.facts["bytes"])
        for name in WITH_NOTARY
        for line in read(tmp_path / name / "store" / "audit.log")
        if "common rows to notary" in line.facts.get("bytes", {})
    ]
    assert sorted(name for name, _ in told) == sorted(set(WITH_NOTARY) - {"notary"})


def test_what_is_refused(tmp_path):
    begin(tmp_path, notary="")
    path = tmp_path / "lender" / "credit.toml"
    good = path.read_text()
    with trio(tmp_path, WITH_NOTARY) as world:
        lender = world["lender"]
        for text, said in (
            (good + "rows = 150", "rows of notary must be left out between services"),
            (good.replace(', dealer = "notary"', ""), "table of bank must be named"),
            (good + 'table = "people"', "notary offers no table 'people'"),
            (good + 'label = "default"', "dealer must be a party without labels"),
        ):
            job = good.replace('[parties.bank]\ntable = "people"\n', "[parties.bank]\n")
            path.write_text(job if "bank" in said else text)
            if "offers" in said:
                digest = world.submit().digest
                record = world.wait("lender", digest, lambda one: one.final, "rejected")
                assert said in record.final.words
                continue
            with pytest.raises(InputError, match=said):
                lender.decisions.submit("credit", Job.load(path))
        path.write_text(good)
        digest = world.submit().digest
        record = world.record("notary", digest)
        # No rule: its owner is asked, as any other.
        assert record.state("notary") == "asks for your approval"
        world.approve(digest, "notary")
        world.done(digest)


def test_a_job_for_services_names_no_file_to_predict():
    part = {"table": "people", "test": "/etc/passwd"}
    job = Job({"a": Part(**part, label="y"), "b": Part(**part)})
    job.check()
    with pytest.raises(InputError, match="test of a must be left out between services"):
        job.check_for_services()


def test_the_policy_of_a_dealer_counts(tmp_path):
    begin(tmp_path)
    text = (tmp_path / "notary" / "party.toml").read_text()
    (tmp_path / "notary" / "party.toml").write_text(text.replace('["lender"]', '["bank"]', 1))
    file = PartyFile.load(tmp_path / "notary" / "party.toml")
    assert file.tables == {}
    job = Job.load(tmp_path / "lender" / "credit.toml")
    found = objections(file, Proposal("x", job, "lender", 0.0, "0.1.0", 1, ""))
    assert found == ["policy of notary: lender may not submit jobs to it"]
