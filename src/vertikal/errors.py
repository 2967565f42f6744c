"""The exception tree: everything Vertikal raises on purpose.

A kind of error is named after the thing that went wrong and ends in ``Error``. A single case is
named by its subject and by what became of it: ``BudgetSpent``, ``PeerStopped``. A message names the
parameter or party, what is allowed, what came, and the remedy; an error about waiting also names
the peer, what was waited for, and since when. Foreign exceptions are turned into one of these at
the boundary where they appear.
"""

from __future__ import annotations


class VertikalError(Exception):
    """The root: catch this to catch all of Vertikal's own errors."""


class InputError(VertikalError, ValueError):
    """A parameter, file, column or label cannot be used as it came."""

    @classmethod
    def of(cls, parameter: str, allowed: str, received: object) -> InputError:
        """Fill the one template for parameters: ``alpha must be a positive number, got -1``."""
        shown = received if isinstance(received, str) and " " in received else repr(received)
        return cls(f"{parameter} must be {allowed}, got {shown}")


class RingError(InputError):
    """The ring cannot hold a number: it is not finite, or out of range."""


class PeerVisibleError(InputError):
    """A refusal whose message the other parties may read: nothing in it is about the data."""

    rows_left: int | None = None
    """Rows that a request may have, where it has too many."""
    rows_spent: tuple[int, ...] = ()
    """Rows of a request without which it would be allowed."""


class DiskFull(VertikalError):
    """The disk has no room for a file; the file that was there before is untouched."""


class WorkerLost(VertikalError):
    """A worker of this party was lost more often than its rows may be done again."""


class LogTampered(VertikalError):
    """The lines of an audit log do not follow from one another, or some are missing."""


class JobFailed(VertikalError):
    """A job that a command followed was rejected, cancelled or broken off, or took too long."""


class PartyUnfit(VertikalError):
    """A party of the federation cannot take part as things are."""


class RequestRefused(VertikalError):
    """The HTTP endpoint answers a request with an error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class SecrecyError(VertikalError):
    """Something would have shown more than was agreed, and was therefore not done."""


class BudgetSpent(SecrecyError):
    """A job would spend more privacy than the owner of a party's columns allows."""


class PassesUsedUp(SecrecyError):
    """More products with hidden features were asked for than all runs of a job may take."""


class PadReused(SecrecyError):
    """A one-time pad was asked for a second time."""


class ThresholdMissed(SecrecyError):
    """Too few clients are left to open a sum, or the clients left would open more than the sum."""


class PredictionRefused(SecrecyError):
    """A party's policy does not allow these predictions, or no more of them today."""

    rows_left: int | None = None
    """Rows that all parties would allow, where the request has too many for some."""
    rows_spent: tuple[int, ...] = ()
    """Rows of the request without which it would be allowed."""


class MeshError(VertikalError):
    """Parties could not exchange a message."""


class WireError(MeshError):
    """Bytes are no frame of this protocol, or a frame beyond its limits."""


class DeadlineExceeded(MeshError, TimeoutError):
    """A wait ended without a message; the error says for whom, for what and since when."""


class PeerStopped(MeshError, ConnectionError):
    """Another party ended before it had sent what was waited for."""

    peer: str = ""
    """The party that stopped, which need not be the one that was waited for."""

    @classmethod
    def of(cls, peer: str, message: str) -> PeerStopped:
        """Make the error with the name of the party that stopped."""
        error = cls(message)
        error.peer = peer
        return error


class LinkLost(MeshError, ConnectionError):
    """A link between workers of two parties broke, or could not be made."""


class AgreementError(MeshError):
    """Parties do not run the same job: another version, other settings, another number of rows."""


class IdentityError(MeshError):
    """Somebody is not the party that the federation file lists, or cannot show it."""


class PartyUnknown(IdentityError):
    """A name is not in the federation file."""


class CertificateUnknown(IdentityError):
    """A certificate is not the one that the federation file lists."""


class CertificateExpired(IdentityError):
    """A certificate is not valid yet, or not any more."""


class CertificateMismatch(IdentityError):
    """A listed certificate was shown under another party's name, or another key signed."""


class NameTaken(IdentityError):
    """Two processes claim one party's name in one job."""
