"""The hot loops over phases, once in NumPy and once compiled (extra ``fast``).

    wrap      rounds projections to phases; False if one was out of range
    project   projects and wraps rows with few nonzero cells; None if there are too many
    decode    cos of a phase
    forward   Σ_j c_j cos(phase_ij), one number per row
    adjoint   Σ_i r_i cos(phase_ij), one number per direction

`decode_pair`, `forward_pair` and `adjoint_pair` do the same for the cosines of all D directions
followed by their sines, 2D numbers, and read each phase once.

With ``added`` the phases of `wrap` and `project` are added to what is in ``out``.

`wrap` gives the same bits in both; the sums agree to single precision (cosines to 2e-7). Nothing
here starts a thread or holds Python's lock, so that callers may run blocks side by side.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy import sparse

from vertikal.reused_memory import aligned_empty, reused_memory
from vertikal.ring.integers import LIMIT, ROUNDER

Array = npt.NDArray[Any]


class Loops(Protocol):
    """The loops that both implementations offer. Phases are (rows, D), of at most 32 bits."""

    def wrap(self, steps: Array, offsets: Array, out: Array, *, added: bool = False) -> bool: ...
    def project(
        self, block: Any, steps: Array, offsets: Array, out: Array, *, added: bool = False
    ) -> bool | None: ...
    def decode(self, phases: Array, out: Array) -> None: ...
    def forward(self, phases: Array, coefficients: Array, out: Array) -> None: ...
    def adjoint(self, phases: Array, residuals: Array, out: Array) -> None: ...
    def decode_pair(self, phases: Array, out: Array, start: int) -> None: ...
    def forward_pair(self, phases: Array, coefficients: Array, out: Array) -> None: ...
    def adjoint_pair(self, phases: Array, residuals: Array, out: Array) -> None: ...


class NumpyLoops:
    """The fallback: NumPy on blocks that fit the cache."""

    _ELEMENTS = 1 << 17

    def wrap(self, steps: Array, offsets: Array, out: Array, *, added: bool = False) -> bool:
        """``steps`` (rows, D) float64 is overwritten; ``out`` (rows, D) receives the phases."""
        for rows in self._blocks(steps):
            part = steps[rows]
            part += offsets
            # Written so that NaN answers no.
            if part.size and not (part.min() >= -LIMIT and part.max() < LIMIT - 0.5):
                return False
            part += ROUNDER
            if added:
                out[rows] += part.view(np.uint64).astype(out.dtype)
            else:
                np.copyto(out[rows], part.view(np.uint64), casting="unsafe")
        return True

    def project(
        self, block: Any, steps: Array, offsets: Array, out: Array, *, added: bool = False
    ) -> bool | None:
        """Left to the matrix product."""
        return None

    def decode(self, phases: Array, out: Array) -> None:
        """cos of each phase, float32."""
        np.cos(_angles(phases, out), out=out)

    def forward(self, phases: Array, coefficients: Array, out: Array) -> None:
        for rows in self._blocks(phases):
            out[rows] = self._cosines(phases[rows]) @ coefficients

    def adjoint(self, phases: Array, residuals: Array, out: Array) -> None:
        for rows in self._blocks(phases):
            out += residuals[rows] @ self._cosines(phases[rows])

    def decode_pair(self, phases: Array, out: Array, start: int) -> None:
        """cos of each phase in the columns of ``out`` from ``start`` on, and sin after all cos."""
        width = phases.shape[1]
        for rows in self._blocks(phases):
            cosines = out[rows, start : start + width]
            sines = out[rows, start + width : start + 2 * width]
            np.cos(_angles(phases[rows], sines), out=cosines)
            np.sin(sines, out=sines)

    def forward_pair(self, phases: Array, coefficients: Array, out: Array) -> None:
        for rows in self._blocks(phases):
            out[rows] = self._pairs(phases[rows]) @ coefficients

    def adjoint_pair(self, phases: Array, residuals: Array, out: Array) -> None:
        for rows in self._blocks(phases):
            out += residuals[rows] @ self._pairs(phases[rows])

    def _cosines(self, phases: Array) -> Array:
        cosines = np.empty(phases.shape, np.float32)
        self.decode(phases, cosines)
        return cosines

    def _pairs(self, phases: Array) -> Array:
        pairs = np.empty((len(phases), 2 * phases.shape[1]), np.float32)
        self.decode_pair(phases, pairs, 0)
        return pairs

    def _blocks(self, phases: Array) -> list[slice]:
        rows = max(1, self._ELEMENTS // max(1, phases.shape[1]))
        return [slice(i, i + rows) for i in range(0, len(phases), rows)]


class CompiledLoops:
    """The same in machine code, by numba: one pass over the phases, none of them written twice."""

    # Directions at a time. Measured: half or twice as many take a tenth longer.
    _DIRECTIONS = 512
    # Of fewer rows it is not worth finding out which are alike.
    _ROWS = 64

    def __init__(self) -> None:
        from vertikal.kernels import alike_rows_compiled, phase_loops_compiled

        self._code, self._rows = phase_loops_compiled, alike_rows_compiled

    def wrap(self, steps: Array, offsets: Array, out: Array, *, added: bool = False) -> bool:
        bits = steps.view(np.uint64)
        return bool(self._code.wrap(steps, bits, offsets, _kept(out, added), out))

    def project(
        self, block: Any, steps: Array, offsets: Array, out: Array, *, added: bool = False
    ) -> bool | None:
        rows, columns = block.shape
        # Measured: beyond about so many cells per row a matrix product is faster.
        most = int(rows * (8 + 0.2 * columns))
        flat = sparse.issparse(block)
        if flat and block.nnz > most:
            return None
        # Cells that are zero, as in columns that stand for categories, cost nothing. Rows are
        # filled up to a multiple of four cells, and may be written to their end before that.
        size = (block.nnz if flat else most) + 3 * rows + columns
        cells = reused_memory.empty((size,), np.float64)
        places = reused_memory.empty((size,), np.int32)
        starts = np.zeros(rows + 1, np.int64)
        if flat:
            self._code.gather_sparse(block.data, block.indices, block.indptr, cells, places, starts)
        elif not self._code.gather(block, most, cells, places, starts):
            return None
        alike = self._number_alike(cells, places, starts)
        given = (cells, places, starts, steps, offsets, aligned_empty((2, self._DIRECTIONS), float))
        if alike is None:
            return bool(self._code.project(*given, _kept(out, added), out))
        kinds, count = alike
        distinct = reused_memory.empty((count, out.shape[1]), out.dtype)
        within = self._code.project(*given, _kept(out, False), distinct)
        self._rows.spread(distinct, kinds, _kept(out, added), out)
        return bool(within)

    def _number_alike(self, cells: Array, places: Array, starts: Array) -> tuple[Array, int] | None:
        """Move the distinct rows to the front; return which of them each row is, and their count.

        None, and nothing is moved, if they are too many for that to be a gain.
        """
        rows = len(starts) - 1
        if rows < self._ROWS:
            return None
        kinds, firsts = np.empty(rows, np.int64), np.empty(rows // 2, np.int64)
        bits = cells.view(np.uint64)
        count = self._rows.number_alike(bits, places, starts, kinds, firsts)
        if count < 0:
            return None
        self._rows.keep(bits, places, starts, firsts[:count])
        return kinds, count

    def decode(self, phases: Array, out: Array) -> None:
        self._code.decode(_signed(phases), _unit(phases), out)

    def forward(self, phases: Array, coefficients: Array, out: Array) -> None:
        self._code.forward(_signed(phases), _unit(phases), coefficients, out)

    def adjoint(self, phases: Array, residuals: Array, out: Array) -> None:
        self._code.adjoint(_signed(phases), _unit(phases), residuals, out)

    def decode_pair(self, phases: Array, out: Array, start: int) -> None:
        self._code.decode_pair(_signed(phases), _unit(phases), out, start)

    def forward_pair(self, phases: Array, coefficients: Array, out: Array) -> None:
        self._code.forward_pair(_signed(phases), _unit(phases), coefficients, out)

    def adjoint_pair(self, phases: Array, residuals: Array, out: Array) -> None:
        self._code.adjoint_pair(_signed(phases), _unit(phases), residuals, out)


def _kept(out: Array, added: bool) -> Any:
    """Return the bits of what is in ``out`` that stay: all of them or none."""
    return out.dtype.type(np.iinfo(out.dtype).max if added else 0)


def _angles(phases: Array, out: Array) -> Array:
    """Angles in single precision, written to ``out``."""
    # Signed, since small angles are more precise than those near a whole turn.
    unit = np.float32(2 * math.pi / 256**phases.itemsize)
    return np.multiply(_signed(phases), unit, out=out, dtype=np.float32)


def _signed(phases: Array) -> Array:
    """The same bits as signed integers: a phase above half a turn is a negative angle."""
    return phases.view(np.dtype(f"int{8 * phases.itemsize}"))


def _unit(phases: Array) -> np.float32:
    """One ring step in half turns."""
    return np.float32(2.0 ** (1 - 8 * phases.itemsize))


def _choose() -> Loops:
    try:
        return CompiledLoops()
    except ImportError:
        return NumpyLoops()


LOOPS: Loops = _choose()
"""The loops that this installation uses."""
