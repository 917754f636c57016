#!/usr/bin/env python3
"""Checks the guests' expected results.

With no option, computes every row of expected.txt and
expected_mandelbrot.txt a second time in Python, without the guests' code.

  --linux   also runs the Linux programs under qemu-aarch64 and compares
  --bare    also runs the bare images, by way of run_bare.c
  --record  writes both files anew, from the Linux programs, then checks them

Environment: QEMU names the emulator (qemu-aarch64-static), CROSS the
toolchain for run_bare.c (aarch64-linux-gnu-).
"""

import functools
import os
import subprocess
import sys
import tempfile

from models import MASK, MODELS, check_models, mandelbrot

HERE = os.path.dirname(os.path.abspath(__file__))
EXPECTED = os.path.join(HERE, "expected.txt")
EXPECTED_MANDELBROT = os.path.join(HERE, "expected_mandelbrot.txt")
QEMU = os.environ.get("QEMU", "qemu-aarch64-static")
CROSS = os.environ.get("CROSS", "aarch64-linux-gnu-")

# The end of a name that says how the program was compiled; the result is the same.
VARIANT = "_O3"

# The guests in assembly, which no compiler can change.
ASSEMBLY = {"loop", "loop_store", "collatz", "reset"}

BIG = 0xFEDCBA9876543210

# (input, iterations) for the rows that --record writes.
CASES = {
    "sha256": [(0, 0), (0, 1), (1, 10), (2, 257), (BIG, 1000)],
    "sort": [(0, 0), (0, 1), (1, 2), (2, 10), (BIG, 25)],
    "crc32": [(0, 0), (0, 1), (1, 2), (2, 10), (BIG, 100)],
    "strsearch": [(0, 0), (0, 1), (1, 2), (2, 10), (BIG, 25)],
    "matmul": [(0, 0), (0, 1), (1, 2), (2, 10), (BIG, 25)],
    "loop": [(0, 0), (0, 1), (7, 1000), (BIG, 100000), (MASK, 1)],
    "loop_store": [(0, 0), (0, 1), (7, 1000), (BIG, 100000), (MASK, 1)],
    "collatz": [(0, 3), (27, 0), (27, 1), (1, 1000), (837799, 1),
                (123456789, 100)],
    "reset": [(0, 0), (1, 0), (2, 0), (BIG, 0)],
    "nbody": [(0, 0), (0, 1), (1, 2), (2, 100), (BIG, 1000)],
    "fft": [(0, 0), (0, 1), (1, 2), (2, 10), (BIG, 25)],
    "blur": [(0, 0), (0, 1), (1, 2), (2, 10), (BIG, 25)],
    "aes": [(0, 0), (0, 1), (1, 2), (2, 10), (BIG, 25)],
    "json": [(0, 0), (0, 1), (1, 2), (2, 10), (BIG, 25)],
    "fmatmul": [(0, 0), (0, 1), (1, 2), (2, 3), (BIG, 5)],
}


def q60(value):
    return int(value * 2**60)


# (row, width, height, limit, re, im, scale)
CASES_MANDELBROT = [
    (row, 64, 48, 200, q60(-0.75), 0, q60(3 / 64)) for row in (0, 12, 23, 24, 47)
] + [
    # Spirals, with a width that is odd and a scale near 1e-9.
    (20, 101, 41, 1000, q60(-0.743643887037151), q60(0.131825904205330), q60(1e-9)),
    # The widest row.
    (1, 4096, 3, 100, q60(-0.75), q60(0.1), q60(3 / 4096)),
    # No iterations; the corners of the plane.
    (0, 8, 8, 0, 0, 0, q60(0.875)),
    (0, 8, 8, 65535, 0, 0, q60(0.875)),
]


def run(command):
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [int(line, 16) for line in out.split()]


def linux_program(name, args):
    return run([QEMU, os.path.join(HERE, "linux", name), *map(str, args)])


def read_rows(path):
    with open(path) as file:
        for line in file:
            if not line.startswith("#") and line.strip():
                yield line.split()


def record():
    with open(EXPECTED, "w") as file:
        file.write("# name input iterations result\n")
        names = list(CASES) + [name + VARIANT for name in CASES if name not in ASSEMBLY]
        for name in names:
            for args in CASES[name.removesuffix(VARIANT)]:
                file.write(f"{name} {args[0]} {args[1]} "
                           f"{linux_program(name, args)[0]:016x}\n")
    with open(EXPECTED_MANDELBROT, "w") as file:
        file.write("# row width height limit re im scale "
                   "result checksum-of-counts checksum-of-squares\n")
        for args in CASES_MANDELBROT:
            results = linux_program("mandelbrot", args)
            file.write(" ".join(map(str, args)) + " " +
                       " ".join(f"{r:016x}" for r in results) + "\n")


def load():
    """Yields (name, arguments, results) for every row of both files."""
    for name, *args, result in read_rows(EXPECTED):
        yield name, [int(a) for a in args], [int(result, 16)]
    for row in read_rows(EXPECTED_MANDELBROT):
        yield "mandelbrot", [int(a) for a in row[:7]], [int(r, 16) for r in row[7:]]


@functools.cache
def compute(name, args):
    return list(mandelbrot(*args)) if name == "mandelbrot" else [MODELS[name](*args)]


def model(name, args):
    return compute(name.removesuffix(VARIANT), tuple(args))


def main():
    options = set(sys.argv[1:])
    if options - {"--linux", "--bare", "--record"}:
        sys.exit(__doc__)
    if "--record" in options:
        record()

    check_models()
    checks = {"Python": model}
    if "--linux" in options:
        checks["Linux program"] = linux_program
    with tempfile.TemporaryDirectory() as directory:
        if "--bare" in options:
            runner = os.path.join(directory, "run_bare")
            subprocess.run([CROSS + "gcc", "-O1", "-static", "-o", runner,
                            os.path.join(HERE, "run_bare.c")], check=True)

            def bare_image(name, args):
                image = os.path.join(HERE, "bin", name + ".bin")
                results = run([QEMU, runner, image, *map(str, args)])
                return results if name == "mandelbrot" else results[:1]

            checks["bare image"] = bare_image

        rows = failures = 0
        for name, args, expected in load():
            rows += 1
            for what, check in checks.items():
                results = check(name, args)
                if results != expected:
                    failures += 1
                    print(f"{what}: {name} {args}: "
                          f"{[hex(r) for r in results]}, "
                          f"expected {[hex(r) for r in expected]}")
    print(f"{rows} rows, checked with {', '.join(checks)}: {failures} wrong")
    sys.exit(1 if failures or not rows else 0)


if __name__ == "__main__":
    main()
