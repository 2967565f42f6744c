"""Regression: targets keep their own unit, and the federated answer is close to the pooled one."""

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from vertikal import FDSKLRegressor

X, y = load_diabetes(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

model = FDSKLRegressor(parties=3, scale="standard", alpha=0.02, bandwidth=6.0, random_state=0)
model.fit(X_train, y_train)

# The same problem with all columns in one place. The square loss has no factor 1/2, so the pooled
# ridge that matches a penalty λ is λ·rows/2.
scaler = StandardScaler().fit(X_train)
ridge = KernelRidge(kernel="rbf", gamma=1 / (2 * 6.0**2), alpha=0.02 * len(X_train) / 2)
ridge.fit(scaler.transform(X_train), y_train - y_train.mean())
pooled = ridge.predict(scaler.transform(X_test)) + y_train.mean()

predicted = model.predict(X_test)
print(f"R² on test rows, three parties together {model.score(X_test, y_test):.3f}")
print(f"largest difference from pooled kernel ridge {np.abs(predicted - pooled).max():.1f}")
print(f"standard deviation of the targets           {y_train.std():.1f}\n")
print("     truth  predicted     pooled")
for truth, federated, together in zip(y_test[:5], predicted, pooled, strict=False):
    print(f"{truth:10.0f} {federated:10.1f} {together:10.1f}")
