"""Several label parties: each owns a part of the directions and keeps its own coefficients."""

from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

from vertikal import FDSKLClassifier

X, y = load_wine(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)

print(f"{len(X_train)} rows, three classes, four parties\n")
for label_parties in (1, 2, 3):
    model = FDSKLClassifier(
        parties=4,
        label_parties=label_parties,
        n_components=300,
        scale="standard",
        random_state=0,
    ).fit(X_train, y_train)
    print(f"label parties: {label_parties}, test accuracy {model.score(X_test, y_test):.3f}")
    for name in model.columns_:
        shard = model.shards_[name]
        held = "no coefficients" if shard.coefficients is None else shard.coefficients.shape
        print(f"  {name} keeps {len(shard.columns)} columns and {held}")
    by_kind = {}
    for entry in model.ledger_.entries():
        kind = entry.disclosure.name
        by_kind[kind] = by_kind.get(kind, 0) + entry.bytes
    print("  bytes by kind of message:", by_kind, "\n")
