"""``vertikal demo --recommender``: a small catalogue, recommendations, and what the server saw."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from vertikal.estimators.recommender import CFKOMDRecommender, FedCFKRecommender

Array = npt.NDArray[Any]

SHELVES = {
    "mystery": ("harbour", "vicarage", "night train", "orchard"),
    "cookery": ("bread", "noodles", "pickles", "soups"),
    "gardening": ("roses", "bees", "compost", "ponds"),
    "sailing": ("knots", "tides", "dinghies", "charts"),
    "astronomy": ("comets", "lenses", "eclipses", "nebulae"),
    "knitting": ("socks", "cables", "shawls", "mittens"),
}
USERS = 120
DROPPING = 0.1


def catalogue() -> list[str]:
    """List the items, shelf by shelf."""
    return [f"{shelf}: {title}" for shelf, titles in SHELVES.items() for title in titles]


def generated_ratings(seed: int) -> Array:
    """Draw (users, items) zeros and ones: a user likes two shelves, and a little of everything."""
    generator = np.random.default_rng(seed)
    shelf_of = np.repeat(np.arange(len(SHELVES)), 4)
    liked = np.stack([generator.permutation(len(SHELVES))[:2] for _ in range(USERS)])
    chances = np.where((shelf_of[None, :, None] == liked[:, None, :]).any(axis=2), 0.6, 0.05)
    return (generator.random(chances.shape) < chances).astype(np.uint8)


def show_recommender(console: Console, seed: int) -> None:
    """Fit by secure aggregation, recommend to three users, and say what the server learned."""
    items, ratings = catalogue(), generated_ratings(seed)
    console.rule("[bold]A recommender whose users keep their ratings", align="left")
    console.print(
        f"{USERS} users, {len(items)} items, one round of secure aggregation in which "
        f"{DROPPING:.0%} of the users vanish."
    )
    with console.status("secure aggregation"):
        model = FedCFKRecommender(dropping=DROPPING, random_state=seed).fit(ratings)
    pooled = CFKOMDRecommender().fit(ratings)
    table = Table("user", "has read", "recommended", "with all ratings pooled")
    for user in range(3):
        table.add_row(
            str(user),
            *(
                escape("\n".join(items[i] for i in chosen))
                for chosen in (
                    np.flatnonzero(ratings[user]),
                    model.recommend(user, 4),
                    pooled.recommend(user, 4),
                )
            ),
        )
    console.print(table)
    console.print(f"[bold]What the server saw[/] of {model.survivors_[0]} users' ratings:")
    i, j = np.unravel_index(np.argmax(np.triu(model.counts_, 1)), model.counts_.shape)
    console.print(
        f"  counts of users per pair of items, such as {model.counts_[i, j]} for "
        f"{escape(items[i])!r} and {escape(items[j])!r}; nobody's own ratings"
    )
    for user, requests in model.requests_.items():
        asked = np.unique(np.concatenate(requests))
        own = int(ratings[user].sum())
        console.print(
            f"  user {user} asked for the rows of {len(asked)} items in {len(requests)} requests; "
            f"{own} of them are its own, which counting does not tell"
        )
