"""Runs: waited for or not, in batches, with asyncio, ended by Ctrl-C."""

from __future__ import annotations

import asyncio
import contextlib
import io
import signal
import subprocess
import sys
import textwrap
import threading
import time
from typing import Callable

import kvrm
import numpy as np
import pytest

ADD = 0x91000400  # add x0, x0, #1
HALT = 0xD4400000
FOREVER = [ADD, 0x17FFFFFF]  # add x0, x0, #1; b .-4


def machine(engine: str, code: list[int], lanes: int = 1) -> kvrm.Machine:
    m = kvrm.Machine(engine, lanes=lanes, memory="64K")
    m.load(code)
    return m


def until_it_has_begun(m: kvrm.Machine) -> None:
    while m.poll().cycles == 0:
        time.sleep(0.001)


def test_run(engine: str) -> None:
    m = machine(engine, FOREVER, lanes=3)
    result = m.run(1000)
    assert (result.cycles, result.cancelled, result.batch_count) == (3000, False, 1)
    assert result.elapsed_seconds > 0 and result.ips > 0 and result.committed
    assert m.run_mega(10).cycles == 30
    assert m.run(0).stop.reason == "MAX_CYCLES"
    # A result is a copy.
    assert result.cycles_per_lane.tolist() == [1000] * 3


def test_timeouts(engine: str) -> None:
    m = machine(engine, FOREVER, lanes=3)
    results = [
        m.run(timeout=0.2),
        m.run_mega(timeout=0.2),
        m.run_batches(1_000_000_000_000, timeout=0.2),
        asyncio.run(m.run_async(timeout=0.2)),
    ]
    m.start(timeout=0.2)
    results.append(m.wait())
    for result in results:
        assert result.timed_out and result.cancelled and "timed out" in repr(result)
        assert result.stop.reason is None and result.cycles > 0
        assert "by its timeout" in result._repr_html_()
    assert min(m.counts.tolist()) > 0
    # In time, or ended by somebody else.
    assert not m.run(10, timeout=1000).timed_out
    m.start(timeout=1000)
    result = m.cancel()
    assert result.cancelled and not result.timed_out and "cancelled" in repr(result)
    for timeout in [-1, float("nan")]:
        with pytest.raises(ValueError, match="timeout must be a number of seconds"):
            m.run(timeout=timeout)


def test_start_and_wait(engine: str) -> None:
    m = machine(engine, FOREVER, lanes=2)
    for mega in [False, True]:
        m.start(1000, mega=mega)
        result = m.wait()
        assert result.cycles == 2000 and not result.cancelled and not m.running
        progress = m.poll()
        assert (progress.running, progress.cycles, progress.stopped) == (False, 2000, 2)
        assert "ended" in repr(progress)
        assert m.wait().cycles == m.cancel().cycles == 2000
    assert m.run(5).cycles == m.poll().cycles == 10
    with pytest.raises(RuntimeError, match="no run was started"):
        m.wait()


def test_results_are_of_the_end(engine: str) -> None:
    m = machine(engine, FOREVER)
    for change in [lambda: m.run(3), m.reset, lambda: m.set_register("pc", 4)]:
        m.reset()
        m.start(5)
        while m.running:
            pass
        elapsed = m.poll().elapsed_seconds
        change()
        result = m.wait()
        assert (result.cycles, result.cycles_per_lane.tolist(), result.pcs.tolist()) == (5, [5], [4])
        assert result.stop.reason == "MAX_CYCLES"
        assert result.elapsed_seconds == pytest.approx(elapsed)


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited otherwise there")
def test_failures_in_the_background() -> None:
    program = textwrap.dedent("""
        import kvrm, resource
        m = kvrm.Machine("cpu", memory="2G", model="double-buffered")
        m.load([0xd4400000])
        status = open("/proc/self/status").read()
        used = int(status.split("VmSize:")[1].split()[0]) << 10
        resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 29),) * 2)
        m.start()
        for get in [m.wait, m.wait, m.cancel]:
            try:
                print(get())
            except MemoryError as error:
                print(type(error).__name__)
        print(m.running)
    """)
    process = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert process.stdout == "MemoryError\n" * 3 + "False\n", process.stderr


def test_running_machines_are_out_of_reach(engine: str) -> None:
    m = machine(engine, FOREVER)
    m.start()
    try:
        assert m.running and m.poll().running
        uses = [
            m.run,
            m.start,
            m.run_mega,
            m.reset,
            lambda: m.run_batches(1),
            lambda: m.registers,
            lambda: m.stops,
            lambda: m.memory(),
            lambda: m.read_memory(0, 1),
            lambda: m.write_memory(0, b"1"),
            lambda: m.load([HALT]),
            lambda: m.set_register(0, 1),
            lambda: m.add_breakpoint(0),
        ]
        for use in uses:
            with pytest.raises(RuntimeError, match="the machine is running: wait for it"):
                use()  # type: ignore[operator]
        with pytest.raises(TimeoutError, match="the run goes on"):
            m.wait(0.01)
        assert (m.lanes, m.engine) == (1, engine)
    finally:
        result = m.cancel()
    assert result.cancelled and result.stop.reason is None
    before = m.get_register(0)
    assert m.run(2).cycles == 2 and m.get_register(0) == before + 1


def test_cancelling_from_another_thread(engine: str) -> None:
    m = machine(engine, FOREVER, lanes=2)
    results: list[kvrm.RunResult] = []
    thread = threading.Thread(target=lambda: results.append(m.run()))
    thread.start()
    while not m.running:
        time.sleep(0.001)
    until_it_has_begun(m)
    with pytest.raises(RuntimeError, match="the machine is running"):
        m.registers
    result = m.cancel()
    thread.join()
    assert result.cancelled and results[0].cycles == result.cycles
    assert not m.running and m.registers.shape == (2, 31)


def test_one_thread_waits_and_another_cancels(engine: str) -> None:
    m = machine(engine, FOREVER)
    for _ in range(3):
        m.start()
        results: list[kvrm.RunResult] = []
        thread = threading.Thread(target=lambda: results.append(m.wait()))
        thread.start()
        until_it_has_begun(m)
        assert m.running
        result = m.cancel()
        thread.join()
        assert result.cancelled and not m.running
        assert results[0].cycles == result.cycles


def test_threads_that_look_at_one_machine(engine: str) -> None:
    m = machine(engine, [ADD, HALT])
    failures: list[Exception] = []

    def look() -> None:
        try:
            for _ in range(200):
                m.registers
                m.set_register(1, 5)
                m.read_memory(0, 64)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_closing_while_running(engine: str) -> None:
    m = machine(engine, FOREVER)
    m.start()
    m.close()
    m = machine(engine, FOREVER)
    thread = threading.Thread(target=m.run)
    thread.start()
    while not m.running:
        time.sleep(0.001)
    m.close()
    thread.join()
    m = machine(engine, FOREVER)
    m.start()
    del m


def test_threads_go_on_during_a_run(engine: str) -> None:
    machines = [machine(engine, FOREVER) for _ in range(2)]
    threads = [threading.Thread(target=m.run) for m in machines]
    for thread in threads:
        thread.start()
    for m in machines:
        until_it_has_begun(m)
        m.cancel()
    for thread in threads:
        thread.join()


def test_batches(engine: str) -> None:
    m = machine(engine, FOREVER, lanes=2)
    seen: list[int] = []
    result = m.run_batches(10, 3, callback=lambda result: seen.append(result.cycles))
    assert (seen, result.batch_count, result.cycles) == ([20, 40], 3, 60)
    result = m.run_batches(10, callback=lambda result: result.batch_count < 4)
    assert (result.batch_count, result.cancelled, result.stop.reason) == (4, False, "MAX_CYCLES")
    result = m.run_batches(10**9, timeout=0.05)
    assert result.cancelled
    m.load([HALT])
    m.reset()
    assert m.run_batches(10).stop.reason == "HALT"


def test_progress_of_batches(engine: str) -> None:
    m = machine(engine, FOREVER, lanes=3)
    looks: list[kvrm.Progress] = []

    def look(result: kvrm.RunResult) -> np.bool_:
        looks.append(m.poll())
        # NumPy's False is one, too.
        return np.bool_(result.batch_count < 5)

    assert m.run_batches(10, callback=look).batch_count == 5
    assert [(look.running, look.stopped) for look in looks] == [(True, 3)] * 5
    assert (m.poll().running, m.poll().cycles, m.poll().stopped) == (False, 150, 3)


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("use", ["cancel", "wait", "close"])
def test_callbacks_cannot_wait_for_the_run(engine: str, lanes: int, use: str) -> None:
    m = machine(engine, FOREVER, lanes)
    with pytest.raises(RuntimeError, match="from within the run.*return False"):
        m.run_batches(10, callback=lambda result: getattr(m, use)())
    assert m.run(10).cycles == 10 * lanes


@pytest.mark.skipif(sys.platform == "win32", reason="there are no timers of this kind there")
@pytest.mark.parametrize("run", ["run()", "run(progress=True)", "run_batches(1000)"])
def test_signal_handlers_cannot_wait_for_the_run(engine: str, run: str) -> None:
    program = textwrap.dedent(f"""
        import signal, kvrm
        m = kvrm.Machine({engine!r}, memory="64K")
        m.load({FOREVER!r})
        # Again and again, until there is a run.
        signal.signal(signal.SIGALRM, lambda *_: m.running and m.cancel())
        signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
        try:
            m.{run}
        except RuntimeError as error:
            signal.setitimer(signal.ITIMER_REAL, 0)
            print("raise an exception" in str(error), m.running)
    """)
    process = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert process.stdout == "True False\n", process.stderr


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("run", ["run()", "run_batches(1000)"])
def test_python_ends_during_a_run(engine: str, lanes: int, run: str) -> None:
    program = textwrap.dedent(f"""
        import threading, time, kvrm
        m = kvrm.Machine({engine!r}, lanes={lanes}, memory="64K")
        m.load({FOREVER!r})
        threading.Thread(target=lambda: m.{run}, daemon=True).start()
        while m.poll().cycles == 0:
            time.sleep(0.001)
    """)
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60)
    assert process.returncode == 0, process.stderr


def test_callbacks_that_raise(engine: str) -> None:
    m = machine(engine, FOREVER, lanes=2)
    with pytest.raises(ZeroDivisionError):
        m.run_batches(10, callback=lambda result: 1 // 0)
    assert m.counts.tolist() == [10, 10] and not m.running

    def nosy(result: kvrm.RunResult) -> None:
        m.registers

    with pytest.raises(RuntimeError, match="the machine is running"):
        m.run_batches(10, callback=nosy)
    assert m.run(10).cycles == 20


def test_asyncio(engine: str) -> None:
    m, other = machine(engine, FOREVER), machine(engine, [ADD, HALT])

    async def both() -> tuple[kvrm.RunResult, kvrm.RunResult]:
        return await asyncio.gather(m.run_async(5000), other.run_async())

    first, second = asyncio.run(both())
    assert (first.cycles, second.stop.reason) == (5000, "HALT")

    async def too_long() -> None:
        await asyncio.wait_for(m.run_async(), 0.05)

    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(too_long())
    assert not m.running and m.run(2).cycles == 2


def test_asyncio_where_others_end_the_run(engine: str) -> None:
    m = machine(engine, FOREVER)

    async def ended_by(end: Callable[[], object]) -> kvrm.RunResult:
        task = asyncio.create_task(m.run_async())
        while not m.running:
            await asyncio.sleep(0)
        end()
        return await task

    assert asyncio.run(ended_by(m.cancel)).cancelled

    async def cancelled(end: Callable[[], object]) -> bool:
        task = asyncio.create_task(m.run_async())
        while not m.running:
            await asyncio.sleep(0)
        end()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        return task.cancelled()

    assert asyncio.run(cancelled(m.cancel))
    assert asyncio.run(cancelled(m.close))


@pytest.mark.parametrize("have_tqdm", [False, True])
def test_progress(engine: str, have_tqdm: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if have_tqdm:
        pytest.importorskip("tqdm")
    else:
        monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    m = machine(engine, FOREVER)
    output = io.StringIO()
    with contextlib.redirect_stderr(output):
        assert m.run(5000, progress=True).cycles == 5000
        assert m.run_batches(100, 3, progress=True).cycles == 300
        assert m.run_mega(7, progress=True).cycles == 7
    text = output.getvalue()
    assert ("instr" in text) and ("5,000 instructions (100%)" in text or have_tqdm)
    # Without a limit, nobody knows how much is left.
    output = io.StringIO()
    with contextlib.redirect_stderr(output):
        machine(engine, [ADD, HALT]).run(progress=True)
    assert "instr" in output.getvalue() and "%" not in output.getvalue()


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise there")
@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize(
    "wait",
    [
        "m.run()",
        "m.run_batches(10**12)",
        "m.run_batches(100, callback=id)",
        "(m.start(), m.wait())",
        "m.run(progress=True)",
    ],
)
def test_ctrl_c(engine: str, lanes: int, wait: str) -> None:
    program = textwrap.dedent(f"""
        import threading, time, kvrm
        m = kvrm.Machine({engine!r}, lanes={lanes}, memory="64K")
        m.load({FOREVER!r})
        m.run(10)
        print("ready", flush=True)
        try:
            {wait}
        except KeyboardInterrupt:
            before = int(m.registers[0, 0])
            m.run(2)
            print("stopped", m.running, int(m.registers[0, 0]) - before)
    """)
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert output == "stopped False 1\n", errors
