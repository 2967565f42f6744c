"""A linear model over three parties, then the same with differential privacy and a budget file."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from vertikal import ADMMClassifier, Privacy
from vertikal.errors import BudgetSpent
from vertikal.privacy.budget import BudgetFile

generator = np.random.default_rng(0)
X = generator.normal(size=(3000, 9))
y = (X[:, 0] + X[:, 3] - X[:, 6] + 0.5 * generator.normal(size=3000) > 0).astype(int)
columns = {"bank": [0, 1, 2], "shop": [3, 4, 5], "clinic": [6, 7, 8]}
train, test = slice(0, 2000), slice(2000, 3000)

model = ADMMClassifier(columns).fit(X[train], y[train])
print(f"no noise: {model.n_iter_} rounds, accuracy {model.score(X[test], y[test]):.3f}")
print(model.ledger_)

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "clinic.json"
    BudgetFile.create(path, epsilon=7.0, delta=1e-5)
    private = ADMMClassifier(
        columns,
        privacy=Privacy(epsilon=5.0, delta=1e-5, bound=3.0),
        max_iter=1,
        rho=0.1,
        budget_files={"clinic": path},
    ).fit(X[train], y[train])
    spent = private.privacy_spent_["clinic"][-1]
    print(f"epsilon {spent.epsilon:.2f}: accuracy {private.score(X[test], y[test]):.3f}")
    try:
        private.fit(X[train], y[train])
    except BudgetSpent as refusal:
        print(refusal)
