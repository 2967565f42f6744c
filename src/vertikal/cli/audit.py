"""``vertikal audit``: a party's log of what it did, and its account of what others know."""

from __future__ import annotations

from pathlib import Path

import click

from vertikal.cli.group import OrderedGroup
from vertikal.cli.terminal.output import json_option, print_json, print_table
from vertikal.cli.terminal.party_option import party_file, party_option, store_of

LOG = "audit.log"


@click.group(cls=OrderedGroup)
def audit() -> None:
    """Read and verify what this party did and what it showed.

    The log has every job, decision, run, kind of message and refusal of this party. The account
    adds up what all jobs together may have opened about its rows, and to whom.
    """


@audit.command()
@click.option("--search", metavar="TEXT", help="Only lines with TEXT in event, date or facts.")
@click.option("--last", type=click.IntRange(1), metavar="N", help="Only the last N of them.")
@json_option
@party_option
def show(search: str | None, last: int | None, as_json: bool, party: Path | None) -> None:
    """Show the lines of the log; with --json as they are stored."""
    import msgspec

    from vertikal.node.storage.audit_log import read
    from vertikal.node.storage.audit_wording import facts_text, found_in

    lines = [line for line in read(store_of(party) / LOG) if found_in(line, search or "")]
    if last:
        lines = lines[-last:]
    if as_json:
        for line in lines:
            click.echo(msgspec.json.encode(line))
        return
    print_table(
        ("line", "time", "event", "facts"),
        [(line.number, line.time[:19], line.event, facts_text(line.facts)) for line in lines],
    )


@audit.command()
@click.option("--head", help="NUMBER:DIGEST that `vertikal audit head` printed on an earlier day.")
@json_option
@party_option
def verify(head: str | None, as_json: bool, party: Path | None) -> None:
    """Check that no line was altered, moved or taken out."""
    from vertikal.node.storage.audit_log import Head, verify
    from vertikal.node.storage.disclosure_account import FILE

    anchor = Head.parse(head) if head else None
    found = verify(store_of(party) / LOG, anchor)
    if as_json:
        account_log = store_of(party) / FILE
        entries = verify(account_log).number if account_log.exists() else 0
        print_json({"lines": found.number, "head": str(found), "account_lines": entries})
        return
    click.echo(f"{found.number} lines, each bound to the one before it")
    if anchor:
        click.echo(f"line {anchor.number} has the digest of --head: nothing before it has changed")
    else:
        click.echo(
            "lines cut from the end, or a log written anew, show only against a head that "
            "somebody else keeps: --head"
        )
    click.echo(f"head {found}")
    account_file = store_of(party) / FILE
    if account_file.exists():
        booked = verify(account_file)
        click.echo(f"disclosure account: {booked.number} lines, each bound to the one before it")


@audit.command()
@party_option
def head(party: Path | None) -> None:
    """Print number and digest of the last line, for others to keep."""
    from vertikal.node.storage.audit_log import verify

    click.echo(str(verify(store_of(party) / LOG)))


@audit.command()
@json_option
@party_option
def account(as_json: bool, party: Path | None) -> None:
    """Show what others may know of this party's rows.

    Bits about a row are those that all jobs together have opened to one receiver, at most, as if
    all were about the same rows. The policy's most_row_bits limits them, and most_questions the
    predictions of one person.
    """
    from vertikal.node.config.job_file import job_id
    from vertikal.node.config.party_file import PartyFile
    from vertikal.node.storage.account_summary import summarise_account

    found = summarise_account(store_of(party), PartyFile.load(party_file(party)))
    balances, budget, most = found["balances"], found["privacy"], found["most_row_bits"]
    if as_json:
        print_json(found)
        return
    if not balances:
        click.echo("no job has opened anything about the rows of this party's tables")
    else:
        titles = ("table", "known to", "jobs", "numbers about a row", "bits about a row", "limit")
        rows = [
            (
                one["table"],
                one["receiver"],
                len(one["openings"]),
                one["values"],
                one["row_bits"],
                most,
            )
            for one in balances
        ]
        print_table(titles, rows)
    for one in balances:
        where = f"{one['receiver']} and {one['table']}"
        if one["unbounded_bits"]:
            click.echo(
                f"{where}: {one['unbounded_bits']:,} bits more about each row by jobs whose level "
                "shows them all ('open', 'rounds', 'kernel')"
            )
        if one["gradients"]:
            click.echo(
                f"{where}: {one['gradients']:,} sums over rows for each direction; one that "
                "deviates can have had as many rows' features"
            )
        if one["distances"]:
            click.echo(f"{where}: {one['distances']:,} distances between two rows each")
        for each in one["openings"]:
            asked, bits = each["asked"], each["prediction_bits"]
            if asked:
                told = f", {asked * bits:,} bits" if bits else ""
                click.echo(
                    f"{where}: {asked} predictions of one person at most with the model of job "
                    f"{job_id(each['name'], each['job'])}{told}; the limit is "
                    f"{found['most_questions']}"
                )
    if budget is not None:
        click.echo(
            f"differential privacy: epsilon {budget['spent']:.4g} of {budget['epsilon']:g} is "
            f"spent, at delta {budget['delta']:g}, by all jobs at that level"
        )
