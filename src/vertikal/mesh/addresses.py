"""Addresses of listening parties: ``host:port``, and which of them lie on this machine only."""

from __future__ import annotations

import ipaddress

from vertikal.errors import InputError


def check_address(address: str, *, plaintext: bool) -> None:
    """Refuse any address but host:port, and plaintext for any host but loopback."""
    host, _, port = address.rpartition(":")
    plain = address.isprintable() and port.isascii() and port.isdigit()
    if not host or not plain or int(port) > 65535:
        raise InputError(f"address must be host:port, got {address[:80]!r}")
    if plaintext and not is_loopback(host.strip("[]")):
        raise InputError.of(
            "plaintext", "left out for every address but loopback; use certificates", address
        )


def is_loopback(host: str) -> bool:
    """Check that this name leads to nobody outside this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
