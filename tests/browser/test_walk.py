"""The console in a real browser, with three real services: the whole walk by clicking."""

from __future__ import annotations

import re

import pytest

from tests.browser.chromium import launched
from tests.organisations import RULE, lay_out, write_job
from tests.service_processes import ServiceProcesses
from tests.waiting import until
from vertikal.client.connection import Connection
from vertikal.console.server import ConsoleServer
from vertikal.node.config.party_file import ConsoleAddress
from vertikal.node.control import ask

EVIL = '<img src=x onerror="document.title=1"><script>document.title=2</script>'
PATIENT = 90_000
"""Milliseconds that a step may take on a busy machine."""


@pytest.fixture(scope="module")
def browser():
    with launched() as found:
        yield found


@pytest.fixture(scope="module")
def services(tmp_path_factory):
    root = tmp_path_factory.mktemp("walk")
    lay_out(root, rows=240, policy={"shop": RULE})
    write_job(
        root,
        directions=32,
        settings='disclosure = "open"',
        rest="[evaluation]\nholdout = 0.25\ncontributions = true",
    )
    processes = ServiceProcesses(root)
    try:
        processes.start("lender", "bank", "shop")
        processes.connected()
        yield processes
    finally:
        processes.stop()


class Desk:
    """The console of one party, and a page in the browser of its owner."""

    def __init__(self, browser, root, name):
        self.connection = Connection.to(root / name / "party.toml")
        self.server = ConsoleServer(self.connection)
        self.origin = self.server.start()
        self.page = browser.new_context().new_page()
        self.page.set_default_timeout(PATIENT)
        self.faults = []
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("dialog", lambda dialog: self.faults.append(dialog.message))

    def enter(self, role="approver"):
        self.page.goto(self.server.place.link(self.origin, role))
        self.page.wait_for_url(f"{self.origin}/")

    def go(self, path):
        self.page.goto(self.origin + path)

    def close(self):
        self.page.context.close()
        self.server.stop()


@pytest.fixture
def desk(browser, services):
    opened = []

    def open_desk(name):
        one = Desk(browser, services.root, name)
        opened.append(one)
        return one

    yield open_desk
    for one in opened:
        one.close()
        assert one.faults == []


def submitted(services, name):
    """The digest of the lender's job under this name, once the bank has it."""
    services.tell("lender", "job", "submit", "credit.toml", "--name", name)
    digest = next(one["digest"] for one in services.jobs("lender") if one["name"] == name)
    until(lambda: any(one["digest"] == digest for one in services.jobs("bank")), "the bank has it")
    return digest


def modelled(services, name):
    """The digest of a job that is done, with a model at everybody."""
    digest = submitted(services, name)
    services.tell("bank", "job", "approve", digest)
    for party in ("lender", "bank", "shop"):
        until(lambda party=party: _job(services, party, digest)["done"], f"{party} is done")
    return digest


def _job(services, name, digest):
    return next(one for one in services.jobs(name) if one["digest"] == digest)


def _state(services, name, digest):
    return _job(services, name, digest)["state"]


def axe_errors(page):
    """Serious and critical errors of accessibility, by axe-core."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    found = axe.Axe().run(page).response["violations"]
    return [
        f"{one['id']}: {[node['html'][:120] for node in one['nodes']]}"
        for one in found
        if one["impact"] in ("serious", "critical")
    ]


@pytest.mark.slow
def test_an_owner_decides_watches_scores_and_cancels(services, desk):
    digest = submitted(services, "credit")
    bank, lender = desk("bank"), desk("lender")
    bank.go("/enter?token=wrong")
    assert bank.page.get_by_text("used already, or is too old").is_visible()
    bank.enter()
    bank.page.get_by_role("link", name="Read and decide").click()
    for text in ("Who sends what to whom in training", "What each receiver can learn"):
        bank.page.get_by_role("heading", name=text).wait_for()
    assert bank.page.get_by_text("blind source separation still recovers").first.is_visible()
    assert bank.page.locator("svg[aria-label^='Flow diagram']").is_visible()
    assert bank.page.get_by_text("You have none: every job waits for you").is_visible()
    assert axe_errors(bank.page) == []
    _forge(bank, digest)
    assert _state(services, "bank", digest) == "asks for your approval"
    bank.page.get_by_role("link", name="Approve …").click()
    assert bank.page.locator(".digestbox").inner_text().endswith(digest)
    assert _state(services, "bank", digest) == "asks for your approval"
    bank.page.get_by_role("button", name="Approve and sign").click()
    # Without a reload: the state comes by itself.
    bank.page.locator("#state .done").wait_for()
    assert bank.page.locator("#state").inner_text().strip() == "done"
    bank.page.get_by_role("heading", name="What left this party").wait_for()
    assert bank.page.locator("svg[aria-label^='Bar chart: Bytes sent by stage']").is_visible()
    assert "approve, signed" in bank.page.locator("#decisions tr", has_text="bank").inner_text()

    services.done()
    lender.enter()
    lender.page.get_by_role("link", name="Models").click()
    lender.page.get_by_role("link", name="credit").first.click()
    lender.page.locator("svg[aria-label^='Line chart: ROC']").wait_for()
    assert lender.page.locator("svg[aria-label^='Bar chart: AUC lost']").is_visible()
    lender.page.get_by_label("Ids, one a line").fill("1001\n1002\nnobody")
    lender.page.get_by_role("button", name="Score").click()
    lender.page.get_by_role("heading", name="Scores").wait_for()
    rows = lender.page.locator("tbody tr").all_inner_texts()
    assert [row.split("\t")[:2] for row in rows] == [
        ["1001", "ok"],
        ["1002", "ok"],
        ["nobody", "unknown"],
    ]
    with lender.page.expect_download() as download:
        lender.page.get_by_role("link", name="Download CSV").click()
    assert download.value.path().read_text().startswith("id,status,")

    # A name that is markup is no name; the longest one that there may be breaks no page.
    refused = services.tell("lender", "job", "submit", "credit.toml", "--name", EVIL, code=1)
    assert "name of the model" in refused
    other = submitted(services, "W" * 64)
    lender.page.set_viewport_size({"width": 360, "height": 640})
    lender.go(f"/jobs/{other}")
    assert lender.page.evaluate("document.documentElement.scrollWidth") <= 360
    lender.page.get_by_role("link", name="Cancel this job").click()
    lender.page.get_by_label("Reason").fill(EVIL)
    lender.page.get_by_role("button", name="Cancel the job").click()
    lender.page.locator("#state .ended").wait_for()
    until(lambda: "cancelled" in _state(services, "bank", other), "the bank hears of it")
    bank.go(f"/jobs/{other}")
    assert bank.page.get_by_text('onerror="document.title').first.is_visible()
    assert bank.page.title().startswith("W" * 64)


def _forge(desk, digest):
    """Send the form of an approval from a page of another site, in the owner's browser."""
    forged = desk.page.context.new_page()
    forged.set_default_timeout(PATIENT)
    forged.set_content(
        f'<form method="post" action="{desk.origin}/jobs/{digest}/approve">'
        f'<input name="digest" value="{digest}"><button>go</button></form>'
    )
    forged.get_by_role("button").click()
    forged.get_by_role("heading", name="Not allowed").wait_for()
    forged.close()


@pytest.mark.slow
def test_a_reason_of_another_party_does_nothing(services, desk):
    digest = submitted(services, "other")
    bank, lender = desk("bank"), desk("lender")
    bank.enter()
    bank.go(f"/jobs/{digest}/reject")
    bank.page.get_by_label("Reason").fill(EVIL)
    bank.page.get_by_role("button", name="Reject and sign").click()
    lender.enter()
    until(lambda: "rejected" in _state(services, "lender", digest), "the lender hears of it")
    for path in (f"/jobs/{digest}", "/jobs", "/audit"):
        lender.go(path)
        assert lender.page.get_by_text('onerror="document.title').first.is_visible()
        assert lender.page.title().endswith(" · lender")


@pytest.mark.slow
def test_who_may_look_cannot_decide(services, desk):
    digest = submitted(services, "looked-at")
    bank = desk("bank")
    bank.enter("viewer")
    bank.page.get_by_role("link", name="Read it").click()
    bank.page.get_by_text("You may look, and not decide").wait_for()
    assert bank.page.get_by_role("link", name="Approve …").count() == 0
    bank.go(f"/jobs/{digest}/approve")
    assert bank.page.get_by_text("for looking only").is_visible()
    assert _state(services, "bank", digest) == "asks for your approval"


@pytest.mark.slow
def test_many_pages_of_one_browser_all_load(services, desk):
    """A browser opens six connections to a site: pages that watch must leave some of them."""
    bank = desk("bank")
    bank.enter()
    for _ in range(9):
        page = bank.page.context.new_page()
        page.goto(f"{bank.origin}/", timeout=20_000)
    bank.page.get_by_text("This page is not live now").wait_for()
    # Who comes back to a page sees it live again.
    bank.page.evaluate("window.dispatchEvent(new Event('focus'))")
    bank.page.locator("#notice").wait_for(state="hidden")


@pytest.mark.slow
def test_a_lost_connection_and_a_service_that_starts_again_are_told(services, desk):
    bank = desk("bank")
    bank.enter()
    notice = bank.page.locator("#notice")
    services.running["bank"].terminate()
    services.ended("bank")
    notice.wait_for()
    until(lambda: "does not run" in notice.inner_text(), "the page says so")
    services.start("bank")
    services.connected()
    notice.wait_for(state="hidden")
    bank.server.stop()
    notice.wait_for()
    assert "trying again" in notice.inner_text()
    bank.server = ConsoleServer(
        bank.connection, ConsoleAddress(bank.origin.removeprefix("http://"))
    )
    bank.server.start()
    # The session is still known.
    notice.wait_for(state="hidden")
    assert bank.page.get_by_role("heading", name="Parties").is_visible()


@pytest.mark.slow
@pytest.mark.parametrize("look", ["light", "dark", "narrow"])
def test_every_page_is_accessible_and_loads_nothing_from_elsewhere(services, desk, look):
    job = modelled(services, f"seen-{look}")
    waits = submitted(services, f"asked-{look}")
    model = f"/models/seen-{look}/1"
    bank, lender = desk("bank"), desk("lender")
    asked = []
    for one in (bank, lender):
        one.page.on("request", lambda request: asked.append(request.url))
        if look == "dark":
            one.page.emulate_media(color_scheme="dark")
        if look == "narrow":
            one.page.set_viewport_size({"width": 360, "height": 640})
        one.enter()
    bank_paths = ("/", "/jobs", f"/jobs/{job}", f"/jobs/{waits}", "/tables", "/audit", "/nothing")
    verdicts = [f"/jobs/{waits}/{one}" for one in ("approve", "reject", "cancel")]
    compared = f"/models/compare?first=seen-{look}:1&second=seen-{look}:1"
    for one, paths in (
        (bank, [*bank_paths, *verdicts]),
        (lender, ["/models", model, f"{model}/delete", compared]),
    ):
        for path in paths:
            one.go(path)
            assert (path, axe_errors(one.page)) == (path, [])
            width = one.page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert (path, width) == (path, 0)
    origins = {bank.origin, lender.origin}
    assert {re.match(r"\w+://[^/]+", url)[0] for url in asked} == origins
    bank.go("/")
    bank.page.keyboard.press("Tab")
    assert bank.page.evaluate("document.activeElement.textContent") == "Skip to the content"


@pytest.mark.slow
def test_without_script_an_owner_reads_and_decides(services, browser, desk):
    digest = submitted(services, "plain")
    bank = desk("bank")
    page = browser.new_context(java_script_enabled=False).new_page()
    page.set_default_timeout(PATIENT)
    page.goto(bank.server.place.link(bank.origin, "approver"))
    page.goto(f"{bank.origin}/jobs/{digest}")
    page.get_by_role("link", name="Reject …").click()
    page.get_by_label("Reason").fill("not now")
    page.get_by_role("button", name="Reject and sign").click()
    page.locator("#state .ended").wait_for()
    assert ask(bank.connection.store, "show", job=digest)["state"] == "rejected by bank"
