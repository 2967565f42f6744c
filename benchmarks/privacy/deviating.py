"""Attacks of members that do not follow the program: on predictions, gradients and neighbours.

The others run the code as it is: only what the attacker itself asks for or is called is changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt

from benchmarks.privacy.semi_honest import Hidden, credit, recovered
from vertikal import FDSKLClassifier, Sealed, Values
from vertikal.algorithms.kernel_machine import fdskl, values
from vertikal.algorithms.kernel_machine.directions import draw_directions
from vertikal.algorithms.kernel_machine.phases import direction_block
from vertikal.algorithms.kernel_machine.sealed import COEFFICIENT_BITS
from vertikal.algorithms.kernel_machine.settings import MOST_VALUE_BITS, FdsklSettings
from vertikal.errors import VertikalError
from vertikal.node.config.party_file import Policy
from vertikal.privacy.attacks.weighted_rows import read_rows, residuals_on, weights_of
from vertikal.secure.hidden.openings import Limits
from vertikal.secure.keys.prg import encode_texts
from vertikal.secure.secagg.neighbours import Neighbours, plan_neighbours

Array = npt.NDArray[Any]

DIRECTIONS = 128
ROWS = 480
HIDDEN = 9
CLIENTS, SYBILS = 1000, 70
DRAWS = 500


def features_in_place_of_values(data: Hidden) -> list[dict[str, float]]:
    """Ask in training for single features of all rows in place of f, as often as was agreed.

    Jobs are repeated as often as the account of their bits allows by default.
    """
    opened: list[Array] = []
    found: list[dict[str, float]] = []

    def attack(party: Any, shard: Any, operator: Any, objective: Any) -> Any:
        for direction in range(shard.settings.passes("lender")):
            unit = np.zeros((operator.width, 1))
            unit[direction] = 1.0
            opened.append(operator.forward(unit))
        raise VertikalError("the attacker has what it wants")

    bits = 0
    while True:
        with mock.patch.object(fdskl, "solve_exactly", attack), suppress(VertikalError):
            model = FDSKLClassifier(data.parties, disclosure="values", random_state=len(found) + 1)
            model.fit(data.X, data.y)
        one = recovered(np.concatenate(opened, axis=1), data)
        each = one["bits per row"] - bits
        bits += each
        found.append({"jobs": len(found) + 1} | one)
        if bits + each > Policy().most_row_bits:
            return found


def unit_vector_questions() -> dict[str, Any]:
    """Ask for one person with a unit vector in place of the coefficients, once per direction."""
    data = credit(ROWS, HIDDEN)
    found = {}
    for when, bits in (("before", MOST_VALUE_BITS), ("after", Values().prediction_bits)):
        model = FDSKLClassifier(
            data.parties, disclosure=Values(prediction_bits=bits), n_components=DIRECTIONS
        ).fit(data.X, data.y)
        person = data.X[:1]
        truth = _cosines(model.shards_, data.X, data.parties)[0]
        shard = model.shards_["lender"]
        scale = np.sqrt(2 / DIRECTIONS)
        read = np.empty(DIRECTIONS)
        for direction in range(DIRECTIONS):
            unit = np.zeros((DIRECTIONS, 1))
            unit[direction] = 1.0
            model.shards_["lender"] = replace(shard, coefficients=unit)
            read[direction] = (model.decision_function(person)[0] - shard.constant[0]) / scale
        errors = np.abs(read - truth)
        found[f"{when}: bits of an answer"] = bits
        found[f"{when}: largest error of {DIRECTIONS} cosines"] = float(errors.max())
    return found


def added_to_a_share() -> dict[str, Any]:
    """Ask for one person where coefficients are shared, with one more at one of them each time.

    What is added is as large as an answer can hold, so that the answer's noise counts least.
    """
    data = credit(ROWS, HIDDEN)
    found: dict[str, Any] = {}
    for when, bits in (("before", MOST_VALUE_BITS), ("after", Sealed().prediction_bits)):
        model = FDSKLClassifier(
            data.parties,
            disclosure=Sealed(prediction_bits=bits),
            loss="square",
            n_components=DIRECTIONS,
        ).fit(data.X, data.y)
        person, truth = data.X[:1], _cosines(model.shards_, data.X, data.parties)[0]
        shard = model.shards_["lender"]
        largest = 2.0 ** np.floor(np.log2(2 / np.sqrt(shard.training.penalty)))
        plain = model.decision_function(person)[0]
        read = np.empty(DIRECTIONS)
        for direction in range(DIRECTIONS):
            share = np.array(shard.coefficient_share)
            share[direction] += np.uint64(largest * 2**COEFFICIENT_BITS)
            model.shards_["lender"] = replace(shard, coefficient_share=share)
            read[direction] = (model.decision_function(person)[0] - plain) / largest
        found[f"{when}: bits of an answer"] = bits
        found[f"{when}: largest error of {DIRECTIONS} cosines"] = float(np.abs(read - truth).max())
    return found


def weighted_gradients() -> dict[str, Any]:
    """Ask for gradients with all weight on one or two rows, until the helper refuses.

    Before, gradients had 28 bits and a quarter of the rows could be asked for; two rows were read
    from each.
    """
    data = credit(ROWS, HIDDEN)
    settings: dict[str, Any] = {"random_state": 0}
    honest = FDSKLClassifier(data.parties, disclosure="values", **settings).fit(data.X, data.y)
    truth = _cosines(honest.shards_, data.X, data.parties)

    def old_limits(settings: FdsklSettings, label_party: str, rows: int | None) -> Limits:
        passes, most = settings.passes(label_party), (rows or ROWS) // 4
        return Limits(passes, 8, most, settings.values.value_bits, MOST_VALUE_BITS, 10**6)

    with mock.patch.object(values, "training_limits", old_limits):
        level = Values(gradient_bits=MOST_VALUE_BITS)
        before = _read_rows(FDSKLClassifier(data.parties, disclosure=level, **settings), data, 2)
    after = _read_rows(FDSKLClassifier(data.parties, disclosure="values", **settings), data, 1)
    return {
        f"{when}: {what}": number
        for when, read in (("before", before), ("after", after))
        for what, number in {
            "rows asked for": len(read) / ROWS,
            "phases right in these": round(_right(read, truth), 4),
        }.items()
    }


def _read_rows(model: FDSKLClassifier, data: Any, together: int) -> dict[int, Array]:
    """Cosines (D,) by row that a label party reads until it is refused, ``together`` at a time."""
    found: dict[int, Array] = {}
    weights = weights_of(together)

    def attack(party: Any, shard: Any, operator: Any, objective: Any) -> Any:
        scale = np.sqrt(2 / operator.width)
        for first in range(0, ROWS - together + 1, together):
            chosen = range(first, first + together)
            gradient = operator.adjoint(residuals_on(ROWS, chosen, weights)) / scale
            found.update(zip(chosen, read_rows(gradient[:, 0], weights), strict=True))
        raise VertikalError("the helper has not refused anything")

    # A refusal ends the run for all; what was read stays read.
    with mock.patch.object(fdskl, "solve_exactly", attack), suppress(VertikalError):
        model.fit(data.X, data.y)
    return found


def _right(read: Mapping[int, Array], truth: Array) -> float:
    """Share of phases that are right up to their sign."""
    if not read:
        return 0.0
    rows = list(read)
    return float(np.mean(np.abs(np.array([read[row] for row in rows]) - truth[rows]) < 1e-6))


def _cosines(shards: Mapping[str, Any], X: Array, parties: Mapping[str, list[int]]) -> Array:
    """Cosines (rows, D) of the summed phases: the truth, which no party has."""
    total: Any = 0
    for name, columns in parties.items():
        shard = shards[name]
        block = direction_block(shard, draw_directions(shard, "lender"))
        total = total + block.feature_map.local(X[:, columns])
    return np.asarray(np.cos(total * (2 * np.pi / 256)))


def surrounding_sybils() -> dict[str, Any]:
    """Choose the names of 70 clients of 1,000 so that they surround a victim.

    Before, the order of clients followed from the job's name and theirs, so that names could be
    tried until they fell beside the victim's. Now the seed comes from coins, after names are fixed.
    """
    plan = plan_neighbours(CLIENTS)
    honest = [f"client {number}" for number in range(CLIENTS - SYBILS)]
    victim = honest[0]
    seed = hashlib.sha256(b"the name of the job").digest()

    def place(name: str) -> int:
        digest = hashlib.sha256(seed + encode_texts("circle", name)).digest()
        return int.from_bytes(digest, "big")

    # The nearest honest clients either side: a Sybil must fall between them and the victim.
    middle, circle = place(victim), 1 << 256
    gaps = [(place(name) - middle) % circle for name in honest[1:]]
    after, before = min(gaps), circle - max(gaps)
    names: list[str] = []
    sides = [0, 0]
    tried = 0
    while len(names) < SYBILS:
        name = f"sybil {tried}"
        tried += 1
        gap = (place(name) - middle) % circle
        side = 0 if gap < after else 1 if circle - gap < before else None
        if side is not None and sides[side] < SYBILS // 2:
            sides[side] += 1
            names.append(name)
    clients, corrupt = (*honest, *names), set(names)

    def surrounded(by: bytes) -> int:
        return len(corrupt & {*Neighbours(by, clients, plan).of(victim)})

    generator = np.random.default_rng(0)
    drawn = [surrounded(generator.bytes(32)) for _ in range(DRAWS)]
    return {
        "neighbours, and shares that open a secret": [plan.degree, plan.threshold],
        "names tried": tried,
        "before: Sybils among the victim's neighbours": surrounded(seed),
        f"after: the most of {DRAWS} draws of coins": max(drawn),
        "after: draws in which they open the victim's vector": sum(
            count >= plan.threshold for count in drawn
        ),
    }
