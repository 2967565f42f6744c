from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import roc_auc_score

from vertikal import CFKOMDRecommender, FedCFKRecommender
from vertikal.errors import InputError
from vertikal.estimators import recommender

generator = np.random.default_rng(1)
TASTES = (np.arange(40)[:, None] % 3 == np.arange(30)[None, :] % 3) * 0.5 + 0.04
TRUE = generator.random((40, 30)) < TASTES
HIDDEN = TRUE & (generator.random((40, 30)) < 0.25)
X = (TRUE & ~HIDDEN).astype(int)


def auc(model) -> float:
    values = model.scores()
    found = [
        roc_auc_score(HIDDEN[u][X[u] == 0], values[u][X[u] == 0])
        for u in range(40)
        if HIDDEN[u].any() and X[u].any()
    ]
    return float(np.mean(found))


def test_all_users_in_one_round_give_the_twin():
    federated = FedCFKRecommender(random_state=0, tol=1e-9).fit(X)
    pooled = CFKOMDRecommender(tol=1e-9).fit(sparse.csr_array(X))
    assert np.array_equal(federated.counts_, pooled.counts_)
    assert federated.survivors_ == [40]
    for user in (0, 7, 11):
        assert np.array_equal(federated.recommend(user, 5), pooled.recommend(user, 5))
    assert auc(pooled) > 0.8


def test_few_users_and_drop_outs_lose_little():
    whole = CFKOMDRecommender().fit(X)
    model = FedCFKRecommender(rounds=3, participation=0.6, dropping=0.1, random_state=0).fit(X)
    assert len(model.survivors_) == 3
    assert all(20 <= count <= 24 for count in model.survivors_)
    assert (model.counts_ <= whole.counts_).all()
    assert auc(model) > auc(whole) - 0.05


def test_recommendations_are_new_items_and_requests_are_seen():
    model = FedCFKRecommender(random_state=0).fit(X)
    best = model.recommend(3, 8)
    assert len(set(best)) == 8
    assert not X[3][best].any()
    asked = np.unique(np.concatenate(model.requests_[3]))
    assert set(np.flatnonzero(X[3])) < set(asked)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"participation": 0.0}, "participation must be"),
        ({"dropping": 1.0}, "dropping must be"),
        ({"rounds": 0}, "rounds must be"),
        ({"cover": 0.5}, "cover must be"),
        ({"request_share": 0.0}, "request_share must be"),
        ({"alpha": 0.0}, "alpha must be a positive number"),
        ({"alpha": "much"}, "alpha must be a positive number, got 'much'"),
        ({"tol": 0}, "tol must be a positive number"),
        ({"rounds": 2.5}, "rounds must be a positive whole number, got 2.5"),
        ({"rounds": True}, "rounds must be"),
        ({"rounds": float("inf")}, "rounds must be"),
        ({"cover": float("inf")}, "cover must be a number from 1 on, got inf"),
    ],
)
def test_bad_parameters_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        FedCFKRecommender(**options).fit(X)


def test_ratings_that_are_no_bits_are_refused():
    with pytest.raises(InputError, match=r"X must be .* zeros and ones"):
        FedCFKRecommender().fit(X * 3)
    for user in (40, -1, 1.5, "ada"):
        with pytest.raises(InputError, match="user must be a whole number from 0 to 39"):
            CFKOMDRecommender().fit(X).recommend(user)
        with pytest.raises(InputError, match="user must be a whole number from 0 to 39"):
            CFKOMDRecommender().fit(X).scores([0, user])
    with pytest.raises(InputError, match="n must be a positive"):
        CFKOMDRecommender().fit(X).recommend(1, 0)


@pytest.mark.parametrize(
    ("model", "fewest"), [(CFKOMDRecommender(), 1), (FedCFKRecommender(random_state=0), 2)]
)
def test_too_few_users_or_items_are_refused(model, fewest):
    words = f"X must be of at least {fewest} users and one item"
    for ratings in (X[: fewest - 1], X[:, :0]):
        with pytest.raises(InputError, match=words):
            model.fit(ratings)
    assert len(model.fit(X[:fewest]).recommend(0, 3)) == 3


@pytest.mark.parametrize("model", [CFKOMDRecommender(), FedCFKRecommender(random_state=0)])
def test_a_user_without_ratings_is_recommended_what_others_rated_most(model):
    ratings = X.copy()
    ratings[5] = 0
    best = model.fit(ratings).recommend(5, 4)
    counts = ratings.sum(axis=0)
    assert best.tolist() == np.argsort(-counts, kind="stable")[:4].tolist()


def test_rounds_that_tell_single_ratings_draw_a_warning(monkeypatch):
    """Least squares over many rounds give the server every user's own ratings."""
    seen = []
    real = recommender.secure_gram

    def gram(*arguments, **options):
        seen.append(real(*arguments, **options))
        return seen[-1]

    monkeypatch.setattr(recommender, "secure_gram", gram)
    few = X[:15]
    with pytest.warns(UserWarning, match="tell the server ratings of single users"):
        FedCFKRecommender(rounds=30, participation=0.5, random_state=0).fit(few)
    names = [f"user{u}" for u in range(len(few))]
    there = np.array([[name in one.survivors for name in names] for one in seen], float)
    sums = np.array([one.values.diagonal() for one in seen], float)
    assert (np.rint(np.linalg.lstsq(there, sums)[0]) == few).all()
