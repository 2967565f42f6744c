"""Charts as files: an SVG that carries its own style, next to a benchmark's JSON."""

from __future__ import annotations

from pathlib import Path

from vertikal.reporting import chart_css


def write_charts(charts: list[str], path: Path) -> Path:
    """Put charts (SVG elements with a width and a height) below one another into one file."""
    top, widest, parts = 0.0, 0.0, []
    for chart in charts:
        width, height = (_size(chart, name) for name in ("width", "height"))
        parts.append(f'<g transform="translate(0 {top:g})">{chart}</g>')
        top += height + 12
        widest = max(widest, width)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{widest:g}" height="{top:g}">'
        f"<style>{chart_css()}</style>"
        f'<rect width="100%" height="100%" fill="var(--vk-page)"/>{"".join(parts)}</svg>\n',
        encoding="utf-8",
    )
    print(f"drawn in {path.name}")
    return path


def _size(chart: str, name: str) -> float:
    return float(chart.split(f' {name}="', 1)[1].split('"', 1)[0])
