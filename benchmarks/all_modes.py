#!/usr/bin/env python3
"""Measures every way to run a machine on every engine of this computer, beside what the prototype reached.

  by mode     one machine: V1 (read-only memory), V2 (double-buffered), MetalCPU, Continuous, Mega, Async;
              a tight loop, and one that stores in every turn
  by lanes    ParallelMetalCPU: lanes that share one memory, each storing into a word of its own
  by length   how long a run of so many instructions takes from Python, start to end

Every result is checked. The prototype's figures are from its documents.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import kvrm
import numpy as np
import prototype
import svg
from kvrm_metal import AsyncMetalCPU, ContinuousMetalCPU, MetalCPU, ParallelMetalCPU
from kvrm_metal._device import parse
from mlx_kernel import MLXKernelCPU, MLXKernelCPUv2

#: x0 counts; x2 is where it is stored. Endless: limits end the runs.
LOOPS = {
    "tight": "loop: add x0, x0, #1; b loop",
    "store": "loop: add x0, x0, #1; str x0, [x2]; b loop",
}
SCRATCH = 0x10000
#: Bytes between the words of neighbouring lanes.
APART = 64
LANES = (1, 2, 4, 8, 16, 32, 64, 128, 1024, 16_384, 131_072)
FIRST_RUN = 20_000


@dataclass
class Target:
    """An engine, and what it is here."""

    device: str
    name: str


def targets(wanted: list[str]) -> list[Target]:
    """The devices to measure: those named, or each engine's first that is usable."""
    present = kvrm.devices()
    if wanted:
        names = {(device.engine, device.index): device.name for device in present}
        keys = {text: parse(text) for text in wanted}
        return [Target(text, names.get((engine, index or 0), text)) for text, (engine, index) in keys.items()]
    found: dict[str, Target] = {}
    for device in present:
        if device.usable and device.engine != "eval":
            found.setdefault(device.engine, Target(device.engine, device.name))
    return list(found.values())


# One machine.

def blocking(kind):
    return lambda device: kind(device=device), lambda cpu, cycles: cpu.execute(cycles)


def in_batches(cpu, cycles):
    cpu.cycles_per_batch = max(1, cycles // 10)
    return cpu.execute_continuous(max_batches=10)


def in_background(cpu, cycles):
    cpu.start(cycles)
    return cpu.wait()


#: By name: how to make a machine, and how to run it.
MODES = {
    "V1": blocking(MLXKernelCPU),
    "V2": blocking(MLXKernelCPUv2),
    "MetalCPU": blocking(MetalCPU),
    "Continuous": (lambda device: ContinuousMetalCPU(device=device), in_batches),
    "Mega": (lambda device: ContinuousMetalCPU(device=device), lambda cpu, cycles: cpu.execute_mega(cycles)),
    "Async": (lambda device: AsyncMetalCPU(device=device), in_background),
}


def measure_mode(mode: str, loop: str, device: str, seconds: float) -> float | None:
    """Instructions per second; ``None`` where the mode cannot run the loop."""
    if mode == "V1" and loop == "store":
        return None
    make, run = MODES[mode]
    cpu = make(device)
    cpu.load_program(kvrm.assemble(LOOPS[loop]))
    cpu.set_register(2, SCRATCH)
    cycles_run = 0

    def once(cycles):
        nonlocal cycles_run
        result = run(cpu, cycles)
        cycles_run += result.cycles
        return result

    result = until_long_enough(once, seconds)
    check(cpu.get_register(0), cycles_run, loop)
    if loop == "store":
        check(cpu.read_memory_64(SCRATCH), cycles_run - 1, loop)
    return result.ips


def until_long_enough(run, seconds: float):
    """Runs with more and more instructions until one run takes a third of the time. Of that and two more like
    it, the fastest: on a computer that does other things too, slower ones tell about those."""
    run(FIRST_RUN)  # compiles
    cycles = FIRST_RUN
    seconds /= 3
    while True:
        result = run(cycles)
        if result.elapsed_seconds >= seconds / 2:
            return max(result, run(cycles), run(cycles), key=lambda one: one.ips)
        growth = 0.75 * seconds / max(result.elapsed_seconds, 1e-4)
        cycles = int(cycles * min(growth, 100)) + 1


def check(counted: int, cycles: int, loop: str) -> None:
    """The count after so many instructions of the loop."""
    length = 2 if loop == "tight" else 3
    wanted = (cycles + length - 1) // length
    if counted != wanted:
        raise SystemExit(f"wrong result: {counted} turns of the {loop} loop after {cycles} instructions, "
                         f"not {wanted}")


# Many lanes.

def measure_lanes(lanes: int, loop: str, device: str, seconds: float) -> float | None:
    """Instructions per second, all lanes together; ``None`` where the device has no room or no shared memory."""
    memory = max(4 << 20, SCRATCH + APART * lanes + 4095 & ~4095)
    try:
        cpu = ParallelMetalCPU(num_lanes=lanes, memory_size=memory, device=device)
    except (kvrm.KvrmError, MemoryError) as error:
        print(f"  {lanes:,} lanes: {error}", file=sys.stderr)
        return None
    cpu.load_program(kvrm.assemble(LOOPS[loop]))
    registers = np.zeros((lanes, 31), dtype=np.uint64)
    registers[:, 2] = SCRATCH + APART * np.arange(lanes, dtype=np.uint64)
    cpu.machine.registers = registers
    cycles_run = 0

    def once(cycles):
        nonlocal cycles_run
        cycles_run += cycles
        return cpu.execute(cycles)

    result = until_long_enough(once, seconds)
    for lane in {0, lanes - 1}:
        check(cpu.get_register(0, lane), cycles_run, loop)
    return result.ips


# Lengths.

def measure_length(mode: str, cycles: int, device: str) -> float:
    """Seconds that a run takes from Python, the best of three; the kernel is compiled before."""
    make, run = MODES[mode]
    cpu = make(device)
    cpu.load_program(kvrm.assemble(LOOPS["tight"]))
    run(cpu, FIRST_RUN)
    times = []
    for _ in range(3):
        start = time.perf_counter()
        run(cpu, cycles)
        times.append(time.perf_counter() - start)
    return min(times)


def measure(target: Target, seconds: float, max_lanes: int) -> dict:
    """Everything on one device."""
    figures = {"device": target.device, "name": target.name, "modes": {}, "lanes": {}, "seconds": {}}
    for mode in MODES:
        figures["modes"][mode] = {
            loop: measure_mode(mode, loop, target.device, seconds) for loop in LOOPS
        }
        tell(target, mode, figures["modes"][mode])
    for lanes in (n for n in LANES if n <= max_lanes):
        ips = {loop: measure_lanes(lanes, loop, target.device, seconds) for loop in LOOPS}
        figures["lanes"][str(lanes)] = ips
        tell(target, f"{lanes:,} lanes", ips)
    for cycles in prototype.SECONDS:
        figures["seconds"][str(cycles)] = {
            mode: measure_length(mode, cycles, target.device) for mode in ("V1", "V2", "MetalCPU")
        }
    return figures


def tell(target: Target, what: str, ips: dict) -> None:
    shown = ", ".join(f"{loop} {short(value)}/s" for loop, value in ips.items())
    print(f"{target.device:8} {what:16} {shown}", file=sys.stderr)


# Tables and charts.

def short(number: float | None) -> str:
    """Three digits and a letter.

    >>> short(5_500_000), short(180_457_573), short(None)
    ('5.50 M', '180 M', '–')
    """
    if number is None:
        return "–"
    for size, letter in ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k"), (1, "")):
        if number >= size:
            value = number / size
            return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f}{letter}"
    return f"{number:.3f}"


def duration(seconds: float) -> str:
    """As people write it.

    >>> duration(0.0000231), duration(0.023), duration(5.8), duration(600)
    ('23.1 µs', '23.0 ms', '5.80 s', '600 s')
    """
    for size, unit in ((1, " s"), (1e-3, " ms"), (1e-6, " µs")):
        if seconds >= size:
            break
    value = seconds / size
    return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f}{unit}"


def table(head: list[str], rows: list[list[str]], markdown: bool) -> str:
    """Columns that line up, or a Markdown table."""
    if markdown:
        first, *others = (f"| {' | '.join(row)} |" for row in (head, *rows))
        return "\n".join([first, "|---|" + "---:|" * (len(head) - 1), *others])
    widths = [max(len(row[n]) for row in (head, *rows)) for n in range(len(head))]
    line = "  ".join
    return "\n".join(
        line([row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))])
        for row in (head, *rows)
    )


def report(figures: list[dict], markdown: bool) -> str:
    """The three tables."""
    first = "prototype"
    columns = [f"{one['device']}, {loop}" for one in figures for loop in LOOPS]
    modes = [
        [mode, *map(short, prototype.MODES[mode]), *(short(cell(one["modes"], mode, loop))
                                                     for one in figures for loop in LOOPS)]
        for mode in prototype.MODES
    ]
    lanes = sorted({int(n) for one in figures for n in one["lanes"]})
    by_lanes = [
        [f"{n:,}", short(prototype.LANES.get(n)), *(short(cell(one["lanes"], str(n), loop))
                                                    for one in figures for loop in LOOPS)]
        for n in lanes
    ]
    kinds = ("V1", "V2", "MetalCPU")
    before = {"PyTorch": "PyTorch, batch of 512", "V1": "V1", "V2": "V2"}
    lengths = [
        [f"{first}, {name}", *(duration(seconds[mode]) for seconds in prototype.SECONDS.values())]
        for name, mode in before.items()
    ]
    lengths += [
        [f"{one['device']}, {mode}", *(duration(one["seconds"][str(n)][mode]) for n in prototype.SECONDS)]
        for one in figures
        for mode in kinds
    ]
    tables = [
        ("One machine: instructions per second",
         table(["mode", f"{first}, tight", f"{first}, store", *columns], modes, markdown)),
        ("Many lanes: instructions per second, all together",
         table(["lanes", first, *columns], by_lanes, markdown)),
        ("Time of a run, by its number of instructions",
         table(["instructions:", *(f"{n:,}" for n in prototype.SECONDS)], lengths, markdown)),
    ]
    heading = "### {}\n\n{}" if markdown else "{}\n{}"
    who = "; ".join(f"{one['device']}: {one['name']}" for one in figures)
    intro = f"Prototype: {prototype.DEVICE}. {who}."
    return "\n\n".join([intro, *(heading.format(*one) for one in tables)])


def cell(values: dict, row: str, loop: str) -> float | None:
    return values.get(row, {}).get(loop)


def charts(figures: list[dict]) -> dict[str, str]:
    """File names and SVG: of the loop that stores, or where that cannot be, of the tight one."""
    before = {mode.partition(",")[0]: ips[1] or ips[0] for mode, ips in prototype.MODES.items()}
    modes = [svg.Series("prototype", before)]
    lanes = [svg.Series("prototype", prototype.LANES)]
    for one in figures:
        by_mode = {mode: ips["store"] or ips["tight"] for mode, ips in one["modes"].items()}
        modes.append(svg.Series(one["device"], by_mode))
        by_lanes = {int(n): ips["store"] for n, ips in one["lanes"].items() if ips["store"]}
        if by_lanes:
            lanes.append(svg.Series(one["device"], by_lanes))
    label = "instructions per second"
    return {
        "modes.svg": svg.bars("Instructions per second by mode", label, modes),
        "lanes.svg": svg.lines("Instructions per second by number of lanes", "lanes", label, lanes),
    }


#: What stands around the tables in a page.
BEGIN = "<!-- Written by benchmarks/all_modes.py. -->"
END = "<!-- End of what it writes. -->"


def write_into(page: Path, text: str) -> None:
    """Replaces what was written into a page before."""
    before, begin, rest = page.read_text("utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise SystemExit(f"{page} has no place for tables: it needs the lines {BEGIN} and {END}")
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}", "utf-8")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", action="append", default=[], metavar="NAME",
                        help="cpu, cuda, wgpu, cuda:1, eval; may be repeated; every engine present by default")
    parser.add_argument("--seconds", type=float, default=0.2,
                        help="about how long to measure each figure (0.2), in three runs; there are 33 for each device")
    parser.add_argument("--max-lanes", type=int, default=LANES[-1], metavar="N", help="leave out more lanes")
    parser.add_argument("--json", metavar="FILE", help="write the figures; - for the terminal, without tables")
    parser.add_argument("--from-json", action="append", metavar="FILE",
                        help="measure nothing; tables and charts of figures written before, also of several "
                             "computers (repeat it)")
    parser.add_argument("--markdown", action="store_true", help="tables as Markdown")
    parser.add_argument("--into", metavar="FILE", help="replace the tables in a Markdown page, as in docs/modes.md")
    parser.add_argument("--charts", metavar="FOLDER", help="write modes.svg and lanes.svg there")
    return parser.parse_args()


def collect(options: argparse.Namespace) -> list[dict]:
    """The figures of each device. Ctrl-C ends measuring; what is complete stays."""
    if options.from_json:
        return [one for file in options.from_json for one in json.loads(Path(file).read_text("utf-8"))]
    figures = []
    try:
        for target in targets(options.device):
            figures.append(measure(target, options.seconds, options.max_lanes))
    except KeyboardInterrupt:
        print("interrupted: only complete devices are shown", file=sys.stderr)
    except (kvrm.KvrmError, MemoryError, ValueError) as error:
        raise SystemExit(f"cannot measure: {error}") from None
    return figures


def main() -> int:
    options = arguments()
    figures = collect(options)
    if not figures:
        return 130
    if options.json == "-":
        print(json.dumps(figures, indent=1))
    else:
        print(report(figures, options.markdown))
        if options.json:
            Path(options.json).write_text(json.dumps(figures, indent=1) + "\n", "utf-8")
    if options.into:
        write_into(Path(options.into), report(figures, markdown=True))
    if options.charts:
        folder = Path(options.charts)
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in charts(figures).items():
            (folder / name).write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
