"""Drawings of a job for who decides about it, by the charts of `reporting`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from vertikal.reporting.bar_chart import bar_chart
from vertikal.reporting.flow_diagram import Flow, flow_diagram
from vertikal.reporting.line_chart import Series, line_chart
from vertikal.reporting.units import bytes_text, seconds_text

NOTHING = "nothing"
"""Beginning of the words for a message whose receiver learns nothing."""


def job_flows(details: Mapping[str, Any]) -> Markup:
    """Draw who may send what to whom in training; greetings that tell nothing are left out."""
    parties = [one["name"] for one in details["parties"]]
    labels = [one["name"] for one in details["parties"] if one["role"] == "label party"]
    flows = [
        Flow(sender, receiver, route["name"], None, route["masked"])
        for route in details["routes"]
        if route["training"] and not (tells_nothing(route) and not route["masked"])
        for sender in route["senders"]
        for receiver in route["receivers"]
        if sender != receiver
    ]
    return flow_diagram(parties, flows, label_parties=labels)


def tells_nothing(route: Mapping[str, Any]) -> bool:
    return str(route["learns"]).startswith(NOTHING)


def learned_by(details: Mapping[str, Any]) -> list[tuple[str, list[dict[str, Any]], list[str]]]:
    """Say of each party what it can learn, and from which messages it learns nothing.

    A row names what is sent, by whom, in which form, and what its receiver learns.
    """
    found = []
    for party in (one["name"] for one in details["parties"]):
        rows, silent = [], []
        for route in details["routes"]:
            senders = [name for name in route["senders"] if name != party]
            if party not in route["receivers"] or not senders:
                continue
            if tells_nothing(route):
                silent.append(route["what"])
            else:
                rows.append({**route, "senders": senders})
        found.append((party, rows, silent))
    return found


def curve_charts(curves: Mapping[str, Sequence[Sequence[float]]]) -> list[Markup]:
    """Draw the numbers that a solver told, one chart for each name."""
    return [
        line_chart(
            [Series("", [point[0] for point in points], [point[1] for point in points])],
            title=name[:1].upper() + name[1:],
            x_label="report of the solver",
            log_y=name == "gradient",
            height=250,
        )
        for name, points in curves.items()
        if len(points) > 1
    ]


def traffic_chart(traffic: Mapping[str, Mapping[str, int]]) -> Markup | None:
    """Draw the bytes that came from each party and went there."""
    if not traffic:
        return None
    bars = {
        name: {"received": float(one["bytes_in"]), "sent": float(one["bytes_out"])}
        for name, one in traffic.items()
    }
    return bar_chart(bars, title="Traffic by party", value_text=bytes_text)


def stage_charts(stages: Iterable[tuple[str, float, int]]) -> list[Markup]:
    """Draw the seconds of stages, and the bytes sent in them; (name, seconds, bytes) for each.

    A stage that came several times is one bar; one that sent nothing is left out of the bytes.
    """
    seconds: dict[str, dict[str, float]] = {}
    sent: dict[str, dict[str, float]] = {}
    for name, took, size in stages:
        seconds.setdefault(name, {"": 0.0})[""] += took
        if size:
            sent.setdefault(name, {"": 0.0})[""] += size
    return [
        bar_chart(bars, title=title, value_text=text)
        for bars, title, text in (
            (seconds, "Seconds by stage", seconds_text),
            (sent, "Bytes sent by stage", bytes_text),
        )
        if bars
    ]
