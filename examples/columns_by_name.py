"""Columns by name: a data frame, a bank and a shop, and categories encoded before training."""

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from vertikal import FDSKLClassifier

generator = np.random.default_rng(0)
rows = 1500
customers = pd.DataFrame(
    {
        "income": generator.lognormal(8, 0.4, rows),
        "debt": generator.lognormal(6, 0.8, rows),
        "basket": generator.gamma(4, 12, rows),
        "returns": generator.poisson(1.5, rows),
        "region": generator.choice(["north", "south", "west"], rows),
    }
)
# Neither side can see this rule alone: debt matters more the more is returned.
risk = np.log(customers["debt"] / customers["income"]) + 0.8 * customers["returns"]
risk += 0.5 * (customers["region"] == "north") + generator.normal(0, 0.5, rows)
late = (risk > risk.median()).to_numpy()

# The shop turns its category into columns of 0 and 1; one of them says nothing new and is dropped.
table = pd.get_dummies(customers, columns=["region"], drop_first=True, dtype=float)
parties = {
    "bank": ["income", "debt"],
    "shop": [name for name in table.columns if name not in ("income", "debt")],
}
print("the shop holds", parties["shop"])

train, test, late_train, late_test = train_test_split(table, late, random_state=0)
model = FDSKLClassifier(parties, label_parties="bank", scale="standard", random_state=0)
model.fit(train, late_train)
print(f"test accuracy, bank and shop together {model.score(test, late_test):.3f}")

print("\nthree customers and the probability that each pays late:")
print(test.head(3).assign(late=model.predict_proba(test.head(3))[:, 1].round(2)).to_string())

try:
    model.fit(train.assign(debt=np.nan), late_train)
except ValueError as error:
    print(f"\na missing value is refused, and named:\n{error}")
