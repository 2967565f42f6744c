"""The two roles without a dealer: the label party, which has the key, and the helper."""

from __future__ import annotations

from dataclasses import dataclass

from vertikal.errors import InputError


@dataclass(frozen=True)
class TwoRoles:
    """Label party A, which learns the products, and helper B: all parties that there are.

    ``session`` tells several runs of the protocol under the same keys apart.
    """

    label_party: str
    helper: str
    session: str = "0"

    def __post_init__(self) -> None:
        if self.label_party == self.helper:
            raise InputError.of("helper", f"another party than {self.label_party!r}", self.helper)

    @property
    def purpose(self) -> tuple[str, ...]:
        """The texts to which seeds of this run are bound."""
        return "two parties", self.session, self.label_party, self.helper

    def peer(self, me: str) -> str:
        """The other party."""
        return self.helper if me == self.label_party else self.label_party

    def tag(self, what: str) -> str:
        """The tag of messages of this kind."""
        return f"two-party/{self.label_party}/{self.session}/{what}"
