"""Directions, offsets and phases drawn and summed one Python number at a time.

Everything is derived again from the shards' seeds with the standard library and one block cipher,
so that nothing of the package is needed to say what the phases of a row must be.
"""

from __future__ import annotations

import hashlib
import hmac
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy.stats import chi2, norm

NU = {"matern": 1.5, "matern12": 0.5, "matern32": 1.5, "matern52": 2.5}


def words(*texts: str) -> bytes:
    encoded = [text.encode() for text in texts]
    return b"".join(len(text).to_bytes(4, "big") + text for text in encoded)


def derive(key: bytes, *purpose: str) -> bytes:
    return hmac.new(key, words(*purpose), hashlib.sha256).digest()


def stream(key: bytes, number: int, size: int) -> bytes:
    """The first bytes of keystream ``number``: AES-256 in counter mode."""
    counter = number.to_bytes(8, "big") + bytes(8)
    return Cipher(algorithms.AES(key), modes.CTR(counter)).encryptor().update(bytes(size))


def draw_integers(key: bytes, count: int, bits: int, number: int = 1) -> list[int]:
    size = bits // 8
    raw = stream(key, number, count * size)
    return [int.from_bytes(raw[i * size : (i + 1) * size], "little") for i in range(count)]


def draw_reals(key: bytes, count: int) -> list[float]:
    """Reals in (0, 1), from the 52 highest bits of 64."""
    return [((word >> 12) + 0.5) * 2.0**-52 for word in draw_integers(key, count, 64, number=0)]


def seeds(shard: Any, owner: str) -> dict[str, bytes]:
    public = derive(shard.settings.seed.to_bytes(32, "big"), "public")
    shared = shard.settings.feature_map.directions == "shared"
    return {
        "offsets": derive(shard.seed, "offsets", owner),
        "scalars": derive(public, "scalars", owner),
        "directions": derive(public, "directions", owner, shard.party)
        if shared
        else derive(shard.seed, "directions", owner),
    }


def directions(shard: Any, owner: str) -> list[list[float]]:
    """ω of this party's columns, (columns, width), for columns as they come, not yet scaled."""
    settings = shard.settings
    width = settings.widths()[owner]
    keys = seeds(shard, owner)
    uniforms = draw_reals(keys["directions"], len(shard.columns) * width)
    spread = [1.0] * width
    if settings.kernel in NU:
        nu = NU[settings.kernel]
        common = draw_reals(keys["scalars"], width)
        spread = [math.sqrt(2 * nu / chi2.ppf(u, 2 * nu)) for u in common]
    if settings.kernel == "laplace":
        unit = [math.tan(math.pi * (u - 0.5)) for u in uniforms]
    else:
        unit = norm.ppf(uniforms).tolist()
    return [
        [
            unit[c * width + j] * spread[j] / shard.bandwidth * shard.scaling.factor[c]
            for j in range(width)
        ]
        for c in range(len(shard.columns))
    ]


def offsets(shard: Any, owner: str) -> list[int]:
    """b_ℓ in ring steps: the leading bits of 32, so that every ring rounds the same offsets."""
    settings = shard.settings
    drawn = draw_integers(seeds(shard, owner)["offsets"], settings.widths()[owner], 32)
    return [word >> (32 - settings.feature_map.bits) for word in drawn]


def batch(shard: Any, number: int, rows: int) -> list[int]:
    """Row numbers of this label party's batch ``number``."""
    key = derive(shard.seed, "batches", str(number))
    return [word % rows for word in draw_integers(key, shard.settings.solver.batch_size, 64)]


def round_phases(
    block: Any, omega: Sequence[Sequence[float]], b: Sequence[int], centre: Any, bits: int
) -> list[list[int]]:
    """round((ωᵀ(x − centre))·2^k/2π + b) mod 2^k, (rows, width); ties to even, as Python rounds."""
    steps = 2**bits / (2 * math.pi)
    columns = range(len(omega))
    return [
        [
            round(math.fsum((x[c] - centre[c]) * omega[c][j] for c in columns) * steps + b[j])
            % 2**bits
            for j in range(len(b))
        ]
        for x in np.asarray(block, float).tolist()
    ]


def local_phases(shard: Any, block: Any, owner: str) -> list[list[int]]:
    """This party's phases of its rows under ``owner``'s directions, its offsets in them."""
    return round_phases(
        block,
        directions(shard, owner),
        offsets(shard, owner),
        shard.scaling.centre,
        shard.settings.feature_map.bits,
    )


def kept_party(owner: str, parties: Sequence[str]) -> str:
    """FDSKL Algorithm 3, line 6: whose offset stays in the sum."""
    others = [name for name in parties if name != owner]
    coin = hashlib.sha256(words("kept", owner, *parties)).digest()
    return others[int.from_bytes(coin[:8], "big") % len(others)]


def summed_phases(
    shards: Mapping[str, Any], blocks: Mapping[str, Any], owner: str, masking: str = "pads"
) -> np.ndarray:
    """The sum over the parties mod 2^k, (rows, width), as the label party ``owner`` holds it."""
    settings = next(iter(shards.values())).settings
    parts = [np.array(local_phases(shards[p], blocks[p], owner), object) for p in shards]
    total = sum(parts)
    if masking == "trees":
        stays = kept_party(owner, settings.parties)
        for party, shard in shards.items():
            if party != stays:
                total = total - np.array(offsets(shard, owner), object)
    return (total % 2**settings.feature_map.bits).astype(f"uint{settings.feature_map.bits}")


def cosines(phases: np.ndarray) -> np.ndarray:
    """√2·cos of each phase: φ_ω(x) of FDSKL eq. (2), float64."""
    turn = 256**phases.itemsize
    angles = [[2 * math.pi * int(p) / turn for p in row] for row in phases]
    return np.array([[math.sqrt(2) * math.cos(a) for a in row] for row in angles]).reshape(
        phases.shape
    )


def features(
    phases: np.ndarray, functions: str = "cosine", harmonics: Sequence[int] = (1,)
) -> np.ndarray:
    """√D times the features: of each harmonic the cosines of all directions, then their sines."""
    turn = 256**phases.itemsize
    rows = []
    for row in phases.tolist():
        found = []
        for h in harmonics:
            angles = [2 * math.pi * (h * p % turn) / turn for p in row]
            if functions == "pair":
                found += [math.cos(a) for a in angles] + [math.sin(a) for a in angles]
            else:
                found += [math.sqrt(2) * math.cos(a) for a in angles]
        rows.append([value / math.sqrt(len(harmonics)) for value in found])
    per_phase = len(harmonics) * (2 if functions == "pair" else 1)
    return np.array(rows).reshape(len(phases), phases.shape[1] * per_phase)
