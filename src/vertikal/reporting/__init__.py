"""Turns plain numbers, names and tables into charts and one self-contained HTML report.

Only strings, numbers and the small dataclasses below may enter: this package knows nothing
of parties, models or ledgers, imports nothing from the rest of Vertikal, and loads nothing
from outside.
"""

from vertikal.reporting.bars import BarGroup, bar_chart
from vertikal.reporting.diagram import Flow, flow_diagram
from vertikal.reporting.page import Page
from vertikal.reporting.style import chart_css
from vertikal.reporting.svg import Series, line_chart
from vertikal.reporting.tables import Cell
from vertikal.reporting.units import bytes_text, count_text, seconds_text

__all__ = [
    "BarGroup",
    "Cell",
    "Flow",
    "Page",
    "Series",
    "bar_chart",
    "bytes_text",
    "chart_css",
    "count_text",
    "flow_diagram",
    "line_chart",
    "seconds_text",
]
