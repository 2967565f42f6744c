"""Records of parameters whose types carry the bounds; checks and error words follow from the types.

    class Steps(Parameters, frozen=True, kw_only=True, tag_field="name", tag="steps"):
        step_size: Positive | Literal["auto"] = "auto"

    Steps(step_size=-1)  # InputError: step_size must be a positive number or 'auto', got -1

A field that holds another record takes it in four forms: the record itself, its tag ("steps", which
means its defaults), a mapping as job files have it ({"name": "steps", "step_size": 0.1}), or None
where that is allowed. NumPy's numbers and arrays become Python's. So estimators and job files say
the same things in the same way, and a record that exists is valid.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec
import numpy as np

from vertikal.errors import InputError
from vertikal.records import convert

P = TypeVar("P", bound="Parameters")

LARGEST = sys.float_info.max
"""Bound that keeps infinity out."""

Positive = Annotated[float, msgspec.Meta(gt=0, le=LARGEST)]
Number = Annotated[float, msgspec.Meta(ge=-LARGEST, le=LARGEST)]
Count = Annotated[int, msgspec.Meta(ge=1)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class Parameters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of all records of parameters.

    A subclass states fields with types and defaults, and overrides `__post_init__` for rules across
    fields; it calls this one first.
    """

    def __post_init__(self) -> None:
        for field in fields_of(type(self)):
            given = getattr(self, field.name)
            msgspec.structs.force_setattr(self, field.name, read(field.name, given, field.type))

    def __repr__(self) -> str:
        """The call that makes this record, without the parameters that are at their defaults."""
        given = ((field, getattr(self, field.name)) for field in fields_of(type(self)))
        shown = (f"{field.name}={value!r}" for field, value in given if value != field.default)
        return f"{type(self).__name__}({', '.join(shown)})"


@cache
def fields_of(record: type[Parameters]) -> tuple[msgspec.structs.FieldInfo, ...]:
    """The fields of a record, in order."""
    return msgspec.structs.fields(record)


def spelled_out(record: Parameters) -> dict[str, Any]:
    """All parameters by name, defaults too; a choice by its tag, its options as ``way.count``."""
    found: dict[str, Any] = {}
    for name, value in msgspec.structs.asdict(record).items():
        if isinstance(value, Parameters):
            found[name] = value.__struct_config__.tag or "given"
            found |= {f"{name}.{option}": one for option, one in spelled_out(value).items()}
        else:
            found[name] = value
    return found


def build(record: type[P], given: Mapping[str, Any], name: str, unlisted: Iterable[str] = ()) -> P:
    """Make a record of a mapping; InputError, which calls it ``name``, for unknown or missing keys.

    The error lists the keys that are known, without the ``unlisted``.

    >>> build(Parameters, {"speed": 1}, "settings")
    Traceback (most recent call last):
    vertikal.errors.InputError: settings must be some of [], got 'speed'
    """
    known = {field.name: field for field in fields_of(record)}
    unknown = sorted(str(key) for key in set(given) - set(known))
    if unknown:
        raise InputError.of(name, f"some of {sorted(set(known) - set(unlisted))}", unknown[0])
    for field in known.values():
        if field.required and field.name not in given:
            raise InputError.of(name, f"given with {field.name!r}", dict(given))
    return record(**given)


def read_field(record: type[Parameters], name: str, value: object) -> Any:
    """``value`` as this record would have it in its field ``name``."""
    (field,) = (one for one in fields_of(record) if one.name == name)
    return read(name, value, field.type)


def read(name: str, value: object, kind: Any) -> Any:
    """``value`` as a ``kind``, or an InputError that says which values ``name`` may have."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    elif isinstance(value, list | tuple):
        value = [one.item() if isinstance(one, np.generic) else one for one in value]
    tag_field, choices = _choices(kind)
    if isinstance(value, Mapping) and choices:
        rest = dict(value)
        tag = rest.pop(tag_field, None) if tag_field else None
        if isinstance(tag, str | None) and tag in choices:
            return build(choices[tag], rest, name)
        if rest or not isinstance(tag, str):
            raise InputError.of(name, allowed(kind), value)
        return read(name, tag, kind)
    if isinstance(value, str) and value in choices:
        return choices[value]()
    try:
        return convert(value, kind)
    except msgspec.ValidationError:
        raise InputError.of(name, allowed(kind), value) from None


@cache
def _choices(kind: Any) -> tuple[str | None, dict[str | None, type[Parameters]]]:
    """The field that has the tag, and the records that a value of this type may be, by tag."""
    records = [one for one in _alternatives(kind) if _is_record(one)]
    tag_field = records[0].__struct_config__.tag_field if records else None
    return tag_field, {one.__struct_config__.tag: one for one in records}


def allowed(kind: Any) -> str:
    """The values of a type in words: "a positive number or 'auto'", "one of 8, 16, 32"."""
    numbers, names, records = [], [], []
    for one in _alternatives(kind):
        if get_origin(one) is Literal:
            names += [repr(value) for value in get_args(one)]
        elif one in (None, NoneType):
            names.append("None")
        elif _is_record(one):
            tag = one.__struct_config__.tag
            names += [] if tag is None else [repr(tag)]
            records.append(f"{one.__name__}(...)")
        else:
            numbers.append(_described(one))
    words = [*numbers, *names, *records]
    if not numbers and len(words) > 1:
        return "one of " + ", ".join(words)
    return " or ".join(part for part in (", ".join(words[:-1]), words[-1]) if part)


def _alternatives(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def _is_record(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Parameters)


def _described(kind: Any) -> str:
    """A type without named values, in words; `Meta.description` if it has one."""
    if get_origin(kind) is Annotated and kind.__metadata__[0].description:
        return str(kind.__metadata__[0].description)
    info = msgspec.inspect.type_info(kind)
    if isinstance(info, msgspec.inspect.BoolType):
        return "True or False"
    if isinstance(info, msgspec.inspect.IntType | msgspec.inspect.FloatType):
        whole = "whole " if isinstance(info, msgspec.inspect.IntType) else ""
        if info.gt == 0 and info.le == LARGEST:
            return f"a positive {whole}number"
        if whole and info.ge == 1 and info.le is None:
            return f"a positive {whole}number"
        return f"a {whole}number" + _bounds(info)
    if isinstance(info, msgspec.inspect.DictType):
        return "a table of keys and values"
    if isinstance(info, msgspec.inspect.VarTupleType):
        return f"a list, each {_described(get_args(kind)[0])}"
    return "a text"


def _bounds(info: msgspec.inspect.IntType | msgspec.inspect.FloatType) -> str:
    """ " from 0 to 1", " above 0 and below 1", " from 1 on": the bounds of a number, if any."""
    least = None if info.ge == -LARGEST else info.ge
    most = None if info.le == LARGEST else info.le
    if least is not None and most is not None:
        return f" from {least:g} to {most:g}"
    parts = {
        f"from {least} on": least,
        f"above {info.gt}": info.gt,
        f"below {info.lt}": info.lt,
        f"at most {most}": most,
    }
    words = " and ".join(part for part, bound in parts.items() if bound is not None)
    return f" {words}" if words else ""
