"""Linux programs: kvrm.run."""

from __future__ import annotations

import errno
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Callable

import pytest

if sys.platform == "win32":
    pytest.skip("kvrm.run needs Unix", allow_module_level=True)

import kvrm
from linux_programs import (
    ARGUMENTS,
    BROKEN,
    COPY,
    FILES,
    FOREVER,
    HELLO,
    RANDOM,
    WAIT,
    elf,
    one_call,
)

GETPID, MMAP = 172, 222


def run(program: bytes, *args: str, **options: object) -> kvrm.ProcessResult:
    files = {"/program": program, **options.pop("files", {})}  # type: ignore[dict-item]
    return kvrm.run(["/program", *args], files=files, **options)  # type: ignore[arg-type]


def test_output_and_exit_code(engine: str) -> None:
    result = run(HELLO, engine=engine)
    assert (result.stdout, result.stderr, result.exit_code) == (b"hello\n", b"", 7)
    assert (result.returncode, result.signal, result.crash, result.ending) == (7, None, None, "exited")
    assert (result.instructions, result.syscalls) == (8, {"exit": 1, "write": 1})
    assert (result.files, result.unknown_syscalls, result.limits_hit) == ({}, {}, [])
    assert result.moved_to_cpu is None
    expected = "<kvrm.ProcessResult /program: exit code 7, 8 instructions, 2 system calls>"
    assert repr(result) == expected
    assert run(HELLO, engine="auto") == run(HELLO, engine="cpu")


def test_programs_of_the_host(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(HELLO)
    program.chmod(0o755)
    paths: list[str | bytes | Path] = [program, str(program), bytes(program)]
    for path in paths:
        assert kvrm.run(path).stdout == b"hello\n"
        assert kvrm.run([path]).stdout == b"hello\n"


def test_check() -> None:
    assert run(COPY).check().exit_code == 0
    with pytest.raises(kvrm.ProcessError, match="^/program: exit code 7$") as raised:
        run(HELLO).check()
    error = raised.value
    assert (error.returncode, error.cmd, error.stdout) == (7, ("/program",), b"hello\n")
    assert (error.stderr, error.result.exit_code) == (b"", 7)
    with pytest.raises(kvrm.ProcessError, match="^/program: ended by max_instructions: last$"):
        run(COPY, stdin=b"first\nlast\n", max_instructions=16).check()


def test_signals() -> None:
    result = run(BROKEN)
    assert (result.signal, result.returncode, result.exit_code) == ("SIGSEGV", -11, None)
    assert (result.ending, result.stdout) == ("killed", b"")
    crash = result.crash
    assert crash == kvrm.Crash("SIGSEGV", 0x40007C, 8, "broken", 4)
    assert str(crash) == "SIGSEGV at 0x40007c in broken+0x4, accessing 0x8"
    assert "SIGSEGV at 0x40007c in broken+0x4" in repr(result)
    with pytest.raises(kvrm.ProcessError, match="broken"):
        result.check()
    # udf, which nobody can execute; there is no symbol table.
    crash = run(elf("nop; .word 0xffffffff")).crash
    assert crash is not None and (crash.signal, crash.function) == ("SIGILL", None)


def test_input() -> None:
    text = bytes(range(256)) * 100
    result = run(COPY, stdin=text)
    assert (result.stdout, result.stderr) == (text, text)
    assert run(COPY, stdin=bytearray(b"abc")).stdout == b"abc"
    with pytest.raises(TypeError, match="must be bytes"):
        run(COPY, stdin="abc")


def test_arguments_and_environment() -> None:
    result = run(ARGUMENTS, "a b", "ü", env={"HOME": "/root", "X": ""})
    assert result.stdout.decode() == "/program\na b\nü\nHOME=/root\nX=\n"
    assert result.args == ("/program", "a b", "ü")
    assert run(ARGUMENTS, env={b"A": b"\xff"}).stdout == b"/program\nA=\xff\n"
    with pytest.raises(ValueError, match="args is empty"):
        kvrm.run([])


def test_files() -> None:
    result = run(FILES, files={"/in": b"contents"})
    assert result.exit_code == 0
    assert result.files == {"/out/new": b"contents"}
    assert run(FILES, files={"/place/in": b"there"}, cwd="/place").files == {"/out/new": b"there"}
    assert run(FILES).exit_code == errno.ENOENT
    with pytest.raises(OSError, match="/nowhere"):
        run(FILES, cwd="/nowhere")


def test_binds(tmp_path: Path) -> None:
    folder, out = tmp_path / "folder", tmp_path / "out"
    folder.mkdir()
    out.mkdir()
    (folder / "in").write_bytes(b"of the host")
    expected = {"/out/new": b"of the host"}
    assert run(FILES, binds={"/work": folder}, cwd="/work").files == expected
    assert run(FILES, binds=[folder], cwd=str(folder)).files == expected
    assert run(FILES, binds={"/in": folder / "in", "/out": out}).files == expected
    assert not list(out.iterdir())
    result = run(FILES, binds=[folder], cwd=folder, writable_binds={"/out": out})
    assert (result.exit_code, result.files) == (0, {})
    assert (out / "new").read_bytes() == b"of the host"
    with pytest.raises(TypeError, match="binds are a dict"):
        run(FILES, binds="folder")
    with pytest.raises(OSError, match="missing"):
        run(FILES, binds={"/work": tmp_path / "missing"})


def test_roots(tmp_path: Path) -> None:
    root, kept = tmp_path / "root", tmp_path / "kept"
    (root / "usr/bin").mkdir(parents=True)
    (root / "in").write_bytes(b"of the root")
    program = root / "usr/bin/copy-file"
    program.write_bytes(FILES)
    program.chmod(0o755)
    for args in ["copy-file", ["/usr/bin/copy-file"]]:
        result = kvrm.run(args, root=root, keep=kept)
        assert result.files == {"/out/new": b"of the root"}
        assert (kept / "out/new").read_bytes() == b"of the root"
        assert not (root / "out").exists()


def test_nothing_else_of_the_host_is_there(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"secret")
    with pytest.raises(OSError, match=tmp_path.name):
        run(FILES, cwd=tmp_path)


def test_missing_programs(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="cannot find the program ./missing"):
        kvrm.run("./missing")
    with pytest.raises(OSError, match="/program"):
        run(b"not a program")
    with pytest.raises(ValueError, match="gpu"):
        run(HELLO, engine="gpu")


def test_limits() -> None:
    result = run(FOREVER, max_instructions=1001)
    assert (result.instructions, result.ending, result.limits_hit) == (1001, "limit", ["max_instructions"])
    assert (result.returncode, result.signal) == (None, None)
    assert "ended by max_instructions" in repr(result)
    result = run(one_call(MMAP, 0, 1 << 28, 3, 0x22, -1, 0), max_memory="64M")
    assert (result.exit_code, result.limits_hit) == (errno.ENOMEM, ["max_memory"])
    result = run(COPY, stdin=bytes(1000), max_output=100)
    assert len(result.stdout) <= 100 and result.limits_hit == ["max_output"]
    result = run(FILES, files={"/in": bytes(4096)}, max_file_bytes=1000)
    assert result.limits_hit == ["max_file_bytes"]
    for name, wrong in [("max_memory", -1), ("max_memory", "much"), ("max_processes", 0), ("max_open_files", 2)]:
        with pytest.raises(ValueError):
            run(HELLO, **{name: wrong})


def test_runs_are_the_same() -> None:
    first, second = run(RANDOM), run(RANDOM, engine="eval")
    assert first.stdout == second.stdout and len(first.stdout) == 32
    assert first.instructions == second.instructions
    other = run(RANDOM, seed=1)
    assert other.stdout[:16] != first.stdout[:16] and other.stdout[16:] == first.stdout[16:]
    seconds = int.from_bytes(run(RANDOM, realtime=True).stdout[16:24], "little")
    assert abs(seconds - time.time()) < 60


def test_timeouts() -> None:
    start = time.monotonic()
    result = run(FOREVER, timeout=0.2)
    assert 0.2 <= time.monotonic() - start < 5
    assert (result.ending, result.returncode) == ("timeout", None) and result.instructions > 0
    assert run(HELLO, timeout=1000).ending == "exited"
    with pytest.raises(ValueError, match="timeout must be a number of seconds"):
        run(HELLO, timeout=-1)


def test_deadlocks() -> None:
    result = run(WAIT)
    assert (result.ending, result.returncode) == ("deadlock", None)


def test_strace(capsys: pytest.CaptureFixture[str]) -> None:
    lines: list[str] = []
    run(HELLO, strace=lines.append)
    assert len(lines) == 2 and 'write(1, "hello\\n", 6)' in lines[0]
    assert run(HELLO, strace=False).exit_code == 7
    run(HELLO, strace=True)
    assert capsys.readouterr().err.splitlines() == lines
    with pytest.raises(ZeroDivisionError):
        run(HELLO, strace=lambda line: 1 // 0)


def test_unknown_calls() -> None:
    result = run(one_call(1000))
    assert (result.exit_code, result.unknown_syscalls) == (errno.ENOSYS, {1000: 1})
    assert run(one_call(1000), on_syscall=lambda call: 5 if call.name == "syscall_1000" else None).exit_code == 5


def test_answers() -> None:
    program = one_call(GETPID)
    assert run(program, on_syscall={"getpid": 99}).exit_code == 99
    assert run(program, on_syscall={"getpid": -12}).exit_code == 12
    assert run(program, on_syscall={"getpid": lambda call: call.number // 2}).exit_code == GETPID // 2
    assert run(program, on_syscall=lambda call: 98 if call.name == "getpid" else None).exit_code == 98
    plain = run(program).exit_code
    assert plain == 1000 % 256
    for nothing in [{"getpid": None}, {}, {"openat": 3}, lambda call: None]:
        assert run(program, on_syscall=nothing).exit_code == plain


def test_refusals() -> None:
    def forbid(call: kvrm.SystemCall) -> None:
        if call.name == "openat":
            raise PermissionError(errno.EACCES, "not here")

    refused = OSError(errno.EACCES, "no")
    for hook in [forbid, {"openat": refused}, {"openat": forbid}, {"openat": lambda call: refused}]:
        assert run(FILES, files={"/in": b""}, on_syscall=hook).exit_code == errno.EACCES
    for wrong in [OSError("without a number"), OSError(1000, "too large")]:
        with pytest.raises(ValueError, match="needs a number"):
            run(FILES, on_syscall={"openat": wrong})


def test_system_calls_have_memory() -> None:
    seen = []

    def look(call: kvrm.SystemCall) -> None:
        seen.append(call)
        if call.name == "openat":
            assert call.read_string(call.args[1]) in (b"in", b"/out/new")
            assert call.args[0] == 2**64 - 100
        elif call.name == "write":
            assert call.read(call.args[1], call.args[2]) == b"abc"
            call.write(call.args[1], b"X")

    result = run(FILES, files={"/in": b"abc"}, on_syscall=look)
    assert result.files == {"/out/new": b"Xbc"}
    assert {call.pid for call in seen} == {1000}
    assert "<kvrm.SystemCall openat(0xffffffffffffff9c, " in repr(seen[0])
    with pytest.raises(RuntimeError, match="the system call is over"):
        seen[0].read(0, 1)


@pytest.mark.parametrize("length", [1, 1 << 22, 1 << 63])
def test_addresses_without_memory(length: int) -> None:
    caught = []

    def look(call: kvrm.SystemCall) -> None:
        uses: list[Callable[[], object]] = [
            lambda: call.read(8, length),
            lambda: call.read_string(8),
            lambda: call.write(8, b"x"),
        ]
        for use in uses:
            with pytest.raises(OSError) as raised:
                use()
            caught.append(raised.value.errno)
        call.read(8, length)

    # What is not caught refuses the call.
    assert run(one_call(GETPID), on_syscall={"getpid": look}).exit_code == errno.EFAULT
    assert caught == [errno.EFAULT] * 3


def test_exceptions_end_runs(tmp_path: Path) -> None:
    def fail(call: kvrm.SystemCall) -> None:
        raise LookupError(call.name)

    with pytest.raises(LookupError, match="openat"):
        run(FILES, files={"/in": b"x"}, writable_binds={"/out": tmp_path}, on_syscall={"openat": fail})
    assert not list(tmp_path.iterdir())
    with pytest.raises(TypeError, match="the answer to a system call must be a whole number"):
        run(FILES, on_syscall={"openat": "text"})


def test_other_threads_go_on() -> None:
    counted, done = 0, threading.Event()

    def count() -> None:
        nonlocal counted
        while not done.wait(0.01):
            counted += 1

    thread = threading.Thread(target=count)
    thread.start()
    run(FOREVER, timeout=0.5)
    done.set()
    thread.join()
    assert counted > 5


@pytest.mark.parametrize("engine", ["cpu", "eval"])
def test_interrupts(engine: str, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(FOREVER)
    program.chmod(0o755)
    script = textwrap.dedent("""
        import kvrm, os, signal, sys, threading, time
        sent = []
        def interrupt():
            time.sleep(0.3)
            sent.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=interrupt).start()
        try:
            kvrm.run(sys.argv[1], engine=sys.argv[2])
        except KeyboardInterrupt:
            print(time.monotonic() - sent[0])
    """)
    command = [sys.executable, "-c", script, str(program), engine]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    # 50 ms on an idle computer.
    assert float(done.stdout) < 0.5, done.stderr


def test_signals_of_the_host_that_are_handled() -> None:
    handled = []
    before = signal.signal(signal.SIGALRM, lambda *_: handled.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        assert run(FOREVER, timeout=0.3).ending == "timeout"
    finally:
        signal.signal(signal.SIGALRM, before)
    assert handled == [1]


def test_a_program_goes_on_from_a_file(engine: str, tmp_path: Path) -> None:
    program, file, other = tmp_path / "program", tmp_path / "start.snap", tmp_path / "other"
    program.write_bytes(COPY)
    program.chmod(0o755)
    saved = kvrm.save(program, file, until="first-read")
    assert (saved.args, saved.file, saved.size) == ((str(program),), str(file), file.stat().st_size)
    assert saved.pages > 0
    whole = kvrm.run(program, stdin=b"some text")
    assert saved.instructions < whole.instructions
    result = kvrm.run(file, stdin=b"some text", engine=engine)
    assert (result.stdout, result.stderr, result.exit_code) == (b"some text", b"some text", whole.exit_code)
    assert (result.instructions, result.syscalls) == (whole.instructions, whole.syscalls)
    table = kvrm.run_many(file, stdin=[b"1", b"22", b""])
    assert table.stdout == [b"1", b"22", b""]
    with pytest.raises(OSError, match="the snapshot was made with no arguments"):
        kvrm.run([file, "more"])
    with pytest.raises(ValueError, match="the seed of random numbers belongs to the beginning"):
        kvrm.run(file, seed=1)
    with pytest.raises(OSError, match="has a function nothing"):
        kvrm.save(program, other, until="nothing")
    with pytest.raises(ValueError, match="is no point in a program"):
        kvrm.save(program, other, until=3)
    program.write_bytes(FOREVER)
    with pytest.raises(TimeoutError):
        kvrm.save(program, other, until="nothing", timeout=0.1)
    assert not other.exists()
    program.write_bytes(BROKEN)
    with pytest.raises(OSError, match="has changed since the program saw it"):
        kvrm.run(file)
    assert kvrm.save(program, other, until="broken").instructions == 0
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(OSError, match="its checksum is wrong"):
        kvrm.run(file)
