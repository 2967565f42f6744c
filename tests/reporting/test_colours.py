"""Colours: contrast with their background, and distance under colour deficiencies."""

from __future__ import annotations

import itertools
import math
import re

import pytest

from vertikal.reporting.rendering import stand_alone

# Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB.
DEFICIENCIES = {
    "none": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protan": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deutan": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritan": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}


def seen(colour: str, deficiency: str) -> tuple[float, float, float]:
    """OKLab coordinates of a colour as a reader with the deficiency sees it."""
    red, green, blue = (
        max(0.0, sum(m * v for m, v in zip(row, linear(colour), strict=True)))
        for row in DEFICIENCIES[deficiency]
    )
    cone_l = (0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue) ** (1 / 3)
    cone_m = (0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue) ** (1 / 3)
    cone_s = (0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue) ** (1 / 3)
    return (
        0.2104542553 * cone_l + 0.7936177850 * cone_m - 0.0040720468 * cone_s,
        1.9779984951 * cone_l - 2.4285922050 * cone_m + 0.4505937099 * cone_s,
        0.0259040371 * cone_l + 0.7827717662 * cone_m - 0.8086757660 * cone_s,
    )


LIGHT, DARK = (
    dict(re.findall(r"--vk-([\w-]+): (#\w+);", rules))
    for rules in stand_alone("<svg></svg>").split("prefers-color-scheme: dark")
)
SERIES = [str(i) for i in range(1, 9)]


def linear(colour: str) -> list[float]:
    values = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values]


def contrast(first: str, second: str) -> float:
    """Contrast ratio by WCAG 2.2."""
    weights = (0.2126, 0.7152, 0.0722)
    low, high = sorted(
        sum(w * v for w, v in zip(weights, linear(colour), strict=True))
        for colour in (first, second)
    )
    return (high + 0.05) / (low + 0.05)


def test_both_themes_name_every_colour() -> None:
    assert set(LIGHT) == set(DARK)
    assert {*SERIES, *(f"on-{i}" for i in SERIES)} < set(LIGHT)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
class TestTheme:
    def test_series_stand_out_from_the_surface(self, theme: dict[str, str]) -> None:
        for name in SERIES:
            assert contrast(theme[name], theme["surface"]) >= 3

    def test_text_is_readable(self, theme: dict[str, str]) -> None:
        for name in ("ink", "muted", "accent", "masked", "open"):
            assert contrast(theme[name], theme["surface"]) >= 4.5
        assert contrast(theme["accent"], theme["highlight"]) >= 4.5
        assert contrast(theme["muted"], theme["page"]) >= 4.5

    def test_values_inside_bars_are_readable(self, theme: dict[str, str]) -> None:
        for name in SERIES:
            assert contrast(theme[f"on-{name}"], theme[name]) >= 4.5

    @pytest.mark.parametrize("deficiency", DEFICIENCIES)
    def test_first_six_are_told_apart(self, theme: dict[str, str], deficiency: str) -> None:
        for first, second in itertools.combinations(SERIES[:6], 2):
            apart = math.dist(seen(theme[first], deficiency), seen(theme[second], deficiency))
            assert apart > 0.09
