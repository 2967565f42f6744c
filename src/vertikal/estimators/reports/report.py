"""The report of a run: seconds and bytes by stage and party, and what of privacy was spent."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass, field

from vertikal.party.clock import Stage
from vertikal.privacy.accountant import Spent


@dataclass(frozen=True)
class Report:
    """Seconds and bytes of a run.

    ``stages`` has one entry per stage and party; ``wall`` is the time from start to end. The
    seconds of a party include its waiting for others. ``spent`` has, by party, what its
    releases cost where there was a privacy budget.
    """

    stages: Mapping[str, Mapping[str, Stage]]
    wall: float
    spent: Mapping[str, tuple[Spent, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, by_party: Mapping[str, Mapping[str, Stage]], wall: float) -> Report:
        names = dict.fromkeys(stage for stages in by_party.values() for stage in stages)
        return cls(
            {
                stage: {
                    party: stages[stage] for party, stages in by_party.items() if stage in stages
                }
                for stage in names
            },
            wall,
        )

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds by party, over all stages."""
        return self._total("seconds")

    @property
    def bytes_sent(self) -> dict[str, int]:
        """Bytes sent by party, headers included."""
        return {party: int(size) for party, size in self._total("bytes_sent").items()}

    def _total(self, field: str) -> dict[str, float]:
        totals: dict[str, float] = {}
        for parties in self.stages.values():
            for party, stage in parties.items():
                totals[party] = totals.get(party, 0) + getattr(stage, field)
        return totals

    def rows(self) -> list[tuple[str, str, float, int]]:
        """(stage, party, seconds, bytes sent) of each entry."""
        return [
            (stage, party, entry.seconds, entry.bytes_sent)
            for stage, parties in self.stages.items()
            for party, entry in parties.items()
        ]

    def __str__(self) -> str:
        lines = [f"{'stage':<12} {'party':<16} {'seconds':>9} {'bytes sent':>14}"]
        lines += [
            f"{stage:<12} {party:<16} {seconds:>9.3f} {size:>14,}"
            for stage, party, seconds, size in self.rows()
        ]
        lines.append(
            f"{'in all':<12} {'':<16} {self.wall:>9.3f} {sum(self.bytes_sent.values()):>14,}"
        )
        if self.spent:
            lines += ["", f"{'release':<12} {'party':<16} {'epsilon':>9} {'delta':>14}"]
        lines += [
            f"{release:<12} {party:<16} {epsilon:>9.4g} {delta:>14g}"
            for release, party, epsilon, delta in self.releases()
        ]
        return "\n".join(lines)

    def releases(self) -> list[tuple[int, str, float, float]]:
        """(release, party, ε so far, δ), release by release."""
        return sorted(
            (entry.round, party, entry.epsilon, entry.delta)
            for party, entries in self.spent.items()
            for entry in entries
        )

    def _repr_html_(self) -> str:
        body = "".join(
            f"<tr><td>{html.escape(stage)}</td><td>{html.escape(party)}</td>"
            f"<td>{seconds:.3f}</td><td>{size:,}</td></tr>"
            for stage, party, seconds, size in self.rows()
        )
        page = (
            "<table><thead><tr><th>stage</th><th>party</th><th>seconds</th><th>bytes sent</th></tr>"
            f"</thead><tbody>{body}</tbody></table>"
        )
        if not self.spent:
            return page
        body = "".join(
            f"<tr><td>{release}</td><td>{html.escape(party)}</td>"
            f"<td>{epsilon:.4g}</td><td>{delta:g}</td></tr>"
            for release, party, epsilon, delta in self.releases()
        )
        return (
            f"{page}<table><thead><tr><th>release</th><th>party</th><th>epsilon</th><th>delta</th>"
            f"</tr></thead><tbody>{body}</tbody></table>"
        )
