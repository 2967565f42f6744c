"""The wire format: its bytes, all its refusals, and what it does with garbage."""

from __future__ import annotations

import io
import struct
import tracemalloc

import msgspec
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from vertikal.errors import MeshError, VertikalError, WireError
from vertikal.mesh import wire

pack = msgspec.msgpack.encode


class Reader:
    """Bytes that are read in exact portions; counts what it was asked for."""

    def __init__(self, raw: bytes) -> None:
        self._stream = io.BytesIO(raw)
        self.asked: list[int] = []

    def __call__(self, count: int) -> bytes:
        self.asked.append(count)
        portion = self._stream.read(count) if count < 1 << 24 else b""
        if len(portion) != count:
            raise EOFError(f"{count} bytes wanted, {len(portion)} there")
        return portion


def raw_frame(header, body=b"", *, magic=b"VK", version=1, header_size=None, payload_size=None):
    """A frame by hand; ``header`` are its fields, or its bytes."""
    if not isinstance(header, bytes):
        header = pack(header)
    prefix = struct.pack(
        ">2sHIQ",
        magic,
        version,
        len(header) if header_size is None else header_size,
        len(body) if payload_size is None else payload_size,
    )
    return prefix + header + body


def fields(**changes):
    plain = {"sender": "a", "receiver": "b", "tag": "t", "kind": "array"}
    return {**plain, "dtype": "uint8", "shape": [2], **changes}


def record_fields(**changes):
    return {"sender": "a", "receiver": "b", "tag": "t", "kind": "record", **changes}


def bytes_of(frame):
    prefix, body = frame.buffers()
    return prefix + bytes(body)


ARRAY_FRAME = (
    b"VK"
    b"\x00\x01"
    b"\x00\x00\x00\x3d"
    b"\x00\x00\x00\x00\x00\x00\x00\x0c"
    b"\x86"
    b"\xa6sender\xa1a"
    b"\xa8receiver\xa2bo"
    b"\xa3tag\xa1x"
    b"\xa4kind\xa5array"
    b"\xa5dtype\xa6uint16"
    b"\xa5shape\x92\x02\x03"
    b"\x00\x00\x01\x00\x02\x00\x03\x00\x04\x00\x05\x01"
)
RECORD_FRAME = (
    b"VK"
    b"\x00\x01"
    b"\x00\x00\x00\x3b"
    b"\x00\x00\x00\x00\x00\x00\x00\x07"
    b"\x86"
    b"\xa6sender\xa1a"
    b"\xa8receiver\xa2bo"
    b"\xa3tag\xa6a/b/\xc3\xa9"
    b"\xa4kind\xa6record"
    b"\xa5dtype\xa0"
    b"\xa5shape\x90"
    b"\x82\xa1k\x01\xa1v\xc3"
)
VALUES = np.array([[0, 1, 2], [3, 4, 261]], np.uint16)


def test_golden_array_frame():
    assert bytes_of(wire.frame("a", "bo", "x", VALUES)) == ARRAY_FRAME
    came = wire.read(Reader(ARRAY_FRAME))
    assert came.header == wire.Header("a", "bo", "x", "array", "uint16", (2, 3))
    assert came.payload().tolist() == VALUES.tolist()
    assert came.payload().dtype == np.uint16
    assert not came.payload().flags.writeable
    assert (came.size, came.payload_size) == (len(ARRAY_FRAME), 12)


def test_golden_record_frame():
    message = {"k": 1, "v": True}
    assert bytes_of(wire.frame("a", "bo", "a/b/é", message)) == RECORD_FRAME
    came = wire.read(Reader(RECORD_FRAME))
    assert came.header == wire.Header("a", "bo", "a/b/é", "record")
    assert came.payload() == message
    assert came.payload() is not came.payload()
    assert (came.size, came.payload_size) == (len(RECORD_FRAME), 7)


@pytest.mark.parametrize("dtype", list(wire.DTYPES))
def test_all_dtypes_have_little_endian_bytes(dtype):
    one = np.array([1, 0], dtype)
    raw = bytes_of(wire.frame("a", "b", "t", one.astype(one.dtype.newbyteorder(">"))))
    assert raw.endswith(one.astype(one.dtype.newbyteorder("<")).tobytes())


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (raw_frame(fields(), b"xy", magic=b"VX"), "not a frame: starts with b'VX'"),
        (raw_frame(fields(), b"xy", version=0), "protocol version 0, this side speaks 1"),
        (raw_frame(fields(), b"xy", version=2), "protocol version 2, this side speaks 1"),
        (raw_frame(b"", header_size=4097), "header of 4097 bytes, at most 4096"),
        (raw_frame(b"", header_size=2**32 - 1), "header of 4294967295 bytes"),
        (raw_frame(fields(more=1), b"xy"), "header: .*unknown field `more`"),
        (raw_frame(b"\xc1", b"xy"), "header: "),
        (raw_frame(b"", b"xy"), "header: .*truncated"),
        (raw_frame(pack(fields()) + b"\x00", b"xy"), "header: .*trailing"),
        (raw_frame([1, 2], b"xy"), "header: "),
        (raw_frame({"sender": "a"}, b"xy"), "header: .*missing required field `receiver`"),
        (raw_frame(fields(sender=5), b"xy"), "header: .*sender"),
        (raw_frame(fields(kind="pickle"), b"xy"), "header: .*pickle"),
        (raw_frame(fields(shape=[2.5]), b"xy"), "header: .*shape"),
        (raw_frame(fields(shape=[[2]]), b"xy"), "header: .*shape"),
        (raw_frame(fields(tag=b"\xff"), b"xy"), "header: .*tag"),
        (raw_frame(pack(fields(tag="?")).replace(b"?", b"\xff"), b"xy"), "header: .*utf-8"),
        (raw_frame(fields(dtype="object"), b"xy"), "dtype 'object' is not allowed"),
        (raw_frame(fields(dtype="float16", shape=[1]), b"xy"), "dtype 'float16' is not allowed"),
        (raw_frame(fields(dtype="complex64"), b"xy"), "dtype 'complex64' is not allowed"),
        (raw_frame(fields(dtype="<u1"), b"xy"), "dtype '<u1' is not allowed"),
        (raw_frame(fields(dtype=""), b"xy"), "dtype '' is not allowed"),
        (raw_frame(fields(shape=[-1, -2]), b"xy"), r"shape \(-1, -2\) is not allowed"),
        (raw_frame(fields(shape=[-1])), r"shape \(-1,\) is not allowed"),
        (raw_frame(fields(shape=[2, 1, 1, 1, 1]), b"xy"), "shape .* is not allowed"),
        (raw_frame(fields(shape=[1] * 3000 + [2]), b"xy"), "shape .* is not allowed"),
        (raw_frame(fields(shape=[3]), b"xy"), r"uint8 \(3,\) has 3 bytes, got 2"),
        (raw_frame(fields(shape=[]), b"xy"), r"uint8 \(\) has 1 bytes, got 2"),
        (raw_frame(fields(dtype="uint32"), b"xy"), r"uint32 \(2,\) has 8 bytes, got 2"),
        (raw_frame(fields(shape=[2**40, 2**40]), b"xy"), "has .* bytes, got 2"),
        (
            raw_frame(fields(shape=[2**34 + 1]), payload_size=2**34 + 1),
            "17179869185 bytes, at most 17179869184",
        ),
        (raw_frame(fields(shape=[2**63]), payload_size=2**63), "at most 17179869184"),
        (raw_frame(fields(shape=[0, 2**62, 2**62])), "shape .* is not allowed"),
        (raw_frame(fields(shape=[0, 2**64 - 1])), "shape .* is not allowed"),
        (raw_frame(record_fields(), payload_size=2**20 + 1), "1048577 bytes, at most 1048576"),
        (raw_frame(record_fields(), payload_size=2**64 - 1), "at most 1048576"),
        (raw_frame(record_fields(dtype="uint8"), b"\x80"), "has no dtype and no shape"),
        (raw_frame(record_fields(shape=[1]), b"\x80"), "has no dtype and no shape"),
        (raw_frame(fields(sender=""), b"xy"), "sender must have 1 to 64 printable .*''"),
        (raw_frame(fields(sender="x" * 65), b"xy"), "sender must have 1 to 64"),
        (raw_frame(fields(receiver="a\nb"), b"xy"), r"receiver must have 1 to 64 .*'a\\nb'"),
        (raw_frame(fields(receiver="b\n"), b"xy"), "receiver must have 1 to 64"),
        (raw_frame(fields(tag="\x00"), b"xy"), r"tag must have 1 to 200 .*'\\x00'"),
        (raw_frame(fields(tag="\x7f"), b"xy"), "tag must have 1 to 200"),
        (raw_frame(fields(tag="a\x85b"), b"xy"), "tag must have 1 to 200"),
        (raw_frame(fields(sender="bank\u202eknab"), b"xy"), "sender must have 1 to 64"),
        (raw_frame(fields(tag="\x1b[2J"), b"xy"), "tag must have 1 to 200"),
        (raw_frame(fields(tag="x" * 201), b"xy"), "tag must have 1 to 200"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "frame",
)
def test_a_bad_frame_is_refused_before_its_payload_is_asked_for(raw, said):
    reader = Reader(raw)
    with pytest.raises(WireError, match=said) as caught:
        wire.read(reader)
    assert isinstance(caught.value, MeshError)
    assert isinstance(caught.value, VertikalError)
    assert len(str(caught.value)) < 20_000
    assert reader.asked[0] == 16
    assert len(reader.asked) <= 2
    assert all(count <= wire.MAX_HEADER for count in reader.asked)


def test_longest_names_and_largest_dimensions_pass():
    for name in ("n" * 64, "漢" * 64, "\U0001f600" * 64):
        sent = wire.frame(name, name, name, np.zeros((1, 1, 1, 0)))
        assert wire.read(Reader(bytes_of(sent))).header == sent.header
    assert wire.frame("a", "b", "\U0001f600" * 200, {}).size < wire.MAX_HEADER


def test_the_payload_is_asked_for_once_and_exactly():
    reader = Reader(ARRAY_FRAME + b"the next frame")
    wire.read(reader)
    assert reader.asked == [16, len(ARRAY_FRAME) - 28, 12]


@pytest.mark.parametrize("cut", [0, 1, 15, 16, 20, len(ARRAY_FRAME) - 13, len(ARRAY_FRAME) - 1])
def test_the_readers_own_end_of_stream_comes_through(cut):
    with pytest.raises(EOFError):
        wire.read(Reader(ARRAY_FRAME[:cut]))


@pytest.mark.parametrize(
    "payload",
    [
        np.array([None]),
        np.zeros(1, np.float16),
        np.zeros(1, np.complex128),
        np.zeros(1, np.longdouble),
        np.array(["text"]),
        np.array([b"bytes"]),
        np.zeros(1, "datetime64[s]"),
        np.zeros(1, [("a", "i4")]),
        np.ma.masked_array([1.0, 2.0], [True, False]),
    ],
    ids=lambda array: f"{type(array).__name__} {array.dtype}",
)
def test_arrays_of_other_dtypes_do_not_travel(payload):
    with pytest.raises(
        WireError, match=r"'t': .* may not travel; allowed: plain arrays of .'bool'"
    ):
        wire.frame("a", "b", "t", payload)


def nested(depth):
    message: dict = {}
    for _ in range(depth):
        message = {"a": message}
    return message


def cyclic():
    message: dict = {}
    message["me"] = message
    return message


@pytest.mark.parametrize(
    "payload",
    [
        {"x": object()},
        {"x": {1, object()}},
        {"x": 2**64},
        {"x": -(2**63) - 1},
        {"x": np.zeros(2)},
        {"x": np.float64(1)},
        {"x": 1j},
        {"x": "\ud800"},
        {1: "x"},
        {"x": {"y": 1}, None: 2},
        nested(100_000),
        cyclic(),
        [1, 2],
        "text",
        None,
        np.float64(1),
    ],
    ids=[
        "object",
        "object in a set",
        "large integer",
        "small integer",
        "array",
        "numpy scalar",
        "complex",
        "surrogate",
        "integer key",
        "None as key",
        "too deep",
        "cyclic",
        "list",
        "string",
        "None",
        "numpy scalar alone",
    ],
)
def test_messages_that_cannot_be_read_at_the_other_end_are_not_written(payload):
    with pytest.raises(WireError, match=r"'t': "):
        wire.frame("a", "b", "t", payload)


def test_a_record_over_the_cap_is_not_written():
    assert wire.frame("a", "b", "t", {"x": bytes(2**20 - 8)}).payload_size == 2**20
    with pytest.raises(WireError, match="'t': structured message of 1048577 bytes"):
        wire.frame("a", "b", "t", {"x": bytes(2**20 - 7)})


def test_an_array_over_the_cap_is_not_written(monkeypatch):
    monkeypatch.setattr(wire, "MAX_PAYLOAD", 100)
    assert wire.frame("a", "b", "t", np.zeros(100, np.uint8)).payload_size == 100
    with pytest.raises(WireError, match="'t': 101 bytes, at most 100 are allowed"):
        wire.frame("a", "b", "t", np.zeros(101, np.uint8))


@pytest.mark.parametrize("shape", [(1, 1, 1, 1, 1), (0,) * 5])
def test_an_array_of_too_many_dimensions_is_not_written(shape):
    with pytest.raises(WireError, match=r"'t': shape .* is not allowed"):
        wire.frame("a", "b", "t", np.zeros(shape))


@pytest.mark.parametrize("text", ["", "a\n", "\x00", "\x7f", "x" * 300, "\ud800"])
@pytest.mark.parametrize("place", ["sender", "receiver", "tag"])
def test_bad_names_are_not_written(place, text):
    names = {"sender": "a", "receiver": "b", "tag": "t", place: text}
    with pytest.raises(WireError, match=place):
        wire.frame(**names, payload={})


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x01",
        b"\x90",
        b"\xc0",
        b"\xc1",
        b"\x80\x80",
        b"\x81\x01\x01",
        b"\x81\xc0\x01",
        b"\x81\xa1a",
        b"\x81\xa1a\xa1\xff",
        b"\x81\xa1a\x81\x80\x01",
        b"\x81\xa1a\x81\x91\x80\x01",
        b"\x81\xa1a\xd7\xff" + b"\xff" * 8,
        b"\x81\xa1a" + b"\x91" * 100_000,
        b"\x81\xa1a" * 100_000,
        b"\x81\xa1a\xdd\xff\xff\xff\xff",
        b"\xdf\xff\xff\xff\xff",
        b"\x81\xa1a\xdb\xff\xff\xff\xff",
        b"\x81\xa1a\xc6\xff\xff\xff\xff",
    ],
    ids=lambda body: body[:12].hex(),
)
def test_a_garbled_record_is_a_wire_error_that_names_its_sender(body):
    frame = wire.read(Reader(raw_frame(record_fields(), body)))
    tracemalloc.start()
    try:
        with pytest.raises(WireError, match="message of a under 't': "):
            frame.payload()
        assert tracemalloc.get_traced_memory()[1] < 4 * wire.MAX_RECORD
    finally:
        tracemalloc.stop()


REAL_FRAMES = [
    bytes_of(wire.frame("a", "b", "t", payload))
    for payload in (
        np.arange(6, dtype=np.uint8).reshape(2, 3),
        np.zeros((0, 4)),
        np.array(1.5),
        np.zeros((1, 2, 1, 2), bool),
        {},
        {"list": [1, 2.5, None, "x", b"y"], "map": {"deep": [{}, [[]]]}},
    )
]


def read_anything(raw):
    """`read` and `payload` on any bytes: a message, a WireError, or the reader's own EOFError."""
    reader = Reader(raw)
    try:
        frame = wire.read(reader)
        payload = frame.payload()
    except (WireError, EOFError):
        payload = None
    else:
        assert bytes_of(frame) == raw[: frame.size]
        assert isinstance(payload, np.ndarray | dict)
    limits = [wire.PREFIX.size, wire.MAX_HEADER, wire.MAX_PAYLOAD]
    assert all(asked <= limit for asked, limit in zip(reader.asked, limits, strict=False))
    return payload


@given(st.binary(max_size=300))
def test_random_bytes(raw):
    assert read_anything(raw) is None


@given(st.binary(max_size=80), st.binary(max_size=80))
def test_random_header_and_body_behind_a_good_prefix(header, body):
    assert read_anything(raw_frame(header, body)) is None


@settings(max_examples=150)
@given(st.data())
def test_real_frames_with_some_bytes_changed(data):
    raw = bytearray(data.draw(st.sampled_from(REAL_FRAMES)))
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, len(raw) - 1))
        action = data.draw(st.sampled_from(["set", "insert", "delete", "cut"]))
        if action == "set":
            raw[at] = data.draw(st.integers(0, 255))
        elif action == "insert":
            raw[at:at] = data.draw(st.binary(min_size=1, max_size=5))
        elif action == "delete":
            del raw[at]
        else:
            del raw[at:]
        if not raw:
            break
    read_anything(bytes(raw))


@settings(max_examples=100)
@given(
    st.lists(st.integers(-(2**63), 2**64 - 1) | st.sampled_from([0, 1, 2**62]), max_size=5),
    st.sampled_from([*wire.DTYPES, "object", "V8"]),
    st.integers(0, 2**64 - 1) | st.just(0),
)
@example([0, 2**62, 2**62], "uint8", 0)
@example([2**34], "uint8", 2**34)
def test_any_shape_with_any_length(shape, dtype, size):
    read_anything(raw_frame(fields(shape=shape, dtype=dtype), payload_size=size))


@settings(max_examples=60)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text() | st.binary(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=12,
    )
)
def test_any_message_that_can_be_written_is_read_as_it_was(value):
    message = {"value": value}
    assert read_anything(bytes_of(wire.frame("a", "b", "t", message))) == message


def test_fuzzed_frames_allocate_little():
    draw = np.random.default_rng(0)
    tracemalloc.start()
    try:
        for _ in range(300):
            raw = bytearray(REAL_FRAMES[draw.integers(len(REAL_FRAMES))])
            for at in draw.integers(0, len(raw), 3):
                raw[at] = draw.integers(256)
            read_anything(bytes(raw))
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
