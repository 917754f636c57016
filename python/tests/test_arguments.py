"""Bad calls: the right exception, with a sentence."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

kvrm: Any = importlib.import_module("kvrm")  # Nobody should tell that the types are wrong.
Call = Callable[[Any], Any]

CASES: list[tuple[Call, type[Exception], str]] = [
    (lambda m: m.load("nop"), TypeError, "program must be bytes or a sequence of 32-bit words, not str"),
    (lambda m: m.load(5), TypeError, "program must be bytes or a sequence of 32-bit words, not int"),
    (lambda m: m.load([2**32]), OverflowError, "the word 0x100000000 has more than 32 bits"),
    (lambda m: m.load([-1]), ValueError, "an instruction word must not be negative"),
    (lambda m: m.load(["a"]), TypeError, "an instruction word must be a whole number, not str"),
    (lambda m: m.load(np.arange(2)), TypeError, "items of 8 bytes, of the kind .*: use an array of uint8 or uint32"),
    (lambda m: m.load(np.ones(2, np.float32)), TypeError, 'of the kind "f": use an array of uint8 or uint32'),
    (lambda m: m.load(np.ones(2, ">u4")), TypeError, 'of the kind ">I": use an array of uint8 or uint32'),
    (lambda m: m.load(np.uint8(3)), TypeError, "use an array of uint8 or uint32"),
    (lambda m: m.load({1: 2}), TypeError, "program must be bytes or a sequence of 32-bit words, not dict"),
    (lambda m: m.load(range(10**12)), ValueError, "do not fit: memory ends at 0x10000"),
    (lambda m: m.load(bytes(65537)), ValueError, "do not fit: memory ends at 0x10000; use a larger memory"),
    (lambda m: m.load(b"1", 2**64 - 1), ValueError, "do not fit"),
    (lambda m: m.load(b"1", 2**64), OverflowError, "address must be less than 2\\*\\*64"),
    (lambda m: m.load(b"1", -1), ValueError, "address must not be negative"),
    (lambda m: m.load(b"1", 1.0), TypeError, "address must be a whole number, not float"),
    (lambda m: m.set_entry(2), ValueError, "0x2 is not an instruction address: it must be a multiple of 4"),
    (lambda m: m.run(-1), ValueError, "max_cycles must not be negative"),
    (lambda m: m.run("all"), TypeError, "max_cycles must be a whole number, not str"),
    (lambda m: m.run(2**64), OverflowError, "max_cycles must be less than"),
    (lambda m: m.run(progress=3), TypeError, "progress"),
    (lambda m: m.run_batches(0), ValueError, "a batch needs at least one instruction"),
    (lambda m: m.run_batches(1, callback=5), TypeError, "callback must be callable, not int"),
    (lambda m: m.run_batches(1, 1, timeout=-1), ValueError, "timeout must be a number of seconds"),
    (lambda m: m.run_batches(1, 1, timeout=float("nan")), ValueError, "timeout must be a number of seconds"),
    (lambda m: m.wait(), RuntimeError, "no run was started"),
    (lambda m: m.cancel(), RuntimeError, "no run was started"),
    (lambda m: m.get_register(31), ValueError, "there is no register 31: numbers go from 0 to 30"),
    (lambda m: m.get_register(-1), ValueError, "there is no register -1"),
    (lambda m: m.get_register("x31"), ValueError, 'there is no register "x31": use x0 to x30'),
    (lambda m: m.get_register(None), TypeError, "a register that is not named must be a whole number"),
    (lambda m: m.get_register(0, 2), IndexError, "lane 2 does not exist: the machine has 2"),
    (lambda m: m.get_register(0, -1), IndexError, "lane -1 does not exist: lanes are numbered from 0"),
    (lambda m: m.get_register(0, "0"), TypeError, "lane must be a whole number, not str"),
    (lambda m: m.get_register(0, 2**70), IndexError, "does not exist"),
    (lambda m: m.set_register(0, 2**64), OverflowError, "must fit in 64 bits, with or without a sign"),
    (lambda m: m.set_register(0, -(2**63) - 1), OverflowError, "must fit in 64 bits"),
    (lambda m: m.set_register("w0", 2**32), OverflowError, "the value of w0 must fit in 32 bits"),
    (lambda m: m.set_register("w0", -(2**31) - 1), OverflowError, "the value of w0 must fit in 32 bits"),
    (lambda m: m.set_register(0, 1.5), TypeError, "the value of a register must be a whole number, not float"),
    (lambda m: m.set_register("nzcv", 15), ValueError, "nzcv has its flags in bits 31 to 28"),
    (lambda m: setattr(m, "nzcv", 2**40), ValueError, "nzcv has its flags in bits 31 to 28"),
    (lambda m: m.set_register("pc", 3), ValueError, "0x3 is not an instruction address"),
    (lambda m: setattr(m, "pc", [0, 2]), ValueError, "0x2 is not an instruction address"),
    (lambda m: setattr(m, "pc", [0, 4, 8]), ValueError, r"pc of shape \(3,\) cannot be broadcast to \(2,\)"),
    (lambda m: setattr(m, "lanes", 3), AttributeError, "lanes"),
    (lambda m: m.read_memory(0, 65537), ValueError, "do not fit"),
    (lambda m: m.read_memory(0, 2**63), ValueError, "do not fit"),
    (lambda m: m.read_memory(2**64 - 1, 2), ValueError, "do not fit"),
    (lambda m: m.read_memory(0, -1), ValueError, "length must not be negative"),
    (lambda m: m.read_memory(0, 1, 9), IndexError, "lane 9 does not exist"),
    (lambda m: m.write_memory(0, "text"), TypeError, "data must be bytes, a bytearray or an array, not str"),
    (lambda m: m.write_memory(0, 5), TypeError, "data must be bytes, a bytearray or an array, not int"),
    (lambda m: m.write_memory(65536, b"1"), ValueError, "do not fit"),
    (lambda m: m.read_lanes(0, 65537), ValueError, "do not fit"),
    (lambda m: m.read_lanes(0, -1), ValueError, "length must not be negative"),
    (lambda m: m.write_lanes(65535, [b"12", b"34"]), ValueError, "2 bytes at 0xffff do not fit"),
    (lambda m: m.write_lanes(0, [b"1"]), ValueError, "one for each of 2 lanes"),
    (lambda m: m.write_lanes(0, [b"1", b"23"]), ValueError, "one length, not 1 to 2 bytes"),
    (lambda m: m.write_lanes(0, [b"1", 2]), TypeError, "nothing but bytes"),
    (lambda m: m.write_lanes(0, b"12"), TypeError, "a sequence of bytes, not bytes"),
    (lambda m: m.write_lanes(0, 5), TypeError, "a sequence of bytes, not int"),
    (lambda m: m.write_lanes(0, np.array(["a", "b"])), TypeError, "array of numbers"),
    (lambda m: m.write_lanes(0, np.uint8(1)), TypeError, "a sequence of bytes, not uint8"),
    (lambda m: m.write_lanes(0, np.zeros((3, 2))), ValueError, r"2 lanes, not of shape \(3, 2\)"),
    (
        lambda m: kvrm.Machine("cpu", lanes=2, model="shared").write_lanes(0, [b"1", b"2"]),
        ValueError,
        "all lanes have one memory",
    ),
    (lambda m: m.memory(2), IndexError, "lane 2 does not exist"),
    (lambda m: m.add_breakpoint(1), ValueError, "0x1 is not an instruction address"),
    (lambda m: m.reset(2), IndexError, "lane 2 does not exist"),
    (lambda m: kvrm.Machine("gpu"), ValueError, 'there is no engine "gpu": choose one of auto, cpu'),
    (lambda m: kvrm.Machine(5), TypeError, "engine"),
    (lambda m: kvrm.Machine(model="own"), ValueError, 'there is no memory model "own": choose one of private'),
    (lambda m: kvrm.Machine(lanes=0), ValueError, "a machine needs at least one lane"),
    (lambda m: kvrm.Machine(lanes=-1), ValueError, "lanes must not be negative"),
    (lambda m: kvrm.Machine(lanes=2**24 + 1), ValueError, "lanes are too many: the limit is 16,777,216"),
    (lambda m: kvrm.Machine(memory=100), ValueError, "a memory of 100 bytes cannot be built: use a multiple"),
    (lambda m: kvrm.Machine(memory="lots"), ValueError, '"lots" is not a size: write bytes'),
    (lambda m: kvrm.Machine(memory=2**41), ValueError, "cannot be built"),
    (lambda m: kvrm.Machine("cpu", lanes=100_000, memory="1T"), MemoryError, "use fewer lanes"),
    (lambda m: kvrm.Machine("cpu", device=0), ValueError, "the cpu engine has no devices to choose from"),
    (lambda m: kvrm.Machine("cuda", device=1000), kvrm.KvrmError, "CUDA"),
    (lambda m: kvrm.Machine("wgpu", device=1000), kvrm.KvrmError, "no GPU 1000 for wgpu"),
    (lambda m: kvrm.Machine(device="a"), TypeError, "device must be a whole number, not str"),
    (lambda m: kvrm.Machine(threads=0), ValueError, "threads must be from 1 to 1024"),
    (lambda m: kvrm.Machine(code_memory="much"), ValueError, '"much" is not a size'),
    (lambda m: kvrm.Machine(code_memory=1000), ValueError, "1000 bytes for translated code are too few"),
    (lambda m: kvrm.Machine(code_memory=[]), TypeError, "code_memory must be a whole number, not list"),
    (lambda m: kvrm.assemble(5), TypeError, "text must be a string, not int"),
    (lambda m: kvrm.assemble("nonsense"), ValueError, "line 1, column 1"),
    (lambda m: kvrm.assemble("nop", -1), ValueError, "address must not be negative"),
    (lambda m: kvrm.disassemble("nop"), TypeError, "code must be bytes or a sequence of 32-bit words"),
]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_bad_calls(number: int) -> None:
    call, error, message = CASES[number]
    m = kvrm.Machine("cpu", lanes=2, memory="64K")
    with pytest.raises(error, match=message):
        call(m)
    # The machine is as good as before.
    m.load([0x91000400, 0xD4400000])
    assert m.run(10).cycles == 2
