"""The overview: what waits, what runs, who is there, and what others may know."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from vertikal.console.page import PageAnswer, PageRequest
from vertikal.reporting.limit_bar import limit_bar
from vertikal.reporting.units import bytes_text, seconds_text

ASKS = "asks for your approval"
RUNNING = "running: "
LEAST_WAIT = 0.25
"""Seconds from which on a wait is shown; shorter ones belong to work."""


def overview(asked: PageRequest) -> PageAnswer:
    return asked.page(
        "overview.html",
        menu="overview",
        title="Overview",
        live="/live/overview",
        again=10,
        **content(asked),
    )


def regions(asked: PageRequest) -> dict[str, str]:
    """The parts of the page that change by themselves, by their ids."""
    return {"live": asked.fill("overview_live.html", **content(asked))}


def content(asked: PageRequest) -> dict[str, Any]:
    """Gather all that the page shows."""
    view = asked.view
    jobs, health, account = view.jobs(), view.health(), view.account()
    free, total = view.disk()
    return {
        "health": health,
        "waiting": [one for one in jobs if one["state"] == ASKS],
        "running": [
            running(view.follow(one["digest"])) for one in jobs if one["state"].startswith(RUNNING)
        ],
        "others": [one for one in jobs if _waits_elsewhere(one)],
        "peers": [_peer(one) for one in view.peers()],
        "balances": [_balance(one, account["most_row_bits"]) for one in account["balances"]],
        "budget": _budget(account["privacy"]),
        "disk": f"{bytes_text(free)} free of {bytes_text(total)}",
    }


def running(one: dict[str, Any]) -> dict[str, Any]:
    """Describe the run of a job in words and by the share of its stage that is done."""
    share = min(1.0, one["amount"] / one["total"]) if one["total"] else None
    left = one["seconds_left"]
    return {
        **one,
        "share": share,
        "share_text": f"{share:.0%}" if share is not None else "",
        "counted": f"{one['amount']:,} of {one['total']:,} {one['unit']}" if one["total"] else "",
        "left": f"about {seconds_text(left)} left in this stage" if left is not None else "",
        "in_text": bytes_text(one["bytes_in"]),
        "out_text": bytes_text(one["bytes_out"]),
        "waits": [
            {**wait, "what": wait["what"].strip("'"), "time": seconds_text(wait["seconds"])}
            for wait in (one["run"]["waits"] if one["run"] else [])
            if wait["seconds"] >= LEAST_WAIT
        ],
    }


def _waits_elsewhere(one: dict[str, Any]) -> bool:
    return bool(
        one["open"]
        and not one["done"]
        and one["state"] != ASKS
        and not one["state"].startswith(RUNNING)
    )


def _peer(one: dict[str, Any]) -> dict[str, Any]:
    seconds, key = one["seconds"], one["fingerprint"].removeprefix("sha256:")
    return {
        **one,
        "since": "" if seconds is None else f"since {_time_of_day(seconds)}",
        "short_key": " ".join(key[place : place + 4] for place in range(0, 16, 4)),
    }


def _time_of_day(seconds: float) -> str:
    """Write the time so many seconds ago; with its date if that was not today."""
    now = datetime.now(UTC)
    then = now - timedelta(seconds=seconds)
    return f"{then:%H:%M} UTC" if then.date() == now.date() else f"{then:%Y-%m-%d %H:%M} UTC"


def _balance(one: dict[str, Any], limit: int) -> dict[str, Any]:
    return {
        **one,
        "bar": limit_bar(
            one["row_bits"],
            limit,
            unit="bits about a row",
            title=f"{one['receiver']}, table {one['table']}",
        ),
    }


def _budget(privacy: dict[str, float] | None) -> Any:
    if privacy is None:
        return None
    return limit_bar(
        privacy["spent"],
        privacy["epsilon"],
        unit=f"epsilon, at delta {privacy['delta']:g}",
        title="all tables, jobs with differential privacy",
    )
