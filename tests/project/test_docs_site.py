"""The documentation builds without a warning, is complete, and loads nothing from a network."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
SHORTEST_PAGE = 600
LOADED = re.compile(
    r"""<(?:script|img|iframe|link(?![^>]*rel=["']?canonical))\b[^>]*?\b(?:src|href)=["']?https?://"""
)


def build(root: Path, site: Path) -> str:
    """The output of a strict build of ``root`` into ``site``; fails on a warning."""
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    assert not re.search(r"^(?:WARNING|ERROR)", output, re.MULTILINE), output
    return output


def nav_pages(entry: object) -> list[str]:
    """The pages below one entry of mkdocs.yml's nav."""
    if isinstance(entry, str):
        return [entry]
    inner = entry.values() if isinstance(entry, dict) else entry
    return [page for child in inner for page in nav_pages(child)]


NAV = nav_pages(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    build(ROOT, folder)
    return folder


def test_the_site_builds(site):
    assert (site / "index.html").is_file()


def test_the_site_loads_nothing_from_a_network(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) >= len(NAV)
    assert [page.name for page in pages if LOADED.search(page.read_text(encoding="utf-8"))] == []


def test_every_page_is_in_the_nav():
    assert {page.name for page in ROOT.glob("docs/*.md")} == set(NAV)


@pytest.mark.parametrize("page", NAV)
def test_page_says_something(page):
    assert len((ROOT / "docs" / page).read_text(encoding="utf-8")) > SHORTEST_PAGE


def test_a_broken_link_is_caught(tmp_path):
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    (tmp_path / "docs").mkdir()
    for page in NAV:
        (tmp_path / "docs" / page).write_text("# Page\n")
    build(tmp_path, tmp_path / "site")
    (tmp_path / "docs" / "index.md").write_text("# Page\n\n[gone](absent.md)\n")
    with pytest.raises(AssertionError, match=r"absent\.md"):
        build(tmp_path, tmp_path / "site")


@pytest.mark.parametrize(
    ("html", "loads"),
    [
        ('<script src="https://cdn.example/x.js">', True),
        ('<link rel="stylesheet" href="https://fonts.example/x.css">', True),
        ('<link rel="canonical" href="https://example/">', False),
        ('<a href="https://example/">', False),
        ('<script src="assets/x.js">', False),
    ],
)
def test_what_counts_as_loading(html, loads):
    assert bool(LOADED.search(html)) is loads
