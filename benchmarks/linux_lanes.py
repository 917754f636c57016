#!/usr/bin/env python3
"""Measures Linux programs in many lanes of one `kvrm run`, beside as many processes of QEMU on all cores.

  hash     reads a number from its standard input, and hashes it 10,000 times (benchmarks/linux/hash.c)
  lua      a script with another argument in each lane
  sqlite3  a database in memory, with other rows in each lane

    aarch64-linux-gnu-gcc -O2 -static -o hash benchmarks/linux/hash.c

QEMU runs some of the rows, whose outputs and exit codes must be those of the lanes; what all rows would take it is a multiple of
that.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

LUA = "local s = 0; for i = 1, 200000 do s = (s * 31 + i * arg[1]) % 1000003 end; print(arg[1], s)"
SQL = (
    "create table t(a, b); with recursive n(i) as (values(1) union all select i + 1 from n where i < 2000)"
    " insert into t select i, i * {row} % 97 from n; select sum(a * b), count(distinct b) from t;"
)


@dataclass
class Program:
    """A program, and what differs between its rows."""

    lanes: int
    command: list[str]
    args: list[str] = field(default_factory=list)
    reads: bool = False

    def row(self, number: int) -> tuple[list[str], str]:
        """The arguments and the input of a row."""
        args = [arg.replace("{row}", str(number)) for arg in self.args]
        return args, f"{number}\n" if self.reads else ""


def programs(hashing: Path) -> dict[str, Program]:
    """What there is to measure."""
    return {
        "hash": Program(65_536, [str(hashing)], reads=True),
        "lua": Program(16_384, ["/work/sum.lua"], ["{row}"]),
        "sqlite3": Program(4_096, ["/usr/bin/sqlite3", ":memory:"], [SQL]),
    }


def quoted(args: list[str]) -> str:
    """Arguments as a line of --args-from."""
    return " ".join("'" + arg.replace("'", "'\\''") + "'" for arg in args)


def kvrm(options: argparse.Namespace, folder: Path, program: Program, engine: str, lanes: int) -> dict:
    """Runs all rows, and returns the time, the sums and what each row did."""
    rows, results = folder / "rows", folder / "results.jsonl"
    given = [program.row(number) for number in range(lanes)]
    rows.write_text("".join(input if program.reads else quoted(args) + "\n" for args, input in given))
    results.unlink(missing_ok=True)
    command = [options.kvrm, "run", "--engine", engine, "--root", options.root, "--bind", f"{folder}:/work"]
    command += ["--stdin-from" if program.reads else "--args-from", str(rows), "--results", str(results), "--json"]
    command += ["/usr/bin/lua5.4"] * program.command[0].endswith(".lua") + program.command
    start = time.monotonic()
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    seconds = time.monotonic() - start
    if done.returncode:
        sys.exit(f"kvrm: {done.stderr}")
    table = [json.loads(line) for line in results.read_text().splitlines()]
    (folder / "results.jsonl.run.json").unlink(missing_ok=True)
    return {
        "seconds": seconds,
        "instructions": sum(row["instructions"] for row in table),
        "moved": sum(row.get("moved_after") is not None for row in table),
        "rows": {row["lane"]: (row["exit_code"], row["stdout"]) for row in table},
        "summary": json.loads(done.stdout),
    }


def qemu(options: argparse.Namespace, folder: Path, program: Program, rows: int) -> tuple[float, dict]:
    """Runs some rows in processes of QEMU, one for each core at a time; seconds for each row, and what each did."""

    def one(number: int) -> tuple[int, tuple[int, str]]:
        args, input = program.row(number)
        command = [options.qemu, "-L", options.root]
        if program.command[0].endswith(".lua"):
            command += [f"{options.root}/usr/bin/lua5.4", str(folder / "sum.lua")]
        else:
            path = Path(program.command[0])
            inside = Path(f"{options.root}{path}")
            command += [str(inside if inside.exists() else path), *program.command[1:]]
        done = subprocess.run([str(w) for w in [*command, *args]], input=input, capture_output=True, text=True, check=False)
        return number, (done.returncode, done.stdout)

    start = time.monotonic()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        done = dict(pool.map(one, range(rows)))
    return (time.monotonic() - start) / rows, done


def main() -> None:
    """Measures the programs that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kvrm", default="kvrm", help="the command [kvrm]")
    parser.add_argument("--qemu", default="qemu-aarch64-static", help="QEMU's user mode; none to leave it out")
    parser.add_argument("--root", required=True, help="a folder with Debian for arm64")
    parser.add_argument("--hash", type=Path, required=True, help="the static program made of hash.c")
    parser.add_argument("--engines", default="cuda", help="engines, with commas [cuda]")
    parser.add_argument("--only", default="hash,lua,sqlite3", help="programs, with commas")
    parser.add_argument("--lanes", type=int, help="rows and lanes, if not as many as usual")
    parser.add_argument("--processes", type=int, default=512, help="rows that QEMU runs [512]")
    parser.add_argument("--rounds", type=int, default=1, help="runs under kvrm, the last of which counts [1]")
    parser.add_argument("--results", type=Path, help="write them to this file, as JSON")
    options = parser.parse_args()
    measured = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "sum.lua").write_text(LUA)
        for name, program in programs(options.hash.resolve()).items():
            if name not in options.only.split(","):
                continue
            lanes = options.lanes or program.lanes
            each, expected = (0.0, {}) if options.qemu == "none" else qemu(options, folder, program, min(options.processes, lanes))
            for engine in options.engines.split(","):
                for _ in range(options.rounds):
                    ran = kvrm(options, folder, program, engine, lanes)
                wrong = [row for row, what in expected.items() if ran["rows"].get(row) != what]
                if wrong or len(ran["rows"]) != lanes:
                    sys.exit(f"{name} on {engine}: {len(wrong)} rows differ from QEMU's, such as {wrong[:3]}")
                rate, times = ran["instructions"] / ran["seconds"] / 1e9, each * lanes / ran["seconds"]
                print(
                    f"{name:8} {engine:5} {lanes:6} lanes {ran['seconds']:8.2f} s {rate:8.1f} G/s {ran['moved']:6} moved"
                    f"   QEMU {each * lanes:8.1f} s, {times:.2f} times as long",
                    flush=True,
                )
                kept = {key: value for key, value in ran.items() if key != "rows"}
                measured.append({"program": name, "engine": engine, "lanes": lanes, "qemu": each * lanes, **kept})
    if options.results:
        options.results.write_text(json.dumps(measured, indent=1))


if __name__ == "__main__":
    main()
