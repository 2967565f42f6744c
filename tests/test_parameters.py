"""Records of parameters: what they take, what they refuse, and in which words."""

from __future__ import annotations

import copy
import pickle
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import pytest

from vertikal.errors import InputError
from vertikal.parameters import (
    Count,
    Number,
    Parameters,
    Positive,
    Share,
    allowed,
    build,
    read,
    read_field,
    spelled_out,
)
from vertikal.records import from_json


class Steps(Parameters, frozen=True, kw_only=True, tag_field="name", tag="steps"):
    """A choice with options."""

    size: Positive | Literal["auto"] = "auto"
    count: Count | None = None


class Leaps(Parameters, frozen=True, kw_only=True, tag_field="name", tag="leaps"):
    """Another."""

    height: Count = 3


class Limit(Parameters, frozen=True, kw_only=True):
    """A record that is no choice among others."""

    most: Positive
    least: Number = 0.0


class Walk(Parameters, frozen=True, kw_only=True):
    """A record that holds the others."""

    way: Literal["rest"] | Steps | Leaps = "rest"
    limit: Limit | None = None
    weights: tuple[Number, ...] = (1.0,)
    loud: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.loud and self.way == "rest":
            raise InputError.of("loud", "False at rest", self.loud)


WORDS = [
    (Positive, "a positive number"),
    (Number, "a number"),
    (Count, "a positive whole number"),
    (Share, "a number from 0 to 1"),
    (int, "a whole number"),
    (str, "a text"),
    (bool, "True or False"),
    (Positive | Literal["auto"], "a positive number or 'auto'"),
    (Positive | Literal["fast", "slow"], "a positive number, 'fast' or 'slow'"),
    (Count | None, "a positive whole number or None"),
    (Literal["one"], "'one'"),
    (Literal[8, 16, 32], "one of 8, 16, 32"),
    (Literal["a", "b"] | None, "one of 'a', 'b', None"),
    (Annotated[int, msgspec.Meta(ge=4, le=28)], "a whole number from 4 to 28"),
    (Annotated[float, msgspec.Meta(gt=0, lt=1)], "a number above 0 and below 1"),
    (Annotated[float, msgspec.Meta(gt=0, le=1)], "a number above 0 and at most 1"),
    (Annotated[int, msgspec.Meta(ge=0)], "a whole number from 0 on"),
    (Annotated[float, msgspec.Meta(gt=0, description="a number of hours")], "a number of hours"),
    (tuple[Count, ...], "a list, each a positive whole number"),
    (Literal["rest"] | Steps | Leaps, "one of 'rest', 'steps', 'leaps', Steps(...), Leaps(...)"),
    (Limit | None, "one of None, Limit(...)"),
]


@pytest.mark.parametrize(("kind", "words"), WORDS)
def test_the_words_of_a_type(kind, words):
    assert allowed(kind) == words


@pytest.mark.parametrize(
    ("value", "kind", "found"),
    [
        (2, Positive, 2.0),
        (np.float32(0.5), Positive, 0.5),
        (np.int64(3), Count, 3),
        (np.bool_(True), bool, True),
        (np.array([1.0, 2.0]), tuple[Number, ...], (1.0, 2.0)),
        ([np.float64(1), 2], tuple[Number, ...], (1.0, 2.0)),
        ("auto", Positive | Literal["auto"], "auto"),
    ],
)
def test_numbers_become_pythons_own(value, kind, found):
    read_value = read("it", value, kind)
    assert read_value == found
    assert type(read_value) is type(found)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (True, Count),
        (True, Positive),
        (1, bool),
        (1.0, Count),
        ("3", Count),
        (None, Count),
        (float("nan"), Positive),
        (float("inf"), Positive),
        (float("nan"), Number),
        (float("-inf"), Number),
        (np.bool_(True), Count),
        (8.0, Literal[8, 16]),
        (True, Literal[1]),
        ("ab", tuple[Number, ...]),
    ],
)
def test_other_types_and_numbers_are_refused(value, kind):
    with pytest.raises(InputError, match=r"^it must be .*, got "):
        read("it", value, kind)


def test_all_forms_of_a_choice_give_the_same_record():
    expected = Walk(way=Steps(count=2))
    assert Walk(way={"name": "steps", "count": 2}) == expected
    assert Walk(way=Steps()) == Walk(way="steps") == Walk(way={"name": "steps"})
    assert Walk(way={"name": "rest"}) == Walk()
    assert Walk(limit={"most": 3}) == Walk(limit=Limit(most=3))
    assert read_field(Walk, "way", "leaps") == Leaps()


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"way": "run"}, r"way must be one of 'rest', 'steps', 'leaps', .*, got 'run'"),
    ({"way": 3}, r"way must be one of .*, got 3"),
    ({"way": Limit(most=1)}, r"way must be one of .*, got Limit\(most=1.0\)"),
    ({"way": {}}, r"way must be one of .*, got {}"),
    ({"way": {"count": 2}}, r"way must be one of .*, got {'count': 2}"),
    ({"way": {"name": "run"}}, r"way must be one of .*, got 'run'"),
    ({"way": {"name": ["steps"]}}, r"way must be one of .*, got {'name': \['steps'\]}"),
    ({"way": {"name": {"name": "steps"}}}, r"way must be one of .*, got "),
    ({"way": {"name": "rest", "count": 2}}, r"way must be one of .*, got {'name': 'rest', "),
    ({"way": {"name": "steps", "height": 2}}, r"way must be some of \['count', 'size'\], got 'he"),
    ({"way": {"name": "steps", "count": 0}}, r"count must be a positive whole number or None, "),
    ({"limit": {}}, r"limit must be given with 'most', got {}"),
    ({"limit": "high"}, r"limit must be one of None, Limit\(...\), got 'high'"),
    ({"loud": True}, r"loud must be False at rest, got True"),
]


@pytest.mark.parametrize(("given", "message"), REFUSED)
def test_what_is_refused_is_named(given, message):
    with pytest.raises(InputError, match=f"^{message}") as caught:
        Walk(**given)
    assert "\n" not in str(caught.value)


def test_unknown_and_missing_keys_are_named():
    assert build(Limit, {"most": 2}, "bounds") == Limit(most=2.0)
    with pytest.raises(InputError, match=r"^bounds must be some of \['least', 'most'\], got 'far'"):
        build(Limit, {"most": 2, "far": 1}, "bounds")
    with pytest.raises(InputError, match=r"^bounds must be some of \['most'\], got 'far'$"):
        build(Limit, {"far": 1}, "bounds", unlisted=["least"])
    with pytest.raises(InputError, match=r"^bounds must be given with 'most', got {'least': 1}$"):
        build(Limit, {"least": 1}, "bounds")


def test_a_record_prints_as_the_call_that_makes_it():
    walk = Walk(way=Steps(count=2), limit=Limit(most=3), weights=(0.5, 0.5))
    assert repr(walk) == ("Walk(way=Steps(count=2), limit=Limit(most=3.0), weights=(0.5, 0.5))")
    assert eval(repr(walk)) == walk
    assert repr(from_json(msgspec.json.encode(walk), Walk)) == repr(walk)


def test_a_record_spelled_out_has_the_defaults_too():
    assert spelled_out(Walk(way=Steps(count=2), limit=Limit(most=3))) == {
        "way": "steps",
        "way.size": "auto",
        "way.count": 2,
        "limit": "given",
        "limit.most": 3.0,
        "limit.least": 0.0,
        "weights": (1.0,),
        "loud": False,
    }


def test_records_are_copied_pickled_and_written():
    walk = Walk(way=Leaps(height=2), weights=(0.5,))
    assert copy.deepcopy(walk) == walk
    assert pickle.loads(pickle.dumps(walk)) == walk
    assert from_json(msgspec.json.encode(walk), Walk) == walk
    assert msgspec.structs.replace(walk, way="steps").way == Steps()
    with pytest.raises(AttributeError, match="immutable"):
        walk.loud = True
    with pytest.raises(msgspec.ValidationError):
        from_json(b'{"weights": [1e999]}', Walk)
