"""Invitations: one code, one entry, one federation file at all, and nobody without a code."""

from __future__ import annotations

import threading

import msgspec
import pytest

from tests.conformance.networks import free_port, identity
from vertikal.errors import (
    CertificateMismatch,
    DeadlineExceeded,
    InputError,
    VertikalError,
)
from vertikal.node.federation import entry_of
from vertikal.node.invitation import (
    Code,
    Invitation,
    check_federation,
    join,
    parse_entry,
    server_context,
    write_federation,
)


@pytest.fixture
def host(tmp_path):
    """An invitation of bank and shop by lender, not yet waiting."""
    identity("lender").save(tmp_path / "lender.key", tmp_path / "lender.crt")
    context = server_context(tmp_path / "lender.key", tmp_path / "lender.crt", None)
    address = f"127.0.0.1:{free_port()}"
    entry = entry_of(identity("lender"), "127.0.0.1:7700")
    mine = identity("lender").certificate.fingerprint
    return Invitation(entry, ("bank", "shop"), address, context, mine)


class Waiting:
    """The inviting side in a thread."""

    def __init__(self, invitation, seconds=30.0):
        self.joined, self.text, self.error = [], None, None
        self._thread = threading.Thread(target=self._run, args=(invitation, seconds), daemon=True)
        self._thread.start()

    def _run(self, invitation, seconds):
        try:
            self.text = invitation.wait(seconds, self.joined.append)
        except VertikalError as error:
            self.error = error

    def end(self):
        self._thread.join(60)
        return self.text


def entry(name):
    return entry_of(identity(name))


def test_all_get_the_same_file(host):
    waiting = Waiting(host)
    codes = {name: Code.parse(text) for name, text in host.codes.items()}
    found = {}
    threads = [
        threading.Thread(
            target=lambda n=name: found.update({n: join(codes[n], n, entry(n), 30)}), daemon=True
        )
        for name in codes
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    text = waiting.end()
    assert found == {"bank": text, "shop": text}
    assert check_federation(text).names == ("lender", "bank", "shop")
    assert sorted(waiting.joined) == ["bank", "shop"]


def test_a_code_is_good_once_and_for_its_name_only(host):
    waiting = Waiting(host, 4.0)
    bank = Code.parse(host.codes["bank"])
    with pytest.raises(InputError, match="'bank', for whom the code is"):
        join(bank, "shop", entry("shop"), 5)
    wrong = msgspec.structs.replace(bank, secret=bytes(16))
    with pytest.raises(DeadlineExceeded, match="gave no answer"):
        join(wrong, "bank", entry("bank"), 5)
    with pytest.raises(DeadlineExceeded):
        join(bank, "bank", entry("zoe"), 5)
    first = threading.Thread(target=_quietly, args=(bank,), daemon=True)
    first.start()
    while "bank" not in waiting.joined:
        assert first.is_alive()
    with pytest.raises(DeadlineExceeded):
        join(bank, "bank", entry("bank"), 5)
    waiting.end()
    assert "nobody joined as shop" in str(waiting.error)


def _quietly(code):
    with pytest.raises(DeadlineExceeded):
        join(code, "bank", entry("bank"), 20)


def test_another_key_at_the_address_is_noticed(host):
    waiting = Waiting(host, 2.0)
    code = Code.parse(host.codes["bank"])
    other = msgspec.structs.replace(code, fingerprint=identity("zoe").certificate.fingerprint)
    with pytest.raises(CertificateMismatch, match="somebody else answers there"):
        join(other, "bank", entry("bank"), 5)
    waiting.end()


def test_codes_and_entries_of_another_form(tmp_path):
    for text in ("", "vk1.", "vk1.!!!!", "hello"):
        with pytest.raises(InputError, match="not one that `vertikal invite` printed"):
            Code.parse(text)
    with pytest.raises(InputError, match="entry must be one"):
        parse_entry(entry("bank") + entry("shop"))
    with pytest.raises(InputError, match="entry: "):
        parse_entry("party = 3")
    with pytest.raises(CertificateMismatch):
        parse_entry(entry("bank").replace('name = "bank"', 'name = "shop"'))
    write_federation(tmp_path / "federation.toml", "a")
    write_federation(tmp_path / "federation.toml", "a")
    with pytest.raises(InputError, match="there already and differs"):
        write_federation(tmp_path / "federation.toml", "b")
