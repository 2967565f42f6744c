"""Invitations: one code, one entry, one federation file at all, and nobody without a code."""

from __future__ import annotations

import socket
import threading
import time

import msgspec
import pytest

from tests.conformance.networks import identity
from tests.ports import free_port
from vertikal.errors import (
    CertificateMismatch,
    DeadlineExceeded,
    InputError,
    VertikalError,
)
from vertikal.node.config.federation_file import entry_of
from vertikal.node.config.invitation import (
    Invitation,
    InvitationCode,
    check_federation,
    check_own_key,
    check_place,
    join,
    parse_entry,
    proof_of,
    server_context,
    write_federation,
)
from vertikal.secure.keys.identity import Identity


@pytest.fixture
def host(tmp_path):
    """An invitation of bank and shop by lender, not yet waiting."""
    identity("lender").save(tmp_path / "lender.key", tmp_path / "lender.crt")
    context = server_context(tmp_path / "lender.key", tmp_path / "lender.crt", None)
    address = f"127.0.0.1:{free_port()}"
    entry = parse_entry(entry_of(identity("lender"), "127.0.0.1:7700"), "lender")
    invitation = Invitation(entry, ("bank", "shop"), address, context)
    yield invitation
    invitation.close()


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
    codes = {name: InvitationCode.parse(text) for name, text in host.codes.items()}
    found, said = {}, []

    def one(name):
        found[name] = join(codes[name], entry(name), 30, said.append)

    threads = [threading.Thread(target=one, args=(name,), daemon=True) for name in codes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    text = waiting.end()
    assert found == {"bank": text, "shop": text}
    assert check_federation(text).names == ("lender", "bank", "shop")
    assert sorted(waiting.joined) == ["bank", "shop"]
    at = codes["bank"].address
    assert sorted(said) == [f"bank joins lender at {at}", f"shop joins lender at {at}"]


def test_a_code_is_good_once_and_for_its_name_only(host):
    waiting = Waiting(host, 4.0)
    bank = InvitationCode.parse(host.codes["bank"])
    with pytest.raises(CertificateMismatch, match="'shop' under the name 'bank'"):
        join(bank, entry("shop"), 5)
    wrong = msgspec.structs.replace(bank, secret=bytes(16))
    with pytest.raises(InputError, match="lender refused: the code is not valid, or was used"):
        join(wrong, entry("bank"), 5)
    theirs = entry("zoe")
    forged = {
        "name": "bank",
        "entry": theirs,
        "proof": proof_of(bank.secret, "join", "bank", theirs),
    }
    with pytest.raises(CertificateMismatch, match="'zoe' under the name 'bank'"):
        host.admit(forged)
    first = threading.Thread(target=_quietly, args=(bank,), daemon=True)
    first.start()
    while "bank" not in waiting.joined:
        assert first.is_alive()
    with pytest.raises(InputError, match="or was used before"):
        join(bank, entry("bank"), 5)
    waiting.end()
    assert "nobody joined as shop" in str(waiting.error)


def _quietly(code):
    with pytest.raises(DeadlineExceeded):
        join(code, entry("bank"), 20)


def test_another_key_at_the_address_is_noticed(host):
    waiting = Waiting(host, 2.0)
    code = InvitationCode.parse(host.codes["bank"])
    other = msgspec.structs.replace(code, fingerprint=identity("zoe").certificate.fingerprint)
    with pytest.raises(CertificateMismatch, match="somebody else answers there"):
        join(other, entry("bank"), 5)
    waiting.end()


def test_codes_and_entries_of_another_form(tmp_path):
    for text in ("", "vk1.", "vk1.!!!!", "hello"):
        with pytest.raises(InputError, match="not one that `vertikal invite` printed"):
            InvitationCode.parse(text)
    with pytest.raises(InputError, match="entry of bank must be one"):
        parse_entry(entry("bank") + entry("shop"), "bank")
    with pytest.raises(InputError, match="entry: "):
        parse_entry("party = 3", "bank")
    # Above an entry, a key would belong to the entry before it in a federation file.
    with pytest.raises(InputError, match="unknown field `listens`"):
        parse_entry('listens = "203.0.113.9:7700"\n' + entry("bank"), "bank")
    with pytest.raises(InputError, match="unknown field `listens`"):
        check_federation('listens = "203.0.113.9:7700"\n' + entry("bank"))
    with pytest.raises(InputError, match="address must be host:port"):
        parse_entry(entry_of(identity("bank"), "a\x1b[2K:7"), "bank")
    with pytest.raises(CertificateMismatch):
        parse_entry(entry("bank").replace('name = "bank"', 'name = "shop"'), "shop")
    write_federation(tmp_path / "federation.toml", "a")
    write_federation(tmp_path / "federation.toml", "a")
    with pytest.raises(InputError, match="there already and differs"):
        write_federation(tmp_path / "federation.toml", "b")


def test_what_stands_beside_the_fields_of_an_entry_goes_no_further(host):
    plain = entry_of(identity("shop"), "shop.example:7700")
    noisy = "# a remark\n" + plain.replace("E-----\n'", "E-----\n# more\n'")
    for name, theirs in (("bank", entry("bank")), ("shop", noisy)):
        proof = proof_of(InvitationCode.parse(host.codes[name]).secret, "join", name, theirs)
        host.admit({"name": name, "entry": theirs, "proof": proof})
    mine = entry_of(identity("lender"), "127.0.0.1:7700")
    assert host.federation() == "\n".join((mine, entry("bank"), plain))


def code(address="127.0.0.1:7700", name="bank"):
    return InvitationCode(address, identity("lender").certificate.fingerprint, name, bytes(16))


@pytest.mark.parametrize("name", ["../bank/party", "/x", "a\\b", "..", "", "x" * 65, "a\x1b[2K"])
def test_a_code_leads_to_no_file_of_another_folder(name):
    with pytest.raises(InputError, match="the name in the code must be"):
        InvitationCode.parse(code(name=name).text())


@pytest.mark.parametrize("address", ["nowhere", "a\x1b[2K:7", "a:²"])
def test_a_code_leads_to_a_plain_address(address):
    with pytest.raises(InputError, match="address must be host:port"):
        InvitationCode.parse(code(address).text())


def test_a_file_that_is_no_entry_stays_here():
    """The maker of the code listens; nobody so much as dials."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        asking = code(f"127.0.0.1:{listening.getsockname()[1]}", "party")
        with pytest.raises(InputError, match="entry"):
            join(asking, 'key = "bank.key"\npassword = "secret"\n', 5)
        with pytest.raises(BlockingIOError):
            listening.accept()


def test_junk_connections_do_not_end_an_invitation(host):
    """Twenty of them did, and each that was silent kept the federation file back for 20 s."""
    waiting = Waiting(host, 60.0)
    codes = {name: InvitationCode.parse(text) for name, text in host.codes.items()}
    address, _, port = codes["bank"].address.rpartition(":")
    junk = []
    for number in range(100):
        one = socket.create_connection((address, int(port)), 20)
        if number % 2:
            one.sendall(b"GET / HTTP/1.0\r\n\r\n")
        junk.append(one)
    wrong = msgspec.structs.replace(codes["bank"], secret=bytes(16))
    for _ in range(25):
        with pytest.raises(InputError, match="the code is not valid"):
            join(wrong, entry("bank"), 5)
    began = time.monotonic()
    found = {}

    def one_joins(name):
        found[name] = join(codes[name], entry(name), 30)

    threads = [threading.Thread(target=one_joins, args=(name,), daemon=True) for name in codes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    text = waiting.end()
    assert time.monotonic() - began < 15.0
    assert found == {"bank": text, "shop": text}
    for one in junk:
        one.close()


def test_a_wrong_port_is_tried_again_and_named(host):
    asking = code(f"127.0.0.1:{free_port()}")
    said = []
    with pytest.raises(DeadlineExceeded, match=r"connection refused at 127.* The code is not used"):
        join(asking, entry("bank"), 2.5, said.append)
    assert said == [f"connection refused at {asking.address}, trying again"]


def test_an_entry_that_does_not_fit_is_refused_and_its_code_stays_good(host):
    waiting = Waiting(host)
    codes = {name: InvitationCode.parse(text) for name, text in host.codes.items()}
    doubled = entry_of(identity("bank"), "127.0.0.1:7700")
    with pytest.raises(
        InputError, match=r"lender refused: bank cannot listen at 127.0.0.1:7700, where lender"
    ):
        join(codes["bank"], doubled, 10)
    found = []
    threads = [
        threading.Thread(
            target=lambda name=name: found.append(join(codes[name], entry(name), 30)), daemon=True
        )
        for name in codes
    ]
    for thread in threads:
        thread.start()
    text = waiting.end()
    for thread in threads:
        thread.join(60)
    assert found == [text, text]


def test_who_invites_must_listen(tmp_path, host):
    silent = parse_entry(entry("lender"), "lender")
    with pytest.raises(InputError, match="entry of lender: it must have 'listens'"):
        Invitation(silent, ("bank",), "127.0.0.1:0", None)


def test_keys_and_places_are_looked_at_before_a_code_is_used(tmp_path):
    key, certificate = tmp_path / "bank.key", tmp_path / "bank.crt"
    identity("bank").save(key, certificate)
    own = parse_entry(entry("bank"), "bank")
    check_own_key(own, key, certificate, None)
    Identity.create("bank").save(key, certificate)
    with pytest.raises(CertificateMismatch, match=r"has another key than 'bank\.key'"):
        check_own_key(own, key, certificate, None)
    key.unlink()
    with pytest.raises(InputError, match="key file"):
        check_own_key(own, key, certificate, None)
    check_place(tmp_path / "federation.toml")
    (tmp_path / "federation.toml").touch()
    with pytest.raises(InputError, match="is there already"):
        check_place(tmp_path / "federation.toml")
    with pytest.raises(InputError, match="cannot be written"):
        check_place(tmp_path / "nowhere" / "federation.toml")
