"""A first model: three parties hold different columns about the same patients.

All three are simulated in this process. Each sees its own columns; only the clinic sees the labels.
"""

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from vertikal import FDSKLClassifier

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

parties = {"clinic": slice(10, 20), "lab": slice(0, 10), "imaging": slice(20, 30)}
model = FDSKLClassifier(parties, scale="standard", random_state=0).fit(X_train, y_train)

# What one organisation could do with all columns in its own hands, and with its own columns only.
pooled = make_pipeline(StandardScaler(), SVC()).fit(X_train, y_train)
alone = make_pipeline(StandardScaler(), SVC()).fit(X_train[:, 10:20], y_train)

print(f"test accuracy, three parties together  {model.score(X_test, y_test):.3f}")
print(f"test accuracy, SVC on pooled columns   {pooled.score(X_test, y_test):.3f}")
print(f"test accuracy, SVC on the clinic's own {alone.score(X_test[:, 10:20], y_test):.3f}")
print(f"\nbandwidth {model.bandwidth_:.3f}, penalty {model.alpha_:.5f}, iterations {model.n_iter_}")
print(f"\n{model.report_}")
