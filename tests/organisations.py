"""Organisations on loopback: a folder each, with keys, a table, a party file and a job.

Three have tables; a fourth, the notary, has none, where a test wants a dealer without data.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.ports import free_port
from vertikal.demo.credit import credit_population
from vertikal.node.config.federation_file import entry_of
from vertikal.secure.keys.identity import Identity

NAMES = ("lender", "bank", "shop")
WITH_NOTARY = (*NAMES, "notary")

PARTY = """
name = "{name}"
key = "{name}.key"
certificate = "{name}.crt"
federation = "federation.toml"
store = "store"
{tables}
[policy]
who = ["lender"]
disclosures = {disclosures}
least_rows = 20
most_passes = 80
most_value_bits = 28
most_gradient_bits = 28
experiments = true
{policy}
"""

JOB = """
timeout = {timeout}
secret_seed = 7
{top}
[settings]
{components}
{scale}
{settings}
[parties.lender]
table = "people"
label = "default"
[parties.bank]
table = "people"
{bank}
[parties.shop]
table = "people"
{rest}
"""

TABLE = """
[tables.people]
source = "people.csv"
id = "customer"
features = {features}
labels = {labels}
"""

DEGRADED = "degraded_predictions = true\n"

RULE = """
[[policy.standing]]
who = ["lender"]
algorithms = ["fdskl", "avfkam", "kernel", "admm", "gram"]
disclosures = ["open", "values", "sealed", "rounds", "kernel", "private"]
per_day = 100
"""


def lay_out(
    root: Path,
    rows: int = 240,
    policy: str | Mapping[str, str] = "",
    disclosures: Sequence[str] = ("open", "values", "rounds", "private"),
    listening: Sequence[str] = ("lender",),
    names: Sequence[str] = NAMES,
    labelled: Sequence[str] = ("lender",),
) -> None:
    """A folder per party, with all that its service needs; ``labelled`` have the labels."""
    people = credit_population(rows + 60, 0)
    draw = np.random.default_rng(1)
    everybody = np.arange(rows + 60)
    entries = []
    for place, name in enumerate(names):
        folder = root / name
        folder.mkdir(parents=True)
        identity = Identity.create(name)
        identity.save(folder / f"{name}.key", folder / f"{name}.crt")
        listens = f"127.0.0.1:{free_port()}" if name in listening else None
        entries.append(entry_of(identity, listens))
        tables = ""
        if name in people.columns:
            # Everybody lacks twenty people that the others have, and has its own order.
            own = np.delete(everybody, everybody[rows + 20 * place : rows + 20 * (place + 1)])
            label = name in labelled
            write_table(folder / "people.csv", people, name, draw.permutation(own), label=label)
            tables = TABLE.format(
                features=json.dumps(people.columns[name]),
                labels='["default"]' if label else "[]",
            )
        rules = policy if isinstance(policy, str) else policy.get(name, "")
        (folder / "party.toml").write_text(
            PARTY.format(
                name=name,
                tables=tables,
                disclosures=json.dumps(list(disclosures)),
                policy=rules,
            )
        )
    for name in names:
        (root / name / "federation.toml").write_text("\n".join(entries))
    write_job(root)


def write_table(path: Path, people: Any, name: str, rows: Any, *, label: bool) -> None:
    titles = ["customer", *people.columns[name]]
    columns = [rows + 1000, *people.X[rows][:, people.numbers()[name]].T]
    if label:
        titles.append("default")
        columns.append(people.y[rows])
    np.savetxt(
        path,
        np.column_stack(columns),
        ["%d", *["%.10g"] * (len(columns) - 1)],
        ",",
        header=",".join(titles),
        comments="",
    )


def write_job(
    root: Path,
    timeout: float = 60,
    directions: int | None = 64,
    settings: str = "",
    top: str = "",
    bank: str = "",
    rest: str = "",
    scale: str | None = "standard",
) -> None:
    """The lender's job; ``bank`` is what else the bank's part says, ``rest`` what follows it.

    Without ``directions`` it says nothing of their number, as a linear model must.
    """
    text = JOB.format(
        timeout=timeout,
        components="" if directions is None else f"n_components = {directions}",
        settings=settings,
        scale="" if scale is None else f'scale = "{scale}"',
        top=top,
        bank=bank,
        rest=rest,
    )
    (root / "lender" / "credit.toml").write_text(text)
