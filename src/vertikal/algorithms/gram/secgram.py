"""SecGram: the exact linear kernel of columns that lie at several parties (Polato et al., ESANN).

K = Σ_ℓ X_ℓ X_ℓᵀ is a sum over the parties, so the label party gets it by a secure sum and learns
nothing else. Whole numbers are summed exactly, in the smallest ring that holds the result; real
numbers in fixed point, with a bound on the error. Only tiles on and above the diagonal travel.

`gram_matrix` and `cross_gram` are the programs that every party runs. For many clients that may
vanish see `client_gram`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt
from scipy import sparse

from vertikal.algorithms.gram.packing import RINGS
from vertikal.algorithms.gram.tile_sums import TileSums
from vertikal.data.scaling import Scale, Scaling, learn_scaling
from vertikal.errors import InputError, MeshError, RingError
from vertikal.parameters import Parameters
from vertikal.party.party import Party
from vertikal.privacy.ledger import Disclosure
from vertikal.records import convert
from vertikal.ring.integers import Ring

Array = npt.NDArray[Any]
Block = Any

TILE = 1024
"""Rows and columns of a tile."""

EXACT = 2.0**53

SIZES = Disclosure(
    "sizes",
    "the largest squared length of a row, whether columns are whole numbers, and how many columns "
    "there are, summed",
    "the label party learns the sum of the parties' largest squared lengths, how many of them hold "
    "numbers that are not whole, and how many columns all have together; with two parties, the "
    "other's",
    masked=True,
)
RING = Disclosure(
    "ring", "the ring and its fixed point", "everybody learns how large rows may be", masked=False
)
PRODUCTS = Disclosure(
    "kernel",
    "inner products of rows, summed over the parties",
    "the label party learns all inner products of the rows over all columns, hence all distances; "
    "with its own part taken off, those over the others' columns, from which their rows follow up "
    "to one rotation of these columns together; as many known rows as they have columns undo the "
    "rotation, and give the columns of all other rows",
    masked=True,
)
SUPPORT = Disclosure(
    "support",
    "numbers of the training rows that predictions need",
    "everybody learns which training rows carry the model",
    masked=False,
)


class GramSettings(Parameters, frozen=True, kw_only=True):
    """Settings that all parties of a SecGram job agree on."""

    parties: tuple[str, ...]
    label_parties: tuple[str, ...]
    ring_bits: Literal["auto", 16, 32, 64] = "auto"
    scale: Scale | None = None
    binary: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.label_parties) != 1:
            raise InputError.of(
                "label_parties", "one party, which learns the kernel", list(self.label_parties)
            )


class FixedPoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Form of inner products: ``bits`` of a ring, ``fraction`` of them after the point."""

    bits: int
    fraction: int
    error: float  # the largest distance of an entry of the sum from the true one


@dataclass(frozen=True)
class GramShard:
    """Part of one party: its own scaled training rows, which a kernel machine needs to predict."""

    party: str
    columns: tuple[str, ...]
    scaling: Scaling
    rows: Block  # (rows, columns), dense or CSR


@dataclass(frozen=True)
class Gram:
    """Inner products that the label party has learned."""

    values: Array  # (rows, others)
    left: Array  # (rows,) squared lengths
    right: Array  # (others,)
    fixed_point: FixedPoint
    columns: int  # of all parties


def scaled_rows(party: Party, settings: GramSettings) -> GramShard:
    """Scale this party's own training rows; nothing is sent."""
    with party.clock.stage("prepare"):
        scaling = learn_scaling(party.table, settings.scale)
        rows = _scaled(party, scaling, settings)
        return GramShard(party.name, party.table.columns, scaling, rows)


def gram_matrix(party: Party, settings: GramSettings) -> tuple[GramShard, Gram | None]:
    """Compute the linear kernel of all training rows, SecGram eq. (1); None but at the leader."""
    shard = scaled_rows(party, settings)
    rows = shard.rows
    largest = _largest_length(rows)
    point, columns = agree_on_ring(party, settings, largest, _whole(rows), rows.shape[1])
    count = rows.shape[0]
    values = np.empty((count, count)) if party.leads else None
    parts = list(tiles(count))
    sums = TileSums(party, Ring(point.bits), PRODUCTS, len(parts), _digits(point), resumes=True)
    with party.clock.stage("kernel", count):
        for i, j in parts:
            shape = (i.stop - i.start, j.stop - j.start)
            upper = np.triu_indices(shape[0]) if i == j else None
            own = partial(_encoded_products, rows[i], rows[j], upper, point)
            total = sums.sum(shape[0] * shape[1] if upper is None else len(upper[0]), own)
            if values is not None and total is not None:
                summed = decode_products(total, point)
                if upper is None:
                    values[i, j] = summed.reshape(shape)
                    values[j, i] = values[i, j].T
                else:
                    block = values[i, j]
                    block[upper] = summed
                    block.T[upper] = summed
            party.clock.advance(shape[0] if i == j else 0)
    if values is None:
        return shard, None
    lengths = values.diagonal().copy()
    return shard, Gram(values, lengths, lengths, point, columns)


def cross_gram(
    party: Party, shard: GramShard, settings: GramSettings, support: Array | None
) -> Gram | None:
    """Compute inner products of the rows of ``party.table`` with the training rows ``support``.

    The leader gives the row numbers and gets the result; the others give None and get None.
    """
    chosen = tell_rows(party, shard.rows.shape[0], support)
    return products_with(party, shard.rows[chosen], shard.scaling, settings)


def tell_rows(party: Party, count: int, support: Array | None) -> Array:
    """Tell everybody the numbers of training rows, below ``count``, that the leader gives."""
    audience = (party.leader, *(name for name in party.parties if name != party.leader))
    wanted = None if support is None else np.asarray(support, np.int64)
    chosen = np.asarray(party.broadcast(wanted, audience, SUPPORT))
    if (
        chosen.dtype != np.int64
        or chosen.ndim != 1
        or (chosen >= count).any()
        or (chosen < 0).any()
    ):
        raise MeshError(f"{party.name}: {party.leader} asked for training rows that are not there")
    return chosen


def products_with(
    party: Party,
    kept: Block,
    scaling: Scaling,
    settings: GramSettings,
    landmarks: Array | None = None,
) -> Gram | None:
    """Compute inner products of the rows of ``party.table`` with these; None but at the leader.

    In training, ``landmarks`` (len(kept),) are their numbers in the table: what is finished of
    these columns outlives the run.
    """
    rows = _scaled(party, scaling, settings)
    # |⟨x, z⟩| ≤ max(‖x‖², ‖z‖²), and the squared lengths of new rows travel as well.
    largest = max(_largest_length(rows), _largest_length(kept))
    whole = _whole(rows) and _whole(kept)
    point, columns = agree_on_ring(party, settings, largest, whole, rows.shape[1])
    count, width = rows.shape[0], kept.shape[0]
    values, left = np.empty((count, width)), np.empty(count)
    training = landmarks is not None
    of = _digits(point) + (landmarks.tobytes() if landmarks is not None else b"")
    runs = [slice(start, min(start + TILE, count)) for start in range(0, count, TILE)]
    sums = TileSums(party, Ring(point.bits), PRODUCTS, 1 + len(runs), of, resumes=training)
    with party.clock.stage("kernel" if training else "predict", count):
        right = sums.sum(width, lambda: encode_products(_lengths(kept), point))
        for where in runs:
            height = where.stop - where.start
            own = partial(_encoded_columns, rows[where], kept, point)
            total = sums.sum(height * (1 + width), own)
            if total is not None:
                summed = decode_products(total, point).reshape(height, 1 + width)
                left[where], values[where] = summed[:, 0], summed[:, 1:]
            party.clock.advance(height)
    if right is None:
        return None
    return Gram(values, left, decode_products(right, point), point, columns)


def agree_on_ring(
    party: Party, settings: GramSettings, largest: float, whole: bool, width: int
) -> tuple[FixedPoint, int]:
    """Sum the parties' bounds, and let the leader choose ring and fixed point for all.

    The leader also gets the number of all columns; the others get 0.
    """
    wide = Ring(64)
    with party.naming("kernel"):
        mine = wide.encode_wide(
            np.array([largest, 0.0 if whole else 1.0, float(width)]), len(party.parties)
        )
    total = party.secure_sum(mine, party.leader, SIZES)
    answer: dict[str, Any] | None = None
    columns = 0
    if total is not None:
        bound, broken, widths = wide.decode_wide(total)
        columns = round(float(widths))
        point = choose_ring(
            settings.ring_bits, float(bound), broken < 0.5, len(party.parties), columns
        )
        answer = msgspec.structs.asdict(point)
    audience = (party.leader, *(name for name in party.parties if name != party.leader))
    message: Any = party.broadcast(answer, audience, RING)
    try:
        point = convert(message, FixedPoint)
    except msgspec.ValidationError as error:
        raise MeshError(f"{party.name}: {party.leader} announced no ring: {error}") from None
    if point.bits not in RINGS or not -1000 < point.fraction < 60:
        raise MeshError(f"{party.name}: {party.leader} announced an unknown ring: {point}")
    return point, columns


def choose_ring(
    bits: int | Literal["auto"], bound: float, whole: bool, parties: int, columns: int
) -> FixedPoint:
    """Choose the smallest ring for whole numbers up to ``bound``, else the longest fraction.

    The error of real numbers is at most half a unit per party, by rounding, plus the error of
    double precision in products over so many columns.
    """
    if whole and bound < EXACT:
        for candidate in RINGS if bits == "auto" else (bits,):
            if bound < 2.0 ** (candidate - 1):
                return FixedPoint(candidate, 0, 0.0)
        raise RingError(
            f"kernel: inner products up to {bound:.6g} do not fit in {bits} bits; take a wider "
            "ring_bits, or 'auto'"
        )
    width = 32 if bits == "auto" else bits
    room = 2.0 ** (width - 1) - 1 - parties
    fraction = min(52, math.floor(math.log2(room / max(bound, 1e-300))))
    rounding = columns * 2.0**-52 * bound
    return FixedPoint(width, fraction, parties * 2.0 ** -(fraction + 1) + rounding)


def tiles(count: int, height: int = TILE) -> Iterator[tuple[slice, slice]]:
    """Yield pairs of row runs on and above the diagonal; the matrix is symmetric."""
    runs = [slice(i, min(i + height, count)) for i in range(0, count, height)]
    for a, first in enumerate(runs):
        for second in runs[a:]:
            yield first, second


def encode_products(values: Array, point: FixedPoint) -> Array:
    """Encode inner products as ring elements; they have been checked to fit."""
    scaled = np.rint(np.ldexp(values, point.fraction))
    return scaled.astype(np.int64).astype(Ring(point.bits).dtype)


def decode_products(total: Array, point: FixedPoint) -> Array:
    """Decode sums of inner products that `encode_products` encoded."""
    return np.asarray(np.ldexp(total.view(f"int{point.bits}").astype(np.float64), -point.fraction))


def check_bits(title: str, block: Block) -> None:
    """Refuse anything but zeros and ones, for a boolean kernel."""
    values = block.data if sparse.issparse(block) else block
    if values.size and not np.isin(values, (0.0, 1.0)).all():
        wrong = values[~np.isin(values, (0.0, 1.0))].flat[0]
        raise InputError.of(f"columns of {title}", "0 or 1 for a boolean kernel", float(wrong))


def _encoded_products(
    left: Block, right: Block, upper: tuple[Array, ...] | None, point: FixedPoint
) -> Array:
    """Encode the inner products of a tile, or those ``upper`` of a tile on the diagonal."""
    products = _products(left, right)
    return encode_products(products.ravel() if upper is None else products[upper], point)


def _encoded_columns(rows: Block, kept: Block, point: FixedPoint) -> Array:
    """Encode the squared lengths of rows and their inner products with ``kept``, row by row."""
    own = np.column_stack((_lengths(rows), _products(rows, kept)))
    return encode_products(own.ravel(), point)


def _digits(point: FixedPoint) -> bytes:
    """Write the fraction, without which kept ring elements mean nothing."""
    return b"%d " % point.fraction


def _scaled(party: Party, scaling: Scaling, settings: GramSettings) -> Block:
    block = party.table.block(slice(0, party.table.rows))
    centre, factor = scaling.arrays()
    if sparse.issparse(block) and not centre.any():
        block = sparse.csr_array(block * factor[None, :])
    else:
        dense = block.toarray() if sparse.issparse(block) else block
        block = (dense - centre) * factor
    if settings.binary:
        check_bits(f"party {party.name!r}", block)
    return block


def _whole(block: Block) -> bool:
    values = block.data if sparse.issparse(block) else block
    return bool((values == np.rint(values)).all())


def _lengths(block: Block) -> Array:
    if sparse.issparse(block):
        return np.asarray(block.multiply(block).sum(axis=1)).ravel()
    return np.asarray(np.einsum("ij,ij->i", block, block))


def _largest_length(block: Block) -> float:
    return float(_lengths(block).max(initial=0.0))


def _products(left: Block, right: Block) -> Array:
    """Compute X Zᵀ, dense float64: exact for whole numbers, whose sums stay below 2^53."""
    product = left @ right.T
    return np.asarray(product.toarray() if sparse.issparse(product) else product)
