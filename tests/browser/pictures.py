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
from pathlib import Path
from typing import Any

from tests.browser.chromium import launched
from vertikal.demo.federation import FIRST, WAITING, DemoFederation, lay_out
from vertikal.node.control import ask

DOCS = Path(__file__).parents[2] / "docs" / "pictures"
MOST_BYTES = 100_000
WIDE, NARROW = {"width": 1200, "height": 860}, {"width": 390, "height": 800}


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


def main(folder: Path, docs: bool) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as root, launched() as browser:
        lay_out(Path(root), 1200, 0)
        federation = DemoFederation(Path(root))
        try:
            federation.start()
            first = federation.submit(FIRST)
            lender = Path(root) / "lender" / "store"
            until = time.monotonic() + 240
            while not ask(lender, "show", job=first)["done"]:
                if time.monotonic() > until:
                    raise TimeoutError(ask(lender, "show", job=first)["state"])
                time.sleep(0.3)
            waiting = federation.submit(WAITING)
            while not any(
                one["digest"] == waiting for one in ask(Path(root) / "bank" / "store", "list")
            ):
                time.sleep(0.2)
            looks = {
                "light": {"viewport": WIDE},
                "dark": {"viewport": WIDE, "color_scheme": "dark"},
                "narrow": {"viewport": NARROW},
            }
            pages = {
                look: enter(browser, federation.link("bank"), **one) for look, one in looks.items()
            }
            owners = {
                look: enter(browser, federation.link("lender"), **one)
                for look, one in looks.items()
            }
            places = {
                "overview": "/",
                "jobs": "/jobs",
                "job": f"/jobs/{waiting}",
                "approve": f"/jobs/{waiting}/approve",
                "done": f"/jobs/{first}",
                "tables": "/tables",
                "audit": "/audit",
            }
            for look, (page, origin) in pages.items():
                for name, place in places.items():
                    page.goto(origin + place)
                    take(page, folder / f"{name}-{look}.png")
                    if docs and look == "light" and name in ("overview", "job"):
                        take_small(page, name)
            for look, (page, origin) in owners.items():
                for name, place in {"models": "/models", "model": f"/models/{FIRST}/1"}.items():
                    page.goto(origin + place)
                    take(page, folder / f"{name}-{look}.png")
                if docs and look == "dark":
                    page.goto(f"{origin}/models/{FIRST}/1")
                    page.locator(".figures").first.scroll_into_view_if_needed()
                    take_small(page, "model")
            page, origin = pages["light"]
            page.goto(f"{origin}/jobs/{waiting}/approve")
            page.get_by_role("button", name="Approve and sign").click()
            page.get_by_role("heading", name="The run").wait_for(timeout=120_000)
            page.wait_for_timeout(1500)
            take(page, folder / "run-light.png")
            if docs:
                page.get_by_role("heading", name="The run").scroll_into_view_if_needed()
                take_small(page, "run")
        finally:
            federation.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), "--docs" in sys.argv)
