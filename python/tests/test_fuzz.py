"""Whatever is called, the interpreter survives: random calls in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

CALLS = textwrap.dedent("""
    import random, sys, warnings
    import kvrm, numpy as np

    engine, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    rng = random.Random(seed)
    ODD = [None, True, -1, 0, 1, 2, 3, 4, 5, 31, 255, 4096, 65532, 65536, 2**31, 2**32, 2**63, 2**64 - 1, 2**64, 2**80,
           1.5, float("nan"), float("inf"), "", "x0", "sp", "pc", "w31", "64K", b"", b"abcd", bytes(8), bytearray(5),
           [], [1, 2], [0xd4400000], (), {}, set(), object(), range(3), np.zeros(0), np.arange(3), np.uint64(7),
           np.zeros((2, 31), np.uint64), np.ones(5), len, lambda *a: False, Exception, kvrm.Machine]
    METHODS = [name for name in dir(kvrm.Machine) if not name.startswith("_")]
    LIMITED = {"run", "run_mega", "start", "run_async"}
    ALLOWED = (ValueError, TypeError, IndexError, OverflowError, RuntimeError, MemoryError, AttributeError,
               BufferError, TimeoutError, kvrm.KvrmError)

    def some(): return rng.choice(ODD)

    def call(target, *args, **kwargs):
        try:
            return target(*args, **kwargs)
        except ALLOWED as error:
            assert str(error) or isinstance(error, MemoryError), repr(error)

    def fresh():
        model = rng.choice(["private", "shared", "read-only", "double-buffered"])
        m = kvrm.Machine(engine, lanes=rng.randint(1, 3), memory="64K", model=model)
        m.load([rng.getrandbits(32) if rng.random() < .3 else 0x91000400 for _ in range(8)])
        return m

    m = fresh()
    for step in range(count):
        kind = rng.random()
        if kind < .05:
            m = fresh()
        elif kind < .1:
            call(kvrm.Machine, *[some() for _ in range(rng.randint(0, 1))],
                 **{name: some() for name in rng.sample(["memory", "model", "device", "threads"], 2)})
        elif kind < .15:
            call(rng.choice([kvrm.assemble, kvrm.disassemble]), *[some() for _ in range(rng.randint(0, 2))])
        elif kind < .2:
            m.close() if rng.random() < .2 else call(m.reset)
        elif kind < .3:
            call(setattr, m, rng.choice(METHODS), some())
        else:
            name = rng.choice(METHODS)
            value = call(getattr, m, name)
            if name == "run_async":
                continue
            if name in LIMITED:
                call(value, rng.choice([0, 1, 1000, -1, "a"]))
            elif name == "run_batches":
                call(value, rng.choice([0, 1, 100, None]), rng.choice([0, 1, 3]), callback=some(), timeout=some())
            elif name == "wait":
                call(value, rng.choice([0, 0.001, -1, "a"]))
            elif callable(value):
                call(value, *[some() for _ in range(rng.randint(0, 3))])
    print("survived")
""")


@pytest.mark.parametrize("seed", range(4))
def test_random_calls(engine: str, seed: int) -> None:
    count = os.environ.get("KVRM_FUZZ_CALLS", "1500" if engine in ("cpu", "eval") else "300")
    command = [sys.executable, "-W", "ignore", "-c", CALLS, engine, str(seed), count]
    result = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert result.stdout == "survived\n", (result.returncode, result.stdout, result.stderr[-3000:])
