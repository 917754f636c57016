#!/usr/bin/env python3
"""How fast an ARM64 machine is whose state is PyTorch tensors: the two baselines that kvrm is compared with.

  one sync per instruction   the host asks the GPU for the PC, the word and the outcome of each branch
  batch of 512               512 words are fetched and decoded together; the host asks once per batch where
                             the first branch or stop is, and executes up to it with tensor operations only

Both execute the same programs and are checked: the results must be right. Needs PyTorch; kvrm is not used.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass

try:
    import torch
except ImportError:
    torch = None

BATCH = 512
MEMORY = 64 * 1024
SCRATCH = 0x8000

# The instructions that the programs use, 64-bit forms: name, mask, bits. A word that is none of them stops
# the machine with an error that names it.
ENCODINGS = [
    ("add", 0xFFC00000, 0x91000000),
    ("subs", 0xFFC00000, 0xF1000000),
    ("movz", 0xFFE00000, 0xD2800000),
    ("movk", 0xFFE00000, 0xF2A00000),  # lsl #16
    ("str", 0xFFC00000, 0xF9000000),
    ("b", 0xFC000000, 0x14000000),
    ("b.ne", 0xFF00001F, 0x54000001),
    ("hlt", 0xFFE0001F, 0xD4400000),
]
BRANCHES = ("b", "b.ne")
STOPS = (*BRANCHES, "hlt")


@dataclass
class Program:
    """Words, and what they must leave behind after so many turns of their loop."""

    name: str
    words: list[int]
    start: int
    adds_per_turn: int
    cycles_per_turn: int


def words_of_loop(body: list[int]) -> list[int]:
    """x1 turns of the body, x0 counting; ``body`` ends with SUBS, the branch is added here."""
    offset = -len(body) & 0x7FFFF
    return [*body, 0x54000001 | offset << 5, 0xD4400000]


ADD, STR, SUBS = 0x91000400, 0xF9000040, 0xF1000421  # add x0, x0, #1; str x0, [x2]; subs x1, x1, #1


def program(name: str, body: list[int]) -> Program:
    setup = [0xD2800000 | SCRATCH << 5 | 2]  # movz x2, #SCRATCH
    adds = body.count(ADD)
    return Program(name, setup + words_of_loop([*body, SUBS]), 0, adds, len(body) + 2)


def programs() -> list[Program]:
    return [
        program("tight loop", [ADD]),
        program("loop with STR", [ADD, STR]),
        program(f"{BATCH - 2} additions in a row", [ADD] * (BATCH - 2)),
    ]


class Machine:
    """One machine in tensors on a device."""

    def __init__(self, device: str, code: Program, turns: int) -> None:
        self.device = device
        self.memory = torch.zeros(MEMORY, dtype=torch.uint8, device=device)
        image = b"".join(word.to_bytes(4, "little") for word in code.words)
        self.memory[: len(image)] = torch.tensor(list(image), dtype=torch.uint8, device=device)
        self.registers = torch.zeros(32, dtype=torch.int64, device=device)
        self.registers[1] = turns
        self.pc = torch.tensor(code.start, dtype=torch.int64, device=device)
        self.zero_flag = torch.tensor(False, device=device)
        self.cycles = 0
        self.byte_shifts = torch.arange(0, 64, 8, device=device)

    def word_at(self, pc: int):
        """The word at an address, as a tensor."""
        parts = self.memory[pc : pc + 4].to(torch.int64)
        return (parts << self.byte_shifts[:4]).sum()

    def store(self, address, value) -> None:
        """Stores 64 bits; address and value are tensors, so nothing is waited for."""
        places = address + torch.arange(8, device=self.device)
        self.memory[places] = ((value >> self.byte_shifts) & 0xFF).to(torch.uint8)

    def stored(self) -> int:
        return int.from_bytes(bytes(self.memory[SCRATCH : SCRATCH + 8].tolist()), "little")


def signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) & 1 else value


def name_of(word: int) -> str:
    for name, mask, bits in ENCODINGS:
        if word & mask == bits:
            return name
    raise SystemExit(f"the baseline has no instruction {word:#010x}")


def run_by_instruction(machine: Machine) -> None:
    """Asks the device three times an instruction: for the PC, the word, and the outcome of a branch."""
    registers = machine.registers
    while True:
        pc = machine.pc.item()  # sync 1
        word = machine.word_at(pc).item()  # sync 2
        name, rd, rn = name_of(word), word & 31, word >> 5 & 31
        imm12, imm16 = word >> 10 & 0xFFF, word >> 5 & 0xFFFF
        offset = 4
        if name == "hlt":
            return
        if name == "add":
            registers[rd] = registers[rn] + imm12
        elif name == "subs":
            registers[rd] = registers[rn] - imm12
            machine.zero_flag = registers[rd] == 0
        elif name == "movz":
            registers[rd] = imm16
        elif name == "movk":
            registers[rd] = registers[rd] & ~0xFFFF0000 | imm16 << 16
        elif name == "str":
            machine.store(registers[rn] + 8 * imm12, registers[rd])
        elif name == "b":
            offset = 4 * signed(word & 0x3FFFFFF, 26)
        elif name == "b.ne" and not machine.zero_flag.item():  # sync 3
            offset = 4 * signed(word >> 5 & 0x7FFFF, 19)
        machine.pc += offset
        machine.cycles += 1


def run_by_batch(machine: Machine) -> None:
    """Asks the device once a batch: where its first branch or stop is, and which."""
    within = torch.arange(BATCH, device=machine.device)
    while True:
        words = fetch_batch(machine, within)
        kinds = torch.stack([words & mask == bits for _, mask, bits in ENCODINGS])
        names = [name for name, _, _ in ENCODINGS]
        unknown = ~kinds.any(dim=0)
        ends = kinds[[names.index(name) for name in STOPS]].any(dim=0) | unknown
        first = torch.where(ends, within, BATCH).min()
        at = first.clamp(max=BATCH - 1)
        # One transfer: the place, and what is there.
        answer = torch.stack([first, words[at], unknown[at].to(torch.int64)]).tolist()
        count, word, is_unknown = answer
        execute_batch(machine, words, dict(zip(names, kinds)), count)
        machine.pc += 4 * count
        machine.cycles += count
        if count == BATCH:
            continue
        if is_unknown:
            name_of(word)
        if not branch(machine, word):
            return


def fetch_batch(machine: Machine, within):
    """The words from the PC on; behind the end of memory, zeros."""
    places = (machine.pc + 4 * within).unsqueeze(1) + torch.arange(4, device=machine.device)
    parts = machine.memory[places.clamp(max=MEMORY - 1)].to(torch.int64)
    return (parts << machine.byte_shifts[:4]).sum(dim=1)


def execute_batch(machine: Machine, words, kinds, count: int) -> None:
    """Executes ``count`` instructions one after the other. Which ones they are is known on the device only, so
    every result is computed and the right one selected."""
    registers = machine.registers
    rd, rn = words & 31, words >> 5 & 31
    imm12, imm16 = words >> 10 & 0xFFF, words >> 5 & 0xFFFF
    spill = torch.tensor(MEMORY - 8, device=machine.device)  # where stores go that are none
    for i in range(count):
        target = rd[i : i + 1]
        old, source = registers[target], registers[rn[i]]
        value = torch.where(kinds["add"][i], source + imm12[i], old)
        difference = source - imm12[i]
        value = torch.where(kinds["subs"][i], difference, value)
        value = torch.where(kinds["movz"][i], imm16[i], value)
        value = torch.where(kinds["movk"][i], old & ~0xFFFF0000 | imm16[i] << 16, value)
        machine.zero_flag = torch.where(kinds["subs"][i], difference == 0, machine.zero_flag)
        machine.store(torch.where(kinds["str"][i], source + 8 * imm12[i], spill), old)
        registers.index_copy_(0, target, value)


def branch(machine: Machine, word: int) -> bool:
    """Executes the instruction that ended a batch; false if it stops the machine."""
    name = name_of(word)
    if name == "hlt":
        return False
    if name == "b":
        machine.pc += 4 * signed(word & 0x3FFFFFF, 26)
    else:
        taken = 4 * signed(word >> 5 & 0x7FFFF, 19)
        machine.pc += torch.where(machine.zero_flag, 4, taken)
    machine.cycles += 1
    return True


MODES = [("one sync per instruction", run_by_instruction), (f"batch of {BATCH}", run_by_batch)]


def check(machine: Machine, code: Program, turns: int) -> None:
    wanted = (code.adds_per_turn * turns, 1 + code.cycles_per_turn * turns)
    found = (machine.registers[0].item(), machine.cycles)
    if found != wanted:
        raise SystemExit(f"{code.name}: x0 and the number of instructions are {found}, not {wanted}")
    if STR in code.words and machine.stored() != wanted[0]:
        raise SystemExit(f"{code.name}: {machine.stored()} was stored, not {wanted[0]}")


def measure(device: str, code: Program, run, seconds: float) -> dict:
    """Doubles the work until it takes long enough."""
    turns = 1
    while True:
        machine = Machine(device, code, turns)
        start = time.perf_counter()
        run(machine)
        if device.startswith("cuda"):
            torch.cuda.synchronize()
        elapsed = time.perf_counter() - start
        check(machine, code, turns)
        if elapsed >= seconds / 2:
            return {"cycles": machine.cycles, "seconds": elapsed, "ips": machine.cycles / elapsed}
        turns = 2 * turns if elapsed > seconds / 20 else 8 * turns


def best_device() -> str:
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", help="PyTorch's name of a device: cuda, mps or cpu; the best by default")
    parser.add_argument("--seconds", type=float, default=2.0, help="about how long to measure each (2)")
    parser.add_argument("--json", metavar="FILE", help="write the figures to a file too; - for the terminal")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    if torch is None:
        print("PyTorch is not installed for this Python, so there is nothing to measure: pip install torch")
        return 0
    device = options.device or best_device()
    what = torch.cuda.get_device_name() if device.startswith("cuda") else device
    figures = []
    lines = sys.stderr if options.json == "-" else sys.stdout
    print(f"PyTorch {torch.__version__} on {what}", file=lines)
    with torch.inference_mode():
        for mode, run in MODES:
            for code in programs():
                result = measure(device, code, run, options.seconds)
                figures.append({"mode": mode, "program": code.name, **result})
                print(f"{mode:26} {code.name:26} {result['ips']:12,.0f} instructions/s", file=lines, flush=True)
    report = {"torch": torch.__version__, "device": what, "figures": figures}
    if options.json == "-":
        print(json.dumps(report, indent=1))
    elif options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=1)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
