"""FedCFKRecommender: a federated top-N recommender; CFKOMDRecommender: the same on pooled data."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from vertikal.algorithms.fedcfk.fedcfk import (
    Requests,
    ServerKernel,
    UserRows,
    ask_as_published,
    ask_until_complete,
    scores,
)
from vertikal.algorithms.fedcfk.settings import FedcfkSettings, KomdSettings
from vertikal.algorithms.gram.client_gram import secure_gram
from vertikal.errors import InputError
from vertikal.parameters import Count, Parameters, build, read
from vertikal.secure.keys.prg import derive_key, uniform_reals
from vertikal.secure.secagg.differences import may_be_subtracted
from vertikal.secure.secagg.in_one_process import aggregate
from vertikal.secure.secagg.neighbours import plan_neighbours
from vertikal.secure.secagg.rounds import STAGES

Array = npt.NDArray[Any]


def _ratings(X: Any, users: int) -> Array:
    """(users, items) zeros and ones, uint8, of at least so many users."""
    dense = np.asarray(X.toarray() if sparse.issparse(X) else X)
    if dense.ndim != 2 or not np.isin(dense, (0, 1)).all():
        raise InputError.of(
            "X", "a (users, items) matrix of zeros and ones (rated or not)", "other"
        )
    if len(dense) < users or not dense.size:
        raise InputError.of("X", f"of at least {users} users and one item", dense.shape)
    return dense.astype(np.uint8)


@dataclass(eq=False, repr=False, kw_only=True)
class CFKOMDRecommender(BaseEstimator):
    """CF-KOMD: a kernel recommender on all users' ratings in one place; FedCFK's twin.

    After `fit` on X (users, items) of zeros and ones: `scores(users)`, and `recommend(user, n)`,
    the n best items that the user has not rated. To a user without ratings it recommends what most
    others have rated.

    Parameters
    ----------
    alpha : number
        λ of each user's programme.
    tol : number
        The gap at which a user's programme is solved.
    """

    alpha: float = 0.1
    tol: float = 1e-6

    _fewest_users: ClassVar[int] = 1
    _settings_type: ClassVar[type[Parameters]] = KomdSettings

    def fit(self, X: Any, y: Any = None) -> Self:
        build(self._settings_type, self.get_params(), "parameters")
        ratings = self._keep(X)
        self.counts_ = ratings.astype(np.int64).T @ ratings.astype(np.int64)
        self._finish()
        return self

    def _keep(self, X: Any) -> Array:
        ratings = _ratings(X, self._fewest_users)
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
        chosen = [self._rated_by(user) for user in numbers]
        return scores(self.kernel_, self.means_, chosen, self.alpha, self.tol)

    def recommend(self, user: int, n: int = 10) -> Array:
        """The numbers of the ``n`` best items that the user has not rated, best first."""
        check_is_fitted(self, "kernel_")
        rated = self._rated_by(user)
        values = self._scores_of(user) if len(rated) else self.counts_.diagonal()
        return _best(values, rated, n)

    def _rated_by(self, user: Any) -> Array:
        whole = isinstance(user, int | np.integer) and not isinstance(user, bool)
        if not whole or not 0 <= user < self.n_users_:
            raise InputError.of("user", f"a whole number from 0 to {self.n_users_ - 1}", user)
        return self.positives_[int(user)]

    def _scores_of(self, user: int) -> Array:
        return np.asarray(self.scores([user])[0])


@dataclass(eq=False, repr=False, kw_only=True)
class FedCFKRecommender(CFKOMDRecommender):
    """FedCFK: CF-KOMD whose users keep their ratings to themselves (Polato et al., ESANN).

    All users and the server are simulated in this process, each round by real secure aggregation.

    Parameters
    ----------
    rounds : int
        Rounds of secure aggregation; the server keeps the largest count of each pair of items. It
        has the sum of every round, and rounds of different users can be subtracted: a warning says
        where that tells single ratings.
    participation : number in (0, 1]
        Share of the users that start a round, drawn anew each time.
    dropping : number in [0, 1)
        Share of those that vanish in the midst of a round, at any stage.
    alpha, tol : of each user's programme, as in `CFKOMDRecommender`
    cover : number
        How many times as large as its own items a user's requests for kernel rows are in all.
    request_share : number in (0, 1]
        The share of its cover that one request names.
    decoys : "fixed" or "fresh"
        A user's decoys are drawn once, or as published for each request, which lets a server that
        counts requests find the user's items.
    random_state : int or None
        Fixes who takes part, and the covers; masks are fresh in every run.

    Attributes
    ----------
    counts_ : (items, items), what the server learned
        How many users rated each pair of items: inner products of the items' columns, from which
        distances between items follow, and with most users known the ratings of the others.
    survivors_ : how many users were in the sum of each round
    requests_ : by user that has asked, the requests as the server saw them
    """

    rounds: int = 1
    participation: float = 1.0
    dropping: float = 0.0
    cover: float = 4.0
    request_share: float = 0.7
    decoys: Literal["fixed", "fresh"] = "fixed"
    random_state: Any = None

    _fewest_users: ClassVar[int] = 2  # a sum over one is no sum
    _settings_type: ClassVar[type[Parameters]] = FedcfkSettings

    def fit(self, X: Any, y: Any = None) -> Self:
        """Phase 1: the server's kernel, from rounds of secure aggregation over users."""
        given = {name: value for name, value in self.get_params().items() if name != "random_state"}
        build(FedcfkSettings, given, "parameters")
        ratings = self._keep(X)
        generator = check_random_state(self.random_state)
        fixed = self.random_state is not None
        self._secret = generator.bytes(32) if fixed else os.urandom(32)
        server = ServerKernel(self.n_items_)
        sets: list[frozenset[str]] = []
        for _ in range(int(self.rounds)):
            size = max(2, round(self.participation * self.n_users_))
            users = generator.permutation(self.n_users_)[:size]
            leaving = users[: int(self.dropping * size)]
            drops = {f"user{u}": STAGES[i % len(STAGES)] for i, u in enumerate(leaving)}
            chosen = plan_neighbours(size, dropping=max(0.15, min(0.45, 1.5 * self.dropping)))
            result = secure_gram(
                {f"user{u}": ratings[u] for u in users},
                partial(aggregate, plan=chosen, drops=drops),
                binary=True,
            )
            server.improve(result.values)
            sets.append(frozenset(result.survivors))
        self.survivors_ = [len(users) for users in sets]
        if may_be_subtracted(sets, self.n_users_):
            warnings.warn(
                "the sums of these rounds can be subtracted from one another, and tell the server "
                "ratings of single users; take one round, or fewer that differ by more users",
                UserWarning,
                stacklevel=2,
            )
        self.counts_ = server.counts
        self.requests_: dict[int, list[Array]] = {}
        self._finish()
        return self

    def _scores_of(self, user: int) -> Array:
        """Phase 2, on the user's device: rows behind a cover, its programme, its scores."""
        key = derive_key(self._secret, "user", str(user))

        def cover(*number: str) -> Requests:
            return Requests.draw(
                self.positives_[user],
                self.counts_.diagonal(),
                self.cover,
                self.request_share,
                uniform_reals(derive_key(key, "cover", *number), (self.n_items_,)),
            )

        device = UserRows(self.positives_[user], {})
        sent = self.requests_.setdefault(user, [])

        def draw(count: int) -> Array:
            return uniform_reals(derive_key(key, "request", str(next(numbers))), (count,))

        def serve(asked: Array) -> Array:
            return np.asarray(self.kernel_[asked])

        numbers = iter(range(len(sent), len(sent) + 10_000))
        if self.decoys == "fresh":
            covers = iter(range(len(sent), len(sent) + 10_000))
            sent += ask_as_published(device, lambda: cover(str(next(covers))), serve, draw)
        else:
            sent += ask_until_complete(device, cover(), serve, draw)
        return device.scores(self.means_, self.alpha, self.tol)


def _best(values: Array, rated: Array, n: int) -> Array:
    """The best ``n`` items that are not rated; ties go to the lower number."""
    n = read("n", n, Count)
    open_ = np.setdiff1d(np.arange(len(values)), rated)
    order = np.argsort(-values[open_], kind="stable")
    return np.asarray(open_[order[:n]])
