"""Metrics of a service in the format of Prometheus, read at each scrape from the service itself.

There are names of parties and of tables in them, and numbers. No id, column or cell is.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from vertikal.errors import InputError
from vertikal.node.monitoring.health import Watched
from vertikal.node.storage.disclosure_account import Balance
from vertikal.version import __version__

WAITS_FOR_OWNER, WAITS_FOR_OTHERS, RUNS, DONE, ENDED = (
    "waits for the owner",
    "waits for others",
    "runs",
    "done",
    "ended",
)
JOB_STATES = (WAITS_FOR_OWNER, WAITS_FOR_OTHERS, RUNS, DONE, ENDED)


class Measured(Watched, Protocol):
    """A service, as far as its metrics go."""

    @property
    def store(self) -> Path: ...

    @property
    def row_bits_limit(self) -> int: ...

    def job_states(self) -> Counter[str]: ...

    def events(self) -> Mapping[str, int]: ...

    def balances(self) -> list[Balance]: ...


def exposition(service: Measured) -> tuple[bytes, str]:
    """Return the metrics as they are now, and the type of their text."""
    try:
        from prometheus_client import CollectorRegistry, ProcessCollector
        from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
    except ModuleNotFoundError:
        raise InputError(
            "[monitor] needs prometheus-client: pip install 'vertikal[node]'"
        ) from None
    registry = CollectorRegistry(auto_describe=False)
    ProcessCollector(registry=registry)
    registry.register(_Collector(service))
    return generate_latest(registry), CONTENT_TYPE_PLAIN_0_0_4


class _Collector:
    """Makes the families of one service; prometheus_client calls `collect`."""

    def __init__(self, service: Measured) -> None:
        self._service = service

    def describe(self) -> list[Any]:
        return []

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import (
            CounterMetricFamily,
            GaugeMetricFamily,
            InfoMetricFamily,
        )

        service = self._service
        yield InfoMetricFamily(
            "vertikal", "The party and its release.", {"party": service.me, "version": __version__}
        )
        yield GaugeMetricFamily(
            "vertikal_beat_age_seconds", "Seconds since the last beat.", service.beat_age
        )
        up = GaugeMetricFamily(
            "vertikal_peer_up", "1 if the link to a party stands.", labels=["peer"]
        )
        for name, is_up in service.peers_up().items():
            up.add_metric([name], float(is_up))
        yield up
        jobs = GaugeMetricFamily("vertikal_jobs", "Jobs by state.", labels=["state"])
        counted = service.job_states()
        for state in JOB_STATES:
            jobs.add_metric([state], float(counted[state]))
        yield jobs
        events = CounterMetricFamily(
            "vertikal_events",
            "Lines of the audit log since the start, by their event.",
            labels=["event"],
        )
        for event, count in service.events().items():
            events.add_metric([event], float(count))
        yield events
        yield GaugeMetricFamily(
            "vertikal_store_full", "1 if a write found the disk full.", float(service.disk_full)
        )
        yield GaugeMetricFamily(
            "vertikal_store_free_bytes",
            "Bytes that are free where the store is.",
            float(shutil.disk_usage(service.store).free),
        )
        bits = GaugeMetricFamily(
            "vertikal_disclosed_row_bits",
            "Bits about a row that a receiver may have, by the disclosure account.",
            labels=["table", "receiver"],
        )
        for one in service.balances():
            bits.add_metric([one.table, one.receiver], float(one.row_bits))
        yield bits
        yield GaugeMetricFamily(
            "vertikal_disclosed_row_bits_limit",
            "The limit of the policy, most_row_bits.",
            float(service.row_bits_limit),
        )
