"""Fill the templates: charts as SVG, pages as one HTML file that needs nothing else.

A page is mailed, archived and opened years later on a machine without a network, so that styles,
charts and script are inside; its content security policy forbids it to load anything and to run
any script but its own, whatever text was put into it. Every text is escaped by jinja2. The result
depends on the input alone (no clock, no host name): equal runs give equal files.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from vertikal.reporting.text_width import legible
from vertikal.reporting.units import bytes_text, seconds_text

Cell = str | int | None

_HERE: Final = "vertikal.reporting"
# "33.3 MB", "0.904 ± 0.003", "< 1 µs", "12 %": text that is compared like a number.
_NUMERIC: Final = re.compile(r"[<>≤≥≈~+−-]?\s?[.\d]")


def render_chart(template: str, **values: Any) -> Markup:
    """Draw a chart by a template of this room; other templates may include the result."""
    return Markup(_environment(_HERE).get_template(template).render(values))


def stand_alone(chart: str) -> str:
    """Put the stylesheet into a chart, so that it can be a file of its own."""
    style = _environment(_HERE).get_template("charts.css").render()
    return str(chart).replace(">", f"><style>{style}</style>", 1) + "\n"


def render_page(
    package: str,
    template: str,
    *,
    title: str,
    subtitle: str = "",
    versions: Mapping[str, str] | None = None,
    **values: Any,
) -> str:
    """Fill a template of ``package`` that extends "page.html"; the footer lists ``versions``."""
    environment = _environment(package)
    script = environment.get_template("page.js").render()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    frame = {"title": title, "subtitle": subtitle, "versions": versions or {}, "headings": []}
    page = environment.get_template(template)
    return page.render(values | frame | {"script": Markup(script), "script_digest": digest})


def render_template(packages: tuple[str, ...], template: str, **values: Any) -> str:
    """Fill a template of one of these packages, or of this room, for a page that is served."""
    return _environment(*packages).get_template(template).render(values)


@cache
def _environment(*packages: str) -> Environment:
    """Templates of packages and, behind them, those of this room."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in dict.fromkeys((*packages, _HERE))]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
        finalize=_written,
    )
    environment.filters |= {
        "bytes": bytes_text,
        "seconds": seconds_text,
        "flush_right": _flush_right,
    }
    return environment


def _written(value: Any) -> Any:
    """Write coordinates with one decimal, points as "x y", and no character that XML refuses."""
    match value:
        case Markup():
            return value
        case str():
            return legible(value)
        case float():
            # A tenth of a pixel is below what a screen shows.
            return f"{round(value, 1) + 0.0:g}" if abs(value) < 1e5 else f"{value:.0f}"
        case complex():
            return f"{_written(value.real)} {_written(value.imag)}"
    return value


def _flush_right(rows: Sequence[Sequence[Cell]], headers: Sequence[str]) -> list[bool]:
    """Tell for each column whether all that it says are numbers, or texts that begin like one."""
    if any(len(row) != len(headers) for row in rows):
        raise ValueError(f"each row of a table must have one cell per header of {list(headers)}")
    columns = [[row[i] for row in rows if row[i] is not None] for i in range(len(headers))]
    return [
        bool(column) and all(_NUMERIC.match(str(cell)) is not None for cell in column)
        for column in columns
    ]
