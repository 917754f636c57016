#!/usr/bin/env python3
"""Checks the expected results of the benchmark set, expected.txt.

With no option, runs the Linux programs under qemu-aarch64.

  --kvrm COMMAND  also runs the bare images, with this kvrm
  --record        writes expected.txt anew, from the Linux programs

Inputs from 0 up with the same iterations are the lanes of one run of kvrm.
QEMU names another emulator than qemu-aarch64-static.
"""

import argparse
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
EXPECTED = os.path.join(HERE, "expected.txt")
QEMU = os.environ.get("QEMU", "qemu-aarch64-static")
MEMORY = "2M"  # as in bare.ld

# (input, iterations) for each guest.
CASES = [(0, 2), (1, 2), (2, 2), (3, 2), (0xFEDCBA9876543210, 5)]


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


def bare_image(kvrm, name, first, count, iterations):
    """Runs `count` lanes, or one with any input; returns their results."""
    number = "lane" if count > 1 else str(first)
    text = run([kvrm, "exec", os.path.join(HERE, "bin", name + ".bin"),
                "--base", "0x10000", "--memory", MEMORY, "--max-cycles", "1T", "--json",
                "--lanes", str(count), "--set", f"x0={number}", "--set", f"x1={iterations}"])
    lanes = json.loads(text)["lanes"]
    return [int(lane["registers"].get("x0", "0"), 16) for lane in lanes]


def bare_images(kvrm, name, cases):
    """Returns {case: result}, with as few runs as possible."""
    results = {}
    for iterations in dict.fromkeys(iterations for _, iterations in cases):
        inputs = [number for number, of in cases if of == iterations]
        runs = [(0, len(inputs))] if inputs == list(range(len(inputs))) else [(i, 1) for i in inputs]
        for first, count in runs:
            values = bare_image(kvrm, name, first, count, iterations)
            for offset, value in enumerate(values):
                results[first + offset, iterations] = value
    return results


def differences(what, name, expected, results):
    wrong = [case for case in expected if results.get(case) != expected[case]]
    for case in wrong:
        result = results.get(case)
        print(f"{what}: {name} {case[0]} {case[1]}: "
              f"{'nothing' if result is None else f'{result:016x}'}, "
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
            bare = bare_images(options.kvrm, name, list(expected))
            failures += differences("bare image", name, expected, bare)
    how = "the Linux programs" + (" and the bare images" if options.kvrm else "")
    print(f"{len(rows)} guests of the benchmark set, checked with {how}: {failures} wrong")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
