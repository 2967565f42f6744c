"""One report as one HTML file that needs nothing else.

The file is mailed, archived and opened years later on a machine without a network, so
that styles, charts and script are inside; its content security policy forbids it to load
anything and to run any script but its own, whatever text was put into it.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from vertikal.reporting.markup import escape
from vertikal.reporting.style import SCRIPT, page_css
from vertikal.reporting.tables import Cell, table_html

__all__ = ["Page"]

# Two figures of this width fit beside one another on the page, and on paper.
_HALF_WIDTH: Final = 485
_SVG_WIDTH: Final = re.compile(r'<svg [^>]*?\bwidth="([\d.]+)"')


@dataclass
class _Section:
    """A heading and the blocks below it; figures in a row share one block."""

    heading: str
    blocks: list[str] = field(default_factory=list)
    figures: list[str] = field(default_factory=list)

    def add(self, block: str) -> None:
        self.close_figures()
        self.blocks.append(block)

    def close_figures(self) -> None:
        if self.figures:
            self.blocks.append(f'<div class="figures">{"".join(self.figures)}</div>')
            self.figures = []


class Page:
    """A report under construction: add blocks from top to bottom, then `write` it.

    Every text is escaped; only `add_html` and `add_figure` take markup, and trust it. The
    result depends on the input alone (no clock, no host name), so equal runs give equal
    files; pass a date as part of the subtitle where one is wanted.
    """

    def __init__(
        self, title: str, subtitle: str = "", *, versions: Mapping[str, str] | None = None
    ) -> None:
        """Start a report; `versions` (name to version) appear in the footer."""
        self._title = title
        self._subtitle = subtitle
        self._versions = dict(versions or {})
        self._sections = [_Section("")]

    def add_section(self, heading: str) -> None:
        """Start a section; what follows belongs to it."""
        self._sections[-1].close_figures()
        self._sections.append(_Section(heading))

    def add_text(self, text: str) -> None:
        """Add paragraphs, separated in `text` by blank lines."""
        for paragraph in text.split("\n\n"):
            if paragraph.strip():
                self._sections[-1].add(f"<p>{escape(paragraph.strip())}</p>")

    def add_facts(self, facts: Mapping[str, str]) -> None:
        """Add headline numbers, name to value, side by side: what is to be seen first."""
        cards = "".join(
            f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"
            for name, value in facts.items()
        )
        self._sections[-1].add(f'<dl class="facts">{cards}</dl>')

    def add_table(
        self,
        headers: Sequence[str],
        rows: Sequence[Sequence[Cell]],
        caption: str = "",
        highlight_row: int | None = None,
    ) -> None:
        """Add a table; numbers are formatted and aligned by column, one row may stand out."""
        self._sections[-1].add(table_html(headers, rows, caption, highlight_row))

    def add_figure(self, svg: str, caption: str = "") -> None:
        """Add a chart (trusted markup); figures added in a row share a line if there is room."""
        under = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
        found = _SVG_WIDTH.search(svg)
        attributes = ""
        if found:
            # The caption wraps at the width of its chart, or two charts would never share a line.
            size = "half" if float(found[1]) <= _HALF_WIDTH else "wide"
            attributes = f' class="{size}" style="width:{found[1]}px"'
        self._sections[-1].figures.append(f"<figure{attributes}>{svg}{under}</figure>")

    def add_html(self, html: str) -> None:
        """Add trusted markup as it is; scripts inside it will not run."""
        self._sections[-1].add(html)

    def render(self) -> str:
        """The whole file as text."""
        digest = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
        policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
        subtitle = f'<p class="subtitle">{escape(self._subtitle)}</p>' if self._subtitle else ""
        lead, *sections = self._sections
        parts = [_section_html(section, i) for i, section in enumerate(sections, start=1)]
        opening = _blocks_html(lead)
        return (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
            '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
            f"<title>{escape(self._title)}</title>\n<style>{page_css()}</style>\n</head>\n"
            f"<body>\n<main>\n<header><h1>{escape(self._title)}</h1>{subtitle}</header>\n"
            + (f'<div class="lead">{opening}</div>\n' if opening else "")
            + _contents_html([section.heading for section in sections])
            + "\n".join(parts)
            + _footer_html(self._versions)
            + f"\n</main>\n<script>{SCRIPT}</script>\n</body>\n</html>\n"
        )

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the file whole or not at all, so that no reader ever opens half a report."""
        target = Path(path)
        temporary = target.with_name(f".{secrets.token_hex(8)}.tmp")
        try:
            with temporary.open("x", encoding="utf-8", newline="\n") as stream:
                stream.write(self.render())
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        return target


def _blocks_html(section: _Section) -> str:
    section.close_figures()
    return "\n".join(section.blocks)


def _section_html(section: _Section, number: int) -> str:
    return (
        f'<section id="s{number}">\n<h2>{escape(section.heading)}</h2>\n'
        f"{_blocks_html(section)}\n</section>"
    )


def _contents_html(headings: Sequence[str]) -> str:
    """A list of links once there are more sections than fit on a screen."""
    if len(headings) <= 3:
        return ""
    items = "".join(
        f'<li><a href="#s{i}">{escape(heading)}</a></li>' for i, heading in enumerate(headings, 1)
    )
    return f"<nav><b>Contents</b><ol>{items}</ol></nav>\n"


def _footer_html(versions: Mapping[str, str]) -> str:
    if not versions:
        return ""
    items = " ".join(
        f"<span>{escape(name)} {escape(version)}</span>" for name, version in versions.items()
    )
    return f"\n<footer>{items}</footer>"
