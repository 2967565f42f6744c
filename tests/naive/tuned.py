"""The tuned kernel machine, pooled and obvious: all columns in one place, and dense features.

Directions, offsets and signs are drawn as the parties draw them; everything else is written again:
distances over pairs of rows, rounded angles, exact solutions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from vertikal.algorithms.kernel_machine.directions import draw_directions
from vertikal.algorithms.kernel_machine.relevance import random_signs
from vertikal.algorithms.kernel_machine.shard import KernelPart, Shard
from vertikal.algorithms.tuned.held_out import parts_of
from vertikal.data.scaling import Scaling
from vertikal.ring.integers import Ring
from vertikal.secure.keys.prg import derive_key


def central_differences(f, x, step):
    """(f(x + step·e_j) − f(x − step·e_j)) / 2·step of every row and column."""
    found = np.empty(x.shape)
    for j in range(x.shape[1]):
        moved = np.zeros(x.shape[1])
        moved[j] = step
        found[:, j] = (f(x + moved) - f(x - moved)) / (2 * step)
    return found


def typical_distances(x):
    """Bandwidths of the Gaussian and the Laplace kernel, over all pairs of rows."""
    first, second = np.triu_indices(len(x), 1)
    differences = np.abs(x[first] - x[second])
    squared = np.square(differences).sum(axis=1).mean()
    return np.sqrt(squared / 2), differences.sum(axis=1).mean()


@dataclass
class PooledModel:
    """The choice of the recipe, and its directions."""

    round: int
    factors: tuple[float, float]
    penalty: float
    relevance: np.ndarray
    directions: list
    coefficients: np.ndarray
    constant: float

    def predict(self, parts):
        return features(parts, self.directions) @ self.coefficients + self.constant


def angles(parts, directions):
    """The sum over the parties of angles that each rounds to one of 256 steps of a turn."""
    step = 2 * np.pi / 256
    return sum(
        np.rint(x @ omega / step) * step + offsets
        for x, (omega, offsets) in zip(parts, directions, strict=True)
    )


def features(parts, directions, multiples=1):
    turned = angles(parts, directions) * multiples
    return np.hstack((np.cos(turned), np.sin(turned))) / np.sqrt(turned.shape[1])


def square_fit(phi, targets, penalty, constant):
    """The minimum of mean (c + Φa − y)² + λ/2 ‖a‖²."""
    matrix = 2 * phi.T @ phi / len(phi) + penalty * np.eye(phi.shape[1])
    return np.linalg.solve(matrix, 2 * phi.T @ (targets - constant) / len(phi))


def logistic_fit(phi, targets, penalty, constant):
    """The minimum of mean log(1 + exp(−y(c + Φa))) + λ/2 ‖a‖², by Newton's method."""
    a = np.zeros(phi.shape[1])
    for _ in range(50):
        p = expit(constant + phi @ a)
        gradient = phi.T @ (p - (targets > 0)) / len(phi) + penalty * a
        hessian = (phi.T * (p * (1 - p))) @ phi / len(phi) + penalty * np.eye(len(a))
        step = np.linalg.solve(hessian, gradient)
        a -= step
        if np.abs(step).max() < 1e-10:
            break
    return a


def square_loss(f, y):
    return np.square(f - y)


def logistic_loss(f, y):
    return np.logaddexp(0, -f * y)


def best_penalty(phi, targets, constant, penalties, held, fit, loss):
    """(loss, penalty) with every part held out in turn; some beyond the ends if these are best."""
    tried = []

    def attempt(penalty):
        losses = []
        for out in held:
            a = fit(phi[~out], targets[~out], penalty, constant)
            losses.append(loss(constant + phi[out] @ a, targets[out]).mean())
        tried.append((float(np.mean(losses)), penalty))

    for penalty in penalties:
        if len(tried) > 2 and min(tried[:-2])[0] <= min(tried[-2:])[0]:
            break
        attempt(penalty)
    ratio = penalties[0] / penalties[1]
    for _ in range(3):
        best = min(tried)[1]
        if best == max(penalty for _, penalty in tried):
            attempt(best * ratio)
        elif best == min(penalty for _, penalty in tried):
            attempt(best / ratio)
    return min(tried)


class PooledRecipe:
    """The whole recipe for two classes, one label party and open features, on few rows."""

    def __init__(self, encoded, secrets, settings, targets):
        self.encoded, self.secrets, self.settings = encoded, secrets, settings
        self.parts = [encoded[name] for name in settings.parties]
        self.x = np.hstack(self.parts)
        self.targets = targets
        self.label_party = settings.label_parties[0]

    def drawn(self, block, scales, factors, purpose):
        """(directions, offsets) of each party."""
        bandwidths = np.multiply(typical_distances(self.x * scales), factors)
        kernels = ("gaussian", "laplace")
        parts = tuple(KernelPart(*one) for one in zip(kernels, bandwidths, strict=True))
        found, place = [], 0
        for name in self.settings.parties:
            width = self.encoded[name].shape[1]
            own = scales[place : place + width]
            place += width
            shard = Shard(
                name,
                block,
                tuple(map(str, range(width))),
                Scaling([0.0] * width, own.tolist()),
                1.0,
                derive_key(self.secrets[name], "model", purpose),
                parts=parts,
            )
            one = draw_directions(shard, self.label_party)
            found.append((one.directions, Ring(8).decode_angles(one.offsets)))
        return found

    def fit(self):
        settings, x, targets = self.settings, self.x, self.targets
        rows = len(x)
        scales, rounds = np.ones(x.shape[1]), []
        thirds = parts_of(targets[:, None], 3, settings.seed, classes=True)
        mean = targets.mean()
        last = None
        relevance = np.ones(x.shape[1])
        for number in range(3):
            block = settings.search_block(rows)
            drawn = self.drawn(block, scales, (2.2, 2.2), f"search {number}")
            phi = features(self.parts, drawn, 2)
            grid = [10 ** (-2 - 0.75 * k) for k in range(7)]
            if last is not None:
                grid = [last * ratio for ratio in (1.0, 1 / 5.6)]
            loss, last = best_penalty(phi, targets, mean, grid, thirds, square_fit, square_loss)
            rounds.append((loss, last, scales, drawn))
            if number < 2:
                # The fit without the last part, as the label party has it at hand.
                a = square_fit(phi[~thirds[-1]], targets[~thirds[-1]], last, mean)
                relevance = np.maximum(self.relevance(drawn, phi @ a, a, number), 1e-3)
                scales = relevance
        best = min(range(3), key=lambda i: rounds[i][0])
        loss, penalty, scales, drawn = rounds[best]
        width = block.n_components
        multiples = [2, 2]
        for kernel in (0, 1):
            for harmonic in (1, 3):
                tried = [harmonic if i == kernel else one for i, one in enumerate(multiples)]
                each = np.repeat(tried, (width // 2, width - width // 2))
                grid = [penalty * ratio for ratio in (1.0, 1 / 5.6)]
                phi = features(self.parts, drawn, each)
                found = best_penalty(phi, targets, mean, grid, thirds, square_fit, square_loss)
                if found[0] < 0.995 * loss:
                    loss, penalty, multiples = *found, tried
        factors = tuple(2.2 / one for one in multiples)
        block = settings.model_block(settings.growth(rows)[0])
        drawn = self.drawn(block, scales, factors, "model 0")
        phi = features(self.parts, drawn)
        share = np.mean(targets > 0)
        constant = np.log(share / (1 - share))
        fifths = parts_of(targets[:, None], 5, settings.seed, classes=True)
        grid = [penalty * ratio for ratio in (0.32, 0.1, 0.032, 0.01, 0.0032)]
        _, penalty = best_penalty(phi, targets, constant, grid, fifths, logistic_fit, logistic_loss)
        a = logistic_fit(phi, targets, penalty, constant)
        return PooledModel(best, factors, penalty, relevance, drawn, a, constant)

    def relevance(self, drawn, f, a, number):
        """Row by row: the signed sum of gradients' parts, then each column's squares."""
        key = derive_key(self.secrets[self.label_party], "signs", f"round {number}")
        turned = angles(self.parts, drawn) * 2
        rows, width = turned.shape
        count = self.settings.sketches()
        signs = random_signs(derive_key(key, "rows"), rows, count)
        joint = random_signs(derive_key(key, "outputs"), 1, count)[0]
        sketches = np.zeros((width, count))
        for i in range(rows):
            slope = (a[width:] * np.cos(turned[i]) - a[:width] * np.sin(turned[i])) / np.sqrt(width)
            sketches += np.outer(slope, signs[i] * joint)
        sketches /= np.sqrt(rows) * f.std()
        omega = 2 * np.vstack([one for one, _ in drawn])
        return np.sqrt(np.square(np.sin(omega * 0.5) / 0.5 @ sketches).mean(axis=1))
