"""Pages: self-contained, safe whatever the text; charts that stand alone."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.reporting.reading import HOSTILE
from vertikal.reporting.bar_chart import bar_chart
from vertikal.reporting.flow_diagram import Flow, flow_diagram
from vertikal.reporting.line_chart import Series, line_chart
from vertikal.reporting.rendering import Cell, render_page, stand_alone
from vertikal.reporting.units import seconds_text

VOID = {"meta", "link", "br", "img", "input", "hr"}
PARTIES = [f"p{i}" for i in range(8)]
FLOWS = [Flow(a, b, "x", 1, a < b) for a in PARTIES for b in PARTIES if a != b]
CHARTS = [
    line_chart([Series("a", range(50), range(50)), Series("b", [], [], dashed=True)]),
    line_chart([Series("a", [1], [1])], x_label="x", y_label="y", title="t", diagonal=True),
    line_chart([Series("a", [1, 2], [1, 2], dashed=True)] * 9),
    line_chart([]),
    bar_chart({"a": {"x": 1, "y": 2}}, value_text=seconds_text),
    flow_diagram(PARTIES, FLOWS, label_parties=["p0"]),
    flow_diagram(PARTIES[:2], FLOWS[:1]),
]


class Reader(HTMLParser):
    """Collects elements, and fails on tags that do not match."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
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
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data)

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.tags)


PAGE = """
{% extends "page.html" %}
{% from "blocks.html" import section, facts, figure, table with context %}
{% block lead %}<p>{{ text }}</p>{{ facts({text: text}) }}{% endblock %}
{% block sections %}
{% for heading in sections %}
{% call section(heading) %}
<div class="figures">{% for chart in charts %}{{ figure(chart, text) }}{% endfor %}</div>
{{ table([text, "b"], rows, text, best=1) }}
{% endcall %}
{% endfor %}
{% endblock %}
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Render a page of a package that has one template, which uses every block."""
    package = tmp_path_factory.mktemp("packages") / "page_of_a_guest"
    (package / "templates").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "templates" / "guest.html").write_text(PAGE)

    def render(
        text: str = "words",
        sections: Sequence[str] = ("Quality", "Cost"),
        rows: Sequence[Sequence[Cell]] = (("bank", 1), ("shop", 2)),
        charts: Sequence[str] = CHARTS,
    ) -> str:
        return render_page(
            package.name,
            "guest.html",
            title=text,
            subtitle=text,
            versions={text: "1.2.3"},
            text=text,
            sections=sections,
            rows=rows,
            charts=charts,
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(package.parent)
        yield render


def test_a_page_is_well_formed_and_loads_nothing(page: Any) -> None:
    html = page()
    reader = Reader(html)
    assert set(re.findall(r"[a-z]+://[^\"' ]*", html)) == {"http://www.w3.org/2000/svg"}
    for tag in ("link", "img", "iframe", "object", "embed", "base"):
        assert reader.count(tag) == 0
    assert not any(name in ("src", "srcset") for _, attrs in reader.tags for name in attrs)
    for words in ("url(", "@import", "@font-face", "fetch(", "XMLHttpRequest"):
        assert words not in html
    assert reader.count("svg") == 2 * len(CHARTS)
    assert "words 1.2.3" in reader.texts["span"]


def test_the_same_input_gives_the_same_bytes(page: Any) -> None:
    assert page() == page()


def test_only_its_own_script_may_run(page: Any) -> None:
    reader = Reader(page())
    (script,) = reader.texts["script"]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = (
        attrs["content"]
        for tag, attrs in reader.tags
        if attrs.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy == (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    )


def test_hostile_text_stays_text(page: Any) -> None:
    charts = [
        line_chart([Series(HOSTILE, [1], [1])], title=HOSTILE, x_label=HOSTILE, y_label=HOSTILE)
    ]
    html = page(HOSTILE, [HOSTILE] * 4, [[HOSTILE, None], [HOSTILE, 1]], charts)
    reader = Reader(html)
    assert reader.count("script") == 1
    assert "alert(1)</script>" not in html
    (title,) = reader.texts["h1"]
    assert title == "<script>alert(1)</script>\"'&\ufffd\ufffd"
    html.encode("utf-8")


@pytest.mark.parametrize(("sections", "expected"), [(0, 0), (3, 0), (4, 4), (7, 7)])
def test_contents_appear_with_more_than_three_sections(
    page: Any, sections: int, expected: int
) -> None:
    reader = Reader(page(sections=[f"Part {i}" for i in range(sections)], charts=[]))
    links = [attrs["href"] for tag, attrs in reader.tags if tag == "a"]
    assert links == [f"#s{i + 1}" for i in range(expected)]
    anchors = [attrs["id"] for tag, attrs in reader.tags if tag == "section"]
    assert anchors == [f"s{i + 1}" for i in range(sections)]


@pytest.mark.parametrize(
    ("cells", "right", "expected"),
    [
        ([0, None, 32561], True, ["0", "–", "32561"]),
        (["33.3 MB", "< 1 µs"], True, ["33.3 MB", "< 1 µs"]),
        (["0.904 ± 0.003", "−1"], True, ["0.904 ± 0.003", "−1"]),
        (["bank", "3 shops"], False, ["bank", "3 shops"]),
        ([None], False, ["–"]),
    ],
)
def test_numbers_in_a_table_are_flush_right(
    page: Any, cells: list[Cell], right: bool, expected: list[str]
) -> None:
    reader = Reader(page(sections=["S"], charts=[], rows=[("a", cell) for cell in cells]))
    found = [attrs for tag, attrs in reader.tags if tag == "td"]
    assert [("class" in attrs) for attrs in found[1::2]] == [right] * len(cells)
    assert reader.texts["td"][1::2] == expected


def test_one_row_of_a_table_stands_out(page: Any) -> None:
    reader = Reader(page(sections=["S"], charts=[]))
    assert [attrs.get("class") for tag, attrs in reader.tags if tag == "tr"] == [None, None, "best"]


def test_an_empty_table_says_so_and_an_uneven_one_is_refused(page: Any) -> None:
    assert "no rows" in page(rows=[])
    with pytest.raises(ValueError, match="one cell per header"):
        page(rows=[("bank",)])


@pytest.mark.parametrize("chart", CHARTS)
def test_a_chart_that_stands_alone_carries_a_rule_for_each_of_its_classes(chart: str) -> None:
    root = ET.fromstring(stand_alone(chart))
    css = root[0].text or ""
    used = {name for e in root.iter() for name in (e.get("class") or "").split()}
    unstyled = {"legend", "row", "party", "axis-name"}  # these look as the root says
    assert {name for name in used - unstyled if not re.search(rf"\.{name}\b", css)} == set()
    assert set(re.findall(r"var\((--[\w-]+)\)", css)) <= set(re.findall(r"(--[\w-]+):", css))
    assert css.count("{") == css.count("}")


def test_places_that_answer_the_pointer_are_hidden_until_then() -> None:
    assert ".spot { opacity: 0 }" in stand_alone(CHARTS[0])
