"""Pages of the console about jobs: they say what the commands say, and no text of others acts."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import msgspec
import pytest

from tests.node.alone import kept, keys_of
from vertikal.errors import InputError
from vertikal.node.approval import proposals
from vertikal.node.config.job_file import Job

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>\x1b[2J\u202e&\"'"


def words_of(html):
    """The text of a page, one space between words."""

    class Text(HTMLParser):
        def __init__(self):
            super().__init__()
            self.found = []

        def handle_data(self, data):
            self.found.append(data)

    text = Text()
    text.feed(html)
    return " ".join(" ".join(text.found).split())


def test_the_overview_shows_what_waits(world, owner):
    text = words_of(owner.get("/").text)
    assert world.record.id in text
    assert "lender asks to train with fdskl" in text
    assert "Read and decide" in text
    assert "lender away" in text
    assert "0 of 2 other parties connected" in text
    assert "No job runs." in text


def test_the_page_of_a_job_says_what_the_command_says(world, owner):
    page = owner.get(f"/jobs/{world.digest}")
    assert page.status == 200
    told = world.service.answer({"command": "show", "job": world.digest})
    text = words_of(page.text)
    for line in told["text"].splitlines():
        assert " ".join(line.split()) in text
    for line in told["details"]["in_short"]:
        assert line.partition("`")[0].strip() in text
    assert world.digest in text
    assert "would not have approved it: it is for avfkam, kernel, admm, gram, and this" in text


def test_what_each_receiver_learns_is_there(world, owner):
    text = owner.get(f"/jobs/{world.digest}").text
    assert "Flow diagram" in text
    assert "shop → bank" in text
    learned = words_of(text).partition("What each receiver can learn")[2]
    lender = learned.partition("lender")[2].partition("bank (you)")[0]
    assert "the label party learns Φd of the training rows" in lender
    assert "from bank" in lender


def test_what_a_job_would_add_is_drawn(world, owner):
    (step,) = world.service.answer({"command": "show", "job": world.digest})["details"]["account"]
    text = owner.get(f"/jobs/{world.digest}").text
    assert step["receiver"] == "lender"
    assert f"0 + {step['adds']:,} = {step['after']:,} of {step['limit']:,} bits" in text


def test_approving_signs_as_the_command_does(world, owner):
    path = f"/jobs/{world.digest}/approve"
    page = owner.get(path)
    assert world.digest in words_of(page.text)
    assert not world.record.decisions
    reply = owner.post(path, owner.form(path))
    assert (reply.status, reply.header("location")) == (303, f"/jobs/{world.digest}")
    signed, decision = world.record.decisions["bank"]
    assert (decision.verdict, decision.digest) == ("approve", world.digest)
    assert proposals.read_decision(signed, keys_of(world.root, "lender")) == decision
    assert world.record.columns
    assert "Your decision" not in owner.get(f"/jobs/{world.digest}").text
    again = owner.post(path, {**owner.form(path), "digest": world.digest})
    assert again.status == 400
    assert "decided already" in again.text


def test_rejecting_tells_the_reason(world, owner):
    path = f"/jobs/{world.digest}/reject"
    fields = {**owner.form(path), "reason": "not\r\n with us"}
    assert owner.post(path, fields).status == 303
    decision = world.record.decisions["bank"][1]
    assert (decision.verdict, decision.words) == ("reject", "not with us")
    assert "not with us" in owner.get(f"/jobs/{world.digest}").text


def test_cancelling_ends_the_job(world, owner):
    path = f"/jobs/{world.digest}/cancel"
    assert owner.post(path, {**owner.form(path), "reason": "enough"}).status == 303
    assert world.record.final.verdict == "cancel"


def test_the_digest_of_the_form_must_be_that_of_the_job(world, owner):
    path = f"/jobs/{world.digest}/approve"
    fields = owner.form(path)
    assert owner.post(path, {**fields, "digest": "0" * 64}).status == 400
    assert owner.post(path, {**fields, "digest": world.digest[:8]}).status == 400
    short = f"/jobs/{world.digest[:8]}/approve"
    assert owner.post(short, {**fields, "digest": world.digest[:8]}).status == 400
    assert not world.record.decisions


@pytest.mark.parametrize("path", ["/jobs/abc", f"/jobs/{'0' * 64}", f"/jobs/{'0' * 64}/steal"])
def test_what_is_not_there_is_not_found(owner, path):
    reply = owner.get(path)
    assert reply.status == 404
    assert "Not found" in reply.text


class Tags(HTMLParser):
    """Names of all tags and attributes of a page."""

    def __init__(self):
        super().__init__()
        self.seen = set()

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        self.seen |= {name for name, _ in attrs}


def tags_of(html):
    tags = Tags()
    tags.feed(html)
    return tags.seen


def test_no_text_of_others_acts(world, owner):
    """A reason, a note, an error and a name of a column that would be markup."""
    harmless = tags_of(owner.get(f"/jobs/{world.digest}").text) | tags_of(owner.get("/jobs").text)
    keys = keys_of(world.root, "lender")
    signed = proposals.decide(world.digest, "lender", "reject", EVIL, keys)
    world.record.add(signed, proposals.Decision(world.digest, "lender", "reject", 0.0, EVIL))
    world.record.note = EVIL
    for path in ("/", "/jobs", f"/jobs/{world.digest}"):
        text = owner.get(path).text
        assert "<script>alert" not in text
        assert "<img src=x" not in text
        assert not re.search("[\x1b\u202e]", text)
        assert not {"onerror", "onclick"} & tags_of(text)
    assert "img" in harmless
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in owner.get(f"/jobs/{world.digest}").text


def test_no_name_in_a_job_acts(world, owner):
    """Name, table, label and class of a job are texts of its submitter.

    A service takes in no such name of a job; the pages would escape it all the same.
    """
    job = Job.load(world.root / "lender" / "credit.toml")
    part = msgspec.structs.replace(job.parties["lender"], table=EVIL, label=EVIL, positive=EVIL)
    job = msgspec.structs.replace(job, parties={**job.parties, "lender": part})
    keys = keys_of(world.root, "lender")
    signed = proposals.propose(EVIL, job, "lender", 60, keys)
    with pytest.raises(InputError, match="name of the model"):
        proposals.read_proposal(signed, "bank", ("lender", "bank", "shop"), keys)
    record = kept(world.service, signed)
    for path in ("/", "/jobs", f"/jobs/{record.digest}", f"/jobs/{record.digest}/approve"):
        text = owner.get(path).text
        assert "<script>alert" not in text
        assert "&lt;script&gt;alert(1)" in text
        assert not re.search("[\x1b\u202e]", text)
        assert "onerror" not in tags_of(text)
    assert "the positive class is &lt;script&gt;" in owner.get(f"/jobs/{record.digest}").text


def test_an_address_puts_no_words_into_the_owners_mouth(world, owner):
    """A link of somebody else must not fill in the reason that the owner signs."""
    text = owner.get(f"/jobs/{world.digest}/reject?reason=we%20like%20it").text
    assert "we like it" not in text


def test_without_script_a_page_that_is_read_is_not_loaded_again(owner, world):
    assert '<noscript><meta http-equiv="refresh"' in owner.get("/").text
    assert 'http-equiv="refresh"' not in owner.get(f"/jobs/{world.digest}").text


def test_a_service_that_is_away_is_named(world, owner):
    def away(command, **arguments):
        raise InputError("the service of this party does not run; <b>`vertikal party start`</b>")

    world.console.view.connection.ask = away
    for path in ("/", "/jobs", f"/jobs/{world.digest}"):
        reply = owner.get(path)
        assert reply.status == 503
        assert "does not run" in reply.text
        assert "<b>" not in reply.text.partition("does not run")[2].partition("</p>")[0]
        assert 'http-equiv="refresh"' in reply.text


def test_what_changes_comes_by_itself(world, owner):
    reply = owner.get(f"/live/jobs/{world.digest}", until=b"event: regions")
    assert reply.header("content-type").startswith("text/event-stream")
    assert reply.body.startswith(b"retry: ")
    assert b"asks for your approval" in reply.body
    assert world.console.streams.open == 0
    overview = owner.get("/live/overview", until=b"event: regions")
    assert world.record.id.encode() in overview.body


def test_a_stream_does_not_keep_its_session(world, owner, monkeypatch):
    used = []
    real = world.console.sessions.find

    def find(token, **how):
        used.append(how.get("used", True))
        return real(token, **how)

    monkeypatch.setattr(world.console.sessions, "find", find)
    owner.get("/live/overview", until=b"event: regions")
    # The request counts as use, the looks after it do not.
    assert used[0]
    assert not any(used[1:])
    assert len(used) > 1


def test_a_stream_ends_with_its_session(world, owner, monkeypatch):
    from vertikal.console import live

    monkeypatch.setattr(live, "PAUSE", 0.01)
    looked = []
    real = world.console.view.jobs

    def jobs():
        looked.append(True)
        world.console.sessions.end_all()
        return real()

    monkeypatch.setattr(type(world.console.view), "jobs", lambda self: jobs())
    reply = owner.get("/live/overview")
    assert reply.body.endswith(b"event: ended\ndata: {}\n\n")
    assert len(looked) == 1


def test_another_job_with_two_label_parties_is_drawn(world, owner):
    job = Job.load(world.root / "lender" / "credit.toml")
    signed = proposals.propose("other", job, "lender", 60, keys_of(world.root, "lender"))
    record = kept(world.service, signed)
    assert owner.get(f"/jobs/{record.digest}").status == 200
    assert words_of(owner.get("/jobs").text).index(record.id) < words_of(
        owner.get("/jobs").text
    ).index(world.record.id)


def test_following_a_job_tells_what_showing_it_does(world):
    shown = world.service.answer({"command": "show", "job": world.digest})
    followed = world.service.answer({"command": "follow", "job": world.digest})
    assert followed.pop("parties") == shown["details"]["parties"]
    assert followed == {key: one for key, one in shown.items() if key not in ("text", "details")}
