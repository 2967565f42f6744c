"""FedCFKRecommender: a federated top-N recommender; CFKOMDRecommender: the same on pooled data."""

from __future__ import annotations

import os
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from vertikal.algorithms.client_gram import secure_gram
from vertikal.algorithms.fedcfk import Requests, ServerKernel, UserRows, ask_until_complete, scores
from vertikal.errors import InputError
from vertikal.party import Party
from vertikal.secure.neighbours import plan
from vertikal.secure.secagg import STAGES
from vertikal.secure.secagg_run import aggregate

Array = npt.NDArray[Any]


def _ratings(X: Any) -> Array:
    """(users, items) zeros and ones, uint8."""
    dense = np.asarray(X.toarray() if sparse.issparse(X) else X)
    if dense.ndim != 2 or not np.isin(dense, (0, 1)).all():
        raise InputError.of(
            "X", "a (users, items) matrix of zeros and ones (rated or not)", "other"
        )
    return dense.astype(np.uint8)


class CFKOMDRecommender(BaseEstimator):
    """CF-KOMD: a kernel recommender on all users' ratings in one place; FedCFK's twin.

    ``penalty`` is λ of each user's programme. After `fit` on X (users, items) of zeros and ones:
    `scores(users)`, and `recommend(user, n)`, the n best items that the user has not rated.
    """

    def __init__(self, *, penalty: float = 0.1, tolerance: float = 1e-6) -> None:
        self.penalty = penalty
        self.tolerance = tolerance

    def fit(self, X: Any, y: Any = None) -> Self:
        ratings = self._keep(X)
        self.counts_ = ratings.astype(np.int64).T @ ratings.astype(np.int64)
        self._finish()
        return self

    def _keep(self, X: Any) -> Array:
        if not isinstance(self.penalty, int | float) or not self.penalty > 0:
            raise InputError.of("penalty", "a positive number", self.penalty)
        ratings = _ratings(X)
        self.n_users_, self.n_items_ = ratings.shape
        self.positives_ = [np.flatnonzero(row) for row in ratings]
        return ratings

    def _finish(self) -> None:
        server = ServerKernel(self.n_items_)
        server.improve(self.counts_)
        self.kernel_ = server.normalised()
        self.means_ = self.kernel_.mean(axis=1)

    def scores(self, users: Any = None) -> Array:
        """The score of every item for these users (all by default): (users, items)."""
        check_is_fitted(self, "kernel_")
        numbers = range(self.n_users_) if users is None else users
        chosen = [self.positives_[u] for u in numbers]
        return scores(self.kernel_, self.means_, chosen, self.penalty, self.tolerance)

    def recommend(self, user: int, n: int = 10) -> Array:
        """The numbers of the ``n`` best items that the user has not rated, best first."""
        check_is_fitted(self, "kernel_")
        if not 0 <= user < self.n_users_:
            raise InputError.of("user", f"from 0 to {self.n_users_ - 1}", user)
        return _best(self._scores_of(user), self.positives_[user], n)

    def _scores_of(self, user: int) -> Array:
        return np.asarray(self.scores([user])[0])


class FedCFKRecommender(CFKOMDRecommender):
    """FedCFK: CF-KOMD whose users keep their ratings to themselves (Polato et al., ESANN).

    All users and the server are simulated in this process, each round by real secure aggregation.

    Parameters
    ----------
    rounds : int
        Rounds of secure aggregation; the server keeps the largest count of each pair of items.
    participation : number in (0, 1]
        Share of the users that start a round, drawn anew each time.
    dropping : number in [0, 1)
        Share of those that vanish in the midst of a round, at any stage.
    penalty, tolerance : of each user's programme
    cover : number
        How many times as large as its own items a user's requests for kernel rows are in all.
    request_share : number in (0, 1]
        The share of its cover that one request names.
    random_state : int or None
        Fixes who takes part, and the covers; masks are fresh in every run.

    Attributes
    ----------
    counts_ : (items, items), what the server learned
    survivors_ : how many users were in the sum of each round
    requests_ : by user that has asked, the requests as the server saw them
    """

    def __init__(
        self,
        *,
        rounds: int = 1,
        participation: float = 1.0,
        dropping: float = 0.0,
        penalty: float = 0.1,
        tolerance: float = 1e-6,
        cover: float = 4.0,
        request_share: float = 0.7,
        random_state: Any = None,
    ) -> None:
        super().__init__(penalty=penalty, tolerance=tolerance)
        self.rounds = rounds
        self.participation = participation
        self.dropping = dropping
        self.cover = cover
        self.request_share = request_share
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Phase 1: the server's kernel, from rounds of secure aggregation over users."""
        for name, value, good in (
            ("participation", self.participation, 0 < self.participation <= 1),
            ("dropping", self.dropping, 0 <= self.dropping < 1),
            ("rounds", self.rounds, self.rounds >= 1),
            ("cover", self.cover, self.cover >= 1),
            ("request_share", self.request_share, 0 < self.request_share <= 1),
        ):
            if not good:
                raise InputError.of(name, "in its range (see the documentation)", value)
        ratings = self._keep(X)
        generator = check_random_state(self.random_state)
        fixed = self.random_state is not None
        self._secret = generator.bytes(32) if fixed else os.urandom(32)
        server = ServerKernel(self.n_items_)
        self.survivors_: list[int] = []
        for _ in range(self.rounds):
            size = max(2, round(self.participation * self.n_users_))
            users = generator.permutation(self.n_users_)[:size]
            leaving = users[: int(self.dropping * size)]
            drops = {f"user{u}": STAGES[i % len(STAGES)] for i, u in enumerate(leaving)}
            chosen = plan(size, dropping=max(0.15, min(0.45, 1.5 * self.dropping)))
            result = secure_gram(
                {f"user{u}": ratings[u] for u in users},
                partial(aggregate, plan=chosen, drops=drops),
                binary=True,
            )
            server.improve(result.values)
            self.survivors_.append(len(result.survivors))
        self.counts_ = server.counts
        self.requests_: dict[int, list[Array]] = {}
        self._finish()
        return self

    def _scores_of(self, user: int) -> Array:
        """Phase 2, on the user's device: rows behind a cover, its programme, its scores."""
        key = Party.derive(self._secret, "user", str(user))
        requests = Requests.draw(
            self.positives_[user],
            self.counts_.diagonal(),
            self.cover,
            self.request_share,
            Party.uniforms(Party.derive(key, "cover"), (self.n_items_,)),
        )
        device = UserRows(self.positives_[user], {})
        sent = self.requests_.setdefault(user, [])

        def draw(count: int) -> Array:
            return Party.uniforms(Party.derive(key, "request", str(next(numbers))), (count,))

        numbers = iter(range(len(sent), len(sent) + 10_000))
        sent += ask_until_complete(device, requests, lambda asked: self.kernel_[asked], draw)
        return device.scores(self.means_, self.penalty, self.tolerance)


def _best(values: Array, rated: Array, n: int) -> Array:
    """The best ``n`` items that are not rated; ties go to the lower number."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise InputError.of("n", "a positive whole number", n)
    open_ = np.setdiff1d(np.arange(len(values)), rated)
    order = np.argsort(-values[open_], kind="stable")
    return np.asarray(open_[order[:n]])
