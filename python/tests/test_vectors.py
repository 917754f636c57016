"""Vector registers, FPCR and FPSR, and the floating-point numbers in them."""

from __future__ import annotations

import math
import pickle
from typing import Any, Callable

import kvrm
import numpy as np
import pytest

FPCR_BITS = 0x07C80000
FPSR_BITS = 0x0800009F


def test_vectors_of_all_lanes(engine: str) -> None:
    m = kvrm.Machine(engine, lanes=3, memory="64K")
    assert m.vectors.shape == (3, 32, 16) and m.vectors.dtype == np.uint8 and not m.vectors.any()
    values = np.arange(3 * 32 * 16, dtype=np.uint8).reshape(3, 32, 16)
    m.vectors = values
    assert np.array_equal(m.vectors, values)
    assert m.get_register("v5", 2) == int.from_bytes(values[2, 5].tobytes(), "little")
    # Programs without them leave them alone, and a reset does not.
    m.load([0x91000400, 0xD4400000])  # add x0, x0, #1; hlt #0
    assert m.run().cycles == 3
    assert np.array_equal(m.vectors, values)
    m.reset(1)
    assert not m.vectors[1].any() and np.array_equal(m.vectors[::2], values[::2])


def test_elements_of_every_type(engine: str) -> None:
    m = kvrm.Machine(engine, lanes=2, memory="64K")
    for dtype in ["f8", "f4", "f2", "u8", "i4", "u2", "i1"]:
        count = 16 // np.dtype(dtype).itemsize
        elements = (np.arange(2 * 32 * count) % 100).reshape(2, 32, count).astype(dtype)
        m.vectors = elements
        assert m.vectors.view(dtype).shape == (2, 32, count)
        assert np.array_equal(m.vectors.view(dtype), elements)
    # The same for all lanes, or for all registers of a lane.
    m.vectors = np.full((32, 2), -0.5)
    assert (m.vectors.view(np.float64) == -0.5).all()
    m.vectors = [[[1.5, 2.5]], [[3.5, 4.5]]]
    assert m.vectors.view(np.float64)[1, 31].tolist() == [3.5, 4.5]
    m.vectors = np.array([1.5, 2.5], ">f8")
    assert m.get_float("d9") == 1.5
    m.vectors = [-1, 2**63 - 1]
    assert m.get_register("v7") == (2**63 - 1) << 64 | 2**64 - 1
    # Numbers for the bytes.
    m.vectors = 7
    assert m.get_register("s3", 1) == 0x07070707
    m.vectors = list(range(16))
    assert m.get_register("d3") == 0x0706050403020100
    m.vectors = 0
    assert not m.vectors.any()


def test_items_of_vectors(engine: str) -> None:
    m = kvrm.Machine(engine, lanes=3, memory="64K")
    m.vectors[0, 1] = 255
    m.vectors[1, 2, 4:8] = [1, 2, 3, 4]
    doubles = m.vectors.view(np.float64)
    doubles[:, 3, 0] = [0.5, 1.5, 2.5]
    m.vectors.view(np.float32)[2, 4] = np.arange(4)
    m.vectors.view(np.float32)[2, 4] *= 2
    m.vectors.view(np.int16)[0, 5, 7] = -2
    assert m.get_register("v1") == 2**128 - 1 and m.get_register("v2", 1) == 0x04030201 << 32
    assert [m.get_float("d3", lane) for lane in range(3)] == [0.5, 1.5, 2.5]
    assert m.vectors.view("f4")[2, 4].tolist() == [0, 2, 4, 6]
    assert m.get_register("v5") == 0xFFFE << 112
    # What was not assigned stays as it is now, and not as it was when the array was read.
    m.set_float("d6", 8.0)
    doubles[0, 7, 1] = 9.0
    assert m.get_float("d6") == 8.0 and m.get_register("v7") >> 64 == 0x4022000000000000
    assert doubles[0, 7, 1] == 9.0 and doubles[0, 6, 0] == 0.0
    with pytest.raises(OverflowError, match="vectors must fit in 8 bits"):
        m.vectors[0, 0, 0] = 256
    with pytest.raises(TypeError, match=r"whole numbers, not float64; view\(np.float64\) takes"):
        m.vectors[0, 0] = 1.5
    assert m.get_register("v0") == 0


def test_nothing_is_lost_past_the_machine() -> None:
    m = kvrm.Machine("cpu", lanes=2)
    lost: list[Callable[[], object]] = [
        lambda: m.vectors.fill(1),
        lambda: m.vectors.view(np.float64).sort(),
        lambda: np.copyto(m.vectors.view(np.float32), 1),
    ]
    for change in lost:
        with pytest.raises(ValueError, match="read-only"):
            change()
    for array in [
        m.vectors.copy(),
        m.vectors.view(np.float64) + 1,
        m.vectors.view(np.float64).copy(),
        pickle.loads(pickle.dumps(m.vectors)),
    ]:
        array.fill(7)
        array[0, 0] = 8
    np.from_dlpack(m.vectors)[0, 0] = 1
    assert not m.vectors.any()


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (1.5, ValueError, r"16 bytes along the last axis, .*, not float64 of shape \(\)"),
        (256, ValueError, "or be numbers from 0 to 255, not int64"),
        (-1, ValueError, "or be numbers from 0 to 255"),
        (np.ones(3), ValueError, r"not float64 of shape \(3,\)"),
        (np.ones((3, 32, 2)), ValueError, r"vectors of shape \(3, 32, 16\) cannot be broadcast to \(2, 32, 16\)"),
        (np.ones((2, 32, 1), "c16"), TypeError, "array of numbers, not of complex128"),
        ("a", TypeError, "vectors must be an array of numbers"),
        (None, TypeError, "vectors must be an array of numbers, not of object"),
        ([2**64, 0], OverflowError, "vectors must fit in 64 bits"),
    ],
)
def test_bad_arrays(value: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        kvrm.Machine("cpu", lanes=2).vectors = value


def test_one_register(engine: str) -> None:
    m = kvrm.Machine(engine, lanes=2, memory="64K")
    value = 0x0123456789ABCDEFFEDCBA9876543210
    m.set_register("v31", value)
    assert m.get_register("V31") == m.get_register("q31", 1) == value
    for name, bits in [("d31", 64), ("s31", 32), ("h31", 16), ("b31", 8)]:
        assert m.get_register(name) == value % 2**bits
        m.set_register(name, -1, lane=1)
        assert m.get_register("v31", 1) == 2**bits - 1
        m.set_register("v31", value)
        for wrong in [2**bits, -(2 ** (bits - 1)) - 1]:
            with pytest.raises(OverflowError, match=f"must fit in {bits} bits, with or without a sign"):
                m.set_register(name, wrong)
    m.set_register("q0", -1)
    assert m.get_register("v0") == 2**128 - 1
    for wrong in [2**128, -(2**127) - 1]:
        with pytest.raises(OverflowError, match="the value of v0 must fit in 128 bits"):
            m.set_register("v0", wrong)
    with pytest.raises(ValueError, match='there is no register "v32"'):
        m.get_register("v32")
    with pytest.raises(IndexError, match="lane 2 does not exist"):
        m.get_register("v0", 2)


def test_floating_point_numbers(engine: str) -> None:
    m = kvrm.Machine(engine, lanes=2, memory="64K")
    for value in [0.0, -0.0, 1.5, -0.1, 1e-7, 65504.0, math.inf, -math.inf, 3]:
        for name, dtype in [("d7", "f8"), ("s7", "f4"), ("h7", "f2")]:
            m.set_register("v7", -1)
            m.set_float(name, value, lane=1)
            rounded = np.array(value, dtype)
            assert m.get_float(name, lane=1) == float(rounded)
            bits = int.from_bytes(rounded.tobytes(), "little")
            assert m.get_register("v7", 1) == bits and m.get_register("v7") == 2**128 - 1
    m.set_float("h0", math.nan)
    assert math.isnan(m.get_float("h0")) and m.get_register("h0") == 0x7E00
    m.set_float("s0", np.float32(0.1))  # type: ignore[arg-type]
    assert m.get_float("s0") == np.float32(0.1)
    for name, value in [("h0", 65520.0), ("s0", -1e39)]:
        with pytest.raises(OverflowError, match=f"is too large for {name}"):
            m.set_float(name, value)
    for name in ["x0", "v0", "b0", "fpcr"]:
        with pytest.raises(ValueError, match=f"{name} holds no floating-point number: use d0 to d31"):
            m.set_float(name, 1.0)
        with pytest.raises(ValueError, match="holds no floating-point number"):
            m.get_float(name)
    with pytest.raises(TypeError, match="the value of d0 must be a whole number, its bits: set_float takes"):
        m.set_register("d0", 1.5)  # type: ignore[arg-type]


def test_halves_are_those_of_numpy() -> None:
    m = kvrm.Machine("cpu")
    halves = np.arange(2**16, dtype=np.uint16)[::37].view(np.float16)
    for half in halves[~np.isnan(halves)]:
        m.set_register("h0", int(half.view(np.uint16)))
        assert m.get_float("h0") == float(half)
        # Half-way to the next, and just beside.
        for value in np.nextafter(float(half) * (1 + 2**-11), [-math.inf, 0, math.inf]):
            with np.errstate(over="ignore"):
                expected = np.float16(value)
            if np.isinf(expected) and not np.isinf(value):
                continue
            m.set_float("h0", value)
            assert m.get_register("h0") == int(expected.view(np.uint16)), value


def test_fpcr_and_fpsr(engine: str) -> None:
    m = kvrm.Machine(engine, lanes=3, memory="64K")
    for name, bits in [("fpcr", FPCR_BITS), ("fpsr", FPSR_BITS)]:
        assert getattr(m, name).dtype == np.uint32 and getattr(m, name).tolist() == [0, 0, 0]
        setattr(m, name, [0, bits, 2**32 - 1])
        assert getattr(m, name).tolist() == [0, bits, bits]
        getattr(m, name)[1:] = 0x08400000
        assert getattr(m, name).tolist() == [0] + [0x08400000 & bits] * 2
        m.set_register(name, -1, lane=0)
        assert m.get_register(name) == bits
        with pytest.raises(OverflowError, match=f"{name} must fit in 32 bits"):
            getattr(m, name)[0] = 2**32
    # Programs see them.
    m.load(kvrm.assemble("mrs x0, fpcr; mrs x1, fpsr; msr fpsr, xzr; hlt #0"))
    m.run()
    assert m.registers[0, :2].tolist() == [FPCR_BITS, FPSR_BITS] and not m.fpsr.any()


def test_roll_backs(engine: str) -> None:
    m = kvrm.Machine(engine, lanes=2, memory="64K", model="double-buffered")
    m.load(kvrm.assemble("msr fpsr, x0; ldr x1, [x2]; hlt #0"))
    m.set_register(0, 1)
    m.set_register(2, 2**40, lane=1)
    m.vectors = np.arange(32 * 4, dtype=np.float32).reshape(32, 4)
    before = m.vectors
    assert not m.run().committed
    assert np.array_equal(m.vectors, before) and m.fpsr.tolist() == [0, 0]
    m.set_register(2, 0)
    assert m.run().committed
    assert np.array_equal(m.vectors, before) and m.fpsr.tolist() == [1, 1]
