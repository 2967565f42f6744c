"""The place of one party's products: this package's loops in threads, or a GPU.

`workers.spread_place` has the place of a party whose rows lie at several workers.

A party decides on it by itself, whatever its job: programs ask the place for what they multiply by,
and get the same interface everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from vertikal.compute.device.choice import DeviceName, choose_device, fits
from vertikal.compute.element_store import ElementStore
from vertikal.compute.open_operator import Fetch, OpenOperator
from vertikal.data.tables import Table
from vertikal.kernels.feature_map import Block, FeatureMap
from vertikal.reused_memory import reused_memory
from vertikal.ring.ring_matrix import Matrices, RingMatrix
from vertikal.side_by_side import cores, in_background, parties_at_work

Array: TypeAlias = npt.NDArray[Any]
Rows: TypeAlias = "Array | range"
"""Numbers of rows; of neighbours a range, which nobody needs to look through."""

ROOM = 3 << 29
"""Bytes that products need on a device beside the elements."""


def gather_there(feature_map: FeatureMap, values: Array, device: Any) -> OpenOperator | None:
    """Return Φ of one party's rows, made on the device; None if this package's loops must do it."""
    from vertikal.compute.device.device_operator import DeviceOperator
    from vertikal.compute.device.local_parts import LocalPart

    if not LocalPart.offered(feature_map) or feature_map.kept_dtype is not None:
        return None
    elements = LocalPart(feature_map, device).resident(values)
    return None if elements is None else DeviceOperator(feature_map, elements, device)


class Mask(Protocol):
    """Pads of one block of ring elements, which can be sent to where that is computed."""

    def __call__(self, values: Array) -> None:
        """Add the pads to the elements, in place."""

    def write(self, out: Array) -> None:
        """Write the sum of the pads; elements that are added to it are masked."""

    def after(self, size: int) -> Mask:
        """Return the pads of what follows the first ``size`` bytes of the block."""


def as_slice(rows: Rows) -> slice | Array:
    """Return the numbers of neighbouring rows as a slice."""
    if isinstance(rows, range):
        return slice(rows.start, rows.stop) if rows.step == 1 else np.asarray(rows)
    if len(rows) and rows[-1] - rows[0] == len(rows) - 1 and bool((np.diff(rows) == 1).all()):
        return slice(int(rows[0]), int(rows[-1]) + 1)
    return rows


class Place:
    """The device that one party computes on, chosen when the size of a problem is known."""

    def __init__(self, device: DeviceName = "cpu") -> None:
        self.device = device
        self.tell: Callable[[str], None] = lambda note: None
        # A map may be asked for its local part block by block: what it needs is sent there once.
        self._parts: dict[int, tuple[FeatureMap, Any]] = {}

    def local(
        self, feature_map: FeatureMap, block: Block, rows: int, out: Array | None = None
    ) -> Array:
        """Compute this party's ring elements of a block, one of those of ``rows`` rows in all."""
        device = choose_device(self.device, rows * feature_map.elements)
        if device is None:
            return feature_map.local(block, out)
        from vertikal.compute.device.local_parts import LocalPart

        if not LocalPart.offered(feature_map):
            return feature_map.local(block, out)
        known = self._parts.get(id(feature_map))
        if known is None:
            known = self._parts[id(feature_map)] = feature_map, LocalPart(feature_map, device)
        return known[1].local(block, out)

    def masked(
        self, feature_map: FeatureMap, block: Block, rows: int, mask: Mask, out: Array | None = None
    ) -> Array:
        """Compute the same under pads, which are written first and cost no pass of their own."""
        shape = (block.shape[0], feature_map.elements)
        masked = reused_memory.empty(shape, feature_map.ring.dtype) if out is None else out
        mask.write(masked)
        if choose_device(self.device, rows * feature_map.elements) is None:
            feature_map.add_local(block, masked)
        else:
            masked += self.local(feature_map, block, rows)
        return masked

    def table(self, table: Table) -> Table:
        """Bring a table to where its rows are computed with."""
        return table

    @property
    def offers_links(self) -> bool:
        """True if there are workers that may be linked with those of other parties."""
        return False

    def linked_workers(self, table: Table) -> int:
        """Count the workers that have the rows of a table and may be linked, if there are some."""
        return 0

    def links(self, table: Table, make: Callable[[int], Any]) -> Any:
        """Make links of the workers that have the rows of a table; ``make`` makes those of one."""
        raise NotImplementedError

    def say(self, words: str) -> None:
        """Tell of the place where progress is shown, and in the log if there is one."""
        self.tell(words)

    def ahead(self, table: Table, height: int) -> int:
        """Blocks of ``height`` rows of a table that are worth beginning before they are needed."""
        return 1 if cores() == 1 else 1 + parties_at_work.cores_of_each

    def begin_local(
        self,
        feature_map: FeatureMap,
        table: Table,
        rows: Rows,
        mask: Mask | None = None,
        out: Any = None,
    ) -> Callable[[], Array]:
        """Begin to compute this party's ring elements of some rows, and to mask them.

        What is returned waits for the elements, which are in ``out`` if that is given.
        """

        def result() -> Array:
            # A run of neighbouring rows is read as a slice: no copy of the table.
            columns = table.block(as_slice(rows))
            if mask is None:
                return self.local(feature_map, columns, table.rows, out)
            return self.masked(feature_map, columns, table.rows, mask, out)

        # A device has an order of its own, and a single core nobody who could begin.
        there = choose_device(self.device, table.rows * feature_map.elements)
        if there is not None or not len(rows) or cores() == 1:
            return result
        return in_background(result)

    def store(self, feature_map: FeatureMap, rows: int, every: int) -> ElementStore:
        """Make room for the summed ring elements of the first rows, of ``every`` one there is."""
        return ElementStore(feature_map, rows)

    def operator_of(
        self, feature_map: FeatureMap, rows: int, store: ElementStore, fetch: Fetch | None = None
    ) -> OpenOperator:
        """Return Φ of the ring elements of a store."""
        return self.operator(feature_map, rows, store.cached, fetch)

    def operator(
        self, feature_map: FeatureMap, rows: int, cached: Array, fetch: Fetch | None = None
    ) -> OpenOperator:
        """Return Φ of summed ring elements; rows that are not cached keep it off a device."""
        device = choose_device(self.device, rows * feature_map.elements)
        self._parts.clear()
        if device is None or len(cached) < rows:
            return OpenOperator(feature_map, rows, cached, fetch)
        # A Gram matrix, its factor and its inverse, in double precision.
        wanted = cached.nbytes + 3 * 8 * feature_map.width**2 + ROOM
        if not fits(device, self.device, wanted):
            return OpenOperator(feature_map, rows, cached, fetch)
        from vertikal.compute.device.device_operator import DeviceOperator

        return DeviceOperator(feature_map, cached, device)

    @property
    def matrices(self) -> Matrices:
        """Factory of matrices of ring elements, here or on the device."""
        return self._matrix

    def _matrix(self, shape: tuple[int, int], dtype: npt.DTypeLike) -> RingMatrix:
        device = choose_device(self.device, shape[0] * shape[1])
        size = shape[0] * shape[1] * np.dtype(dtype).itemsize
        if device is None or not fits(device, self.device, size + ROOM):
            return RingMatrix(shape, dtype)
        from vertikal.compute.device.device_ring_matrix import DeviceRingMatrix

        return DeviceRingMatrix(shape, dtype, device)
