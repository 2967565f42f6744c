"""A generated credit population: a lender, a bank and a shop know different things about loans.

The columns of each party have plausible units and skew, and hang together through three traits of
a person that nobody observes. Whether a loan defaults depends on what single columns say and, more,
on what *two parties know together*: a large loan at a small balance, returned orders where deposits
are irregular, instalments on top of earlier loans. No party sees such a thing alone, and no
weighted sum of columns can say it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from vertikal.demo.data_sets import DataSet
from vertikal.errors import InputError

Array = npt.NDArray[Any]

LABEL_PARTY: Final = "lender"

# The intercept of the log-odds: makes somewhat more than a fifth of the loans default.
_INTERCEPT: Final = -2.05


def credit_population(rows: int, seed: int) -> DataSet:
    """Draw ``rows`` applicants; y is 1 where the loan was not repaid, which the lender knows.

    The same seed gives the same applicants. No real person is among them.
    """
    if isinstance(rows, bool) or not isinstance(rows, int) or rows < 2:
        raise InputError.of("rows", "a whole number from 2 on", rows)
    generator = np.random.default_rng(seed)
    traits = _draw_traits(generator, rows)
    tables = {
        LABEL_PARTY: _lender(generator, traits),
        "bank": _bank(generator, traits),
        "shop": _shop(generator, traits),
    }
    y = (generator.random(rows) < expit(_log_odds(traits))).astype(np.int64)
    X = np.column_stack([column for table in tables.values() for column in table.values()])
    return DataSet(
        name="credit",
        title="Credit default",
        story=(
            "Will a loan default? A generated population: a lender knows the loans and how they "
            "ended, a bank the accounts, a shop the orders. Much of the risk lies in what two of "
            "them know together, such as a large loan at a small balance, which neither a single "
            "party nor a weighted sum of all columns can see."
        ),
        columns={party: list(table) for party, table in tables.items()},
        names=tuple(name for table in tables.values() for name in table),
        X=X.astype(np.float64),
        y=y,
        label_party=LABEL_PARTY,
    )


@dataclass(frozen=True)
class _Traits:
    """Standard normal numbers (rows,) behind the columns, listed by the party that sees them."""

    # lender
    amount: Array
    term: Array
    income: Array
    loans: Array
    employed: Array
    age: Array
    # bank
    balance: Array
    regular: Array
    overdrawn: Array
    spending: Array
    tenure: Array
    standing: Array
    # shop
    basket: Array
    returns: Array
    night: Array
    orders: Array
    instalments: Array


def _draw_traits(generator: np.random.Generator, rows: int) -> _Traits:
    def like(cause: Array, correlation: float) -> Array:
        """Draw a standard normal that follows ``cause`` with this correlation."""
        own = generator.standard_normal(rows)
        return np.asarray(correlation * cause + np.sqrt(1 - correlation**2) * own)

    wealth, order, restless = generator.standard_normal((3, rows))
    income = like(wealth, 0.7)
    amount = like(income, 0.5)
    employed = like(order, 0.5)
    age = like(employed, 0.6)
    regular = like(order, 0.7)
    balance = like(wealth, 0.7)
    returns = like(restless, 0.6)
    return _Traits(
        amount=amount,
        term=like(amount, 0.6),
        income=income,
        loans=like(-order, 0.4),
        employed=employed,
        age=age,
        balance=balance,
        regular=regular,
        overdrawn=like(-regular, 0.6),
        spending=like(balance, 0.6),
        tenure=like(age, 0.5),
        standing=like(regular, 0.6),
        basket=like(wealth, 0.5),
        returns=returns,
        night=like(restless, 0.7),
        orders=like(-restless, 0.4),
        instalments=like(returns, 0.5),
    )


def _log_odds(t: _Traits) -> Array:
    """Log-odds of default, (rows,): a weighted sum, and what no weighted sum can say."""
    alone = (
        0.6 * t.amount
        - 1.0 * t.balance
        + 0.35 * t.loans
        - 0.3 * t.employed
        + 0.7 * t.overdrawn
        + 0.5 * t.instalments
    )
    both_ends = 0.5 * (t.basket**2 - 1) + 0.35 * (t.age**2 - 1)
    together = (
        -0.8 * t.amount * t.balance
        - 1.0 * t.returns * t.regular
        - 0.8 * t.night * t.regular
        + 0.6 * t.instalments * t.loans
    )
    return np.asarray(_INTERCEPT + alone + both_ends + together)


def _lender(generator: np.random.Generator, t: _Traits) -> dict[str, Array]:
    return {
        "loan_amount": np.round(np.exp(9.0 + 0.6 * t.amount), -2),
        "term_months": np.clip(6 * np.round((30 + 14 * t.term) / 6), 6, 72),
        "stated_income": np.round(np.exp(7.9 + 0.4 * t.income), -1),
        "earlier_loans": generator.poisson(np.exp(0.5 + 0.6 * t.loans)),
        "months_employed": np.round(np.exp(3.8 + 0.7 * t.employed)),
        "age": np.clip(np.round(42 + 11 * t.age), 18, 84),
    }


def _bank(generator: np.random.Generator, t: _Traits) -> dict[str, Array]:
    return {
        "balance": np.round(np.exp(7.5 + 0.6 * t.balance), 2),
        "deposit_regularity": _share(1.0 + 1.2 * t.regular),
        "overdrafts": generator.poisson(np.exp(-0.1 + 0.8 * t.overdrawn)),
        "card_spending": np.round(np.exp(6.6 + 0.45 * t.spending), 2),
        "account_months": np.round(np.exp(4.2 + 0.5 * t.tenure)),
        "standing_orders": generator.poisson(np.exp(1.2 + 0.3 * t.standing)),
    }


def _shop(generator: np.random.Generator, t: _Traits) -> dict[str, Array]:
    return {
        "basket_value": np.round(np.exp(3.8 + 0.45 * t.basket), 2),
        "returned_share": _share(-2.0 + 0.9 * t.returns),
        "night_share": _share(-1.8 + 0.9 * t.night),
        "orders_per_year": generator.poisson(np.exp(2.4 + 0.5 * t.orders)),
        "instalment_share": _share(-1.5 + 1.0 * t.instalments),
    }


def _share(log_odds: Array) -> Array:
    """A share between 0 and 1, as a shop or a bank would store it."""
    return np.asarray(np.round(expit(log_odds), 4))
