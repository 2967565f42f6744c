"""The passphrase of a key: who is asked for it, and in which order."""

from __future__ import annotations

import sys

import pytest
from click.testing import CliRunner

from tests.conformance.networks import identity
from tests.organisations import lay_out
from vertikal.cli import main
from vertikal.cli.terminal import passphrase as module
from vertikal.cli.terminal.passphrase import passphrase
from vertikal.errors import InputError

SECRET = b"correct horse"


@pytest.fixture
def key(tmp_path, monkeypatch):
    monkeypatch.delenv(module.VARIABLE, raising=False)
    identity("bank").save(tmp_path / "bank.key", tmp_path / "bank.crt", SECRET)
    return tmp_path / "bank.key"


def test_the_environment_then_a_file_then_the_terminal(key, tmp_path, monkeypatch):
    asked = []

    def prompt(text, **options):
        assert options["hide_input"]
        asked.append(text)
        return "typed"

    monkeypatch.setattr(module.click, "prompt", prompt)
    assert passphrase(key) is None
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    assert passphrase(key) == b"typed"
    assert asked == ["Passphrase of bank.key"]
    file = tmp_path / "secret"
    file.write_bytes(SECRET + b"\nmore\n")
    file.chmod(0o600)
    assert passphrase(key, file) == SECRET
    monkeypatch.setenv(module.VARIABLE, "given")
    assert passphrase(key, file) == b"given"
    monkeypatch.delenv(module.VARIABLE)
    # A key that is not locked needs nobody.
    identity("bank").save(key, tmp_path / "bank.crt")
    assert passphrase(key) is None
    assert passphrase(tmp_path / "gone.key") is None
    assert len(asked) == 1


def test_files_that_are_refused(key, tmp_path):
    file = tmp_path / "secret"
    with pytest.raises(InputError, match="passphrase_file 'secret' cannot be read: No such file"):
        passphrase(key, file)
    file.write_bytes(SECRET)
    file.chmod(0o644)
    with pytest.raises(InputError, match="must be readable by its owner only, got mode 644"):
        passphrase(key, file)
    file.chmod(0o600)
    file.write_bytes(b"\n")
    with pytest.raises(InputError, match="must have the passphrase in its first line"):
        passphrase(key, file)


def test_a_party_file_names_the_file(tmp_path, monkeypatch):
    monkeypatch.delenv(module.VARIABLE, raising=False)
    lay_out(tmp_path, rows=60)
    folder = tmp_path / "bank"
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(folder))
    path = folder / "party.toml"
    locked = folder / "locked"
    locked.write_bytes(SECRET)
    locked.chmod(0o600)
    from vertikal.secure.keys.identity import Identity

    Identity.load(folder / "bank.key", folder / "bank.crt").save(
        folder / "bank.key", folder / "bank.crt", SECRET
    )
    done = CliRunner().invoke(main, ["party", "check", str(path)])
    assert "kept under a passphrase; give it in VERTIKAL_PASSPHRASE" in done.output
    text = path.read_text()
    for file in ("locked", "$CREDENTIALS_DIRECTORY/locked"):
        path.write_text(f'passphrase_file = "{file}"\n' + text)
        done = CliRunner().invoke(main, ["party", "check", str(path)])
        assert done.exit_code == 0, done.output
