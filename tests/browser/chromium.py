"""The system's Chromium, driven by Playwright; tests skip where there is none, and say how to."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
REMEDY = "apt-get install chromium"
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def find_chromium() -> str | None:
    """Find the browser; as root on Debian, install it if it is not there."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        command = ["apt-get", "install", "-y", "--no-install-recommends", "chromium"]
        subprocess.run(command, capture_output=True, timeout=240, check=False)
        found = next(filter(None, map(shutil.which, NAMES)), None)
    return found


@contextmanager
def launched() -> Iterator[Any]:
    """A browser without a window."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install 'vertikal[dev]'"
    )
    path = find_chromium()
    if path is None:
        pytest.skip(f"no Chromium: {REMEDY}")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()
