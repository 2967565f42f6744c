"""Colours of charts and pages, light and dark, as CSS variables.

The eight series colours differ in lightness as well as in hue, so that neighbours stay
apart for readers with any of the three colour deficiencies and on a grey printer; each
stands out from its background by at least 3:1 (WCAG 2.2, success criterion 1.4.11).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["DARK", "LIGHT", "SERIES_COLOURS", "Theme", "contrast", "readable_on", "variables_css"]


@dataclass(frozen=True)
class Theme:
    """One set of colours; `series` are told apart, the others recede or mark a meaning."""

    page: str
    surface: str
    line: str
    strong_line: str
    ink: str
    muted: str
    accent: str
    highlight: str
    masked: str
    open: str
    series: tuple[str, ...]


LIGHT: Final = Theme(
    page="#f5f6f8",
    surface="#ffffff",
    line="#e4e7ec",
    strong_line="#aeb6c2",
    ink="#18202b",
    muted="#596575",
    accent="#2f5db0",
    highlight="#edf3fd",
    masked="#0c7a63",
    open="#b4500a",
    series=(
        "#2f5db0",
        "#b4500a",
        "#1ba688",
        "#6b1550",
        "#b2890b",
        "#8f70eb",
        "#8c0f14",
        "#188091",
    ),
)

DARK: Final = Theme(
    page="#0f1216",
    surface="#161a20",
    line="#2a313b",
    strong_line="#5a6573",
    ink="#e8ebf0",
    muted="#9ba6b4",
    accent="#7fabf8",
    highlight="#1d2a3f",
    masked="#55dcbd",
    open="#ee9a3c",
    series=(
        "#4f8bf5",
        "#ee9a3c",
        "#55dcbd",
        "#c4528a",
        "#f0dd62",
        "#b8a7fc",
        "#f4687c",
        "#2fa3ba",
    ),
)

SERIES_COLOURS: Final = len(LIGHT.series)


def contrast(first: str, second: str) -> float:
    """Contrast ratio of two `#rrggbb` colours, 1 to 21, by the WCAG 2.2 definition."""
    low, high = sorted((_luminance(first), _luminance(second)))
    return (high + 0.05) / (low + 0.05)


def readable_on(colour: str) -> str:
    """White or near-black, whichever is easier to read on `colour`."""
    return max("#ffffff", "#0b0e12", key=lambda ink: contrast(ink, colour))


def variables_css(selector: str = ":root") -> str:
    """Both themes as CSS variables; paper always gets the light one."""
    light = f"{selector}{{color-scheme:light dark;{_variables(LIGHT)}}}"
    dark = f"{selector}{{{_variables(DARK)}}}"
    return f"{light}\n@media screen and (prefers-color-scheme:dark){{{dark}}}\n"


def _variables(theme: Theme) -> str:
    named = {
        "page": theme.page,
        "surface": theme.surface,
        "line": theme.line,
        "strong-line": theme.strong_line,
        "ink": theme.ink,
        "muted": theme.muted,
        "accent": theme.accent,
        "highlight": theme.highlight,
        "masked": theme.masked,
        "open": theme.open,
    }
    for number, colour in enumerate(theme.series, start=1):
        named[str(number)] = colour
        named[f"on-{number}"] = readable_on(colour)
    return "".join(f"--vk-{name}:{colour};" for name, colour in named.items())


def _luminance(colour: str) -> float:
    channels = (int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5))
    red, green, blue = (
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        for value in channels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
