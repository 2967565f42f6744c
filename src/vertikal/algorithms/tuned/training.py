"""The tuned kernel machine, from top to bottom.

1. Each party encodes its own columns (`data.encoding`).
2. The search learns each column's relevance and chooses bandwidths, on a part of rows and
   directions (`search`).
3. Phases of all rows are summed, of half Gaussian and half Laplace directions. The label party
   chooses the penalty on rows held out. If the number of directions is open, more are added while
   these rows get better.
4. The chosen problem is solved on all rows.

Prediction encodes, and adds up the predictions of the blocks of directions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.algorithms.kernel_machine import fdskl
from vertikal.algorithms.kernel_machine.label_sums import LabelSums
from vertikal.algorithms.kernel_machine.labels.parts import share_labels
from vertikal.algorithms.kernel_machine.settings import FdsklSettings
from vertikal.algorithms.kernel_machine.shard import Shard
from vertikal.algorithms.tuned.held_out import Chosen, Fitting, choose_penalty, fit, parts_of
from vertikal.algorithms.tuned.search import (
    RowPass,
    SearchResult,
    begin_block,
    iterations_left,
    search,
    take_pass,
)
from vertikal.algorithms.tuned.settings import SMALL, KernelSettings, PassSettings
from vertikal.algorithms.tuned.shard import Trial, TunedShard
from vertikal.compute.open_operator import OpenOperator
from vertikal.data.encoding import learn_encoding
from vertikal.data.tables import Table
from vertikal.errors import MeshError
from vertikal.kernels.random_features import FourierMap
from vertikal.losses.pointwise import loss_named
from vertikal.party.party import Labels, Party
from vertikal.privacy.ledger import Disclosure
from vertikal.ring.integers import Ring
from vertikal.solvers.feature_operator import FeatureOperator
from vertikal.solvers.lbfgs import Solution
from vertikal.solvers.objective import best_constants

Array = npt.NDArray[Any]

ENCODING = "smooth"
PENALTIES = (0.32, 0.1, 0.032, 0.01, 0.0032)
"""Penalties of the first fit on all rows, over that of the search."""
NEARBY = (1.0, 0.32)
"""Penalties of later fits over the last."""
HIDDEN_PENALTIES = (2.0, 0.2, 0.02)
"""Penalties of the fit where each iteration opens values, times the rows."""
PARTS = 5
"""One part of so many is held out."""
SEARCH_TOLERANCE = 1e-2
TOLERANCE = 1e-3
PATH_STEPS = 40
"""Iterations of one fit along the path of penalties; the next one goes on from there."""
SHARED_STEPS = 20
"""The same for several outputs, which go on together until the last of them is there."""
MOST_STEPS = 200
REFIT_SHARE = 3
"""One iteration of so many is left for the fit on all rows, where each opens values."""

GROWTH = Disclosure(
    "growth",
    "the number of blocks of directions so far that are kept, and if another follows",
    "everybody learns these two numbers, a few bits about the labels",
    masked=False,
)


def train(party: Party, settings: KernelSettings) -> TunedShard:
    """Train at this party and return its shard."""
    settings.check_rows(party.table.rows)
    with party.clock.stage("prepare"):
        encoding = learn_encoding(party.table, ENCODING)
        encoded = encoding.apply(party.table)
    labels, constant, unit = party.labels, np.zeros(1), np.ones(1)
    if labels is not None:
        parts = share_labels(party, labels, parts=False)
        constant, unit, labels = fdskl.standardise(settings, parts)
    found = search(party, settings, encoded, labels)
    model = _grow(party, settings, encoded, labels, found)
    return TunedShard(
        party.name,
        settings,
        party.table.columns,
        encoding,
        model.blocks,
        found.relevance,
        found.choice.round,
        tuple(found.trials),
        constant + model.constant * unit,
        unit,
        model.training,
    )


def predict(party: Party, shard: TunedShard) -> Array | None:
    """Predict at this party: f of all rows of ``party.table`` at the leader, None elsewhere."""
    encoded = shard.encoding.apply(party.table)
    there = party.on(encoded, None, "prediction")
    total: Array | None = None
    for block in shard.blocks:
        part = fdskl.predict(there, block)
        if part is not None:
            total = part if total is None else total + part
    return None if total is None else total * shard.unit + shard.constant


@dataclass(frozen=True)
class _Model:
    """Blocks of the model at one party, and at a label party how they were fitted."""

    blocks: tuple[Shard, ...]
    constant: Array
    training: Any


def _grow(
    party: Party,
    settings: KernelSettings,
    encoded: Table,
    labels: Labels | None,
    found: SearchResult,
) -> _Model:
    """Sum the phases of all rows, add directions while held-out rows get better, and fit."""
    steps = settings.growth(encoded.rows)
    passes: list[RowPass] = []
    best: tuple[Chosen, Fitting, int] | None = None
    keep = 0
    for number, width in enumerate(steps):
        view = party.on(encoded, labels, f"model{number}")
        block = settings.model_block(width)
        name = f"model {number}"
        passes.append(
            take_pass(view, begin_block(view, block, found.scaling, found.choice.factors, name))
        )
        more = False
        if labels is not None:
            with party.clock.stage("solve"):
                last = None if best is None else best[0]
                chosen, fitting = _choose(party, settings, passes, labels, found, last)
                more = last is None or chosen.loss < last.loss
                if best is None or chosen.loss < best[0].loss:
                    best = chosen, fitting, number + 1
                party.clock.advance(1, f"{sum(steps[: number + 1])} directions: {chosen.loss:.4f}")
        more = more and number + 1 < len(steps)
        keep, more = _agree_on_growth(party, best[2] if best else 0, more, number + 1, len(steps))
        if not more:
            break
    shards = tuple(_to_keep(one.shard) for one in passes)[:keep]
    if best is None:
        if settings.hides:
            with party.clock.stage("serve"):
                passes[0].phases.serve()
        return _Model(shards, np.zeros(1), shards[0].training)
    chosen, fitting, _ = best
    with party.clock.stage("solve"):
        solution = _refit(fitting, chosen, passes[0].shard.settings)
        if settings.hides:
            passes[0].phases.finish()
    return _Model(
        _with_coefficients(party, shards, solution.coefficients),
        fitting.constant,
        fdskl.training_of(solution, chosen.penalty),
    )


def _choose(
    party: Party,
    settings: KernelSettings,
    passes: list[RowPass],
    labels: Labels,
    found: SearchResult,
    last: Chosen | None,
) -> tuple[Chosen, Fitting]:
    """Choose the penalty on all phases so far."""
    operator = _joined(passes)
    loss = loss_named(
        "square" if settings.regression else "logistic", regression=settings.regression
    )
    constant = np.zeros(settings.outputs)
    if not settings.regression:
        constant = best_constants(loss, labels.targets, labels.weights)
    penalties = [found.penalty * ratio for ratio in PENALTIES]
    if last is not None:
        penalties = [last.penalty * ratio for ratio in NEARBY]
    sums = LabelSums(party, settings.label_parties)
    fitting = Fitting(
        operator,
        labels,
        loss,
        constant,
        sums,
        SEARCH_TOLERANCE,
        settings.seed,
        most_each=PATH_STEPS if settings.outputs == 1 else SHARED_STEPS,
    )
    held = parts_of(labels.targets, PARTS, settings.seed, classes=not settings.regression)
    if operator.rows >= SMALL or settings.hides:
        held = held[:1]
    if settings.hides:
        penalties = [one / operator.rows for one in HIDDEN_PENALTIES]
        block = passes[0].shard.settings
        budget = iterations_left(block, operator)
        most = max(1, budget - budget // REFIT_SHARE)
        fitting = replace(
            fitting,
            tolerance=block.stopping(),
            most_iterations=most,
            most_each=-(-most // len(penalties)),
            sparing=True,
        )
    chosen = choose_penalty(fitting, penalties, held)
    width = sum(one.shard.settings.n_components for one in passes)
    size = operator.rows * passes[-1].shard.settings.n_components * settings.bytes_each()
    found.trials += [
        Trial(
            "model",
            found.choice.round,
            *found.choice.factors,
            width,
            one.penalty,
            one.loss,
            0 if place else size,
        )
        for place, one in enumerate(chosen.tried)
    ]
    return chosen, fitting


def _refit(fitting: Fitting, chosen: Chosen, block: FdsklSettings) -> Solution:
    """Fit all rows at the chosen penalty, begun at the fit without the rows held out."""
    if block.hides:
        left = iterations_left(block, fitting.operator) - fitting.most_iterations
        fitting = replace(fitting, most_each=max(0, left))
    else:
        fitting = replace(fitting, tolerance=TOLERANCE, most_each=MOST_STEPS)
    return fit(fitting, chosen.penalty, None, chosen.factor, chosen.fit)


def _joined(passes: list[RowPass]) -> FeatureOperator:
    """Return the features of all blocks side by side: all cosines first, then all sines."""
    operators = [one.operator for one in passes]
    first = operators[0]
    assert first is not None
    if len(passes) == 1:
        return first
    phases = np.hstack([one.cached for one in operators if isinstance(one, OpenOperator)])
    width = phases.shape[1]
    ring = Ring(passes[0].shard.settings.feature_map.bits)
    total = sum(one.shard.settings.n_components for one in passes)
    feature_map = FourierMap(
        ring, np.empty((0, width)), np.zeros(width, ring.dtype), total, functions="pair"
    )
    return OpenOperator(feature_map, first.rows, phases)


def _with_coefficients(
    party: Party, shards: tuple[Shard, ...], coefficients: Array
) -> tuple[Shard, ...]:
    """Give each block its coefficients; features of one block are √(D/D_b) times those joined."""
    widths = [shard.settings.widths()[party.name] for shard in shards]
    total = sum(shard.settings.n_components for shard in shards)
    cosines, sines = np.split(coefficients, 2)
    ends = np.cumsum(widths)[:-1]
    found = []
    for shard, of_cosines, of_sines in zip(
        shards, np.split(cosines, ends), np.split(sines, ends), strict=True
    ):
        share = np.sqrt(shard.settings.n_components / total)
        found.append(replace(shard, coefficients=np.vstack((of_cosines, of_sines)) * share))
    return tuple(found)


def _to_keep(shard: Shard) -> Shard:
    """Return the shard with the settings that predictions need."""
    settings = shard.settings
    return (
        replace(shard, settings=settings.plain()) if isinstance(settings, PassSettings) else shard
    )


def _agree_on_growth(
    party: Party, keep: int, more: bool, blocks: int, most: int
) -> tuple[int, bool]:
    """Tell everybody, at the leader, how many blocks are kept and if another follows."""
    if most == 1:
        return 1, False
    group = (party.leader, *(name for name in party.parties if name != party.leader))
    mine: Any = np.array([keep, more], np.int64) if party.leads else None
    told = np.asarray(party.broadcast(mine, group, GROWTH))
    if told.dtype != np.int64 or told.shape != (2,) or not 1 <= told[0] <= blocks:
        raise MeshError(f"{party.name}: {party.leader} announced the growth {told!r}")
    return int(told[0]), bool(told[1])
