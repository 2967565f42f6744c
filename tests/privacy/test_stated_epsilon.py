"""The stated ε is audited: many releases on two neighbouring data sets, and a lower bound on ε.

Who sees (ε, δ)-private releases cannot tell the data sets apart better than TPR ≤ e^ε·FPR + δ. The
rates are measured, bounded by Clopper and Pearson, and turned into a lower bound on ε that holds
with high confidence. The pair is (nearly) the worst there is, so a sampler with half the noise is
caught by the same audit.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import beta

from vertikal.algorithms.admm import sharing as admm
from vertikal.algorithms.admm.noise import Release, plan_noise
from vertikal.algorithms.admm.settings import AdmmSettings, Privacy
from vertikal.data.tables import Table
from vertikal.estimators.simulation import Federation, simulate
from vertikal.mesh import RecordingMesh, Tape
from vertikal.party.party import Labels, Party, digest
from vertikal.ring.integers import Ring
from vertikal.secure import lattice_gaussian
from vertikal.solvers.bounded_least_squares import ball_solver
from vertikal.solvers.design import Design
from vertikal.solvers.regularisers import Regulariser

EPSILON, DELTA, BOUND, ROWS = 2.0, 0.01, 1.0, 60
CONFIDENCE = 0.999
HONEST = lattice_gaussian.fresh_noise


def halved(width, shape):
    """A sampler with its noise halved."""
    return HONEST(width, shape) // 2


def epsilon_at_least(on_first, on_second, delta, threshold):
    """A lower bound on ε at confidence 2·CONFIDENCE − 1, from one fixed threshold."""
    hits, runs = int((on_first > threshold).sum()), len(on_first)
    wrong, other = int((on_second > threshold).sum()), len(on_second)
    right = beta.ppf(1 - CONFIDENCE, hits, runs - hits + 1) if hits else 0.0
    false = beta.ppf(CONFIDENCE, wrong + 1, other - wrong) if wrong < other else 1.0
    return math.log(max(right - delta, 1e-300) / false)


def neighbours():
    """Rows that hold x at b·e, and one that is e, or −e."""
    D = np.zeros((ROWS, 2))
    D[:, 0] = 1
    E = D.copy()
    E[0, 0] = -1
    return D, E


class Alone(Party):
    def __init__(self) -> None:
        pass


def releases(D, number, noise):
    """One round's release on data D, ``number`` times: the x-step has no randomness of its own."""
    targets = np.full((ROWS, 1), BOUND)
    solver = ball_solver(Design(D), Regulariser(1e-6, 0.0), 1.0, BOUND)
    contribution = D @ solver.solve(targets, np.zeros((2, 1)))
    release = Release(Alone(), noise, Design(D), admm.FRACTION)
    return contribution, release(np.repeat(contribution, number, axis=1), 2)[1]


def audit(number):
    settings = AdmmSettings(
        parties=("a", "b"),
        label_parties=("a",),
        privacy=Privacy(epsilon=EPSILON, delta=DELTA, bound=BOUND),
        max_iter=1,
    )
    noise = plan_noise(settings, ROWS, 2, 1.0, 1.0)
    D, E = neighbours()
    (first, on_first), (second, on_second) = releases(D, number, noise), releases(E, number, noise)
    apart = first - second
    assert np.linalg.norm(apart) > 0.97 * noise.sensitivity
    direction = apart / np.linalg.norm(apart)
    middle = float((direction.T @ (first + second))[0, 0]) / 2
    threshold = middle + EPSILON * noise.deviation**2 / 4 / float(np.linalg.norm(apart))
    return epsilon_at_least(
        (direction.T @ on_first)[0], (direction.T @ on_second)[0], DELTA, threshold
    )


def test_the_stated_epsilon_holds():
    assert audit(20_000) <= EPSILON


def test_a_sampler_with_half_the_noise_is_caught(monkeypatch):
    monkeypatch.setattr(lattice_gaussian, "fresh_noise", halved)
    assert audit(20_000) > EPSILON


ROUNDS, RUNS = 3, 4000
WHOLE = AdmmSettings(
    parties=("bank", "shop"),
    label_parties=("bank",),
    privacy=Privacy(epsilon=EPSILON, delta=DELTA, bound=BOUND),
    max_iter=ROUNDS,
    fit_intercept=False,
    alpha=1e-3,
    rho=5e-3,  # with labels of one kind it holds x at the rim of its ball, where row 0 shows most
)


def scores(D, number):
    """Return an eavesdropper's statistic of one whole training run: row 0 over all rounds."""
    generator = np.random.default_rng(0)
    tables = {
        "bank": Table("bank", ("a", "b"), generator.normal(size=(ROWS, 2))),
        "shop": Table("shop", ("c", "d"), D),
    }
    # The other class is there, as it must be, and weighs next to nothing.
    labels = Labels(np.ones((ROWS, 1)), np.ones(ROWS))
    labels.targets[-1], labels.weights[-1] = -1.0, 1e-9
    bits = plan_noise(WHOLE, ROWS, 2, 1.0, 1.0).fraction_bits
    gathered = np.empty(number)
    for run in range(number):
        tape = Tape()
        simulate(
            Federation(
                tables,
                ("bank",),
                labels,
                {name: name.encode().ljust(32) for name in tables},
                digest(WHOLE),
                None,
                20.0,
                wrap=lambda mesh, tape=tape: RecordingMesh(mesh, tape),
            ),
            lambda party: admm.train(party, WHOLE),
        )
        sent = [
            Ring(64).decode_reals(frame, bits)
            for frame in tape.arrays("open/contributions/", sender="shop")
        ]
        assert len(sent) == ROUNDS
        gathered[run] = sum(float(one[0, 0]) for one in sent)
    return gathered


def audit_of_runs():
    """A lower bound on ε of whole runs; the threshold is fixed before anything is seen.

    Row 0 sums to ±ROUNDS·b with noise of deviation σ√ROUNDS.
    """
    deviation = plan_noise(WHOLE, ROWS, 2, 1.0, 1.0).deviation
    threshold = math.sqrt(ROUNDS) * deviation - ROUNDS * BOUND
    on_first, on_second = (scores(D, RUNS) for D in neighbours())
    return epsilon_at_least(on_first, on_second, DELTA, threshold)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_whole_training_runs_are_audited(monkeypatch):
    """All messages of a party over all rounds; half the noise is caught here too."""
    assert audit_of_runs() <= EPSILON
    monkeypatch.setattr(lattice_gaussian, "fresh_noise", halved)
    assert audit_of_runs() > EPSILON
