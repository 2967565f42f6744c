"""Flow diagrams stay legible from none to eight parties, whatever flows between them."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reporting.reading import (
    HOSTILE,
    by_class,
    outside,
    overlapping,
    parse,
    rects,
    texts,
    tooltips,
)
from vertikal.reporting.flow_diagram import Flow, flow_diagram

PARTIES = ["bank", "shop", "telco", "insurer", "hospital", "energy", "post", "bureau"]


def everyone_to_everyone(count: int) -> list[Flow]:
    return [
        Flow(a, b, "shares", 1e6, masked=True)
        for a, b in itertools.permutations(PARTIES[:count], 2)
    ]


def towards_the_bank(count: int) -> list[Flow]:
    return [
        flow
        for party in PARTIES[1:count]
        for flow in (
            Flow(party, "bank", "phases", 33.3e6, masked=True),
            Flow("bank", party, "row order", 130e3, masked=False),
        )
    ]


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_boxes_and_labels_keep_apart(data: st.DataObject) -> None:
    parties = PARTIES[: data.draw(st.integers(1, 8))]
    pairs = list(itertools.permutations(parties, 2))
    chosen = data.draw(st.lists(st.sampled_from(pairs), max_size=40)) if pairs else []
    flows = [
        Flow(
            a, b, data.draw(st.text(max_size=30)), data.draw(st.floats()), data.draw(st.booleans())
        )
        for a, b in chosen
    ]
    root = parse(flow_diagram(parties, flows, label_parties=parties[:1], title="T"))
    boxes, cards = rects(root, "box"), rects(root, "card")
    assert len(boxes) == len(parties)
    assert overlapping([*boxes, *cards]) == []
    assert outside(root, [*boxes, *cards, *texts(root)], slack=8) == []


def test_labels_between_two_parties_at_the_edge_stay_inside() -> None:
    ways = (("telco", "shop"), ("shop", "telco"))
    flows = [Flow(a, b, "row order of the table", 130e3, masked=False) for a, b in ways]
    root = parse(flow_diagram(PARTIES[:6], flows))
    assert len(rects(root, "card")) > 0
    assert outside(root, rects(root, "card")) == []


@pytest.mark.parametrize("count", range(2, 9))
def test_arrows_around_a_receiver_say_what_travels(count: int) -> None:
    root = parse(flow_diagram(PARTIES[:count], towards_the_bank(count), label_parties=["bank"]))
    words = [e.text for e in by_class(root, "what")]
    assert words.count("phases") == words.count("row order") == count - 1


@pytest.mark.parametrize("count", range(2, 9))
def test_every_byte_is_told_however_many_arrows(count: int) -> None:
    root = parse(flow_diagram(PARTIES[:count], everyone_to_everyone(count)))
    told = [tip for tip in tooltips(root) if "shares" in tip]
    for flow in everyone_to_everyone(count):
        assert any(flow.source in tip and flow.target in tip for tip in told)
    assert outside(root, texts(root), slack=8) == []


def test_in_a_dense_diagram_both_directions_share_a_line() -> None:
    root = parse(flow_diagram(PARTIES, everyone_to_everyone(8)))
    assert len(by_class(root, "arrow")) == 28 + 2  # and the two samples of the legend
    assert len(by_class(root, "head")) == 56
    assert len(by_class(root, "card")) > 20
    assert overlapping([*rects(root, "card"), *rects(root, "box")]) == []
    assert any(tip.startswith("bank ⇄ shop: 2.0 MB") for tip in tooltips(root))


PHASES = Flow("shop", "bank", "phases", 33.3e6, masked=True)
KEYS = Flow("shop", "bank", "public key", 32, masked=False)
ORDER = Flow("bank", "shop", "row order", 130e3, masked=False)


def test_an_arrow_says_what_it_stands_for() -> None:
    root = parse(flow_diagram(["bank", "shop"], [KEYS, PHASES, PHASES, ORDER]))
    assert [e.text for e in by_class(root, "what")] == ["phases + 1 more", "row order"]
    assert [e.text for e in by_class(root, "size")] == ["66.6 MB", "130 kB"]
    assert tooltips(root).count("bank → shop: 130 kB\nrow order: 130 kB, open") == 2
    listed = "public key: 32 B, open\nphases: 33.3 MB, masked\nphases: 33.3 MB, masked"
    assert tooltips(root).count(f"shop → bank: 66.6 MB\n{listed}") == 2
    assert "bank → shop 130 kB open" in (root.get("aria-label") or "")


def test_one_open_message_opens_the_arrow() -> None:
    def kinds(*flows: Flow) -> list[str]:
        root = parse(flow_diagram(["bank", "shop"], flows))
        groups = [g for g in root if any("hit" in (e.get("class") or "") for e in g)]
        return [g.get("class") or "" for g in groups]

    assert kinds(PHASES) == ["masked"]
    assert kinds(PHASES, KEYS) == ["open"]


def test_locks_of_masked_and_open_arrows_differ() -> None:
    root = parse(flow_diagram(["bank", "shop"], [PHASES, ORDER]))
    shapes = {(e.get("d") or "").partition("v")[2] for e in by_class(root, "shackle")}
    assert len(shapes) == 2


def test_a_line_that_serves_both_ways_says_which_message_went_where() -> None:
    flows = [*everyone_to_everyone(8), ORDER]
    root = parse(flow_diagram(PARTIES, flows))
    tip = next(tip for tip in tooltips(root) if tip.startswith("bank ⇄ shop"))
    assert "row order (bank → shop): 130 kB, open" in tip


def test_unknown_sizes_are_said() -> None:
    flows = [Flow("a", "b", "x", size, True) for size in (math.inf, -math.inf, math.nan)]
    root = parse(flow_diagram(["a", "b"], flows))
    assert [e.text for e in by_class(root, "size")] == ["n/a"]


def test_long_names_are_cut_on_an_arrow_and_whole_in_its_tooltip() -> None:
    what = "w" * 200
    root = parse(flow_diagram(["a", "b"], [Flow("a", "b", what, 1, True)]))
    (label,) = by_class(root, "what")
    assert (label.text or "").endswith("…")
    assert any(what in tip for tip in tooltips(root))


def test_the_party_in_every_exchange_stands_in_the_middle() -> None:
    root = parse(flow_diagram(PARTIES[:5], towards_the_bank(5), label_parties=["bank"]))
    bank, *others = rects(root, "box")
    for start, end in (("left", "right"), ("top", "bottom")):
        middle = [(getattr(box, start) + getattr(box, end)) / 2 for box in (bank, *others)]
        assert min(middle[1:]) < middle[0] < max(middle[1:])


def test_roles_are_written_and_marked() -> None:
    root = parse(flow_diagram(["bank", "shop"], [], label_parties=["bank"]))
    assert [e.text for e in by_class(root, "role")] == ["label party", "feature party"]
    assert len(by_class(root, "labels")) == 1
    assert [e.text for e in by_class(root, "none")] == ["no traffic"]


def test_no_parties() -> None:
    assert [e.text for e in by_class(parse(flow_diagram([], [])), "none")] == ["no data"]


def test_long_names_take_two_lines() -> None:
    root = parse(flow_diagram(["Credit Bureau of the North", "bank"], []))
    assert [e.text for e in by_class(root, "name")] == ["Credit Bureau", "of the North", "bank"]


@pytest.mark.parametrize(
    ("parties", "flows", "label_parties", "message"),
    [
        (["a", "a"], [], (), "different names"),
        (["a", "b"], [Flow("a", "c", "x", 1, True)], (), "'c' must be one of the parties"),
        (["a", "b"], [], ["c"], "'c' must be one of the parties"),
        (["a", "b"], [Flow("a", "a", "x", 1, True)], (), "'x' must lead to another party"),
    ],
)
def test_what_could_only_be_drawn_wrongly_is_refused(
    parties: list[str], flows: list[Flow], label_parties: list[str], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        flow_diagram(parties, flows, label_parties=label_parties)


def test_hostile_text_stays_text() -> None:
    flows = [Flow(HOSTILE, "b", HOSTILE, 1, False)]
    svg = flow_diagram([HOSTILE, "b"], flows, label_parties=[HOSTILE], title=HOSTILE)
    parse(svg)
    assert "<script" not in svg
