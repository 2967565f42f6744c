"""The disclosure account and the privacy budget of a party by plain values, read from its store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from vertikal.node.config.party_file import PartyFile
from vertikal.node.storage.disclosure_account import DisclosureAccount
from vertikal.node.storage.question_count import QuestionCount

BUDGET = "budget.json"
QUESTIONS = "questions"


def summarise_account(store: Path, file: PartyFile) -> dict[str, Any]:
    """Sum up what each receiver may know about a row of each table, with the limits of the policy.

    ``asked`` counts the predictions of the person that was asked for most often with a model;
    ``privacy`` is None if the party keeps no budget.
    """
    questions = QuestionCount(store / QUESTIONS, file.policy.most_questions)
    return {
        "most_row_bits": file.policy.most_row_bits,
        "most_questions": file.policy.most_questions,
        "balances": [
            {
                "table": one.table,
                "receiver": one.receiver,
                "row_bits": one.row_bits,
                "unbounded_bits": one.unbounded_bits,
                "values": one.values,
                "gradients": one.gradients,
                "distances": one.distances,
                "openings": [
                    {**msgspec.to_builtins(each), "asked": questions.most_asked(each.job)}
                    for each in one.openings
                ],
            }
            for one in DisclosureAccount(store, file.name).balances()
        ],
        "privacy": _budget(store / BUDGET),
    }


def _budget(path: Path) -> dict[str, float] | None:
    """Read how much of the privacy budget is spent, if this party keeps one."""
    if not path.exists():
        return None
    from vertikal.privacy.budget import BudgetFile

    file = BudgetFile(path)
    epsilon, delta = file.total
    return {"epsilon": epsilon, "delta": delta, "spent": file.spent}
