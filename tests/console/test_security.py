"""The guard of the console: links, sessions, roles, forms, hosts, and what browsers may do."""

from __future__ import annotations

import pytest

from tests.console.browser import ORIGIN, Browser, request
from vertikal.console import sessions as rules
from vertikal.console.guard import FORM_FIELD
from vertikal.console.sessions import APPROVER, VIEWER, Sessions
from vertikal.errors import InputError

PAGES = ("/", "/jobs", "/live/overview", "/nothing")


@pytest.mark.parametrize("path", PAGES)
def test_nobody_sees_a_page_without_a_session(world, path):
    reply = world.stranger().get(path)
    assert reply.status == 401
    assert "vertikal console" in reply.text
    assert "credit" not in reply.text
    assert "lender" not in reply.text


def test_a_job_is_hidden_from_who_has_no_session(world):
    reply = world.stranger().get(f"/jobs/{world.digest}")
    assert reply.status == 401
    assert world.digest not in reply.text


def test_a_link_is_good_once(world):
    token = world.console.sessions.make_link(APPROVER)
    first, second = world.stranger(), world.stranger()
    assert first.get(f"/enter?token={token}").status == 200
    assert first.get("/").status == 200
    late = second.get(f"/enter?token={token}")
    assert late.status == 401
    assert "used already" in late.text
    assert second.cookies == {}
    assert second.get("/").status == 401


def test_asking_for_headers_uses_no_link_up(world):
    token = world.console.sessions.make_link(APPROVER)
    stranger = world.stranger()
    assert request(stranger.application, "HEAD", f"/enter?token={token}").status == 401
    assert stranger.get(f"/enter?token={token}").status == 200


def test_a_wrong_token_opens_nothing(world):
    world.console.sessions.make_link(APPROVER)
    for token in ("", "x", "0" * 43):
        assert world.stranger().get(f"/enter?token={token}").status == 401
    assert world.stranger().get("/enter").status == 401
    forged = Browser(world.console.admitting(), {world.console.cookie: "guess"})
    assert forged.get("/").status == 401


def test_the_cookie_is_for_this_site_alone(world):
    token = world.console.sessions.make_link(APPROVER)
    cookie = world.stranger().get(f"/enter?token={token}").header("set-cookie").lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "path=/" in cookie
    assert "secure" not in cookie
    assert "domain" not in cookie
    world.console.origins = ("https://127.0.0.1:8601",)
    token = world.console.sessions.make_link(APPROVER)
    cookie = world.stranger().get(f"/enter?token={token}").header("set-cookie").lower()
    assert "secure" in cookie


def test_every_answer_forbids_what_it_can(world, owner):
    replies = [
        owner.get("/"),
        owner.get("/jobs"),
        owner.get("/nothing"),
        owner.get("/static/console.css"),
        world.stranger().get("/"),
        world.stranger().get("/", host="evil.example"),
    ]
    for reply in replies:
        policy = reply.header("content-security-policy")
        assert policy.startswith("default-src 'none'; ")
        assert "unsafe" not in policy
        assert "http" not in policy
        assert "frame-ancestors 'none'" in policy
        assert "form-action 'self'" in policy
        assert reply.header("cache-control") == "no-store"
        assert reply.header("x-content-type-options") == "nosniff"
        assert reply.header("x-frame-options") == "DENY"
        assert reply.header("referrer-policy") == "same-origin"


def test_pages_have_no_script_or_style_of_their_own(world, owner):
    for path in ("/", "/jobs", f"/jobs/{world.digest}", f"/jobs/{world.digest}/approve"):
        text = owner.get(path).text
        assert "<script>" not in text
        assert " style=" not in text
        assert "<style" not in text
        assert " onclick=" not in text
        assert "https://" not in text.replace(ORIGIN, "")


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8601", "127.0.0.1", "127.0.0.1:9", "127.0.0.1:8601.x"]
)
def test_another_host_is_refused(world, owner, host):
    reply = owner.get("/", host=host)
    assert reply.status == 403
    assert "lender" not in reply.text
    assert owner.post(f"/jobs/{world.digest}/approve", {}, host=host).status == 403


def test_two_hosts_are_refused(owner):
    cookie = "; ".join(f"{name}={value}" for name, value in owner.cookies.items())
    hosts = {"host": ["127.0.0.1:8601", "evil.example"], "cookie": cookie}
    assert request(owner.application, "GET", "/", hosts).status == 403


def test_localhost_is_this_console(owner):
    assert owner.get("/", host="localhost:8601").status == 200


def test_a_page_of_another_site_cannot_ask(world, owner):
    path = f"/jobs/{world.digest}/reject"
    fields = owner.form(path)
    for headers in (
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ):
        assert owner.post(path, fields, **headers).status == 403
    cookie = owner.headers()
    no_origin = {**cookie, "content-type": "application/x-www-form-urlencoded"}
    assert request(owner.application, "POST", path, no_origin, b"").status == 403
    assert owner.get("/live/overview", **{"sec-fetch-site": "cross-site"}).status == 403
    assert not world.record.decisions


def test_a_link_from_elsewhere_may_lead_to_a_page(owner):
    headers = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert owner.get("/", **headers).status == 200


def test_a_change_needs_the_token_of_its_session(world, owner):
    path = f"/jobs/{world.digest}/reject"
    fields = owner.form(path)
    other = world.browser().form(path)
    for wrong in ("", "0" * 64, other[FORM_FIELD]):
        reply = owner.post(path, {**fields, FORM_FIELD: wrong})
        assert reply.status == 403
        assert "Nothing was done" in reply.text
    missing = {key: value for key, value in fields.items() if key != FORM_FIELD}
    assert owner.post(path, missing).status == 403
    assert not world.record.decisions
    assert owner.post(path, fields).status == 303
    assert world.record.verdict("bank") == "reject"


def test_a_viewer_decides_nothing(world, viewer):
    page = viewer.get(f"/jobs/{world.digest}")
    assert page.status == 200
    assert "Approve" not in page.text
    for verdict in ("approve", "reject", "cancel"):
        path = f"/jobs/{world.digest}/{verdict}"
        assert viewer.get(path).status == 403
        refused = viewer.post(path, {**viewer.token(), "digest": world.digest})
        assert refused.status == 403
        assert "for looking" in refused.text
    assert not world.record.decisions


def test_who_signs_out_is_out(world, owner):
    assert owner.post("/sign-out", {}).status == 403
    assert owner.get("/").status == 200
    assert "has ended" in owner.post("/sign-out", owner.token()).text
    assert owner.get("/").status == 401
    assert [event for event, _ in world.noted] == ["console session", "console session ended"]


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_other_methods_are_refused(owner, method):
    assert request(owner.application, method, "/", owner.headers()).status in (403, 405)


def test_a_form_is_read_within_limits(world, owner):
    path = f"/jobs/{world.digest}/reject"
    assert owner.post(path, {}, **{"content-type": "text/plain"}).status == 415
    assert owner.post(path, {"reason": "x" * (5 << 20)}).status == 413
    many = {f"f{number}": "" for number in range(60)}
    assert owner.post(path, many).status == 400
    fields = owner.form(path)
    assert owner.post(path, {**fields, "reason": "x" * 501}).status == 400
    assert not world.record.decisions


class Clock:
    def __init__(self):
        self.now = 1_000_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def timed(tmp_path):
    clock = Clock()
    return Sessions(tmp_path / "timed", clock), clock


def test_a_link_ends(timed):
    sessions, clock = timed
    token = sessions.make_link(VIEWER)
    clock.now += rules.LINK_LIFE
    assert sessions.enter(token) is None
    clock.now -= 1
    assert sessions.enter(token) is None


def test_a_session_ends_by_itself(timed):
    sessions, clock = timed
    token, session = sessions.enter(sessions.make_link(APPROVER))
    assert sessions.find(token) == session
    began = clock.now
    while clock.now + 1800 < began + rules.SESSION_LIFE:
        clock.now += 1800
        assert sessions.find(token) == session
    clock.now = began + rules.SESSION_LIFE
    assert sessions.find(token) is None


def test_a_session_that_nobody_uses_ends(timed):
    sessions, clock = timed
    token, _ = sessions.enter(sessions.make_link(APPROVER))
    clock.now += rules.IDLE_LIFE - 1
    assert sessions.find(token) is not None
    clock.now += rules.IDLE_LIFE
    assert sessions.find(token) is None


def test_a_page_that_is_left_open_does_not_keep_its_session(timed):
    sessions, clock = timed
    token, _ = sessions.enter(sessions.make_link(APPROVER))
    for _ in range(4):
        assert sessions.find(token, used=False) is not None
        clock.now += rules.IDLE_LIFE / 4
    assert sessions.find(token, used=False) is None
    assert sessions.find(token) is None


def test_only_digests_are_on_disk(timed, tmp_path):
    sessions, _ = timed
    link = sessions.make_link(APPROVER)
    token, _ = sessions.enter(link)
    other = sessions.make_link(VIEWER)
    for path in (tmp_path / "timed").iterdir():
        text = path.name + path.read_text()
        assert not any(secret in text for secret in (link, token, other))
        assert path.stat().st_mode & 0o077 == 0


def test_sessions_outlive_the_console_and_all_can_be_ended(timed, tmp_path):
    sessions, clock = timed
    token, session = sessions.enter(sessions.make_link(VIEWER))
    link = sessions.make_link(APPROVER)
    again = Sessions(tmp_path / "timed", clock)
    assert again.find(token) == session
    assert again.find(token).role == VIEWER
    assert again.end_all() == 1
    assert sessions.find(token) is None
    assert sessions.enter(link) is None


def test_a_role_is_one_of_two(timed):
    with pytest.raises(InputError, match="role"):
        timed[0].make_link("owner")
