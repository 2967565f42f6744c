"""Fewer points for the same picture: gaps are found first, then each run is thinned.

A curve with as many points as rows would make a report of megabytes and look no
different, so that a line keeps at most a few hundred points, chosen for its shape.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["Point", "Run", "even_picks", "runs_of", "thin", "thin_run"]

Point = tuple[float, float]
Run = tuple[Point, ...]


def runs_of(points: Sequence[Point | None]) -> tuple[Run, ...]:
    """Split at every `None`: what lies between two gaps is drawn without lifting the pen."""
    runs: list[Run] = []
    current: list[Point] = []
    for point in (*points, None):
        if point is not None:
            current.append(point)
        elif current:
            runs.append(tuple(current))
            current = []
    return tuple(runs)


def thin(runs: Sequence[Run], limit: int) -> tuple[Run, ...]:
    """At most about `limit` points over all runs, shared out by length."""
    total = sum(len(run) for run in runs)
    if total <= limit:
        return tuple(runs)
    # More runs than half the points: the picture is dust, and evenly chosen dust will do.
    kept = [runs[i] for i in even_picks(len(runs), limit // 2)]
    total = sum(len(run) for run in kept)
    return tuple(thin_run(run, max(2, limit * len(run) // total)) for run in kept)


def thin_run(run: Run, limit: int) -> Run:
    """Largest-triangle-three-buckets (Steinarsson 2013), which keeps peaks and ends.

    Between the two end points the run is cut into `limit - 2` buckets; of each bucket the
    point survives that spans the largest triangle with the last survivor and the mean of
    the next bucket.
    """
    if len(run) <= limit:
        return run
    if limit <= 2:
        return (run[0], run[-1])
    buckets = limit - 2
    inner = len(run) - 2
    edges = [1 + inner * i // buckets for i in range(buckets + 1)]
    kept = [run[0]]
    for i in range(buckets):
        following = run[edges[i + 1] : edges[i + 2]] if i + 2 <= buckets else run[-1:]
        mean_x = sum(x for x, _ in following) / len(following)
        mean_y = sum(y for _, y in following) / len(following)
        last_x, last_y = kept[-1]
        best, best_area = run[edges[i]], -1.0
        for x, y in run[edges[i] : edges[i + 1]]:
            area = abs((x - last_x) * (mean_y - last_y) - (mean_x - last_x) * (y - last_y))
            if area > best_area:
                best, best_area = (x, y), area
        kept.append(best)
    kept.append(run[-1])
    return tuple(kept)


def even_picks(count: int, limit: int) -> tuple[int, ...]:
    """At most `limit` indices spread evenly over `range(count)`, ends included."""
    if count <= limit:
        return tuple(range(count))
    if limit < 2:
        return (0,)
    return tuple(round(i * (count - 1) / (limit - 1)) for i in range(limit))
