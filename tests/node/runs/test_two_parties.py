"""Two services and nobody else: a job with hidden features, from its plan to predictions."""

from __future__ import annotations

from collections import Counter

import msgspec
import numpy as np
import pytest

from tests.node.runs.test_broken_runs import cut
from tests.node.services import trio
from tests.node.test_algorithms import IDS, ROWS, booked, labels_by_id, shown
from tests.organisations import DEGRADED, lay_out, write_job
from vertikal.algorithms.algorithm import WITHOUT_DEALER
from vertikal.algorithms.kernel_machine.stochastic.validation_curve import auc
from vertikal.errors import PeerVisibleError
from vertikal.node.config.job_file import Job
from vertikal.secure.two_party.two_party_features import TwoPartyFeatures

pytestmark = pytest.mark.usefixtures("quick_beats")
NAMES = ("lender", "bank")
PASSES = 12


def begin(root, disclosures=(WITHOUT_DEALER,), policy=DEGRADED):
    lay_out(root, ROWS, policy, disclosures, names=NAMES)
    write_job(
        root, settings=f'disclosure = {{ name = "values", max_passes = {PASSES} }}\nbandwidth = 3.0'
    )
    path = root / "lender" / "credit.toml"
    path.write_text(path.read_text().replace('[parties.shop]\ntable = "people"\n', ""))


def test_from_the_plan_to_predictions(tmp_path):
    begin(tmp_path)
    with trio(tmp_path, NAMES) as world:
        lender, bank = world["lender"], world["bank"]
        job = Job.load(tmp_path / "lender" / "credit.toml")
        planned = lender.answer({"command": "plan", "job": msgspec.to_builtins(job)})
        assert all(planned["parties"][name]["bytes_sent"] > 10**6 for name in NAMES)
        digest = world.submit().digest
        text = bank.answer({"command": "show", "job": world.record("bank", digest).id})["text"]
        assert "level 'values without a dealer': as 'values', between two parties alone" in text
        assert "no third one has to be trusted" in text
        assert "against your policy" not in text
        world.approve(digest, "bank")
        world.done(digest)
        for name in NAMES:
            assert booked(world, name, digest) <= shown(world, name, digest)
        (opening,) = bank.home.account.openings()
        assert (opening.level, opening.receiver) == (WITHOUT_DEALER, "lender")
        assert (opening.values, opening.value_bits, opening.gradient_bits) == (PASSES, 6, 14)
        scores = lender.predict("credit", (*IDS, "nobody"), False, None)
        assert [one["status"] for one in scores] == ["ok"] * ROWS + ["unknown"]
        values = np.array([one["value"] for one in scores[:-1]])
        assert auc(values, labels_by_id(world)) > 0.65
        degraded = lender.predict("credit", ("1000", "nobody"), True, None)
        assert [one["status"] for one in degraded] == ["ok", "degraded"]
        assert degraded[0]["value"] == pytest.approx(values[0], abs=0.05)


def test_the_level_is_off_unless_the_owner_names_it(tmp_path):
    begin(tmp_path, ("values", "private"), "")
    with (
        trio(tmp_path, NAMES) as world,
        pytest.raises(PeerVisibleError, match="disclosure 'values without a dealer'"),
    ):
        world.submit()


@pytest.mark.slow
def test_a_run_that_is_broken_off_asks_nothing_twice(tmp_path, monkeypatch):
    begin(tmp_path)
    asked, real = Counter(), TwoPartyFeatures.product

    def product(self, kind, vectors, *rest):
        asked[kind, vectors.tobytes()] += 1
        return real(self, kind, vectors, *rest)

    monkeypatch.setattr(TwoPartyFeatures, "product", product)
    cut(monkeypatch, 4, 9)
    with trio(tmp_path, NAMES) as world:
        digest = world.submit().digest
        world.approve(digest, "bank")
        world.done(digest)
        assert world.record("lender", digest).attempt >= 3
        assert max(asked.values()) == 1
        assert sum(kind == "forward" for kind, _ in asked) <= PASSES
