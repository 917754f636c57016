"""What calling kvrm from Python costs.

Usage: python benchmarks/python_overheads.py [--engine NAME] [--lanes N] [--json]
"""

from __future__ import annotations

import argparse
import json
import time
import timeit
from collections.abc import Callable

import kvrm
import numpy as np

HALT = [0xD4400000]
FOREVER = [0x14000000]


def microseconds(call: Callable[[], object], seconds: float = 0.3) -> float:
    """The best of five tries of a call, each of many."""
    timer = timeit.Timer(call)
    count, _ = timer.autorange()
    count = max(1, int(count * seconds / 5 / 0.2))
    return min(timer.repeat(5, count)) / count * 1e6


def machine(engine: str, code: list[int]) -> kvrm.Machine:
    m = kvrm.Machine(engine, memory="4K")
    m.load(code)
    return m


def cancel_milliseconds(engine: str) -> float:
    """The longest of ten cancellations."""
    m = machine(engine, FOREVER)
    times = []
    for _ in range(10):
        m.start()
        while m.poll().cycles == 0:
            pass
        start = time.perf_counter()
        m.cancel()
        times.append(time.perf_counter() - start)
    return max(times) * 1e3


def polls_that_saw_progress(engine: str) -> int:
    """How many of a hundred looks within a second found more instructions than the one before."""
    m = machine(engine, FOREVER)
    m.start(mega=True)
    seen = []
    for _ in range(100):
        seen.append(m.poll().cycles)
        time.sleep(0.01)
    m.cancel()
    return sum(later > earlier for earlier, later in zip(seen, seen[1:]))


def bulk(engine: str, lanes: int) -> dict[str, float]:
    """Registers of very many lanes beside a copy of as many bytes."""
    m = kvrm.Machine(engine, lanes=lanes, memory="4K", model="shared")
    registers = m.registers
    copy = microseconds(registers.copy, 1.0)
    read = microseconds(lambda: m.registers, 1.0)

    def write() -> None:
        m.registers = registers

    size = registers.nbytes
    return {
        f"copying an array of {size >> 20} MiB, GB/s": size / copy / 1e3,
        f"registers of {lanes} lanes, GB/s": size / read / 1e3,
        f"setting registers of {lanes} lanes, GB/s": size / microseconds(write, 1.0) / 1e3,
    }


def inputs(engine: str, lanes: int = 16_384) -> dict[str, float]:
    """64 bytes of each of many lanes with private memory, all at once and one by one."""
    m = kvrm.Machine(engine, lanes=lanes, memory="64K")
    rows = np.random.default_rng(1).integers(0, 256, (lanes, 64), np.uint8)
    m.write_lanes(0x8000, rows)
    each = min(256, lanes)
    one_by_one = microseconds(lambda: [m.write_memory(0x8000, row, lane) for lane, row in enumerate(rows[:each])])
    return {
        f"write_lanes of 64 bytes to {lanes} lanes, ms": microseconds(lambda: m.write_lanes(0x8000, rows)) / 1e3,
        f"read_lanes of 64 bytes from {lanes} lanes, ms": microseconds(lambda: m.read_lanes(0x8000, 64)) / 1e3,
        "the same by write_memory, lane by lane, ms": one_by_one * lanes / each / 1e3,
    }


def measure(engine: str, lanes: int) -> dict[str, float]:
    halted, running = machine(engine, HALT), machine(engine, FOREVER)

    def start_and_wait() -> None:
        halted.start()
        halted.wait()

    results = {
        "run() of a program that halts at once, us": microseconds(halted.run),
        "run(0), us": microseconds(lambda: halted.run(0)),
        "start() and wait(), us": microseconds(start_and_wait),
        "get_register(0), us": microseconds(lambda: halted.get_register(0)),
        "registers of one lane, us": microseconds(lambda: halted.registers),
        "read_memory(0, 64), us": microseconds(lambda: halted.read_memory(0, 64)),
    }
    if halted.is_zero_copy:
        results["memory(), us"] = microseconds(halted.memory)
    running.start()
    results["poll(), us"] = microseconds(running.poll)
    running.cancel()
    results["cancel(), ms at most"] = cancel_milliseconds(engine)
    results["looks at a single launch that saw progress, of 99"] = polls_that_saw_progress(engine)
    results.update(bulk(engine, lanes))
    results.update(inputs(engine))
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--engine", default="cpu", help="cpu, cuda, wgpu or eval (cpu)")
    parser.add_argument("--lanes", type=int, default=1_000_000, help="lanes whose registers are read (1000000)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    results = measure(options.engine, options.lanes)
    if options.json:
        print(json.dumps({"kvrm": kvrm.__version__, "engine": options.engine, "numpy": np.__version__, "results": results}, indent=2))
        return
    for name, value in results.items():
        print(f"{name:50} {value:10.2f}")


if __name__ == "__main__":
    main()
