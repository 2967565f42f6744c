"""The three roles of hidden phases: label party, helper and dealer, three different parties."""

from __future__ import annotations

from dataclasses import dataclass, replace

from vertikal.errors import InputError


@dataclass(frozen=True)
class Roles:
    """The roles for the block of directions of one label party.

    ``label_party`` (A) learns the products, ``helper`` (H) holds the other half of each feature,
    ``dealer`` (T) makes the correlated randomness. No two of them may collude.
    ``parties`` are all who bring phases or deal. ``session`` tells several runs of the protocol
    under the same keys apart: none may see the seeds and pads of another.
    """

    label_party: str
    helper: str
    dealer: str
    parties: tuple[str, ...]
    session: str = "0"

    def __post_init__(self) -> None:
        for role, name in (("helper", self.helper), ("dealer", self.dealer)):
            if name not in self.parties:
                raise InputError.of(role, f"one of the parties {list(self.parties)}", name)
        if len({self.label_party, self.helper, self.dealer}) < 3:
            raise InputError.of(
                "helper and dealer",
                f"two different parties other than the label party {self.label_party!r}",
                f"{self.helper!r} and {self.dealer!r}",
            )

    def of_rows(self, first: int) -> Roles:
        """Return the same roles for the block of rows from ``first`` on.

        Each block has seeds, pads and tags of its own, so that blocks may be hidden in any order.
        """
        return replace(self, session=f"{self.session}/{first}")

    @property
    def names(self) -> tuple[str, str, str]:
        return self.label_party, self.helper, self.dealer

    @property
    def purpose(self) -> tuple[str, ...]:
        """The texts to which seeds and pads of this run are bound."""
        return self.session, *self.names

    @property
    def senders(self) -> tuple[str, ...]:
        """Parties without a role, which bring their phases only."""
        return tuple(name for name in self.parties if name not in self.names)
