#!/usr/bin/env python3
"""Checks the expected results of the benchmark set, expected.txt.

With no option, runs the Linux programs under qemu-aarch64.

  --kvrm COMMAND  also runs the bare images, with this kvrm
  --record        writes expected.txt anew, from the Linux programs

All runs of a bare image are lanes of one machine.  QEMU names another emulator
than qemu-aarch64-static.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
EXPECTED = os.path.join(HERE, "expected.txt")
QEMU = os.environ.get("QEMU", "qemu-aarch64-static")
MEMORY = "2M"  # as in bare.ld

# (input, iterations) for each guest.
CASES = [(0, 0), (0, 1), (1, 2), (2, 3), (0xFEDCBA9876543210, 5)]


def run(command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def guests():
    with open(os.path.join(HERE, "guests.txt")) as file:
        return [line.split()[0] for line in file if not line.startswith("#")]


def linux_program(name, number, iterations):
    program = os.path.join(HERE, "linux", name)
    return int(run([QEMU, program, str(number), str(iterations)]), 16)


def record():
    with open(EXPECTED, "w") as file:
        file.write("# name input iterations result\n")
        for name in guests():
            for case in CASES:
                file.write(f"{name} {case[0]} {case[1]} {linux_program(name, *case):016x}\n")


def load():
    """Returns {name: {(input, iterations): result}}."""
    rows = {}
    with open(EXPECTED) as file:
        for line in file:
            if not line.startswith("#"):
                name, number, iterations, result = line.split()
                case = int(number), int(iterations)
                rows.setdefault(name, {})[case] = int(result, 16)
    return rows


def bare_image(kvrm, name, cases):
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as table:
        table.write("x0,x1\n" + "".join(f"{number},{iterations}\n" for number, iterations in cases))
        table.flush()
        text = run([kvrm, "exec", os.path.join(HERE, "bin", name + ".bin"), "--base", "0x10000",
                    "--memory", MEMORY, "--max-cycles", "1T", "--json", "--set-lanes", table.name])
    lanes = json.loads(text)["lanes"]
    return {case: int(lane["registers"].get("x0", "0"), 16) for case, lane in zip(cases, lanes)}


def differences(what, name, expected, results):
    wrong = [case for case in expected if results[case] != expected[case]]
    for case in wrong:
        print(f"{what}: {name} {case[0]} {case[1]}: {results[case]:016x}, "
              f"expected {expected[case]:016x}")
    return len(wrong)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kvrm")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    if options.record:
        record()

    rows = load()
    failures = 0
    if list(rows) != guests():
        sys.exit("expected.txt and guests.txt name different guests")
    for name, expected in rows.items():
        linux = {case: linux_program(name, *case) for case in expected}
        failures += differences("Linux program", name, expected, linux)
        if options.kvrm:
            bare = bare_image(options.kvrm, name, list(expected))
            failures += differences("bare image", name, expected, bare)
    how = "the Linux programs" + (" and the bare images" if options.kvrm else "")
    print(f"{len(rows)} guests of the benchmark set, checked with {how}: {failures} wrong")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
