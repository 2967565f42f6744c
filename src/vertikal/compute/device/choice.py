"""The choice of a device: the GPU that torch finds, or None for the loops of this package."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any, Literal, TypeAlias

from vertikal.errors import InputError

DeviceName: TypeAlias = Literal["auto", "cpu", "cuda"]

AUTOMATIC = 1 << 26
"""Ring elements from which on "auto" looks for a GPU: fewer are done before torch is loaded."""


def choose_device(name: DeviceName, elements: int) -> Any | None:
    """Return torch's device for a problem of so many ring elements; None for this package's loops.

    "auto" takes a GPU that torch finds where there are enough of them; "cuda" refuses to do
    without.
    """
    if name == "cpu" or (name == "auto" and elements < AUTOMATIC):
        return None
    if find_spec("torch") is None:
        if name == "auto":
            return None
        raise InputError(
            "device='cuda' needs torch, which is not installed; pip install \"vertikal[gpu]\""
        )
    found = _gpu()
    if found is None and name == "cuda":
        raise InputError.of("device", "'auto' or 'cpu' where torch finds no GPU", "cuda")
    return found


def fits(device: Any, name: DeviceName, wanted: int) -> bool:
    """Return True if so many bytes fit into the device's memory; refuse where it was named."""
    import torch

    if device.type != "cuda":
        return True
    free = torch.cuda.mem_get_info(device)[0]
    if wanted <= free:
        return True
    if name == "cuda":
        raise InputError(
            f"device='cuda': {wanted / 1e9:.1f} GB are needed on the GPU, and {free / 1e9:.1f} GB "
            "are free; lower n_components, or use device='auto' or 'cpu'"
        )
    return False


@cache
def _gpu() -> Any | None:
    import torch

    return torch.device("cuda") if torch.cuda.is_available() else None
