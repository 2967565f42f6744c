"""Rings: hand values, refusals, and what adding encoded numbers gives."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertikal.errors import InputError, RingError
from vertikal.ring.integers import LIMIT, WIDTHS, Ring, check_steps

every_width = pytest.mark.parametrize("bits", WIDTHS)
NOT_FINITE = [[np.nan], [np.inf], [-np.inf], [np.inf, -np.inf], [0.0, np.nan, 1.0]]


@pytest.mark.parametrize("bits", [0, 1, 7, 12, 128, -8, 8.5, "8", None])
def test_other_widths_are_refused(bits):
    with pytest.raises(InputError, match=r"bits must be one of \(8, 16, 32, 64\), got"):
        Ring(bits)


@every_width
def test_the_dtype_is_the_ring(bits):
    ring = Ring(bits)
    assert ring.dtype == f"uint{bits}"
    assert ring.steps == 2.0**bits / (2 * math.pi)


def test_angles_by_hand():
    angles = np.array([0.0, np.pi, 2 * np.pi, -np.pi / 2, np.pi / 2, 20 * np.pi + np.pi / 4])
    expected = [0, 128, 0, 192, 64, 32]
    for bits in (8, 16, 32):
        got = Ring(bits).encode_angles(angles)
        assert got.dtype == f"uint{bits}"
        assert got.tolist() == [value << (bits - 8) for value in expected]


@every_width
def test_steps_are_rounded_half_to_even(bits):
    steps = np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49999, 255.5, 254.5, -256.5])
    wanted = [0, 2, 2, 0, -2, -2, 0, 256, 254, -256]
    assert Ring(bits).wrap(steps).tolist() == [value % 2**bits for value in wanted]


@every_width
@given(st.floats(-LIMIT, LIMIT, exclude_min=True, exclude_max=True))
def test_any_step_is_rounded_and_wrapped_as_in_exact_arithmetic(bits, step):
    (got,) = Ring(bits).wrap(np.array([step])).tolist()
    assert got == round(Fraction(step)) % 2**bits


@every_width
@pytest.mark.parametrize("bad", NOT_FINITE)
def test_angles_that_are_not_finite_are_refused(bits, bad):
    for call in (Ring(bits).encode_angles, Ring(bits).wrap):
        with pytest.raises(RingError, match="must be finite, got NaN or infinity"):
            call(np.array(bad))


@every_width
def test_angles_beyond_double_precision_are_refused(bits):
    edge = math.nextafter(LIMIT, 0.0)
    assert Ring(bits).wrap(np.array([edge, -edge])).tolist() == [
        round(Fraction(step)) % 2**bits for step in (edge, -edge)
    ]
    for bad in (LIMIT, -LIMIT, 1e300, -1e300):
        with pytest.raises(RingError, match=r"beyond double precision.*raise the bandwidth"):
            Ring(bits).wrap(np.array([0.0, bad]))
    with pytest.raises(RingError, match="beyond double precision"):
        Ring(bits).encode_angles(np.array([LIMIT]))


def test_a_bound_can_be_checked_without_the_values():
    check_steps(-3.0, math.nextafter(LIMIT, 0.0))
    with pytest.raises(RingError):
        check_steps(-LIMIT, 0.0)
    with pytest.raises(RingError):
        check_steps(0.0, math.nan)


@every_width
@pytest.mark.parametrize("shape", [(), (0,), (2, 0), (3,), (2, 3), (2, 1, 2)])
def test_shapes_are_kept(bits, shape):
    ring = Ring(bits)
    zeros = np.zeros(shape)
    for encoded in (ring.encode_angles(zeros), ring.wrap(zeros), ring.encode_reals(zeros, 2, 2)):
        assert encoded.shape == shape
        assert encoded.dtype == ring.dtype
    assert ring.decode_angles(np.zeros(shape, ring.dtype)).shape == shape
    assert ring.decode_reals(np.zeros(shape, ring.dtype), 2).shape == shape


@every_width
@pytest.mark.parametrize("dtype", ["float32", "int64", "float64"])
def test_steps_of_any_dtype_are_read_as_the_numbers_they_are(bits, dtype):
    steps = np.array([[1, 2, 3], [40, 50, 60]], dtype)
    assert Ring(bits).wrap(steps).tolist() == steps.tolist()
    assert Ring(bits).wrap(steps.T).tolist() == steps.T.tolist()


@every_width
def test_decoded_angles_lie_in_the_circle(bits):
    ring = Ring(bits)
    top = 2**bits - 1
    radians = ring.decode_angles(np.array([0, 2 ** (bits - 1), top], ring.dtype))
    assert radians[0] == 0.0
    assert radians[1] == pytest.approx(np.pi)
    assert radians.min() >= 0.0
    assert radians.max() < 2 * np.pi


@pytest.mark.parametrize("bits", [8, 16, 32])
@given(st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=6))
def test_the_sum_of_encoded_angles_is_the_encoded_sum(bits, angles):
    """Up to half a step of rounding for each summand, and half for the sum."""
    ring = Ring(bits)
    total = np.add.reduce(ring.encode_angles(np.array(angles)), dtype=ring.dtype)
    direct = ring.encode_angles(np.array([math.fsum(angles)]))
    gap = int(total - direct[0]) if total >= direct[0] else int(direct[0] - total)
    # 2 steps more in 32 bits, where 1e4 rad are 7e12 steps and doubles have 2^-10 of them.
    assert min(gap, 2**bits - gap) <= (len(angles) + 1) / 2 + 1


@pytest.mark.parametrize("bits", [8, 16, 32])
@given(st.data())
def test_decoding_an_angle_and_encoding_it_gives_the_same_element(bits, data):
    element = np.array([data.draw(st.integers(0, 2**bits - 1))], Ring(bits).dtype)
    assert Ring(bits).encode_angles(Ring(bits).decode_angles(element)) == element


def test_reals_by_hand():
    ring = Ring(8)
    values = np.array([0.0, 1.0, -1.0, 1.5, -0.25, 7.875, -7.875, 0.03125, 0.09375])
    encoded = ring.encode_reals(values, 4, 1)
    assert encoded.tolist() == [0, 16, 240, 24, 252, 126, 130, 0, 2]
    assert ring.decode_reals(encoded, 4).tolist() == [
        *(0.0, 1.0, -1.0, 1.5, -0.25, 7.875, -7.875),
        *(0.0, 0.125),
    ]
    assert Ring(64).encode_reals(np.array([-1.0]), 10, 1).tolist() == [2**64 - 1024]
    assert Ring(16).encode_reals(np.array([-1.0]), 10, 1).tolist() == [2**16 - 1024]


@every_width
@pytest.mark.parametrize("bad", NOT_FINITE)
def test_reals_that_are_not_finite_are_refused(bits, bad):
    with pytest.raises(RingError, match="values must be finite, got NaN or infinity"):
        Ring(bits).encode_reals(np.array(bad), 2, 2)


@every_width
@pytest.mark.parametrize("summands", [1, 2, 3, 7])
def test_the_largest_numbers_can_be_added_without_leaving_the_range(bits, summands):
    """Silent overflow is the one thing that may not happen: check sums at the very edge."""
    ring = Ring(bits)
    for fraction_bits in (0, 1, 4):
        largest = ring.largest_real(fraction_bits, summands)
        rounding = summands * 2.0**-fraction_bits / 2
        for edge in (largest, -largest):
            encoded = ring.encode_reals(np.full(summands, edge), fraction_bits, summands)
            total = np.add.reduce(encoded, dtype=ring.dtype, keepdims=True)
            (decoded,) = ring.decode_reals(total, fraction_bits)
            assert decoded == pytest.approx(edge * summands, abs=rounding, rel=1e-12)


@every_width
@pytest.mark.parametrize("summands", [1, 2, 3, 5])
def test_little_of_the_range_is_given_away(bits, summands):
    assert Ring(bits).largest_real(0, summands) >= (2 ** (bits - 1) - 1) / summands * (1 - 1e-9) - 1


@every_width
def test_reals_out_of_range_are_refused_with_a_remedy(bits):
    ring = Ring(bits)
    largest = ring.largest_real(2, 3)
    for bad in (largest * 1.01, -largest * 1.01, 2.0**80):
        with pytest.raises(RingError, match=rf"\({bits} bits, 2 of them .* 3 summands\), got") as e:
            ring.encode_reals(np.array([0.0, bad]), 2, 3)
        assert "scale the columns or the targets" in str(e.value)


@every_width
@given(st.data())
def test_sums_of_encoded_reals_decode_to_the_sum(bits, data):
    ring = Ring(bits)
    count = data.draw(st.integers(1, 6))
    fraction_bits = data.draw(st.integers(0, bits // 4))
    largest = ring.largest_real(fraction_bits, count)
    values = data.draw(st.lists(st.floats(-largest, largest), min_size=count, max_size=count))
    encoded = ring.encode_reals(np.array(values), fraction_bits, count)
    (total,) = ring.decode_reals(
        np.add.reduce(encoded, dtype=ring.dtype, keepdims=True), fraction_bits
    )
    exact = float(sum(map(Fraction, values)))
    rounding = count * 2.0**-fraction_bits / 2
    assert total == pytest.approx(exact, abs=rounding * (1 + 1e-9), rel=1e-15)


@given(
    st.lists(
        st.tuples(st.floats(-20.0, 12.0), st.booleans()).map(
            lambda drawn: (-1.0 if drawn[1] else 1.0) * 10.0 ** drawn[0]
        ),
        min_size=1,
        max_size=5,
    )
)
def test_wide_numbers_of_very_unequal_size(values):
    """Each alone, and their sum: correct to 2^-77 each, or to a double's own precision."""
    ring = Ring(64)
    encoded = ring.encode_wide(np.array(values), len(values))
    assert encoded.shape == (len(values), 2)
    for value, decoded in zip(values, ring.decode_wide(encoded).tolist(), strict=True):
        assert decoded == pytest.approx(value, rel=2.0**-51, abs=2.0**-77)
    total = np.add.reduce(encoded, axis=0, dtype=np.uint64, keepdims=True)
    exact = float(sum(map(Fraction, values)))
    # The high and low part are added in doubles at the end, once.
    assert ring.decode_wide(total).item() == pytest.approx(
        exact, rel=2.0**-50, abs=len(values) * 2.0**-77
    )


@pytest.mark.parametrize("exponent", range(-20, 13))
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_precision_of_wide_numbers(exponent, sign):
    value = sign * 1.2345678901234567 * 10.0**exponent
    (decoded,) = Ring(64).decode_wide(Ring(64).encode_wide(np.array([value]), 3)).tolist()
    assert abs(Fraction(decoded) - Fraction(value)) <= max(
        Fraction(2) ** -77, abs(Fraction(value)) * Fraction(2) ** -52
    )


def test_tiny_wide_numbers_survive_beside_huge_ones():
    ring = Ring(64)
    encoded = ring.encode_wide(np.array([1e12, -1e12, 3e-20]), 3)
    total = ring.decode_wide(np.add.reduce(encoded, axis=0, dtype=np.uint64, keepdims=True))
    assert total.item() == pytest.approx(3e-20, abs=2.0**-77)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e13, -1e13])
def test_wide_numbers_out_of_range_are_refused(bad):
    with pytest.raises(RingError):
        Ring(64).encode_wide(np.array([bad]), 1)


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3)])
def test_shapes_of_wide_numbers(shape):
    encoded = Ring(64).encode_wide(np.full(shape, -1.25), 2)
    assert encoded.shape == (*shape, 2)
    decoded = Ring(64).decode_wide(encoded)
    assert decoded.shape == shape
    assert (decoded == -1.25).all()
