"""The paper's rule, one row and one direction per step, against blocks and the exact solver.

With batch_size=1 and block_size=1 a step is line by line what FDSKL publishes. It is cheap and
noisy; blocks of rows and directions lower the noise, and the exact solver uses the same phases to
the end.
"""

import numpy as np
from sklearn.datasets import make_moons
from sklearn.model_selection import train_test_split

from vertikal import FDSKLClassifier, Stochastic

X, y = make_moons(1200, noise=0.25, random_state=0)
X = np.hstack([X, np.random.default_rng(0).normal(size=(len(X), 2))])  # two columns of noise
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

settings = {"parties": 4, "bandwidth": 1.0, "n_components": 1024, "alpha": 1e-4}
rules = {
    "paper: 1 row, 1 direction a step": {"solver": Stochastic(batch_size=1, block_size=1)},
    "blocks: 64 rows, 64 directions": {"solver": Stochastic(batch_size=64, block_size=64)},
    "blocks, 100 steps": {"solver": Stochastic(batch_size=64, block_size=64, n_steps=100)},
    "exact": {"solver": "exact"},
}
print(f"{'rule':<34} {'steps':>6} {'test error, mean of 3 seeds':>28}")
for name, rule in rules.items():
    errors = []
    for seed in range(3):
        model = FDSKLClassifier(**settings, **rule, random_state=seed).fit(X_train, y_train)
        errors.append(1 - model.score(X_test, y_test))
    print(f"{name:<34} {model.n_iter_:>6} {np.mean(errors):>28.3f}")
