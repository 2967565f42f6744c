"""The report: self-contained, safe whatever the text, written whole, and small."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from tests.reporting.reading import HOSTILE
from vertikal.reporting import (
    BarGroup,
    Flow,
    Page,
    Series,
    bar_chart,
    bytes_text,
    flow_diagram,
    line_chart,
    seconds_text,
)
from vertikal.reporting.style import SCRIPT

VOID = {"meta", "link", "br", "img", "input", "hr"}


class Reader(HTMLParser):
    """Collects elements, and fails on tags that do not match."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts = ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts += data

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.tags)


def typical() -> Page:
    """The report of a job of three parties, as the benchmarks write it."""
    page = Page("Credit model", "Three parties", versions={"Vertikal": "0.1.0", "NumPy": "2.4"})
    page.add_facts({"AUC": "0.904", "Time": seconds_text(125)})
    page.add_text("First paragraph.\n\nSecond paragraph.")
    x = np.linspace(0, 1, 16_281)
    page.add_section("Quality")
    curves = [Series(f"model {i}", x, x ** (1 / i)) for i in range(2, 6)]
    page.add_figure(line_chart(curves, title="ROC", diagonal=True), "Four models.")
    loss = Series("loss", range(1, 301), np.exp(-np.arange(300) / 30))
    page.add_figure(line_chart([loss], title="Convergence", log_y=True), "Falls.")
    page.add_table(["Model", "AUC"], [["a", 0.9], ["b", 0.8]], "Quality.", highlight_row=0)
    page.add_section("Cost")
    stages = [
        BarGroup(s, {"bank": 2.0, "shop": 1.0, "telco": 4.0}) for s in ("align", "sum", "fit")
    ]
    page.add_figure(bar_chart(stages, title="Seconds", value_text=seconds_text))
    page.add_section("Traffic")
    flows = [
        Flow("shop", "bank", "phases", 33.3e6, True),
        Flow("telco", "bank", "phases", 33.3e6, True),
        Flow("bank", "shop", "row order", 130e3, False),
    ]
    page.add_figure(flow_diagram(["bank", "shop", "telco"], flows, label_parties=["bank"]))
    page.add_table(
        ["From", "To", "What", "Bytes"],
        [[f.source, f.target, f.what, bytes_text(f.size)] for f in flows],
        "Ledger.",
    )
    return page


def test_a_typical_report_is_well_formed_small_and_alone() -> None:
    html = typical().render()
    reader = Reader(html)
    assert 25_000 < len(html.encode()) < 80_000
    assert set(re.findall(r"[a-z]+://[^\"' ]*", html)) == {"http://www.w3.org/2000/svg"}
    for tag in ("link", "img", "iframe", "object", "embed", "base"):
        assert reader.count(tag) == 0
    assert not any(name in ("src", "srcset") for _, attrs in reader.tags for name in attrs)
    assert reader.count("script") == 1
    assert reader.count("svg") == 4
    assert reader.count("table") == 2


def test_the_same_input_gives_the_same_bytes() -> None:
    page = typical()
    assert page.render() == page.render() == typical().render()


def test_every_text_input_is_escaped() -> None:
    page = Page(HOSTILE, HOSTILE, versions={HOSTILE: HOSTILE})
    page.add_facts({HOSTILE: HOSTILE})
    for _ in range(4):
        page.add_section(HOSTILE)
        page.add_text(HOSTILE)
        page.add_table([HOSTILE], [[HOSTILE]], HOSTILE)
        page.add_figure(line_chart([Series(HOSTILE, [1], [1])], title=HOSTILE), HOSTILE)
    html = page.render()
    reader = Reader(html)
    assert reader.count("script") == 1
    assert reader.scripts == SCRIPT
    assert "alert(1)</script>" not in html
    assert "<nav>" in html
    html.encode("utf-8")


def test_only_its_own_script_may_run() -> None:
    html = typical().render()
    digest = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    policy = next(
        attrs["content"]
        for tag, attrs in Reader(html).tags
        if attrs.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert f"<script>{SCRIPT}</script>" in html


@pytest.mark.parametrize(("sections", "expected"), [(0, 0), (3, 0), (4, 4), (7, 7)])
def test_contents_appear_with_more_than_three_sections(sections: int, expected: int) -> None:
    page = Page("T")
    for i in range(sections):
        page.add_section(f"Part {i}")
    links = [attrs["href"] for tag, attrs in Reader(page.render()).tags if tag == "a"]
    assert links == [f"#s{i + 1}" for i in range(expected)]
    anchors = [attrs["id"] for tag, attrs in Reader(page.render()).tags if tag == "section"]
    assert anchors == [f"s{i + 1}" for i in range(sections)]


def test_blocks_keep_their_order_and_figures_in_a_row_share_a_line() -> None:
    page = Page("T")
    page.add_text("one")
    page.add_figure(line_chart([], width=300))
    page.add_figure(line_chart([], width=300))
    page.add_html("<hr>")
    page.add_figure(line_chart([], width=900))
    page.add_text("two")
    html = page.render()
    assert html.count('<div class="figures">') == 2
    assert html.count('<figure class="half" style="width:300px">') == 2
    assert html.count('<figure class="wide" style="width:900px">') == 1
    places = [html.index(part) for part in ("<p>one", "<figure", "<hr>", 'class="wide"', "<p>two")]
    assert places == sorted(places)


def test_paragraphs_footer_and_empty_page() -> None:
    page = Page("T", versions={"Vertikal": "1.2.3"})
    page.add_text("a\n\n\n\nb")
    html = page.render()
    assert "<p>a</p>" in html
    assert "<p>b</p>" in html
    assert "<span>Vertikal 1.2.3</span>" in html
    assert "<footer>" not in Page("T").render()
    Reader(Page("").render())


def test_write_returns_the_path_and_leaves_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    target.write_text("old")
    assert typical().write(str(target)) == target
    assert target.read_text(encoding="utf-8") == typical().render()
    assert list(tmp_path.iterdir()) == [target]


def test_a_failed_write_keeps_the_old_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "report.html"
    target.write_text("old")

    def fail(self: Path, other: Path) -> Path:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        typical().write(target)
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_the_report_appears_only_when_it_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "report.html"
    page = typical()
    complete = page.render()
    replace = Path.replace

    def watched(self: Path, other: Path) -> Path:
        assert not target.exists()
        assert self.parent == target.parent
        assert self.read_text(encoding="utf-8") == complete
        return replace(self, other)

    monkeypatch.setattr(Path, "replace", watched)
    page.write(target)
    assert target.exists()
