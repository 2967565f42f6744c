"""Statistical checks that bytes look uniform, and that two transcripts look unrelated.

A chi-square test over the 256 values of a byte. The threshold is so low that good masks practically
never fail it, while a missing or repeated mask is further away than any threshold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from scipy import stats

THRESHOLD = 1e-6
ENOUGH = 256 * 20
"""Bytes needed: twenty expected per value."""


def p_value(arrays: Iterable[np.ndarray]) -> float:
    """The chance that uniform bytes are at least as uneven as these."""
    data = b"".join(array.tobytes() for array in arrays)
    assert len(data) >= ENOUGH, f"{len(data)} bytes show nothing, {ENOUGH} are needed"
    counts = np.bincount(np.frombuffer(data, np.uint8), minlength=256)
    return float(stats.chisquare(counts).pvalue)


def check_uniform(frames: Sequence[np.ndarray]) -> None:
    """The bytes of the frames are uniform, and no frame comes twice."""
    assert p_value(frames) > THRESHOLD, "the frames are not uniform"
    assert len({frame.tobytes() for frame in frames}) == len(frames), "a frame came twice"


def check_unrelated(first: Sequence[np.ndarray], second: Sequence[np.ndarray]) -> None:
    """Differences and XORs between the frames of two sums, taken one by one, are uniform too."""
    assert len(first) == len(second)
    pairs = list(zip(first, second, strict=True))
    assert p_value([a - b for a, b in pairs]) > THRESHOLD, "differences of frames are not uniform"
    assert p_value([a ^ b for a, b in pairs]) > THRESHOLD, "XORs of frames are not uniform"
    both = [frame.tobytes() for frame in (*first, *second)]
    assert len(set(both)) == len(both), "a frame came twice"
