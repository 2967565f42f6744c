"""The version of this library, and the protocols between services that it speaks."""

__version__ = "0.1.0"
PROTOCOL = 1
"""Number of the protocol between services. A release whose messages or computations differ from
those of the release before has the next number."""
OLDEST_PROTOCOL = 1
"""The oldest protocol that this release still speaks: that of the release before it."""
