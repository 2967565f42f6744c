"""``vertikal aggregate``: a client that takes part, and recommends to its user."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from vertikal.cli.terminal.output import json_option, print_json, print_table

_DEVICE = click.argument("folder", type=click.Path(path_type=Path, file_okay=False))


def _policy_options(command: Any) -> Any:
    """Add what a client demands of a round before it helps to open its sum."""
    for option in (
        click.option("--difference", type=int, help="Clients that two rounds must differ by."),
        click.option("--fewest", type=int, help="Clients that a sum must have."),
    ):
        command = option(command)
    return command


@click.command()
@_DEVICE
def key(folder: Path) -> None:
    """Make a client's key in FOLDER, and print its public half."""
    from vertikal.aggregation.device_folder import DeviceFolder

    click.echo(DeviceFolder.create(folder).key.public.hex())


@click.command()
@_DEVICE
@click.option("--ratings", type=click.Path(path_type=Path), help="File of items, one a line.")
@click.option("--columns", type=click.Path(path_type=Path), help="CSV file of whole numbers.")
@click.option("--seconds", default=3600.0, help="Give up after so long.")
@_policy_options
@json_option
def join(
    folder: Path,
    ratings: Path | None,
    columns: Path | None,
    seconds: float,
    fewest: int | None,
    difference: int | None,
    as_json: bool,
) -> None:
    """Take part in one round with the ratings or columns of a client.

    FOLDER has the client's key and ticket. The client refuses rounds of too few clients, and rounds
    that could be subtracted from earlier ones, whatever the server says. It dials again when the
    server is gone, until the time is over.
    """
    from vertikal.aggregation.client_files import read_columns, read_ratings
    from vertikal.aggregation.device import Device
    from vertikal.aggregation.recommending import numbers_of
    from vertikal.aggregation.reconnecting import stay_with
    from vertikal.errors import InputError

    if (ratings is None) == (columns is None):
        raise InputError("give --ratings or --columns, and not both")

    def progress(words: str) -> None:
        if not as_json:
            click.echo(words, err=True)

    policy = _policy(fewest, difference)
    unknown: list[str] = []

    def take_part(device: Device, left: float) -> tuple[str, int]:
        if ratings is not None:
            rated, items = read_ratings(ratings), device.items()
            chosen = numbers_of(rated, items)
            unknown[:] = sorted(set(rated) - set(items))
            if rated and not len(chosen):
                raise InputError(
                    f"ratings file {ratings.name!r} must have items of the server's catalogue, one "
                    f"a line, got none of them in {len(rated)} lines, the first {rated[0][:80]!r}"
                )
            if unknown:
                progress(_not_there(unknown))
            found = device.take_part_with(chosen.tolist(), seconds=left, progress=progress)
        else:
            assert columns is not None
            found = device.take_part(read_columns(columns), seconds=left, progress=progress)
        return device.name, found

    name, count = stay_with(
        lambda: Device.open(folder, policy), take_part, seconds=seconds, progress=progress
    )
    if as_json:
        print_json({"client": name, "clients": count, "unknown": unknown})
    else:
        click.echo(f"{name} is in a sum over {count} clients")


@click.command()
@_DEVICE
@click.option(
    "--ratings", type=click.Path(path_type=Path), required=True, help="File of items, one a line."
)
@click.option("--count", "-n", default=10, help="How many items.")
@json_option
def recommend(folder: Path, ratings: Path, count: int, as_json: bool) -> None:
    """Recommend items to the user of a client, computed on the client.

    The server is asked for rows of the kernel behind a cover of decoys, and learns no rating.
    """
    from vertikal.aggregation.client_files import read_ratings
    from vertikal.aggregation.device import Device
    from vertikal.aggregation.device_folder import DeviceFolder
    from vertikal.aggregation.recommending import recommend as find

    with Device.open(folder) as device:
        found = find(device, DeviceFolder(folder), read_ratings(ratings), count)
    if as_json:
        print_json(found)
        return
    print_table(("item", "score"), [(one.item, f"{one.score:.4f}") for one in found.items])
    if found.unknown:
        click.echo(_not_there(found.unknown), err=True)
    click.echo(
        f"the server saw {found.requests} requests for {found.asked} rows, some of them decoys",
        err=True,
    )


def _not_there(items: Sequence[str]) -> str:
    return f"not in the catalogue yet: {', '.join(items)}"


def _policy(fewest: int | None, difference: int | None) -> Any:
    from vertikal.aggregation.opened_rounds import FEWEST, RoundPolicy
    from vertikal.errors import InputError
    from vertikal.secure.secagg.differences import FEWEST_BETWEEN

    for option, value, least in (("--fewest", fewest, 2), ("--difference", difference, 1)):
        if value is not None and value < least:
            raise InputError.of(option, f"at least {least}", value)
    return RoundPolicy(
        fewest=FEWEST if fewest is None else fewest,
        difference=FEWEST_BETWEEN if difference is None else difference,
    )
