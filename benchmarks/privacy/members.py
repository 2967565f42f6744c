"""Attacks by a member of the federation, on the old behaviour and on the defaults.

    python -m benchmarks.privacy.members

The first three attacks are those of a label party that follows the program (`semi_honest`), the
others those of a member that does not (`deviating`, `deviating_services`). "Before" is measured
where an option or a small model still gives the old behaviour; where none does, it is what the same
attack gave on the last code without the bound, and says so. "After" is measured on the code at
hand, with its defaults. a9a joins the generated columns where VERTIKAL_DATA has it.
"""

from __future__ import annotations

from typing import Any

from benchmarks import datasets
from benchmarks.harness import Benchmark, arguments
from benchmarks.privacy import deviating, deviating_services, semi_honest
from vertikal.node.config.party_file import Policy

EARLIER = {
    "4 people mixed in one request: scored": 37,
    "5 invented ids: common ids learned": 523,
    "7 questions about one person answered, of 130": 130,
}
"""Results of these attacks before parties compared requests and counted ids and questions."""


MOST_ROW_BITS = Policy().most_row_bits
MOST_MATCH = 0.85
"""Mean correlation of recovered columns that all jobs together should stay below."""


def main() -> None:
    options = arguments(__doc__ or "")
    run = Benchmark(
        "privacy-members",
        {
            "people, hidden columns, known people of 1": [
                semi_honest.PEOPLE,
                semi_honest.HIDDEN,
                semi_honest.KNOWN,
            ],
            "people, hidden columns, known people, rounds of 2": [
                semi_honest.ROUNDS_PEOPLE,
                semi_honest.ROUNDS_HIDDEN,
                semi_honest.ROUNDS_KNOWN,
                semi_honest.ROUNDS,
            ],
            "people, known people of 3": [semi_honest.JOBS_PEOPLE, semi_honest.JOBS_KNOWN],
            "directions of 7": deviating.DIRECTIONS,
            "rows of 8": deviating.ROWS,
            "clients, Sybils of 9": [deviating.CLIENTS, deviating.SYBILS],
            "most bits per row of 3": MOST_ROW_BITS,
            "measured on earlier code": EARLIER,
        },
    )
    attack_semi_honestly(run)
    attack_by_deviating(run)
    attack_services(run)
    run.write(options.out)


def attack_semi_honestly(run: Benchmark) -> None:
    """Attack by following the program; the third attack also by not following it, to compare."""
    found = tell(run, "1 distances to columns", semi_honest.distances_to_columns())
    run.target("1 distances opened", found["after: distances opened"], 0, at_most=True)
    found = tell(run, "2 ADMM's rounds to a column", semi_honest.rounds_to_column())
    allowed = found["after: allowed by the default policy without noise"]
    run.target("2 allowed without noise", int(allowed), 0, at_most=True)
    private = abs(found["after: correlation with epsilon 5"])
    run.target("2 correlation with noise", private, 0.5, at_most=True)
    names = ["generated"]
    if (datasets.FOLDER / "a9a" / "a9a.xz").exists():
        names.append("a9a")
    for name in names:
        data = semi_honest.yes_or_no(name)
        attack = f"3 equal jobs, {name} columns"
        run.figure(f"{attack}: own columns alone", semi_honest.own_columns_alone(data))
        semi = semi_honest.equal_jobs(data)
        deviant = deviating.features_in_place_of_values(data)
        for way, found in (("", semi), (", features in place of values", deviant)):
            for one in found:
                run.figure(f"{attack}{way}: {one['jobs']} jobs", one)
        within = [one for one in (*semi, *deviant) if one["bits per row"] <= MOST_ROW_BITS]
        best = max(one[f"correlation, {semi_honest.JOBS_KNOWN} people known"] for one in within)
        run.target(f"{attack}: correlation within the limit", best, MOST_MATCH, at_most=True)
    found = tell(run, "3 equal jobs", deviating_services.equal_jobs_allowed())
    jobs = f"equal jobs of the defaults that were run, of {deviating_services.MOST_JOBS}"
    run.target("3 equal jobs of the defaults that were run", found[jobs], 3, at_most=True)


def attack_by_deviating(run: Benchmark) -> None:
    found = tell(run, "7 unit vectors", deviating.unit_vector_questions())
    error = found[f"after: largest error of {deviating.DIRECTIONS} cosines"]
    run.target("7 error of a cosine", error, 2.0**-12, at_most=False)
    tell(run, "7 a share with more, sealed", deviating.added_to_a_share())
    found = tell(run, "8 weighted gradients", deviating.weighted_gradients())
    run.target("8 share of rows read", found["after: rows asked for"], 1 / 6, at_most=True)
    found = tell(run, "9 Sybils", deviating.surrounding_sybils())
    opened = found["after: draws in which they open the victim's vector"]
    run.target("9 draws that open the victim's vector", opened, 0, at_most=True)


def attack_services(run: Benchmark) -> None:
    found = tell(run, "4 and 7 predictions", deviating_services.predictions())
    mixed = found["scored although degraded predictions are off"]
    run.target("4 people mixed in one request: scored", mixed, 0, at_most=True)
    asked = f"questions about one person that were answered, of {deviating_services.QUESTIONS}"
    limit = deviating.DIRECTIONS / 4
    run.target("7 questions about one person answered", found[asked], limit, at_most=True)
    found = tell(run, "5 invented ids", deviating_services.invented_ids())
    learned = found["of these, learned by the lender"]
    run.target("5 invented ids: common ids learned", learned, 0, at_most=True)
    up = "share of time in which the shop is connected"
    for when, checked in (("before", False), ("after", True)):
        attack = f"6 parcels of unknown kind, {when}"
        found = tell(run, attack, deviating_services.unknown_parcels(checked=checked))
    run.target("6 share of time in which the shop is connected", found[up], 0.99, at_most=False)


def tell(run: Benchmark, attack: str, found: dict[str, Any]) -> dict[str, Any]:
    """Print and keep all figures of one attack."""
    for name, value in found.items():
        run.figure(f"{attack}: {name}", value)
    return found


if __name__ == "__main__":
    main()
