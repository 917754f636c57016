"""Runs Linux programs in a sandbox."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, SupportsIndex, TypeVar, Union

from kvrm._kvrm import SystemCall, run_program, save_program

if TYPE_CHECKING:
    from typing_extensions import Buffer

_Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
_Paths = Union[Mapping[str, _Path], Mapping[bytes, _Path], Iterable[_Path]]
_Answer = Union[int, BaseException, None]
_Hook = Callable[[SystemCall], _Answer]


@dataclass(frozen=True)
class Crash:
    """What a program died of.

    signal: name, such as "SIGSEGV". pc: address of the instruction. address: what it could not access, or None.
    function, offset: the function that it was in, and how far from its beginning, or None if that is not known.
    """

    signal: str
    pc: int
    address: int | None
    function: str | None
    offset: int | None

    def __str__(self) -> str:
        where = "" if self.function is None else f" in {self.function}+{self.offset:#x}"
        what = "" if self.address in (None, self.pc) else f", accessing {self.address:#x}"
        return f"{self.signal} at {self.pc:#x}{where}{what}"


@dataclass(frozen=True, repr=False)
class ProcessResult:
    """What a Linux program did.

    args: the program and its arguments. ending: "exited", "killed" (by a signal), "limit", "deadlock" (every thread
    waited for something that nobody would do) or "timeout". exit_code: None unless it exited. signal: name of the
    signal that killed it, such as "SIGSEGV", or None; signal_number: its number. stdout, stderr: what it wrote there.
    files: contents of the files that it has created or changed, outside of writable binds, by path. instructions: of
    all its threads and processes. syscalls: names of system calls and how often it made them, the most frequent first.
    unknown_syscalls: numbers of those that kvrm does not have, and how often; they failed with ENOSYS. limits_hit:
    limits that it reached, by the names of the arguments. moved_to_cpu: the number of instructions after which it was
    moved from a GPU to the CPU, or None. crash: a Crash if a signal killed it, else None.

    >>> import kvrm
    >>> result = kvrm.run(["guests/linux/collatz", "27", "1"])
    >>> result
    <kvrm.ProcessResult guests/linux/collatz: exit code 0, 1,140 instructions, 2 system calls>
    >>> result.syscalls
    {'exit': 1, 'write': 1}
    """

    args: tuple[str, ...]
    ending: str
    exit_code: int | None
    signal: str | None
    signal_number: int | None
    stdout: bytes
    stderr: bytes
    files: dict[str, bytes]
    instructions: int
    syscalls: dict[str, int]
    unknown_syscalls: dict[int, int]
    limits_hit: list[str]
    moved_to_cpu: int | None
    crash: Crash | None

    @property
    def returncode(self) -> int | None:
        """As in subprocess: the exit code, or the signal's number, negative; None if the program had not ended."""
        return self.exit_code if self.signal_number is None else -self.signal_number

    def check(self) -> ProcessResult:
        """Returns the result, or raises ProcessError unless the exit code is 0.

        >>> import kvrm
        >>> kvrm.run(["guests/linux/collatz", "27", "1"]).check().stdout
        b'000000000000006f\\n'
        """
        if self.exit_code == 0:
            return self
        raise ProcessError(self)

    def _end(self) -> str:
        """How it ended, in words."""
        if self.ending == "exited":
            return f"exit code {self.exit_code}"
        if self.ending == "killed":
            return str(self.crash or self.signal)
        if self.ending == "limit":
            return f"ended by {' and '.join(self.limits_hit)}"
        return self.ending

    def __repr__(self) -> str:
        calls = sum(self.syscalls.values())
        took = f"{self.instructions:,} instructions, {calls:,} system calls"
        return f"<kvrm.{self._name()} {self.args[0]}: {self._end()}, {took}>"

    def _name(self) -> str:
        return "ProcessResult"


_Kind = TypeVar("_Kind", bound=ProcessResult)


class ProcessError(Exception):
    """A program that ended in another way than with exit code 0: ProcessResult.check raises it.

    result: the ProcessResult. cmd, returncode, stdout, stderr: as in subprocess.CalledProcessError.
    """

    def __init__(self, result: ProcessResult) -> None:
        super().__init__(result)
        self.result = result
        self.cmd = result.args
        self.returncode = result.returncode
        self.stdout = result.stdout
        self.stderr = result.stderr

    def __str__(self) -> str:
        lines = self.stderr.decode(errors="replace").strip().splitlines()
        said = f": {lines[-1]}" if lines else ""
        return f"{self.cmd[0]}: {self.result._end()}{said}"


def run(
    args: _Path | Sequence[_Path],
    *,
    stdin: Buffer = b"",
    files: Mapping[str, Buffer] | Mapping[bytes, Buffer] | None = None,
    env: Mapping[str, str] | Mapping[bytes, bytes] | None = None,
    cwd: _Path = "/",
    root: _Path | None = None,
    binds: _Paths = (),
    writable_binds: _Paths = (),
    max_instructions: SupportsIndex | None = None,
    max_memory: SupportsIndex | str = "4G",
    max_file_bytes: SupportsIndex | str = "1G",
    max_files: SupportsIndex = 1 << 20,
    max_open_files: SupportsIndex = 1024,
    max_processes: SupportsIndex = 1024,
    max_output: SupportsIndex | str | None = None,
    seed: SupportsIndex = 0,
    realtime: bool = False,
    engine: str = "auto",
    timeout: float | None = None,
    keep: _Path | None = None,
    strace: Callable[[str], object] | bool | None = None,
    on_syscall: _Hook | Mapping[str, _Answer | _Hook] | None = None,
) -> ProcessResult:
    """Runs an unmodified ARM64 Linux program in a sandbox, and waits for its end.

    The program sees files in memory, its own file and what it is given, and nothing else. Time, random numbers and the
    order of threads are virtual: the same call gives the same result each time.

    args: the program and its arguments, or only the program: a path on the host, or a path or name in root, or a path
    in files; or a file that kvrm.save has made. stdin: what it reads. files: files that it finds, by path. env: its environment. cwd: where it begins.
    root: a folder of the host that becomes its /. binds: files and folders of the host, by their path in the guest, or
    several that have the same path there. What the program changes in these stays in memory; what it changes in
    writable_binds is changed on the host.

    max_instructions, max_memory, max_file_bytes, max_files, max_open_files, max_processes, max_output: what it may use,
    sizes also as text like "64M". seed: of all random numbers. realtime: it sees the real time; then runs differ.
    engine: "auto" (which is "cpu"), "cpu", "eval", or on a GPU "cuda" or "wgpu", from where a program that makes a second
    thread or process is moved to the CPU. timeout: seconds after which the run ends. keep: a folder of the host where
    the files that it has written are put.

    strace: a function that is called with a line for each system call; True prints them to sys.stderr. on_syscall: a
    function that is called with a SystemCall before each is served. It returns None to have it served, or a number to
    answer it, and returns or raises an OSError (with Linux's number) to refuse it. Or a dict with such answers, or
    functions, for some system calls by name. Other exceptions end the run, and kvrm.run raises them.

    >>> import errno, kvrm
    >>> kvrm.run(["guests/linux/collatz", "27", "1"]).stdout
    b'000000000000006f\\n'
    >>> kvrm.run("guests/linux/loop", max_instructions=1_000_000).limits_hit
    []
    >>> result = kvrm.run("guests/linux/loop", on_syscall={"write": OSError(errno.EIO, "broken")})
    >>> result.stdout, result.exit_code
    (b'', 0)
    """
    command = [args] if isinstance(args, (str, bytes, os.PathLike)) else list(args)
    options = {
        "stdin": stdin,
        "files": files,
        "env": env,
        "cwd": cwd,
        "root": root,
        "binds": binds,
        "writable_binds": writable_binds,
        "max_instructions": max_instructions,
        "max_memory": max_memory,
        "max_file_bytes": max_file_bytes,
        "max_files": max_files,
        "max_open_files": max_open_files,
        "max_processes": max_processes,
        "max_output": max_output,
        "seed": seed,
        "realtime": realtime,
        "engine": engine,
        "timeout": timeout,
        "keep": keep,
        "strace": _print if strace is True else strace or None,
        "on_syscall": dict(on_syscall) if isinstance(on_syscall, Mapping) else on_syscall,
    }
    outcome = run_program(_setup(command, options))
    return _result(ProcessResult, tuple(os.fsdecode(arg) for arg in command), outcome)


@dataclass(frozen=True)
class Saved:
    """A program that kvrm.save has kept: args, the program and its arguments; file, the path of the file; instructions that
    it had executed; pages of its memory that are not zero; size of the file in bytes.
    """

    args: tuple[str, ...]
    file: str
    instructions: int
    pages: int
    size: int


def save(
    args: _Path | Sequence[_Path],
    file: _Path,
    until: str | SupportsIndex,
    *,
    files: Mapping[str, Buffer] | Mapping[bytes, Buffer] | None = None,
    env: Mapping[str, str] | Mapping[bytes, bytes] | None = None,
    cwd: _Path = "/",
    root: _Path | None = None,
    binds: _Paths = (),
    max_instructions: SupportsIndex | None = None,
    max_memory: SupportsIndex | str = "4G",
    max_file_bytes: SupportsIndex | str = "1G",
    max_files: SupportsIndex = 1 << 20,
    max_open_files: SupportsIndex = 1024,
    max_processes: SupportsIndex = 1024,
    max_output: SupportsIndex | str | None = None,
    seed: SupportsIndex = 0,
    timeout: float | None = None,
) -> Saved:
    """Runs a Linux program to a point, and keeps it in a file as it is there. kvrm.run and kvrm.run_many go on from that
    file, with args or program being its path.

    until: the first instruction of a function of the program or a library, by its name; the address of an instruction, as a
    number; or "first-read", just before it first reads its standard input or asks how much there is. No point can be after
    that. A program that does not reach the point raises OSError. The other arguments are those of kvrm.run.

    What goes on does what one run would have done: its output has what it has printed before, and its instructions are counted
    from the beginning. Its standard input may be any. Arguments and variables of the environment are as they were, or others
    of the same lengths, if it has not used them before. Limits are not kept.

    >>> import kvrm, os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "start.snap")
    ...     saved = kvrm.save(["guests/linux/collatz", "27", "1"], file, until=0x4001a0)
    ...     result = kvrm.run(file)
    ...     table = kvrm.run_many(file, argv=[("27", "1"), ("97", "1")])
    >>> saved.instructions, result.instructions, table.stdout
    (5, 1140, [b'000000000000006f\\n', b'0000000000000076\\n'])
    """
    command = [args] if isinstance(args, (str, bytes, os.PathLike)) else list(args)
    options = {
        "files": files,
        "env": env,
        "cwd": cwd,
        "root": root,
        "binds": binds,
        "max_instructions": max_instructions,
        "max_memory": max_memory,
        "max_file_bytes": max_file_bytes,
        "max_files": max_files,
        "max_open_files": max_open_files,
        "max_processes": max_processes,
        "max_output": max_output,
        "seed": seed,
        "timeout": timeout,
    }
    point = until if isinstance(until, str) else hex(until.__index__())
    snapshot, instructions, pages = save_program(_setup(command, options), point)
    with open(file, "wb") as out:
        out.write(snapshot)
    names = tuple(os.fsdecode(arg) for arg in command)
    return Saved(names, os.fsdecode(file), instructions, pages, len(snapshot))


def _setup(command: Sequence[_Path], options: Mapping[str, Any]) -> dict[str, Any]:
    """What the native part gets: the program, and arguments of `run` or their defaults."""
    # Keys of mappings are all text, or all bytes, which makes no difference here.
    files: Mapping[Any, Any] = options.get("files") or {}
    env: Mapping[Any, Any] = options.get("env") or {}
    root, keep = options.get("root"), options.get("keep")
    limits = {name: limit for name, limit in options.items() if name.startswith("max_")}
    return {
        "args": [os.fsencode(arg) for arg in command],
        "stdin": options.get("stdin", b""),
        "files": [(os.fsencode(path), contents) for path, contents in files.items()],
        "env": [(os.fsencode(name), os.fsencode(value)) for name, value in env.items()],
        "cwd": os.fsencode(options.get("cwd", "/")),
        "root": None if root is None else os.fsdecode(root),
        "binds": [
            *_binds(options.get("binds", ()), False),
            *_binds(options.get("writable_binds", ()), True),
        ],
        "limits": {name: limit for name, limit in limits.items() if limit is not None},
        "seed": options.get("seed", 0),
        "realtime": options.get("realtime", False),
        "engine": options.get("engine", "auto"),
        "timeout": options.get("timeout"),
        "keep": None if keep is None else os.fsdecode(keep),
        "strace": options.get("strace"),
        "on_syscall": options.get("on_syscall"),
    }


def _binds(binds: _Paths, writable: bool) -> list[tuple[str, bytes, bool]]:
    """Binds as path on the host, path in the guest, and whether changes go to the host."""
    if isinstance(binds, (str, bytes, os.PathLike)):
        raise TypeError("binds are a dict {path in the guest: path on the host}, or a list of paths")
    if isinstance(binds, Mapping):
        pairs = [(os.path.abspath(os.fsdecode(host)), guest) for guest, host in binds.items()]
    else:
        hosts = [os.path.abspath(os.fsdecode(host)) for host in binds]
        pairs = [(host, host) for host in hosts]
    return [(host, os.fsencode(guest), writable) for host, guest in pairs]


def _print(line: str) -> None:
    print(line, file=sys.stderr)


def _result(kind: type[_Kind], args: tuple[str, ...], outcome: dict[str, Any]) -> _Kind:
    files = {os.fsdecode(path): contents for path, contents in outcome.pop("files").items()}
    crash = outcome.pop("crash")
    return kind(args, files=files, crash=crash and Crash(**crash), **outcome)
