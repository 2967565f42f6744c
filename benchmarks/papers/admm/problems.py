"""The sets on which ADMM sharing's figures are drawn, and what they are held against.

The paper's wide set, gisette, is read if it is in the data folder; two stand in for it, with three
parties each.

Fashion-MNIST, shirt against pullover (12,000 rows, 784 pixels): each party has a band of the
picture, 9, 10 and 9 lines from the top. Of all 45 pairs of classes it is the one that the best of
the three bands tells apart worst on training rows (`pairs`), so that there is something to share.
No picture of these two classes is empty in a band.

sector (55,197 words, 6,412 rows): its first largest class against the rest, an extreme case, with
80 positive rows. Words are numbered by how common they are, so that three runs of columns would
give party 1 nearly everything; they are dealt in turn.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from benchmarks import datasets

Array = npt.NDArray[Any]

STRENGTHS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
"""scikit-learn's C = 1/λ, from which its logistic regression takes the best."""
BANDS = (range(9 * 28), range(9 * 28, 19 * 28), range(19 * 28, 28 * 28))
"""A picture of 28 × 28 pixels in 9, 10 and 9 lines, from the top."""


@dataclass(frozen=True)
class Problem:
    """Rows to train and to test on; ``columns`` are those of each party, party 1 first."""

    name: str
    X: Any
    y: Array
    X_test: Any
    y_test: Array
    columns: tuple[range, ...]

    @property
    def parties(self) -> dict[str, range]:
        return {f"party {m}": columns for m, columns in enumerate(self.columns, start=1)}

    @property
    def penalty(self) -> float:
        """λ = 1 for the summed loss, scikit-learn's C = 1."""
        return 1 / len(self.y)

    def scores(self, f: Array) -> tuple[float, float]:
        """Test log-loss and AUC of predictions ``f``."""
        loss = float(np.logaddexp(0, -self.y_test * f).mean())
        return loss, float(roc_auc_score(self.y_test, f))

    def validation(self) -> Problem:
        """The training rows alone: three quarters to train, a quarter in place of the test rows."""
        X, held, y, y_held = train_test_split(
            self.X, self.y, test_size=0.25, random_state=0, stratify=self.y
        )
        return replace(self, X=X, y=y, X_test=held, y_test=y_held)

    def alone(self, columns: range) -> tuple[float, float]:
        """scikit-learn's logistic regression on some columns: test log-loss and AUC.

        Its penalty is the best on the training rows held back.
        """
        return self.scores(self._predicted(columns))

    def added(self) -> tuple[float, float]:
        """Each party by itself, log-odds added, the share of the classes counted once.

        Every party has the labels in ADMM sharing; this is what it can do with them for nothing.
        """
        prior = np.log((self.y > 0).sum() / (self.y < 0).sum())
        parts = [self._predicted(columns) - prior for columns in self.columns]
        return self.scores(np.sum(parts, axis=0) + prior)

    def _predicted(self, columns: range) -> Array:
        held = self.validation()
        C = min(STRENGTHS, key=lambda C: held.scores(held._fitted(columns, C))[0])
        return self._fitted(columns, C)

    def _fitted(self, columns: range, C: float) -> Array:
        chosen = np.asarray(columns)
        model = LogisticRegression(C=C, max_iter=5000).fit(self.X[:, chosen], self.y)
        return np.asarray(model.decision_function(self.X_test[:, chosen]))

    def optimum(self) -> tuple[float, float]:
        """The least objective over all columns and its test log-loss, by Newton's method."""
        D = with_ones(self.X)
        ridge = self.penalty * np.append(np.ones(self.X.shape[1]), 0.0)

        def value(x: Array) -> tuple[float, Array]:
            f = D @ x
            slope = -self.y * expit(-self.y * f) / len(self.y)
            loss = np.logaddexp(0, -self.y * f).mean() + (ridge * x * x).sum() / 2
            return float(loss), D.T @ slope + ridge * x

        def hessian(x: Array, v: Array) -> Array:
            p = expit(D @ x)
            return np.asarray(D.T @ (p * (1 - p) * (D @ v)) / len(self.y) + ridge * v)

        begin = np.zeros(D.shape[1])
        found = minimize(value, begin, jac=True, hessp=hessian, method="trust-ncg", tol=1e-9)
        return float(found.fun), self.scores(with_ones(self.X_test) @ found.x)[0]


def a9a() -> Problem:
    """66 + 57 columns, as in the paper."""
    split = datasets.a9a()
    width = split.X.shape[1]
    columns = (range(66), range(66, width))
    return Problem("a9a", split.X, split.y, split.X_test, split.y_test, columns)


def gisette() -> Problem:
    """2,000 + 2,000 + 1,000 columns, as in the paper."""
    split = datasets.gisette()
    columns = (range(2000), range(2000, 4000), range(4000, 5000))
    return Problem("gisette", split.X, split.y, split.X_test, split.y_test, columns)


def fashion() -> Problem:
    """Shirt against pullover, three bands of the picture."""
    split = datasets.fashion_mnist(6, 2)
    return Problem("fashion", split.X, split.y, split.X_test, split.y_test, BANDS)


def sector() -> Problem:
    """Class 12 against the rest: 80 of 6,412 rows, in the test file 20 of 3,207."""
    split = datasets.sector(12)
    columns = tuple(range(m, split.X.shape[1], 3) for m in range(3))
    return Problem("sector", split.X, split.y, split.X_test, split.y_test, columns)


def with_ones(X: Any) -> Any:
    """X and a column of ones, dense or sparse as X is."""
    ones = np.ones((X.shape[0], 1))
    return (
        sparse.csr_array(sparse.hstack((X, ones))) if sparse.issparse(X) else np.hstack((X, ones))
    )
