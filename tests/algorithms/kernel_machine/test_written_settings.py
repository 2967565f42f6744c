"""Sizes as people write them."""

from __future__ import annotations

import pytest

from vertikal.algorithms.kernel_machine.written_settings import MOST_BYTES, parse_bytes
from vertikal.errors import InputError


@pytest.mark.parametrize(
    ("written", "size"),
    [(None, None), (7, 7), ("7", 7), ("1.5k", 1500), (" 2 GB ", 2 * 10**9), (MOST_BYTES,) * 2],
)
def test_sizes(written, size):
    assert parse_bytes(written) == size


@pytest.mark.parametrize("written", ["9" * 400, "9" * 18 + "kb", 2**63, "0.5", "-1", 0, True, 1.5])
def test_what_is_no_size_is_refused(written):
    with pytest.raises(InputError, match="cache_size must be a positive number of bytes below"):
        parse_bytes(written)
