"""Runs one Linux program in many lanes."""

from __future__ import annotations

import numbers
import os
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, repeat
from typing import TYPE_CHECKING, Any, Callable, SupportsIndex, TypedDict, TypeVar, Union

from kvrm._kvrm import start_lanes
from kvrm._lane_table import LaneTable
from kvrm._linux import ProcessResult, _Path, _Paths, _result, _setup
from kvrm._progress import Bar

if TYPE_CHECKING:
    from typing_extensions import Buffer, Unpack

    _Value = TypeVar("_Value")
    #: A value for each lane: in turn, or from a function of the lane's number.
    _Each = Union[Iterable[_Value], Callable[[int], _Value], None]
    _Argument = Union[_Path, SupportsIndex, float]
    _Arguments = Union[_Argument, Sequence[_Argument]]
    _Files = Union[Mapping[str, Buffer], Mapping[bytes, Buffer]]
    _Variables = Union[Mapping[str, str], Mapping[bytes, bytes]]


class _Options(TypedDict, total=False):
    """What all lanes have in common: see kvrm.run."""

    cwd: _Path
    root: _Path | None
    binds: _Paths
    max_instructions: SupportsIndex | None
    max_memory: SupportsIndex | str
    max_file_bytes: SupportsIndex | str
    max_files: SupportsIndex
    max_open_files: SupportsIndex
    max_processes: SupportsIndex
    max_output: SupportsIndex | str
    seed: SupportsIndex
    realtime: bool
    engine: str
    timeout: float | None
    keep: _Path | None


@dataclass(frozen=True, repr=False)
class LaneResult(ProcessResult):
    """What a Linux program did in one lane: a ProcessResult, and

    lane: its number. engine: the engine that it ran on. error: why it could not be started with what the lane was
    given, or None; its ending is then "not started". ending is "timeout" if the lane's time was over.

    >>> import kvrm
    >>> table = kvrm.run_many(["guests/linux/collatz"], argv=[("27", "1"), ("97", "1")])
    >>> table[1]
    <kvrm.LaneResult 1 guests/linux/collatz: exit code 0, 1,184 instructions, 2 system calls>
    """

    lane: int
    engine: str
    error: str | None

    def _end(self) -> str:
        return super()._end() if self.error is None else self.error

    def _name(self) -> str:
        return f"LaneResult {self.lane}"


def iter_many(
    program: _Path | Sequence[_Path],
    *,
    argv: _Each[_Arguments] = None,
    stdin: Buffer | _Each[Buffer] = None,
    files: _Files | _Each[_Files] = None,
    env: _Variables | _Each[_Variables] = None,
    lanes: SupportsIndex | None = None,
    threads: SupportsIndex = 0,
    **options: Unpack[_Options],
) -> Generator[LaneResult, None, None]:
    """Runs a Linux program in many lanes, and gives their results as they come, in any order.

    The arguments are those of run_many. Values of lanes may come from an iterator without an end, which is read as lanes
    have room. Closing what this returns ends the run.

    >>> import kvrm
    >>> from itertools import count
    >>> for result in kvrm.iter_many("guests/linux/collatz", argv=((n, 1) for n in count(1))):
    ...     if int(result.stdout, 16) > 100:
    ...         break
    """
    return _start(program, argv, stdin, files, env, lanes, threads, options).results()


def run_many(
    program: _Path | Sequence[_Path],
    *,
    argv: _Each[_Arguments] = None,
    stdin: Buffer | _Each[Buffer] = None,
    files: _Files | _Each[_Files] = None,
    env: _Variables | _Each[_Variables] = None,
    lanes: SupportsIndex | None = None,
    threads: SupportsIndex = 0,
    progress: bool = False,
    **options: Unpack[_Options],
) -> LaneTable:
    """Runs a Linux program in many lanes, each with something else to do, and returns a table of what they did.

    Every lane does what kvrm.run would do with the same arguments, and can do nothing to other lanes.

    program: the program, or a list of it and arguments that all lanes have; or a file that kvrm.save has made. argv: further arguments of each lane, one or a
    list; numbers are written in decimal. stdin, files, env: as in kvrm.run, of each lane, or the same for all. What differs
    from lane to lane is a list, an array or an iterator with a value for each lane, or a function of the lane's number.

    lanes: how many lanes there are, if no list says so; otherwise how many may be under way at a time. threads: of this
    computer to run on; 0 means one per core. progress: show a bar.

    engine: "auto", the default, begins on the CPU, and lets a GPU run some of the lanes if they are done sooner then;
    table.placement says what was decided, and why.

    Other arguments are those of kvrm.run. Limits, and timeout, are those of each lane; max_output is "16M" by default. There
    is no strace, no on_syscall, and there are no writable_binds. keep has a folder for each lane, named by its number.

    >>> import kvrm
    >>> table = kvrm.run_many("guests/linux/collatz", argv=lambda lane: (lane + 1, 1), lanes=1000)
    >>> table
    <kvrm.LaneTable: 1,000 lanes, 0 failed, 817,049 instructions>
      1,000  exit code 0  (lane 0)
    >>> table.stdout[26]
    b'000000000000006f\\n'
    >>> int(table.instructions.max()), int(table.lane[table.instructions.argmax()])
    (1574, 870)
    """
    run = _start(program, argv, stdin, files, env, lanes, threads, options)
    bar = Bar(run.total, "lane", "lanes") if progress else None
    results = []
    ended = run.results()
    try:
        for result in ended:
            results.append(result)
            if bar is not None:
                bar.update_soon(len(results))
    finally:
        ended.close()
        if bar is not None:
            bar.close(len(results))
    return LaneTable(sorted(results, key=lambda result: result.lane), run.placement())


class _Run:
    """A run that was started."""

    def __init__(self, command: list[_Path], started: Any, total: int | None) -> None:
        self._args = tuple(os.fsdecode(arg) for arg in command)
        self._started = started
        self.total = total

    def results(self) -> Generator[LaneResult, None, None]:
        """Gives what lanes did; closing it ends the run."""
        try:
            while (outcome := self._started.next()) is not None:
                yield _result(LaneResult, self._args, outcome)
        finally:
            self._started.close()

    def placement(self) -> str:
        """Where the lanes were, and why there."""
        text: str = self._started.placement()
        return text


def _start(
    program: _Path | Sequence[_Path],
    argv: Any,
    stdin: Any,
    files: Any,
    env: Any,
    lanes: SupportsIndex | None,
    threads: SupportsIndex,
    options: _Options,
) -> _Run:
    unknown = sorted(set(options) - set(_Options.__annotations__))
    if unknown:
        raise TypeError(f"many lanes have no argument {unknown[0]!r}")
    command = [program] if isinstance(program, (str, bytes, os.PathLike)) else list(program)
    columns = [
        _Column("argv", argv, ()),
        _Column("env", env, Mapping),
        _Column("stdin", stdin, (bytes, bytearray, memoryview)),
        _Column("files", files, Mapping),
    ]
    total = _total(columns)
    at_a_time = lanes
    if not any(column.ends for column in columns):
        if lanes is None:
            raise ValueError("say how many lanes there are: lanes=1000, or give a list with a value for each")
        total, at_a_time = lanes.__index__(), None
        if total < 0:
            raise ValueError("lanes must not be negative")
    setup = _setup(command, {"max_output": "16M", **options})
    return _Run(command, start_lanes(setup, _rows(columns, total), total, at_a_time, threads), total)


class _Column:
    """What lanes are given of one kind."""

    def __init__(self, name: str, given: Any, shared: Any) -> None:
        self.name = name
        self.length: int | None = None
        #: True if the values say how many lanes there are.
        self.ends = False
        if given is None or isinstance(given, shared):
            self.values: Iterator[Any] = repeat(given)
        elif callable(given):
            self.values = map(given, count())
        elif isinstance(given, str):
            raise TypeError(f"{name} is text: give a list with a value for each lane, or a function of its number")
        else:
            self.values, self.ends = iter(given), True
            self.length = len(given) if hasattr(given, "__len__") else None


def _total(columns: list[_Column]) -> int | None:
    """How many lanes there are, if that is known."""
    known = [column for column in columns if column.length is not None]
    for column in known[1:]:
        if column.length != known[0].length:
            raise ValueError(_unequal(known[0].name, known[0].length, column.name, column.length))
    return known[0].length if known else None


def _unequal(name: str, length: int | None, other: str, other_length: int | None) -> str:
    more = "more" if other_length is None else other_length
    return f"{name} has values for {length} lanes, and {other} for {more}: give each as many"


def _rows(columns: list[_Column], total: int | None) -> Iterator[tuple[Any, Any, Any, Any]]:
    """What each lane has of its own. The total counts if no column ends."""
    end = object()
    lanes = count() if total is None or any(column.ends for column in columns) else range(total)
    for lane in lanes:
        values = [next(column.values, end) for column in columns]
        ended = [column.name for column, value in zip(columns, values) if value is end]
        if ended:
            others = [column.name for column in columns if column.ends and column.name not in ended]
            if others:
                raise ValueError(_unequal(ended[0], lane, others[0], None))
            return
        yield _row(*values)


def _row(argv: Any, env: Any, stdin: Any, files: Any) -> tuple[Any, Any, Any, Any]:
    variables = [(os.fsencode(name), os.fsencode(value)) for name, value in (env or {}).items()]
    given = [(os.fsencode(path), contents) for path, contents in (files or {}).items()]
    return _arguments(argv), variables, stdin, given


def _arguments(given: Any) -> list[bytes]:
    if given is None:
        return []
    if isinstance(given, (str, bytes, os.PathLike, numbers.Number)):
        given = [given]
    return [os.fsencode(str(arg) if isinstance(arg, numbers.Number) else arg) for arg in given]
