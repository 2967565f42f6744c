"""ADMM sharing: linear risk minimisation over distributed features (Hu, Niu, Yang, Zhou 2019).

Each party m holds a matrix D_m and coefficients x_m; the prediction is Σ_m D_m x_m. `train` and
`predict` are the programs that every party runs; the leading label party is also the central node.
The central node needs only a sum, so contributions travel as a secure sum in Z_{2^64}; the paper
sends each in the clear (``masking=None``).

Both sides of Algorithm 1 need only y + ρ(Σ D_k x_k − z): with it, (6) is least squares on targets,

    x_m ← argmin λR(x) + (c/2)‖D_m x − t‖²,   t = D_m x_m − (y + ρ(Σ D_k x_k − z))/c,

c = ρ as published (Jacobi), c = Mρ in the averaged form of Boyd et al. 2011 (section 7.3), which
converges for every ρ if the loss is convex.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.algorithms.admm.assumptions import assumptions, rho_of
from vertikal.algorithms.admm.centre import CentralNode
from vertikal.algorithms.admm.design import learn_features
from vertikal.algorithms.admm.noise import Noise, Release, plan_noise
from vertikal.algorithms.admm.settings import AdmmSettings
from vertikal.algorithms.admm.shard import AdmmShard
from vertikal.errors import InputError, MeshError
from vertikal.party.party import Labels, Party
from vertikal.privacy.budget import BudgetFile
from vertikal.privacy.ledger import Disclosure
from vertikal.ring.integers import Ring
from vertikal.solvers.bounded_least_squares import ball_solver
from vertikal.solvers.design import Design
from vertikal.solvers.least_squares import least_squares
from vertikal.solvers.objective import automatic_penalty
from vertikal.solvers.regularisers import Regulariser

Array = npt.NDArray[Any]

CONTRIBUTIONS = Disclosure(
    "contributions",
    "each party's part of the predictions of all rows, summed, in every round",
    "the leading label party learns the joint prediction of each training row in each round; with "
    "two parties, the other party's own part; without noise the rounds together span the others' "
    "columns, and a column that is known of a few rows follows for all",
    masked=True,
)
PROGRESS = Disclosure(
    "progress",
    "regulariser and squared gradient of each party, summed",
    "the leading label party learns two numbers about all coefficients together",
    masked=True,
)
TERMS = Disclosure(
    "terms",
    "penalty, rho, and the weights of the rows where they differ",
    "every party learns the weights; weights by class show the classes",
    masked=False,
)
SHARED = Disclosure(
    "shared vector",
    "dual variable and residual of each row, as one vector",
    "every party learns the slope of the loss at each training row, which shows its label",
    masked=False,
)
PREDICTIONS = Disclosure(
    "predictions",
    "each party's part of the predictions of the rows asked for, summed",
    "the leading label party learns the predictions; with two parties, the other party's own part; "
    "no noise is added here",
    masked=True,
)

FRACTION = 36


@dataclass(frozen=True)
class _Terms:
    """Terms that the central node announces before the first round."""

    penalty: float  # λ times the sum of the weights
    rho: float
    weights: Array | None


def train(
    party: Party, settings: AdmmSettings, budget: BudgetFile | None = None, job: str = ""
) -> AdmmShard:
    """Train at this party by ADMM Algorithm 1, and return its shard.

    With ``settings.privacy`` contributions carry the noise of the private form; ``budget`` is then
    this party's own budget file, charged before anything computed from its columns leaves it.
    """
    settings.check_rows(party.table.rows)
    if party.labels is not None:
        settings.check_labels(party.labels.targets, party.labels.weights)
    constant, unit, labels = _standardised(settings, party.labels)
    with party.clock.stage("terms"):
        terms = _agree_on_terms(party, settings, labels)
    with party.clock.stage("prepare"):
        features = learn_features(party, settings, terms.weights)
        design = features.design(party.table, terms.weights, training=True)
    noise = None
    if settings.privacy is not None:
        if terms.weights is not None and settings.privacy.mechanism == "paper":
            raise InputError.of("sample_weight", "None with mechanism='paper'", "weights")
        noise = plan_noise(settings, design.rows, design.width, terms.rho, terms.penalty)
        _charge(party, noise, budget, job)
    with party.clock.stage("solve", settings.most_rounds):
        x, centre, rounds = _rounds(party, settings, design, terms, labels, noise)
    return AdmmShard(
        party.name,
        settings,
        party.table.columns,
        features,
        x,
        terms.penalty / (design.rows if terms.weights is None else float(terms.weights.sum())),
        terms.rho,
        constant,
        unit,
        tuple(centre.rounds) if centre else (),
        centre.converged if centre else True,
        assumptions(design, settings, terms.rho, terms.penalty),
        tuple(noise.spent(t + 1) for t in range(rounds)) if noise else (),
    )


def predict(party: Party, shard: AdmmShard) -> Array | None:
    """Predict at this party: f of all rows of ``party.table`` at the leader, None elsewhere."""
    ring = Ring(64)
    with party.clock.stage("predict", party.table.rows):
        partial = shard.features.design(party.table).forward(shard.coefficients)
        with party.naming("predictions"):
            encoded = ring.encode_reals(partial, FRACTION, len(party.parties))
        total = party.secure_sum(encoded, party.leader, PREDICTIONS)
    if total is None:
        return None
    return ring.decode_reals(total, FRACTION) * shard.unit + shard.constant


def _rounds(
    party: Party,
    settings: AdmmSettings,
    design: Design,
    terms: _Terms,
    labels: Labels | None,
    noise: Noise | None,
) -> tuple[Array, CentralNode | None, int]:
    """Run the two loops of ADMM Algorithm 1 as one, lines 1 to 12.

    The x-step is ADMM eq. (6). With noise ``own`` is the perturbed contribution 𝒟_m x̃_m, which
    everybody may know, so that targets depend on earlier releases only. With the published
    mechanism that is ADMM eq. (16) as printed, from x = y = z = 0. Otherwise targets are cut to the
    bound, x is within the ball, and the first and last steps, which release nothing, come on top.
    """
    regulariser = Regulariser(terms.penalty, settings.l1_ratio)
    curvature = settings.proximity * terms.rho
    bound = settings.step_bound
    solver = (
        least_squares(design, regulariser, curvature)
        if bound is None
        else ball_solver(design, regulariser, curvature, bound)
    )
    release = Release(party, noise, design, FRACTION, terms.weights)
    ring, parties = Ring(64), len(party.parties)
    shape = (design.rows, settings.outputs)
    x = np.zeros((design.width, settings.outputs))
    own, shared = np.zeros(shape), np.zeros(shape)  # D_m x_m, and y + ρ(Σ D_k x_k − z)
    exact = own  # without the noise that ``own`` carries
    centre = CentralNode(labels, settings, terms.rho) if party.leads and labels else None

    def private_step(own: Array, shared: Array, x: Array) -> Array:
        """Take the x-step on targets within the bound, over the ball."""
        return solver.solve(np.clip(own - shared / curvature, -reach, reach), x)

    reach = bound or 0.0
    if bound is not None:
        # From x = 0 the first contributions are zero whatever the data: nothing to release.
        news = None if centre is None else centre.begin()
        shared = _pull(party, news, shape)
    round_ = 0
    for round_ in range(1, settings.most_rounds + 1):  # lines 2 and 8
        part = np.zeros(2)
        if noise is not None and bound is None:
            # (16): Σ_{k≠m} 𝒟_k x̃_k is the total without the own perturbed contribution.
            x = solver.solve(own - shared / curvature, x)
        elif bound is None:
            pull = design.adjoint(shared)
            part[1] = np.square(x - regulariser.prox(x - pull, design.penalised)).sum()
            x = solver.follow(x, own, shared, pull)  # lines 4 and 5, by (6)
            part[0] = regulariser.value(x, design.penalised)
        else:
            x = private_step(own, shared, x)
        exact = design.forward(x)
        sent, own = release(exact, parties)
        total = party.secure_sum(sent, party.leader, CONTRIBUTIONS)  # lines 6 and 9
        scalars = None
        if noise is None:
            with party.naming("progress"):
                encoded = ring.encode_wide(part, parties)
            scalars = party.secure_sum(encoded, party.leader, PROGRESS)
        news = None
        if centre is not None and total is not None:
            opened = None if scalars is None else ring.decode_wide(scalars)
            news = centre.step(release.opened(total), opened)  # lines 10 and 11, by (7) and (8)
            if centre.converged or (round_ == settings.most_rounds and bound is None):
                news = np.empty((0, settings.outputs))
        party.clock.advance(1, _note(centre, noise, round_))
        shared = _pull(party, news, shape)  # lines 12 and 3
        if not shared.size:
            break
    if bound is not None:
        # The last step stays here, so it costs no privacy and may begin at the exact contribution.
        x = private_step(exact, shared, x)
    return x, centre, round_


def _note(centre: CentralNode | None, noise: Noise | None, round_: int) -> str:
    """Describe a round in a few words, for the progress display."""
    parts = [] if centre is None else [centre.note()]
    if noise is not None:
        parts.append(f"epsilon {noise.spent(round_).epsilon:.3g} of {noise.privacy.epsilon:g}")
    return ", ".join(parts)


def _pull(party: Party, news: Array | None, shape: tuple[int, int]) -> Array:
    """Receive what the central node distributes, lines 12 and 3; empty when training is over."""
    shared = np.asarray(party.broadcast(news, _everybody(party), SHARED))
    if shared.dtype != np.float64 or shared.shape not in (shape, (0, shape[1])):
        raise MeshError(
            f"{party.name}: {party.leader} sent {shared.dtype} {shared.shape}, "
            f"expected float64 {shape}"
        )
    return shared


def _agree_on_terms(party: Party, settings: AdmmSettings, labels: Labels | None) -> _Terms:
    """Receive λ, ρ and the weights from the central node, which alone knows the weights."""
    answer: Array | None = None
    if party.leads and labels is not None:
        mass = float(labels.weights.sum())
        given = settings.alpha
        penalty = automatic_penalty(labels.weights) if given == "auto" else float(given)
        weights = labels.weights[: 0 if bool((labels.weights == 1).all()) else None]
        answer = np.concatenate(([penalty * mass, rho_of(settings)], weights))
    told = np.asarray(party.broadcast(answer, _everybody(party), TERMS))
    lengths = ((2,), (2 + party.table.rows,))
    good = told.dtype == np.float64 and told.shape in lengths and bool(np.isfinite(told).all())
    if not good or not (told[:2] > 0).all() or not (told[2:] >= 0).all():
        raise MeshError(
            f"{party.name}: {party.leader} sent wrong terms; expected penalty, rho and, if any, "
            f"{party.table.rows} weights, none of them negative"
        )
    return _Terms(float(told[0]), float(told[1]), told[2:] if told.size > 2 else None)


def _charge(party: Party, noise: Noise, budget: BudgetFile | None, job: str) -> None:
    """Charge the whole job to this party's budget file, if it keeps one.

    The published mechanism is refused then: it has no price to charge.
    """
    if budget is None:
        return
    if noise.privacy.mechanism != "row":
        raise InputError.of(
            "mechanism", "'row' where a party keeps a budget file", noise.privacy.mechanism
        )
    budget.charge(party.name, job, noise.mu, noise.rounds)


def _everybody(party: Party) -> tuple[str, ...]:
    return (party.leader, *(name for name in party.parties if name != party.leader))


def _standardised(
    settings: AdmmSettings, labels: Labels | None
) -> tuple[Array, Array, Labels | None]:
    """Bring targets of a regression to mean 0 and deviation 1, so that λ and ρ mean the same."""
    zero, one = np.zeros(settings.outputs), np.ones(settings.outputs)
    if labels is None or not settings.regression:
        return zero, one, labels
    share = labels.weights / labels.weights.sum()
    mean = share @ labels.targets
    unit = np.sqrt(share @ np.square(labels.targets - mean))
    unit = np.where(unit > 0, unit, 1.0)
    return mean, unit, Labels((labels.targets - mean) / unit, labels.weights)
