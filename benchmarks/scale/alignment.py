"""Alignment: 10^5 ids at two parties against openmined-psi, growth to 10^6 ids, more parties.

    pip install openmined-psi
    python -m benchmarks.scale.alignment

Both find the same common ids exactly (openmined-psi with its raw data structure, which is the exact
one), both parties of each in one process, in turn. openmined-psi works on one core; Vertikal uses
those that the process may use. Processor seconds are reported beside, since they do not depend on
how many cores there are or how busy they are.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness import Benchmark, arguments, median
from vertikal.algorithms.alignment.alignment import Alignment, align
from vertikal.data.tables import Table
from vertikal.mesh import local_meshes
from vertikal.party.party import Party
from vertikal.secure.keys.prg import fresh_key
from vertikal.secure.psi.group import Exponent, hash_to_points, workers


def tables(ids: int, parties: int) -> dict[str, list[str]]:
    """Ids of each party, in an order of its own; half of them are common to all."""
    found = {}
    for number in range(parties):
        own = range((number + 1) * ids, (number + 1) * ids + ids - ids // 2)
        listed = [f"customer {one}" for one in (*range(ids // 2), *own)]
        order = np.random.default_rng(number).permutation(ids)
        found[f"party{number}"] = [listed[i] for i in order]
    return found


def aligned(sets: dict[str, list[str]]) -> tuple[dict[str, Alignment], int]:
    """All parties in this process, a thread each; results, and all bytes that were sent."""
    ends, results, sent = local_meshes(tuple(sets), 600.0), {}, []

    def work(name: str) -> None:
        party = Party(
            ends[name],
            Table(name, (), np.empty((0, 0))),
            label_parties=(next(iter(sets)),),
            labels=None,
            secret=fresh_key(),
            job="benchmark",
            settings_digest="",
            version="",
        )
        results[name] = align(party, sets[name])
        sent.append(party.bytes_sent)

    threads = [threading.Thread(target=work, args=(name,)) for name in sets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results, sum(sent)


def check(sets: dict[str, list[str]], results: dict[str, Alignment]) -> None:
    """One order at all parties, and exactly the ids that all have."""
    lists = [[sets[name][row] for row in found.rows] for name, found in results.items()]
    common = set.intersection(*(set(some) for some in sets.values()))
    if set(lists[0]) != common or any(one != lists[0] for one in lists):
        raise SystemExit("the alignment is wrong")


def openmined(sets: dict[str, list[str]]) -> list[int]:
    """Client and server of openmined-psi one after the other: the client's common rows."""
    import private_set_intersection.python as psi

    asking, answering = sets.values()
    client, server = psi.client.CreateWithNewKey(True), psi.server.CreateWithNewKey(True)
    setup = server.CreateSetupMessage(0.0, len(asking), answering, psi.DataStructure.RAW)
    response = server.ProcessRequest(client.CreateRequest(asking))
    return list(client.GetIntersection(setup, response))


def timed(function: Callable[[], Any]) -> tuple[float, float, Any]:
    """Wall seconds, processor seconds, and the result."""
    began, worked = time.perf_counter(), time.process_time()
    result = function()
    return time.perf_counter() - began, time.process_time() - worked, result


def against_openmined(run: Benchmark, ids: int, repeats: int) -> None:
    sets = tables(ids, 2)
    first, second = sets.values()
    other = set(second)
    expected = [row for row, one in enumerate(first) if one in other]
    ours: list[tuple[float, float]] = []
    theirs: list[tuple[float, float]] = []
    for _ in range(repeats):
        wall, work, (results, _) = timed(lambda: aligned(sets))
        ours.append((wall, work))
        check(sets, results)
        wall, work, found = timed(lambda: openmined(sets))
        theirs.append((wall, work))
        if sorted(found) != expected:
            raise SystemExit("openmined-psi found other rows")
    for name, times in (("vertikal", ours), ("openmined-psi", theirs)):
        run.figure(f"{name}, two parties: seconds", median([wall for wall, _ in times]))
        run.figure(f"{name}, two parties: processor seconds", median([work for _, work in times]))
    pairs = list(zip(ours, theirs, strict=True))
    faster = median([b[0] / a[0] for a, b in pairs])
    run.figure(
        "openmined-psi / vertikal, processor seconds", median([b[1] / a[1] for a, b in pairs])
    )
    run.target("openmined-psi / vertikal, seconds", faster, 1.5, at_most=False)


def curve_operations(run: Benchmark, count: int = 2000) -> None:
    """Measure the operations alone, one after the other; two hashes and four products an id."""
    with workers(1) as one:
        messages = [str(number).encode() for number in range(count)]
        _, hashed, points = timed(lambda: hash_to_points(messages, b"benchmark", one))
        exponent = Exponent()
        _, multiplied, _ = timed(lambda: exponent.times(points, one))
    run.figure("one hash to the curve, processor µs", hashed / count * 1e6)
    run.figure("one product with a point, processor µs", multiplied / count * 1e6)
    needed = (2 * hashed + 4 * multiplied) / count * 1e6
    run.figure("curve operations of an id at both parties, processor µs", needed)


def main() -> None:
    options = arguments(__doc__ or "", ids=100_000, most=1_000_000, repeats=3)
    run = Benchmark("alignment", vars(options) | {"out": ""})
    curve_operations(run)
    against_openmined(run, options.ids, options.repeats)
    cost = []
    for ids in (options.ids // 8, options.ids // 4, options.ids // 2, options.ids, options.most):
        sets = tables(ids, 2)
        wall, work, (results, sent) = timed(lambda sets=sets: aligned(sets))
        check(sets, results)
        run.figure(f"{ids} ids, two parties: seconds", wall)
        run.figure(f"{ids} ids, two parties: bytes an id", sent / ids)
        run.figure(f"{ids} ids, two parties: cores at work", work / wall)
        cost.append(run.figure(f"{ids} ids, two parties: processor µs an id", work / ids * 1e6))
    run.target(
        "dearest id / cheapest id, processor time", max(cost) / min(cost), 1.25, at_most=True
    )
    for parties in (3, 5):
        sets = tables(options.ids, parties)
        wall, work, (results, sent) = timed(lambda sets=sets: aligned(sets))
        check(sets, results)
        run.figure(f"{options.ids} ids, {parties} parties: seconds", wall)
        run.figure(f"{options.ids} ids, {parties} parties: processor seconds", work)
        run.figure(f"{options.ids} ids, {parties} parties: bytes an id", sent / options.ids)
    run.write(options.out)


if __name__ == "__main__":
    main()
