"""The exception tree: everything Vertikal raises on purpose.

A message names the parameter or party, what is allowed, what came, and the remedy; an error about
waiting also names the peer, what was waited for, and since when. Foreign exceptions are turned into
one of these at the boundary where they appear.
"""

from __future__ import annotations


class VertikalError(Exception):
    """The root: catch this to catch all of Vertikal's own errors."""


class InputError(VertikalError, ValueError):
    """A parameter, column or label that cannot be used as it came."""

    @classmethod
    def of(cls, parameter: str, allowed: str, received: object) -> InputError:
        """The one template for parameters: ``penalty must be a positive number, got -1``."""
        shown = received if isinstance(received, str) and " " in received else repr(received)
        return cls(f"{parameter} must be {allowed}, got {shown}")


class RingError(InputError):
    """A number that the ring cannot hold: not finite, or out of range."""


class PeerVisibleError(InputError):
    """A refusal whose message the other parties may read: nothing in it is about the data."""


class SecrecyError(VertikalError):
    """Something that would have shown more than was agreed, and was therefore not done."""


class BudgetSpent(SecrecyError):
    """A job that would exceed what a party's owner allows to be spent of its privacy."""


class PassesUsedUp(SecrecyError):
    """More products with hidden features than were agreed, over all runs of one job."""


class PadReused(SecrecyError):
    """A one-time pad was asked for a second time."""


class TooFewSurvivors(SecrecyError):
    """So many have left that the rest could not open the sum, or would open more than the sum."""


class TamperedLog(VertikalError):
    """An audit log whose lines do not follow from one another, or that lost some."""


class MeshError(VertikalError):
    """Parties could not exchange a message."""


class WireError(MeshError):
    """Bytes that are not a frame of this protocol, or a frame beyond its limits."""


class DeadlineExceeded(MeshError, TimeoutError):
    """A wait that ended without a message; names who, what and since when."""


class PeerStopped(MeshError, ConnectionError):
    """Another party ended before it had sent what was waited for."""

    peer: str = ""
    """Who stopped, which need not be who was waited for."""

    @classmethod
    def of(cls, peer: str, message: str) -> PeerStopped:
        """With the name of the party that stopped."""
        error = cls(message)
        error.peer = peer
        return error


class AgreementError(MeshError):
    """Parties do not run the same job: another version, other settings, another number of rows."""


class IdentityError(MeshError):
    """Somebody who is not who the federation file says, or cannot show it."""


class UnknownParty(IdentityError):
    """A name that is not in the federation file."""


class UnknownCertificate(IdentityError):
    """A certificate that the federation file does not list."""


class CertificateExpired(IdentityError):
    """A certificate outside its time."""


class CertificateMismatch(IdentityError):
    """A listed certificate, shown under another party's name, or a signature by another key."""


class NameTaken(IdentityError):
    """Two processes that claim one party's name in one job."""
