"""Machines: programs, registers, memory, stops."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import subprocess
import sys
import textwrap
import weakref
from typing import Any, Callable

import kvrm
import numpy as np
import pytest

HALT = 0xD4400000
LOOP = 0x14000000
ADD = 0x91000400  # add x0, x0, #1
STORE = 0xF9000020  # str x0, [x1]
MODELS = ["private", "shared", "read-only", "double-buffered"]


def test_facts(engine: str) -> None:
    m = kvrm.Machine(engine, lanes=3, memory="64K", model="shared")
    assert (m.engine, m.lanes, m.memory_size, m.model) == (engine, 3, 65536, "shared")
    assert repr(m) == f'<kvrm.Machine on {engine}: lanes=3, memory=65536, model="shared">'
    assert kvrm.Machine().engine == "cpu"
    assert kvrm.Machine(memory=8192).memory_size == 8192


def test_programs(engine: str) -> None:
    words = [ADD, HALT]
    code = b"".join(word.to_bytes(4, "little") for word in words)
    array = np.array(words, dtype=np.uint32)
    programs = [
        words,
        tuple(words),
        iter(words),
        code,
        bytearray(code),
        memoryview(code),
        array,
        np.frombuffer(code, np.uint8),
    ]
    for program in programs:
        m = kvrm.Machine(engine, memory="64K")
        m.load(program, 0x1000)  # type: ignore[arg-type]
        assert m.read_memory(0x1000, 8) == code
        assert m.get_register("pc") == 0
        m.set_entry(0x1000)
        assert m.run(10).cycles == 1
        assert m.get_register("x0") == 1


def test_assembled_program(engine: str) -> None:
    m = kvrm.Machine(engine, lanes=2, memory="64K")
    m.load(kvrm.assemble("again: add x1, x1, x0\n subs x0, x0, #1\n b.ne again\n svc #7\n hlt #3"))
    m.set_register("x0", 4, 0)
    m.set_register("x0", 10, 1)
    result = m.run()
    assert result.stop.reason == "SYSCALL" and result.stop.immediate == 7
    assert m.registers[:, 1].tolist() == [10, 55]
    assert result.cycles_per_lane.tolist() == [13, 31]
    assert m.run().stop.immediate == 3
    assert m.counts.tolist() == [13, 31]


def test_registers(engine: str) -> None:
    m = kvrm.Machine(engine, lanes=3, memory="64K")
    assert m.registers.shape == (3, 31) and m.registers.dtype == np.uint64
    m.registers = np.arange(31)
    assert m.registers[2].tolist() == list(range(31))
    for values in ([[-1], [2], [2**63]], np.array([[-1], [2], [-(2**63)]])):
        m.registers = values
        assert m.registers[:, 30].tolist() == [2**64 - 1, 2, 2**63]
    own = m.registers.copy()
    own[:] = 0
    assert m.get_register(30, 1) == 2
    for name in ["sp", "pc", "tpidr_el0"]:
        setattr(m, name, [4, 8, 2**64 - 4])
        values = getattr(m, name)
        assert values.dtype == np.uint64 and values.tolist() == [4, 8, 2**64 - 4]
        assert m.get_register(name, 2) == 2**64 - 4
    m.nzcv = [0b1000 << 28, 0b0110 << 28, 0]
    assert m.nzcv.dtype == np.uint32 and m.nzcv.tolist() == [8 << 28, 6 << 28, 0]
    assert m.flags.tolist() == [[1, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 0]]
    m.set_register("x3", -1)
    m.set_register(4, 2**64 - 1, 2)
    m.set_register("w5", 7, lane=np.int64(1))
    assert m.get_register("x3", 1) == 2**64 - 1 == m.get_register(4, 2)
    assert m.get_register(5, 1) == 7 and m.get_register("w3") == 2**32 - 1


def test_items_of_registers(engine: str) -> None:
    m = kvrm.Machine(engine, lanes=4, memory="64K")
    m.registers[0, 0] = 5
    m.registers[1] = -1
    m.registers[:, 2] += 7
    m.registers[2][3] = 2**63
    m.registers[::-1, ::-1][0, 30] = 9
    m.registers[[0, 3], [5, 6]] ^= np.uint64(3)
    m.registers.T[7, 1] = 11
    assert m.get_register(0, 0) == 5 and m.get_register(30, 1) == 2**64 - 1
    assert m.registers[:, 2].tolist() == [7, 6, 7, 7]
    assert (m.get_register(3, 2), m.get_register(0, 3), m.get_register(7, 1)) == (2**63, 9, 11)
    assert (m.get_register(5, 0), m.get_register(6, 3)) == (3, 3)
    # What was not assigned stays as it is now, and not as it was when the array was read.
    registers = m.registers
    m.set_register("x1", 100)
    registers[0, 0] = 6
    assert (m.get_register(0), m.get_register(1), int(registers[0, 0])) == (6, 100, 6)
    registers[m.registers > 50] = 50
    assert int(m.registers.max()) == 50
    for name in ["sp", "pc", "tpidr_el0", "nzcv"]:
        getattr(m, name)[1:3] = 0x40000000
        assert getattr(m, name).tolist() == [0, 0x40000000, 0x40000000, 0]
    # What cannot be set is not.
    for name, value, error in [("pc", 2, ValueError), ("nzcv", 1, ValueError), ("sp", 2**64, OverflowError)]:
        with pytest.raises(error):
            getattr(m, name)[1] = value
        assert m.get_register(name, 1) == 0x40000000
    with pytest.raises(TypeError, match="whole numbers"):
        m.registers[0, 0] = 1.5
    with pytest.raises(ValueError, match="assign to nzcv"):
        m.flags[0, 0] = True


def test_nothing_is_lost_past_the_machine() -> None:
    m = kvrm.Machine("cpu", lanes=2)
    lost: list[Callable[[], object]] = [
        lambda: m.registers.fill(1),
        lambda: m.registers.sort(),
        lambda: np.copyto(m.registers, 1),
        lambda: np.asarray(m.registers).put(0, 1),
    ]
    for change in lost:
        with pytest.raises(ValueError, match="read-only"):
            change()
    # Copies and results are ordinary arrays.
    for array in [m.registers.copy(), m.registers + 1, pickle.loads(pickle.dumps(m.registers))]:
        array.fill(7)
        array[0, 0] = 8
    np.from_dlpack(m.registers)[0, 0] = 1
    assert not m.registers.any()
    assert type(m.registers * 2) is np.ndarray and repr(m.sp) == "array([0, 0], dtype=uint64)"
    with kvrm.Machine("cpu") as other:
        other.load([0x14000000])
        other.start()
        registers = m.registers
        with pytest.raises(RuntimeError, match="is running"):
            other.registers[0, 0] = 1
        registers[0, 0] = 1
    assert m.get_register(0) == 1


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (1.5, TypeError, "registers must be whole numbers, not float64"),
        (np.ones(31), TypeError, "registers must be whole numbers, not float64"),
        ([-1, 2**64], OverflowError, "registers must fit in 64 bits"),
        ("a", TypeError, "registers must be whole numbers"),
        ([1, 2], ValueError, r"registers of shape \(2,\) cannot be broadcast to \(4, 31\)"),
        (2**64, OverflowError, "registers must fit in 64 bits"),
        (None, TypeError, "registers must be whole numbers, not object"),
    ],
)
def test_bad_arrays(value: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        kvrm.Machine(lanes=4).registers = value


def test_memory(engine: str) -> None:
    m = kvrm.Machine(engine, lanes=2, memory="64K")
    m.write_memory(0x2000, b"all")
    m.write_memory(0x2001, np.array([1], np.uint8), lane=1)
    assert (m.read_memory(0x2000, 3), m.read_memory(0x2000, 3, 1)) == (b"all", b"a\x01l")
    assert m.read_memory(65536, 0) == b""
    m.reset(1)
    assert m.read_memory(0x2000, 3, 1) == bytes(3) and m.read_memory(0x2000, 3) == b"all"
    m.load(b"image", 0x2000)
    m.reset()
    assert m.read_memory(0x2000, 5, 1) == b"image"


def test_memory_of_all_lanes(engine: str) -> None:
    m = kvrm.Machine(engine, lanes=70, memory="64K")
    rows = np.arange(70 * 24, dtype=np.uint8).reshape(70, 24)
    m.write_lanes(0x1FF3, rows)
    assert np.array_equal(m.read_lanes(0x1FF3, 24), rows)
    assert m.read_memory(0x1FF3, 24, lane=69) == rows[69].tobytes()
    m.write_memory(0x1FF4, b"!", lane=5)
    seen = m.read_lanes(0x1FF4, 1)
    assert seen.shape == (70, 1) and seen.dtype == np.uint8 and chr(seen[5, 0]) == "!"
    # Numbers of any size, rows that are not contiguous, and bytes.
    m.write_lanes(0x3000, np.arange(70) * 3)
    assert np.array_equal(m.read_lanes(0x3000, 8).view(np.int64)[:, 0], np.arange(70) * 3)
    m.write_lanes(0x3000, rows[:, ::2])
    assert np.array_equal(m.read_lanes(0x3000, 12), rows[:, ::2])
    m.write_lanes(0x3000, (bytes([lane, 1]) for lane in range(70)))
    assert m.read_lanes(0x3000, 2).tolist() == [[lane, 1] for lane in range(70)]
    m.write_lanes(0x3000, [b""] * 70)
    assert m.read_lanes(0, 0).shape == (70, 0)
    m.reset()
    assert not m.read_lanes(0x1FF3, 24).any()


def test_view_of_memory(engine: str) -> None:
    m = kvrm.Machine(engine, lanes=2, memory="64K")
    if not m.is_zero_copy:
        with pytest.raises(BufferError, match="use read_memory"):
            m.memory()
        return
    m.load([STORE, HALT])
    view = m.memory(1)
    assert view.shape == (65536,) and view.dtype == np.uint8 and not view.flags.writeable
    m.set_register(0, 0x0102)
    m.set_register(1, 0x3000)
    m.run()
    assert view[0x3000:0x3002].tolist() == [2, 1]
    # It outlives the machine.
    m.close()
    del m
    gc.collect()
    assert view[0x3000] == 2 and bytes(view[:4]) == STORE.to_bytes(4, "little")


def test_stops(engine: str) -> None:
    m = kvrm.Machine(engine, lanes=6, memory="64K")
    code = [HALT | 5 << 5, 0xD4000021, 0xD4200040, LOOP, 0xFFFFFFFF, 0xF9400020]
    m.load(code)
    m.pc = np.arange(6) * 4
    m.set_register(1, 65536 * 4)
    assert m.stop_codes.tolist() == [255] * 6 and m.stops[0].reason is None
    result = m.run(10)
    reasons = ["HALT", "SYSCALL", "BREAKPOINT", "MAX_CYCLES", "UNDEFINED", "FAULT"]
    assert [stop.reason for stop in result.stops] == reasons
    assert [kvrm.StopReason[reason] for reason in reasons] == m.stop_codes.tolist()
    assert [stop.code for stop in m.stops] == m.stop_codes.tolist()
    halt, syscall, brk, limit, undefined, fault = result.stops
    assert (halt.immediate, syscall.immediate, brk.immediate, limit.immediate) == (5, 1, 2, None)
    assert (undefined.word, undefined.pc, undefined.address) == (0xFFFFFFFF, 16, None)
    assert (fault.kind, fault.address, fault.pc) == ("read", 65536 * 4, 20)
    assert str(fault) == "FAULT: read at 0x40000 by the instruction at 0x14"
    assert str(undefined) == "UNDEFINED: 0xffffffff at 0x10 is not an instruction"
    assert result.pcs.tolist() == [0, 8, 8, 12, 16, 20] and result.stops[-1] == fault
    assert result.stops[1:3] == [syscall, brk] and len(result.stops) == 6 and halt in result.stops
    assert result.stop_codes.tolist() == m.stop_codes.tolist()
    assert (result.stops.index(fault), result.stops.count(halt), result.stops.count("HALT")) == (5, 1, 0)
    with pytest.raises(ValueError, match="no lane has stopped like this"):
        result.stops.index("HALT")
    with pytest.raises(IndexError, match="lane 6 does not exist"):
        result.stops[6]
    assert m.get_stop(5) == fault and hash(m.stops) == hash(result.stops)
    assert "6 lanes (1 MAX_CYCLES, 1 HALT" in repr(result) and "<table>" in result._repr_html_()


def test_breakpoints(engine: str) -> None:
    m = kvrm.Machine(engine, memory="64K")
    m.load([ADD, ADD, HALT])
    m.add_breakpoint(4)
    assert m.run().stop.reason == "BREAKPOINT" and m.stops[0].immediate is None
    assert m.remove_breakpoint(4) is True and m.remove_breakpoint(4) is False
    assert m.run().stop.reason == "HALT"


@pytest.mark.parametrize("model", MODELS)
def test_models(engine: str, model: str) -> None:
    m = kvrm.Machine(engine, lanes=2, memory="64K", model=model)
    m.load([STORE, HALT])
    m.set_register(0, 9)
    m.set_register(1, 0x3000, 0)
    m.set_register(1, 0x10000 if model == "double-buffered" else 0x3008, 1)
    result = m.run()
    if model == "read-only":
        assert [(stop.kind, stop.address) for stop in result.stops] == [
            ("write", 0x3000),
            ("write", 0x3008),
        ]
        assert result.committed and m.read_memory(0x3000, 16) == bytes(16)
    elif model == "double-buffered":
        assert not result.committed and "rolled back" in repr(result)
        assert result.stops[1].reason == "FAULT" and result.pcs.tolist() == [4, 0]
        assert m.pc.tolist() == [0, 0] and m.read_memory(0x3000, 8) == bytes(8)
    else:
        assert result.committed and m.read_memory(0x3000, 1) == b"\x09"
        assert m.read_memory(0x3008, 1) == (b"\x09" if model == "shared" else b"\0")


def test_closing(engine: str) -> None:
    with kvrm.Machine(engine, memory="64K") as m:
        assert m.run(0).cycles == 0
    m.close()
    assert "closed" in repr(m) and m.lanes == 1
    for use in [m.run, m.start, m.wait, m.cancel, m.poll, m.reset, lambda: m.registers]:
        with pytest.raises(RuntimeError, match="the machine is closed"):
            use()  # type: ignore[operator]


def test_subclasses_and_weak_references() -> None:
    class Mine(kvrm.Machine):
        def double(self) -> int:
            return 2 * self.lanes

    m = Mine(lanes=3)
    assert m.double() == 6 and isinstance(m, kvrm.Machine)
    reference = weakref.ref(m)
    del m
    gc.collect()
    assert reference() is None


def test_devices() -> None:
    devices = kvrm.devices()
    assert {device.engine for device in devices} <= {"cpu", "cuda", "wgpu", "eval"}
    for device in devices:
        assert device.usable == (device.why_not is None) and device.name in repr(device)


def test_disassembly() -> None:
    code = kvrm.assemble("b.ne .+8\n add x0, x0, #1\n .word 0xffffffff", 0x1000)
    lines = kvrm.disassemble(code + b"\1", 0x1000)
    assert [line.address for line in lines] == [0x1000, 0x1004, 0x1008]
    assert lines[1].text == "add x0, x0, #1" and lines[1].word == ADD
    assert lines[2].text.startswith(".inst") and lines == kvrm.disassemble(code, 0x1000)


def test_dlpack(engine: str) -> None:
    m = kvrm.Machine(engine, lanes=3)
    m.registers = 7
    m.pc = [0, 4, 8]
    assert np.from_dlpack(m.registers).shape == (3, 31)
    assert np.from_dlpack(m.pc).tolist() == [0, 4, 8]
    assert np.from_dlpack(m.read_lanes(0, 4)).tolist() == [[0] * 4] * 3


@pytest.mark.parametrize(
    "code", ["hlt #7", "svc #9", "brk #1", "b .", "udf #3", "ldr x0, [x1, #-8]!", "mov x0, #1; br x0", "nop"]
)
def test_stops_are_pickled(code: str) -> None:
    m = kvrm.Machine("cpu")
    m.load(kvrm.assemble(f"{code}; hlt #0"))
    if code == "nop":
        m.add_breakpoint(4)
    stop = m.run(100).stop
    assert pickle.loads(pickle.dumps(stop)) == copy.deepcopy(stop) == stop
    assert str(pickle.loads(pickle.dumps(stop))) == str(stop)
    idle = kvrm.Machine("cpu").get_stop()
    assert pickle.loads(pickle.dumps(idle)) == idle


@pytest.mark.parametrize("kind", ["pages", "code"])
def test_stops_for_lack_of_room(kind: str) -> None:
    # Only a full device makes them, and pickle.
    make: Any = kvrm.Machine("cpu").get_stop().__reduce__()[0]
    stop: kvrm.Stop = make(int(kvrm.StopReason.OUT_OF_MEMORY), None, kind, 0x40)
    assert (stop.reason, stop.code, stop.kind, stop.pc) == ("OUT_OF_MEMORY", 6, kind, 0x40)
    assert (stop.address, stop.word, stop.immediate) == (None, None, None)
    assert str(stop).startswith("OUT_OF_MEMORY: at 0x40, no room on the device for")
    assert pickle.loads(pickle.dumps(stop)) == stop


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.parametrize("model", ["private", "shared"])
def test_forks(engine: str, model: str) -> None:
    """A child can do nothing with its parent's machine, and so nothing to it."""
    program = textwrap.dedent(f"""
        import os, kvrm
        m = kvrm.Machine({engine!r}, lanes=2, memory="64K", model={model!r})
        m.load([0xd4400000])
        m.start()
        child = os.fork()
        if child == 0:
            uses = [
                lambda: m.run(), lambda: m.load([0, 0]), lambda: m.write_memory(0, bytes(8)), lambda: m.registers,
                lambda: m.set_register(0, 1), lambda: m.reset(), lambda: m.wait(), lambda: m.cancel(), lambda: m.poll(),
            ]
            told = 0
            for use in uses:
                try:
                    use()
                except RuntimeError as error:
                    told += "before this process was forked" in str(error)
            # A machine of its own is another thing.
            own = kvrm.Machine("cpu", memory="64K")
            own.load([0xd4400000])
            os.write(1, f"{{told == len(uses)}} {{own.run().stop.reason}} ".encode())
            m.close()
            del m
            # NVIDIA's driver for Vulkan can hang in exit().
            os._exit(0) if {engine!r} == "wgpu" else exit()
        os.waitpid(child, 0)
        m.wait()
        print(m.run().stop.reason, m.read_memory(0, 8).hex(), m.get_register(0))
    """)
    process = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert process.stdout == "True HALT HALT 000040d400000000 0\n", process.stderr


def test_all_zero_words() -> None:
    m = kvrm.Machine("cpu")
    m.load([0xD503201F])  # nop
    stop = m.run().stop
    assert (stop.reason, stop.code, stop.immediate, stop.word, stop.pc) == ("HALT", 1, None, 0, 4)
    assert str(stop) == "HALT: the word at 0x4 is zero"
    assert pickle.loads(pickle.dumps(stop)) == stop
    m.reset()
    m.load([0xD4400000])
    halt = m.run().stop
    assert (halt.immediate, halt.word) == (0, None) and halt != stop


def test_sizes_of_memory() -> None:
    sizes = {"4M": 4 << 20, "4MiB": 4 << 20, "4MB": 4_001_792, "64k": 65536}
    assert {text: kvrm.Machine("cpu", memory=text).memory_size for text in sizes} == sizes
