"""Rare positives: label parties rank rows together, each at its own pace."""

import time

import numpy as np
from sklearn.metrics import roc_auc_score

from vertikal import AVFKAMClassifier, Stochastic

generator = np.random.default_rng(0)
X = generator.normal(size=(4000, 8))
signal = X[:, 0] * X[:, 4] + 0.5 * generator.normal(size=4000)
y = np.where(signal > 1.6, "fraud", "fair")
train, test = slice(0, 3000), slice(3000, 4000)
print(f"{(y == 'fraud').mean():.1%} of the rows are fraud\n")


class SlowShop:
    """Watches all parties, and makes the shop's machine a slow one."""

    def begin(self, party, stage, total):
        pass

    def advance(self, party, stage, amount, note):
        if (party, stage) == ("shop", "solve"):
            time.sleep(0.02)

    def end(self, party, stage, seconds):
        pass


parties = {"bank": [0, 1], "shop": [2, 3], "phone": [4, 5], "post": [6, 7]}
for words, solver in (
    ("exact, all pairs", "exact"),
    ("in turns", Stochastic(schedule="turns", n_steps=150, block_size=50)),
    ("without waiting", Stochastic(schedule="async", n_steps=150, block_size=50)),
):
    began = time.perf_counter()
    model = AVFKAMClassifier(
        parties,
        label_parties=["bank", "shop", "phone"],
        n_components=600,
        solver=solver,
        threshold="f1",
        random_state=0,
        verbose=SlowShop(),
    ).fit(X[train], y[train])
    auc = roc_auc_score(y[test] == "fraud", model.decision_function(X[test]))
    print(f"{words}: test AUC {auc:.3f}, {time.perf_counter() - began:.1f} s")
    if solver != "exact":
        oldest = max(age for ages in model.staleness_.values() for age in ages)
        print(f"  updates {model.updates_}, oldest reading {oldest} updates")
    else:
        print(f"  over {model.pairs_}")
    found = model.predict(X[test]) == "fraud"
    right = (y[test][found] == "fraud").sum()
    print(f"  calls {found.sum()} of {len(found)} rows fraud, {right} of them rightly")
