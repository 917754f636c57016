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

import hashlib
import os
import struct
import subprocess
import sys
import tempfile
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
EXPECTED = os.path.join(HERE, "expected.txt")
EXPECTED_MANDELBROT = os.path.join(HERE, "expected_mandelbrot.txt")
QEMU = os.environ.get("QEMU", "qemu-aarch64-static")
CROSS = os.environ.get("CROSS", "aarch64-linux-gnu-")

MASK = (1 << 64) - 1
MIX_START = 0xCBF29CE484222325


class Random:
    """SplitMix64."""

    def __init__(self, seed):
        self.state = seed

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
        z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
        return z ^ z >> 31

    def bytes(self, count):
        return b"".join(struct.pack("<Q", self.next()) for _ in range(count // 8))


def mix(values, hash=MIX_START):
    for value in values:
        hash = (hash ^ value) * 0x100000001B3 & MASK
    return hash


def sha256(seed, iterations):
    digest = hashlib.sha256(Random(seed).bytes(64 * iterations)).digest()
    return int.from_bytes(digest[:8], "big")


def sort(seed, iterations):
    random = Random(seed)
    hash = MIX_START
    for _ in range(iterations):
        hash = mix(sorted(random.next() & 0xFFFFFFFF for _ in range(1000)), hash)
    return hash


def crc32(seed, iterations):
    buffer = Random(seed).bytes(4096)
    return zlib.crc32(buffer * iterations)


def strsearch(seed, iterations):
    random = Random(seed)
    text = bytearray()
    while len(text) < 8192:
        digits = f"{random.next():016x}"
        text += bytes(ord("a") + int(d, 16) for d in reversed(digits))
    hash = MIX_START
    for _ in range(iterations):
        for index, length in enumerate((3, 4, 6, 10, 18, 32)):
            start = random.next() % (len(text) - length)
            needle = text[start:start + length]
            if index % 2:
                needle[length // 2] ^= 1
            found = [i for i in range(len(text)) if text.startswith(needle, i)]
            hash = mix(found + [len(found)], hash)
    return hash


def matmul(seed, iterations):
    random = Random(seed)
    a, b = ([[random.next() & 0xFFFFFFFF for _ in range(32)] for _ in range(32)]
            for _ in range(2))
    columns = list(zip(*b))
    for _ in range(iterations):
        c = [[sum(x * y for x, y in zip(row, column)) & MASK for column in columns]
             for row in a]
        a = [[(x >> 32 ^ x) & 0xFFFFFFFF for x in row] for row in c]
    return mix(x for row in a for x in row)


def loop(start, iterations):
    return (start + iterations) & MASK


def collatz(first, iterations):
    steps = 0
    for n in range(first, first + iterations):
        while n > 1:
            n = n // 2 if n % 2 == 0 else (3 * n + 1) & MASK
            steps += 1
    return steps


def reset(seed, _iterations):
    multiplier = 0x79B99E377F4B
    page = bytearray(72)
    hash = seed ^ multiplier
    for left in range(58, 0, -1):
        hash = hash * multiplier & MASK
        hash ^= hash >> 29
        slot = hash & 0x38
        total = (int.from_bytes(page[slot:slot + 8], "little") + hash) & MASK
        page[slot:slot + 8] = total.to_bytes(8, "little")
        hash = (hash >> 17 | hash << 47) & MASK
        bits = total >> 5 & 0xFFFF
        hash = hash + bits & MASK if total & 8 else (hash ^ total) - bits & MASK
        page[bits & 0x3F] = left
        hash = hash + (hash > total) & MASK
    first, last = (int.from_bytes(page[i:i + 8], "little") for i in (0, 56))
    hash = (hash ^ first) + last & MASK
    hash = (hash ^ hash >> 32) * multiplier & MASK
    return hash ^ hash >> 31


def mandelbrot(row, width, height, limit, re, im, scale):
    """The sum of a row's counts, and checksums of both its buffers."""
    im -= (2 * row + 1 - height) * scale >> 1
    counts, squares = [], []
    for column in range(width):
        c = re + ((1 - width) * scale >> 1) + column * scale
        x = y = n = 0
        while True:
            xx, yy, xy = x * x >> 64, y * y >> 64, x * y >> 64
            if xx + yy > 4 << 56 or n == limit:
                break
            x, y = (xx - yy) * 16 + c, xy * 32 + im
            assert abs(x) < 8 << 60 and abs(y) < 8 << 60
            n += 1
        counts.append(n)
        squares.append(xx + yy >> 48)
    unused = [0] * (4096 - width)
    return sum(counts), mix(counts + unused), mix(squares + unused)


MODELS = {
    "sha256": sha256,
    "sort": sort,
    "crc32": crc32,
    "strsearch": strsearch,
    "matmul": matmul,
    "loop": loop,
    "loop_store": loop,
    "collatz": collatz,
    "reset": reset,
}

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
        for name, cases in CASES.items():
            for args in cases:
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


def model(name, args):
    return list(mandelbrot(*args)) if name == "mandelbrot" else [MODELS[name](*args)]


def main():
    options = set(sys.argv[1:])
    if options - {"--linux", "--bare", "--record"}:
        sys.exit(__doc__)
    if "--record" in options:
        record()

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
            for what, compute in checks.items():
                results = compute(name, args)
                if results != expected:
                    failures += 1
                    print(f"{what}: {name} {args}: "
                          f"{[hex(r) for r in results]}, "
                          f"expected {[hex(r) for r in expected]}")
    print(f"{rows} rows, checked with {', '.join(checks)}: {failures} wrong")
    sys.exit(1 if failures or not rows else 0)


if __name__ == "__main__":
    main()
