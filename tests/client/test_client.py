"""The Python client: what it does it does through the service, and no text steers a notebook."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import msgspec
import pytest

from tests.node.services import trio
from tests.organisations import RULE, lay_out, write_job
from tests.project.test_snippets import ROOT, blocks_of, run_page
from vertikal.client import Party
from vertikal.client.displays import facts, heading, table
from vertikal.client.jobs import JobHandle, Jobs
from vertikal.client.models import ScoreRecords
from vertikal.errors import InputError, JobFailed
from vertikal.node import service
from vertikal.node.config.job_file import Job

PAGE = ROOT / "docs" / "how-to-python-client.md"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """Three services whose page has been walked through: one job is done."""
    folder = tmp_path_factory.mktemp("client")
    lay_out(folder, rows=120, policy={"shop": RULE})
    write_job(
        folder,
        directions=16,
        settings='disclosure = "open"',
        rest="[evaluation]\nholdout = 0.25",
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(service, "BEAT", 0.2)
        patch.chdir(folder / "lender")
        with trio(folder):
            run_page(blocks_of(PAGE))
            yield folder


@pytest.fixture
def lender(root):
    return Party(root / "lender" / "party.toml")


def test_the_page_leaves_a_report_and_a_model(root, lender):
    assert (root / "lender" / "credit.html").read_text().startswith("<!doctype html>")
    (model,) = lender.models
    assert (model.name, model.version) == ("credit", 1)
    assert model.facts["algorithm"] == "fdskl"
    (job,) = lender.jobs
    assert job.done
    assert job.ended
    assert job.model.manifest == model.manifest
    assert lender.job(job.id).digest == job.digest


def test_displays_show_what_the_commands_do(lender):
    (job,) = lender.jobs
    shown = lender._repr_html_()
    assert f"<td style='text-align:left'>{job.id}</td>" in shown
    assert "bank" in shown
    assert "AUC" in job.evaluation._repr_html_()
    assert "lender alone" in job.evaluation._repr_html_()
    assert bool(job.evaluation.linear) == ("linear model of all" in job.evaluation._repr_html_())
    assert (job.reason, "None" in lender.predict("credit", ["nobody"])._repr_html_()) == ("", False)
    assert job.digest in job._repr_html_()
    assert "credit" in lender.models._repr_html_()
    assert "rows" in lender.model("credit")._repr_html_()
    assert "balance" in lender.catalog("bank")._repr_html_()


def test_a_job_is_named_by_file_content_or_record(root, lender):
    content = msgspec.to_builtins(Job.load(root / "lender" / "credit.toml"))
    with pytest.raises(InputError, match="name"):
        lender.submit(content)
    job = lender.submit(content, "again")
    try:
        assert job.name == "again"
        assert job.submitter == "lender"
        with pytest.raises(InputError, match=r"call wait\(\) first"):
            _ = job.evaluation
        with pytest.raises(JobFailed, match="within 0 s"):
            job.wait(timeout=0)
    finally:
        job.cancel("enough")
    assert job.ended
    assert not job.done
    with pytest.raises(JobFailed, match="cancelled by lender"):
        job.wait()


@pytest.mark.slow
def test_a_job_is_planned(root, lender):
    plan = lender.plan(Job.load(root / "lender" / "credit.toml"))
    assert plan["rows"] == 180 - 20


def test_a_party_without_labels_has_no_evaluation(root):
    shop = Party(root / "shop" / "party.toml")
    with pytest.raises(InputError, match=r"no evaluation at shop: let its job have \[evaluation\]"):
        _ = shop.model("credit").evaluation


def test_errors_name_the_remedy(root, tmp_path, lender):
    lay_out(tmp_path, rows=60)
    away = Party(tmp_path / "bank" / "party.toml")
    with pytest.raises(InputError, match="`vertikal party start` makes it"):
        _ = away.jobs
    (tmp_path / "bank" / "store").mkdir(mode=0o700)
    with pytest.raises(InputError, match="`vertikal party start` starts it"):
        _ = away.jobs
    assert "does not run" in away._repr_html_()
    with pytest.raises(InputError, match="`vertikal job list`"):
        lender.job("absent-0000")
    with pytest.raises(InputError, match="job must be a job file, or its content as a mapping"):
        lender.submit(3)
    with pytest.raises(InputError, match="unknown"):
        lender.predict("credit", ["1001"], unknown="guess")
    with pytest.raises(InputError, match="sequence of ids"):
        lender.predict("credit", "1001")


def test_scores_come_one_per_id(lender):
    scores = lender.predict("credit", [1001, 1002, "nobody"])
    assert [one["id"] for one in scores] == ["1001", "1002", "nobody"]
    assert scores[2]["status"] == "unknown"
    assert "probability_1" in scores[0]
    assert list(scores.to_pandas()["id"]) == ["1001", "1002", "nobody"]
    assert "and 5 more" in ScoreRecords([dict(scores[0])] * 25)._repr_html_()


class Tags(HTMLParser):
    """The tags of a display, for none may come from a text."""

    def __init__(self):
        super().__init__()
        self.seen = set()

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)


EVIL = "<script>alert(1)</script>\x1b[2J\u202e&"


def test_every_text_is_escaped():
    summary = {
        "job": EVIL,
        "digest": EVIL,
        "name": EVIL,
        "from": EVIL,
        "algorithm": EVIL,
        "state": EVIL,
        "open": True,
        "done": False,
        "words": EVIL,
        "total": 4,
        "amount": 1,
        "unit": EVIL,
        "note": EVIL,
        "waits_for": EVIL,
    }
    job = JobHandle(None, summary)
    for shown in (
        table((EVIL,), [(EVIL,), (1,)]),
        facts([(EVIL, EVIL)]),
        heading(EVIL, EVIL),
        job._repr_html_(),
        Jobs([job])._repr_html_(),
        ScoreRecords([{EVIL: EVIL}])._repr_html_(),
    ):
        tags = Tags()
        tags.feed(shown)
        assert tags.seen <= {
            "table",
            "thead",
            "tbody",
            "tr",
            "th",
            "td",
            "div",
            "strong",
            "progress",
        }
        assert not re.search("[\x1b\u202e]", shown)
