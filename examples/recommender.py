"""Recommendations without handing over ratings: some users per round, some of them vanishing.

A tenth of the ratings is held out. The area under the ROC curve says how well a user's held-out
items are ranked among those it has not rated; the twin with all ratings in one place says how well
that could be done.
"""

import numpy as np
from sklearn.metrics import roc_auc_score

from vertikal import CFKOMDRecommender, FedCFKRecommender

generator = np.random.default_rng(0)
tastes = generator.dirichlet(np.full(6, 0.25), size=150)  # of each user, over six shelves
shelves = generator.integers(0, 6, size=60)
liked = generator.random((150, 60)) < 0.7 * tastes[:, shelves]
held_out = liked & (generator.random(liked.shape) < 0.1)
ratings = (liked & ~held_out).astype(int)


def quality(model):
    """Mean over the users that have something held out."""
    found = []
    for values, own, wanted in zip(model.scores(), ratings, held_out, strict=True):
        if wanted.any():
            found.append(roc_auc_score(wanted[own == 0], values[own == 0]))
    return np.mean(found)


print(f"all ratings in one place: AUC {quality(CFKOMDRecommender().fit(ratings)):.3f}")
for share, rounds in ((1.0, 1), (0.5, 1), (0.5, 4), (0.2, 4)):
    model = FedCFKRecommender(rounds=rounds, participation=share, dropping=0.1, random_state=0).fit(
        ratings
    )
    print(
        f"{rounds} round(s) of {share:.0%} of the users, {model.survivors_} stayed: "
        f"AUC {quality(model):.3f}"
    )

user = int(ratings.sum(axis=1).argmax())
print(f"\nuser {user} is recommended the items {model.recommend(user, 5).tolist()}")
asked = np.unique(np.concatenate(model.requests_[user]))
print(f"the server saw it ask for {len(asked)} rows; {ratings[user].sum()} of them are its own")
