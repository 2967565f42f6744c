"""The search: rounds of relevance on a part of the rows and directions, then bandwidths.

A round fits half Gaussian and half Laplace directions together and tells sketches, from which each
party learns the factors of its columns for the next round. Factors are kept only if rows held out
say so: the guard. The phases of a round are those of a wide bandwidth, and the fit uses twice each
phase, that is half the bandwidth. So other whole multiples of the phases of the round that was kept
are narrower and wider kernels, and choosing among these costs no message. Where features are hidden
each multiple would open values of its own: there rounds are fitted with narrow kernels, and one
pass more tries still narrower ones, or wide ones if labels are mostly noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from vertikal.algorithms.kernel_machine.bandwidth import agree_on_bandwidth
from vertikal.algorithms.kernel_machine.directions import part_columns
from vertikal.algorithms.kernel_machine.label_sums import LabelSums
from vertikal.algorithms.kernel_machine.phases import PhasePass
from vertikal.algorithms.kernel_machine.relevance import (
    learn_relevance,
    shared_key,
    sketch,
    tell_sketches,
)
from vertikal.algorithms.kernel_machine.settings import FdsklSettings
from vertikal.algorithms.kernel_machine.shard import KernelPart, Shard
from vertikal.algorithms.kernel_machine.values import HiddenPass
from vertikal.algorithms.tuned.held_out import Chosen, Fitting, choose_penalty, parts_of
from vertikal.algorithms.tuned.settings import SMALL, KernelSettings
from vertikal.algorithms.tuned.shard import Trial
from vertikal.compute.open_operator import OpenOperator
from vertikal.data.scaling import Scaling
from vertikal.data.tables import Table
from vertikal.errors import MeshError
from vertikal.losses.pointwise import loss_named
from vertikal.party.party import Labels, Party
from vertikal.privacy.ledger import Disclosure
from vertikal.solvers.feature_operator import FeatureOperator
from vertikal.solvers.objective import best_constants

Array = npt.NDArray[Any]

KERNELS = ("gaussian", "laplace")
FACTOR = 1.1
"""Bandwidth over the typical distance, at which rounds are fitted where features are open."""
NARROW = 0.7
"""Bandwidth at which rounds are fitted where features are hidden: a solver without a preconditioner
gets farther with narrow kernels in as many iterations, and so tells better which columns matter."""
NARROWEST = 0.4
"""Bandwidth that is tried beside it if the rounds explain labels well; `FACTOR` if not."""
SIGNAL = 0.5
"""Share of the labels' variance that the rounds must explain for still narrower kernels."""
HARMONIC = 2
"""Multiple of the phases at which rounds are fitted where features are open."""
HARMONICS = (1, 3)
"""Other multiples that are tried, of each kernel by itself."""
BETTER = 0.995
"""Loss relative to the best so far, below which another bandwidth is taken."""
NO_WORSE = 1.01
"""The same for the narrowest kernels: they gain most by the model's rows and directions, which are
several times those of the search."""
PENALTIES = tuple(10 ** (-2 - 0.75 * step) for step in range(7))
"""Penalties of the first fit."""
NEARBY = (1.0, 1 / 5.6)
"""Multiples of the last penalty that later fits try."""
HIDDEN_PENALTY = 0.5
"""Penalty of every fit where each iteration opens values, times the rows: one fit that goes far
tells better which columns matter than several that stop early, of which one has the best penalty.
"""
PARTS = 3
"""One part of so many is held out in the search."""
TOLERANCE = 3e-3

CHOICE = Disclosure(
    "choice",
    "the round of relevance and the two bandwidths that the search chose",
    "everybody learns these three numbers, a few bits about the labels",
    masked=False,
)
TRIAL = Disclosure(
    "trial",
    "the round of relevance and the bandwidths of the last pass of the search",
    "everybody learns which round was the best, and if it explains half of the labels' variance",
    masked=False,
)


@dataclass(frozen=True)
class Choice:
    """Result of the search that everybody needs: factors of columns by round, and bandwidths."""

    round: int
    factors: tuple[float, float]
    """Bandwidths of the Gaussian and the Laplace kernel over the typical distance."""


@dataclass
class SearchResult:
    """Result of the search at one party."""

    choice: Choice
    scaling: Scaling
    relevance: Array
    penalty: float = 0.0
    trials: list[Trial] = field(default_factory=list)


@dataclass(frozen=True)
class RowPass:
    """One pass of phases over some rows: this party's part, and Φ at a label party."""

    shard: Shard
    phases: PhasePass | HiddenPass
    operator: FeatureOperator | None


@dataclass(frozen=True)
class _Round:
    """One round as a label party saw it."""

    scaling: Scaling
    operator: FeatureOperator
    chosen: Chosen


def search(
    party: Party, settings: KernelSettings, encoded: Table, labels: Labels | None
) -> SearchResult:
    """Learn relevance, and choose round and bandwidths; all parties take part."""
    rows = encoded.rows
    chosen_rows = searched_rows(rows, settings)
    table = Table(encoded.party, encoded.columns, encoded.block(chosen_rows))
    part = (
        None if labels is None else Labels(labels.targets[chosen_rows], labels.weights[chosen_rows])
    )
    harmonic = 1 if settings.hides else HARMONIC
    rounds = settings.rounds(rows)
    # On few rows, without rounds, kernels stay wide.
    fitted_at = NARROW if settings.hides and rounds else FACTOR
    scales = [relevance_scaling(np.ones(table.width))]
    relevance = np.ones(table.width)
    seen: list[_Round] = []
    trials: list[Trial] = []
    for number in range(settings.searches(rows)):
        view = party.on(table, part, f"search{number}")
        taken, fitted = number, fitted_at
        if number > rounds:
            mine = None if part is None else trial_beside(settings, seen, part)
            trial = _agree(party, mine, rounds, TRIAL)
            taken, fitted = trial.round, trial.factors[0]
        of_phases = (fitted * harmonic, fitted * harmonic)
        block = settings.search_block(rows)
        shard = begin_block(view, block, scales[taken], of_phases, f"search {number}")
        there = take_pass(view, shard)
        sketches = None
        if there.operator is not None and part is not None:
            with party.clock.stage("solve"):
                operator = multiplied(there.operator, harmonic)
                last = seen[-1].chosen.penalty if seen else None
                chosen = _judge(party, settings, operator, part, last)
                seen.append(_Round(scales[taken], there.operator, chosen))
                width = settings.search_width(rows)
                size = table.rows * width * settings.bytes_each()
                stage = "relevance" if number <= rounds else "bandwidth"
                trials += _trials(stage, taken, (fitted, fitted), width, chosen, size)
                if number < rounds:
                    sketches = _sketches(view, settings, operator, chosen, part, number)
                tried = f"round {number}" if number <= rounds else f"bandwidths {fitted}"
                party.clock.advance(1, f"{tried}: loss {chosen.loss:.4f}")
                if settings.hides:
                    there.phases.finish()
        elif settings.hides:
            with party.clock.stage("serve"):
                there.phases.serve()
        if number < rounds:
            with party.clock.stage("relevance"):
                told = tell_sketches(view, sketches)
                relevance = learn_relevance(view, shard, told, harmonic)
                scales.append(relevance_scaling(relevance))
    best, beside = best_round(seen[: rounds + 1]), seen[rounds + 1 :]
    factors, penalty = (fitted_at, fitted_at), 0.0
    if seen and part is not None:
        penalty = seen[best].chosen.penalty
        enough = NO_WORSE if fitted == NARROWEST else BETTER
        if beside and beside[0].chosen.loss < enough * seen[best].chosen.loss:
            factors = (fitted, fitted)
        if not settings.hides:
            with party.clock.stage("solve"):
                factors, penalty, more = _narrow(party, settings, seen[best], part, best)
                trials += more
    choice = _agree(party, Choice(best, factors) if seen else None, rounds, CHOICE)
    return SearchResult(choice, scales[choice.round], relevance, penalty, trials)


def best_round(seen: Sequence[_Round]) -> int:
    """Return the round with the smallest loss on rows held out: the guard."""
    return min(range(len(seen)), key=lambda number: seen[number].chosen.loss, default=0)


def trial_beside(settings: KernelSettings, seen: Sequence[_Round], labels: Labels) -> Choice:
    """Return what the last pass tries: the best round, with other kernels.

    Narrower kernels follow more of what labels say, and more of their noise.
    """
    loss = loss_named("square", regression=True)
    constant = np.zeros(settings.outputs)
    if not settings.regression:
        constant = best_constants(loss, labels.targets, labels.weights)
    losses = loss.value(np.broadcast_to(constant, labels.targets.shape), labels.targets)
    variance = float(np.average(losses.sum(axis=1), weights=labels.weights))
    best = best_round(seen)
    explained = seen[best].chosen.loss < (1 - SIGNAL) * variance
    factor = NARROWEST if explained else FACTOR
    return Choice(best, (factor, factor))


def searched_rows(rows: int, settings: KernelSettings) -> Array:
    """Return the rows of the search: a public choice at random, in order."""
    wanted = settings.search_rows(rows)
    if wanted == rows:
        return np.arange(rows)
    drawn = np.random.default_rng((settings.seed, 1)).choice(rows, wanted, replace=False)
    return np.sort(drawn)


def relevance_scaling(factors: Array) -> Scaling:
    """Return the scaling that multiplies encoded columns by these factors."""
    return Scaling([0.0] * len(factors), factors.tolist())


def begin_block(
    party: Party,
    settings: FdsklSettings,
    scaling: Scaling,
    factors: tuple[float, float],
    purpose: str,
) -> Shard:
    """Return a shard of Gaussian and Laplace directions, with bandwidths of typical distances."""
    parts = []
    with party.clock.stage("bandwidth"):
        for kernel, factor in zip(KERNELS, factors, strict=True):
            of_kernel = msgspec.structs.replace(settings, kernel=kernel)
            typical = agree_on_bandwidth(party, of_kernel, scaling)
            parts.append(KernelPart(kernel, typical * factor))
    columns, seed = party.table.columns, party.secret("model", purpose)
    bandwidth = parts[0].bandwidth
    return Shard(party.name, settings, columns, scaling, bandwidth, seed, parts=tuple(parts))


def take_pass(party: Party, shard: Shard) -> RowPass:
    """Sum the phases of all rows of the party's table, once."""
    rows = party.table.rows
    with party.clock.stage("phases", rows):
        hides = shard.settings.hides
        phases = HiddenPass(party, shard) if hides else PhasePass(party, shard)
        operator: FeatureOperator | None = phases.gather(rows, rows)
    return RowPass(shard, phases, operator)


def multiplied(operator: FeatureOperator, *harmonics: int) -> FeatureOperator:
    """Return the features of whole multiples of the phases, one multiple for each kernel or one."""
    if not isinstance(operator, OpenOperator) or harmonics == (1,):
        return operator
    phases = operator.cached
    steps = np.empty(phases.shape[1], phases.dtype)
    runs = part_columns(phases.shape[1], len(harmonics))
    for harmonic, where in zip(harmonics, runs, strict=True):
        steps[where] = harmonic
    return operator.with_elements(phases * steps)


def _judge(
    party: Party,
    settings: KernelSettings,
    operator: FeatureOperator,
    labels: Labels,
    penalty: float | None,
) -> Chosen:
    """Fit the square loss without the rows held out, in the open at penalties near the last one."""
    loss = loss_named("square", regression=True)
    constant = np.zeros(settings.outputs)
    if not settings.regression:
        constant = best_constants(loss, labels.targets, labels.weights)
    held = parts_of(labels.targets, PARTS, settings.seed, classes=not settings.regression)
    penalties = PENALTIES if penalty is None else tuple(penalty * ratio for ratio in NEARBY)
    if settings.hides:
        penalties = (HIDDEN_PENALTY / operator.rows,)
    fitting = Fitting(
        operator,
        labels,
        loss,
        constant,
        LabelSums(party, settings.label_parties),
        max(TOLERANCE, settings.search_block().stopping()),
        settings.seed,
    )
    if settings.hides:
        block = settings.search_block(operator.rows)
        budget = iterations_left(block, operator)
        fitting = replace(fitting, most_iterations=budget, most_each=budget)
        held = held[:1]
    return choose_penalty(fitting, penalties, held if operator.rows < SMALL else held[:1])


def iterations_left(block: FdsklSettings, operator: FeatureOperator) -> int:
    """Return the iterations of all fits on one block together, where each opens values."""
    most = block.iterations(operator.rows)
    if operator.most_forward is not None:
        most = min(most, operator.most_forward // block.outputs)
    return max(1, most)


def _sketches(
    party: Party,
    settings: KernelSettings,
    operator: FeatureOperator,
    chosen: Chosen,
    labels: Labels,
    number: int,
) -> Array:
    """Return this label party's sketches of the fit, of an f whose deviation is one."""
    shares = labels.weights / labels.weights.sum()
    f = chosen.fit.predictions
    deviation = np.sqrt(np.mean(shares @ np.square(f - shares @ f)))
    key = shared_key(party, f"round {number}")
    coefficients = chosen.fit.coefficients / max(float(deviation), 1e-12)
    return sketch(operator, coefficients, shares, key, settings.sketches())


def _narrow(
    party: Party, settings: KernelSettings, kept: _Round, labels: Labels, number: int
) -> tuple[tuple[float, float], float, list[Trial]]:
    """Choose each kernel's multiple of the phases of the round that was kept."""
    multiples, best, trials = (HARMONIC, HARMONIC), kept.chosen, []
    for kernel in range(len(KERNELS)):
        for harmonic in HARMONICS:
            tried = tuple(harmonic if i == kernel else one for i, one in enumerate(multiples))
            operator = multiplied(kept.operator, *tried)
            chosen = _judge(party, settings, operator, labels, best.penalty)
            factors = bandwidths_of(tried)
            width = settings.search_width(operator.rows)
            trials += _trials("bandwidth", number, factors, width, chosen, 0)
            party.clock.advance(1, f"bandwidths {factors}: loss {chosen.loss:.4f}")
            if chosen.loss < BETTER * best.loss:
                best, multiples = chosen, (tried[0], tried[1])
    return bandwidths_of(multiples), best.penalty, trials


def bandwidths_of(multiples: tuple[int, ...]) -> tuple[float, float]:
    """Return both kernels' bandwidths over the typical distance, at these multiples."""
    gaussian, laplace = (FACTOR * HARMONIC / multiple for multiple in multiples)
    return gaussian, laplace


def _trials(
    stage: str,
    number: int,
    factors: tuple[float, float],
    width: int,
    chosen: Chosen,
    size: int,
) -> list[Trial]:
    """Record all penalties that were tried on the same features."""
    return [
        Trial(stage, number, *factors, width, one.penalty, one.loss, 0 if place else size)
        for place, one in enumerate(chosen.tried)
    ]


def _agree(party: Party, mine: Choice | None, rounds: int, disclosure: Disclosure) -> Choice:
    """Tell everybody, at the leader, what was chosen; return it."""
    group = (party.leader, *(name for name in party.parties if name != party.leader))
    payload: Any = None
    if party.leads and mine is not None:
        payload = {"round": mine.round, "gaussian": mine.factors[0], "laplace": mine.factors[1]}
    told: Any = party.broadcast(payload, group, disclosure)
    if isinstance(told, dict) and told.keys() == {"round", "gaussian", "laplace"}:
        number, factors = told["round"], (told["gaussian"], told["laplace"])
        right = isinstance(number, int) and 0 <= number <= rounds
        if right and all(isinstance(one, float) and 0.01 < one < 100 for one in factors):
            return Choice(number, factors)
    raise MeshError(
        f"{party.name}: {party.leader} announced the {disclosure.name} {told!r}, expected a round "
        f"up to {rounds} and two bandwidths"
    )
