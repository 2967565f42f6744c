"""A party's own things: its key under a passphrase, its tables in a database or in Parquet."""

from __future__ import annotations

import sqlite3

import pandas
import pytest

from tests.node.services import trio
from tests.organisations import RULE, lay_out, write_job
from vertikal.errors import InputError
from vertikal.node import service
from vertikal.node.storage.party_home import PartyHome
from vertikal.secure.keys.identity import Identity


def test_a_key_under_a_passphrase(tmp_path):
    lay_out(tmp_path, rows=30)
    folder = tmp_path / "bank"
    files = folder / "bank.key", folder / "bank.crt"
    Identity.load(*files).save(*files, b"correct horse")
    with pytest.raises(InputError, match="give it in VERTIKAL_PASSPHRASE"):
        PartyHome(folder / "party.toml")
    home = PartyHome(folder / "party.toml", b"correct horse")
    home.close()
    # Whose certificate it is, is compared too.
    text = (folder / "party.toml").read_text().replace('name = "bank"', 'name = "shop"')
    (folder / "other.toml").write_text(text)
    with pytest.raises(InputError, match="certificate must be that of 'shop', got 'bank'"):
        PartyHome(folder / "other.toml", b"correct horse")


def test_a_store_that_others_can_enter_is_refused(tmp_path):
    lay_out(tmp_path, rows=30)
    (tmp_path / "bank" / "store").mkdir(mode=0o755)
    with pytest.raises(InputError, match="must be open to its owner only, got mode 755"):
        PartyHome(tmp_path / "bank" / "party.toml")


def test_tables_in_a_database_and_in_parquet(tmp_path, monkeypatch):
    monkeypatch.setattr(service, "BEAT", 0.2)
    lay_out(tmp_path, rows=60, policy={"bank": RULE, "shop": RULE})
    write_job(tmp_path, directions=16, settings='disclosure = "open"')
    rows = pandas.read_csv(tmp_path / "bank" / "people.csv")
    database = sqlite3.connect(tmp_path / "bank" / "people.db")
    rows.to_sql("accounts", database, index=False)
    database.close()
    pandas.read_csv(tmp_path / "shop" / "people.csv").to_parquet(tmp_path / "shop" / "p.parquet")
    for name, new in (
        ("bank", 'source = "sqlite:people.db"\nquery = "SELECT * FROM accounts"'),
        ("shop", 'source = "p.parquet"'),
    ):
        path = tmp_path / name / "party.toml"
        path.write_text(path.read_text().replace('source = "people.csv"', new))
        (tmp_path / name / "people.csv").unlink()
    with trio(tmp_path) as world:
        digest = world.submit().digest
        world.done(digest)
        assert world.models("bank").newest_of_job(digest).facts["rows"] == 60
        scores = world["lender"].predict("credit", ("1001", "1002"), None, None)
        assert [one["status"] for one in scores] == ["ok", "ok"]
