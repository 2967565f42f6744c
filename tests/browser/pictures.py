"""Pictures of all pages of the console: `python -m tests.browser.pictures FOLDER`.

They are taken in light, in dark and on a narrow screen, of the federation of `vertikal demo
--console`. With `--docs` the few that the documentation shows are written to docs/pictures, small
enough to be kept there.
"""

from __future__ import annotations

import base64
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.browser.chromium import launched
from vertikal.console.pages.overview import ASKS
from vertikal.demo.federation import FIRST, NAMES, WAITING, DemoFederation, lay_out
from vertikal.node.control import ask

DOCS = Path(__file__).parents[2] / "docs" / "pictures"
MOST_BYTES = 100_000
WIDE, NARROW = {"width": 1200, "height": 860}, {"width": 390, "height": 800}
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"viewport": WIDE},
    "dark": {"viewport": WIDE, "color_scheme": "dark"},
    "narrow": {"viewport": NARROW},
}
LONG, DIRECTIONS = "credit-long", 3072
"""Name of a job that takes long enough to be looked at, and its directions."""
PATIENCE = 240.0
NONE: Mapping[str, str] = {}


def enter(browser: Any, link: str, **options: Any) -> tuple[Any, str]:
    """A page of the console whose link this is, and its address."""
    page = browser.new_context(**options).new_page()
    origin = link.partition("/enter")[0]
    page.goto(link)
    page.wait_for_url(f"{origin}/")
    return page, origin


def take(page: Any, path: Path) -> None:
    """Write the whole page as a picture."""
    page.wait_for_load_state("load")
    page.screenshot(path=path, full_page=True)
    print(path)


def take_small(page: Any, name: str) -> None:
    """Write what a window of usual size shows, in a format that takes little room."""
    page.wait_for_load_state("load")
    session = page.context.new_cdp_session(page)
    wanted = {"format": "webp", "quality": 82}
    raw = base64.b64decode(session.send("Page.captureScreenshot", wanted)["data"])
    if len(raw) > MOST_BYTES:
        raise ValueError(f"{name} has {len(raw)} bytes, more than {MOST_BYTES}")
    DOCS.mkdir(exist_ok=True)
    (DOCS / f"console-{name}.webp").write_bytes(raw)
    print(name, len(raw))


def until(met: Callable[[], bool], what: str) -> None:
    """Wait for something that three services bring about."""
    began = time.monotonic()
    while not met():
        if time.monotonic() - began > PATIENCE:
            raise TimeoutError(f"not within {PATIENCE:g} s: {what}")
        time.sleep(0.2)


class Album:
    """Pages of one party in all looks; pictures of them go to one folder."""

    def __init__(self, browser: Any, federation: DemoFederation, party: str, folder: Path) -> None:
        self._folder = folder
        self.pages = {
            look: enter(browser, federation.link(party), **one) for look, one in LOOKS.items()
        }

    def take(self, places: Mapping[str, str], small: Mapping[str, str] = NONE) -> None:
        """Take pictures of places by name; ``small`` says in which look the docs show one."""
        for look, (page, origin) in self.pages.items():
            for name, place in places.items():
                page.goto(origin + place)
                take(page, self._folder / f"{name}-{look}.png")
                if small.get(name) == look:
                    take_small(page, name)

    def press(self, place: str, button: str, name: str) -> None:
        """Take pictures of what a button of a page leads to."""
        for look, (page, origin) in self.pages.items():
            page.goto(origin + place)
            page.get_by_role("button", name=button).click()
            take(page, self._folder / f"{name}-{look}.png")


def main(folder: Path, docs: bool) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary, launched() as browser:
        root = Path(temporary)
        lay_out(root, 1200, 0)
        jobs = root / "lender"
        long_one = (
            (jobs / f"{FIRST}.toml")
            .read_text()
            .replace("= 256", f"= {DIRECTIONS}\nalpha = 1e-6\ntol = 1e-9\nmax_iter = 400")
        )
        (jobs / f"{LONG}.toml").write_text(long_one)
        federation = DemoFederation(root)
        try:
            federation.start()
            picture(browser, federation, root, folder, docs)
        finally:
            federation.stop()


def picture(browser: Any, federation: DemoFederation, root: Path, folder: Path, docs: bool) -> None:
    def job(party: str, digest: str) -> dict[str, Any]:
        found = [one for one in ask(root / party / "store", "list") if one["digest"] == digest]
        return found[0] if found else {"state": "", "done": False}

    strange = browser.new_context(viewport=WIDE).new_page()
    strange.goto(federation.link("bank").partition("?")[0] + "?token=wrong")
    take(strange, folder / "refused-light.png")
    bank, lender = (Album(browser, federation, name, folder) for name in ("bank", "lender"))
    lender.take({"overview-empty": "/", "jobs-empty": "/jobs", "models-empty": "/models"})
    first = federation.submit(FIRST)
    until(lambda: all(job(name, first)["done"] for name in NAMES), "the first job is done")
    waiting = federation.submit(WAITING)
    until(lambda: job("bank", waiting)["state"] == ASKS, "the bank is asked")
    shown = {"overview": "light", "job": "light"} if docs else NONE
    bank.take(
        {
            "overview": "/",
            "jobs": "/jobs",
            "job": f"/jobs/{waiting}",
            "approve": f"/jobs/{waiting}/approve",
            "reject": f"/jobs/{waiting}/reject",
            "done": f"/jobs/{first}",
            "tables": "/tables",
            "audit": "/audit",
            "missing": "/jobs/none",
        },
        shown,
    )
    bank.press("/tables", "Check now", "checked")
    bank.press("/audit", "Verify the whole log", "verified")
    lender.take({"cancel": f"/jobs/{waiting}/cancel"})
    page, origin = bank.pages["light"]
    page.goto(f"{origin}/jobs/{waiting}/approve")
    page.get_by_role("button", name="Approve and sign").click()
    until(lambda: all(job(name, waiting)["done"] for name in NAMES), "the waiting job is done")
    model = f"/models/{FIRST}/1"
    lender.take(
        {
            "models": "/models",
            "compared": f"/models/compare?first={FIRST}:1&second={WAITING}:1",
            "delete": f"{model}/delete",
            "model": model,
        },
    )
    for look, (page, origin) in lender.pages.items():
        page.goto(origin + model)
        if docs and look == "dark":
            page.locator(".figures").first.scroll_into_view_if_needed()
            take_small(page, "model")
        page.get_by_label("Ids, one a line").fill("10001\n10002\n10003\nnobody")
        page.get_by_role("button", name="Score").click()
        page.get_by_role("heading", name="Scores").wait_for(timeout=120_000)
        take(page, folder / f"scores-{look}.png")
    run = federation.submit(LONG)
    until(lambda: "solve" in job("lender", run)["state"], "the long job is solved")
    for look, (page, origin) in lender.pages.items():
        page.goto(f"{origin}/jobs/{run}")
        page.wait_for_timeout(1500)
        take(page, folder / f"run-{look}.png")
        if docs and look == "light":
            page.get_by_role("heading", name="The run").scroll_into_view_if_needed()
            take_small(page, "run")
        page.goto(f"{origin}/")
        take(page, folder / f"overview-run-{look}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]), "--docs" in sys.argv)
