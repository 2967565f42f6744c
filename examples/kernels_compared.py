"""One data set, four ways to a kernel: quality, what travelled, and what the label party gets."""

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from vertikal import FDSKLClassifier, SecureKernelSVC

X, y = load_breast_cancer(return_X_y=True)
train, test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
scaler = StandardScaler().fit(train)
train, test = scaler.transform(train), scaler.transform(test)

ways = {
    "Fourier features": FDSKLClassifier(3, n_components=256, random_state=0),
    "landmarks": FDSKLClassifier(3, feature_map="landmarks", n_components=256, random_state=0),
    "hidden phases": FDSKLClassifier(3, n_components=256, disclosure="values", random_state=0),
    "exact kernel": SecureKernelSVC(3, gamma=0.02),
}
for words, model in ways.items():
    model.fit(train, y_train)
    score = model.score(test, y_test)
    print(f"{words}: accuracy {score:.3f}, {model.ledger_.bytes:,} bytes")
    for disclosure in model.ledger_.disclosures():
        print(f"  {disclosure.name}: {disclosure.learns}")
    print()
