"""``vertikal keygen``: files, permissions, refusals."""

from __future__ import annotations

from click.testing import CliRunner

from vertikal.cli import main
from vertikal.node.config.federation_file import FederationFile
from vertikal.secure.keys.identity import Identity


def keygen(*arguments):
    return CliRunner().invoke(main, ["keygen", *arguments])


def test_key_certificate_and_entry(tmp_path):
    done = keygen("bank", "--folder", str(tmp_path), "--listens", "bank.example:7700")
    assert done.exit_code == 0
    identity = Identity.load(tmp_path / "bank.key", tmp_path / "bank.crt")
    assert identity.certificate.fingerprint in done.output
    assert "PRIVATE" not in done.output
    federation = FederationFile.load(tmp_path / "bank.toml")
    assert federation.addresses() == {"bank": "bank.example:7700"}
    assert "PRIVATE" not in (tmp_path / "bank.toml").read_text()


def test_a_key_is_not_replaced_by_accident(tmp_path):
    assert keygen("bank", "--folder", str(tmp_path)).exit_code == 0
    before = (tmp_path / "bank.key").read_bytes()
    again = keygen("bank", "--folder", str(tmp_path))
    assert again.exit_code == 1
    assert "bank.key is there already; --force replaces it" in again.output
    assert (tmp_path / "bank.key").read_bytes() == before
    assert keygen("bank", "--folder", str(tmp_path), "--force").exit_code == 0
    assert (tmp_path / "bank.key").read_bytes() != before


def test_refusals_are_one_line(tmp_path):
    (tmp_path / "file").touch()
    for arguments, said in (
        (("a/b",), "NAME must be usable as the name of a file"),
        (("a", "--listens", "nowhere"), "address must be host:port"),
        (("a", "--folder", str(tmp_path / "file" / "x")), "--folder must be a folder"),
    ):
        done = keygen(*arguments)
        assert done.exit_code == 1
        assert said in done.output
        assert len(done.output.splitlines()) == 1


def test_a_key_under_a_passphrase(tmp_path, monkeypatch):
    monkeypatch.setenv("VERTIKAL_PASSPHRASE", "short")
    done = keygen("bank", "--folder", str(tmp_path), "--passphrase")
    assert (done.exit_code, "8 characters at least" in done.output) == (1, True)
    monkeypatch.setenv("VERTIKAL_PASSPHRASE", "long enough")
    done = keygen("bank", "--folder", str(tmp_path), "--passphrase")
    assert done.exit_code == 0
    assert "keep it and its passphrase secret" in done.output
    assert "ENCRYPTED" in (tmp_path / "bank.key").read_text()
    assert "long enough" not in done.output


def test_links_that_lie_in_wait_are_not_followed(tmp_path):
    """In a folder that others can write to, they would have this user's own files overwritten."""
    ends = ("crt", "toml", "key")
    for end in ends:
        (tmp_path / f"precious {end}").write_text("precious")
        (tmp_path / f"bank.{end}").symlink_to(f"precious {end}")
    assert keygen("bank", "--folder", str(tmp_path), "--force").exit_code == 0
    for end in ends:
        assert (tmp_path / f"precious {end}").read_text() == "precious"
        assert not (tmp_path / f"bank.{end}").is_symlink()
