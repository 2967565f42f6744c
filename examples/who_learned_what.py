"""The ledger of a training run, who learned what, for two parties and for four.

The bytes on the way are masked in both. What the receiver has in the end differs: with two parties
the sum minus its own part is the other party's phases, with four it is a sum over three.
"""

from sklearn.datasets import load_breast_cancer

from vertikal import FDSKLClassifier

X, y = load_breast_cancer(return_X_y=True)

for parties in (2, 4):
    model = FDSKLClassifier(parties, n_components=256, scale="standard", random_state=0).fit(X, y)
    ledger = model.ledger_
    print(f"=== {parties} parties, training accuracy {model.score(X, y):.3f}\n")
    for entry in ledger.entries():
        form = "masked" if entry.disclosure.masked else "open"
        print(
            f"{entry.sender} → {entry.receiver}  {entry.bytes:>8,} bytes  {form:<6}  "
            f"{entry.disclosure.name}"
        )
    print(f"in all {ledger.bytes:,} bytes\n")

print("What the receiver of each kind of message can learn:\n")
for disclosure in ledger.disclosures():
    print(f"{disclosure.name}: {disclosure.learns}.\n")
