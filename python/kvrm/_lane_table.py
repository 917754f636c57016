"""A table of what many lanes did."""

from __future__ import annotations

import html
import importlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Union, overload

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from kvrm._many import LaneResult

#: A choice of rows that is a table again.
_Rows = Union[slice, "npt.ArrayLike"]

#: Kinds of outcomes, and lanes, that are shown.
_MOST_KINDS = 10
_MOST_LANES = 10
#: Characters of a text that are.
_MOST_TEXT = 60


class LaneTable:
    """What many lanes did: a row for each, in the order of their numbers.

    table[3] is a LaneResult; table[10:20], table[[3, 1]] and table[table.status != 0] are tables. len(table) and iterating
    work as for a list.

    Columns as NumPy arrays: lane; ending, as text; status, the exit code, or -1 if it did not exit; signal, the number of
    the signal that killed it, or 0; instructions; system_calls; engine, as text. As lists: stdout, stderr, files, limits_hit,
    and crash and error, which are None for most. results: the LaneResults. placement: where the lanes ran and why, in a
    sentence; None for a part of a table.

    >>> import kvrm
    >>> table = kvrm.run_many("guests/linux/collatz", argv=[(n, 1) for n in range(1, 101)])
    >>> bool(table.status.any()), table[26].stdout
    (False, b'000000000000006f\\n')
    >>> table[table.instructions > 1150].lane.tolist()
    [72, 96]
    """

    def __init__(self, results: list[LaneResult], placement: str | None = None) -> None:
        self.results = results
        self.placement = placement

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[LaneResult]:
        return iter(self.results)

    @overload
    def __getitem__(self, key: int) -> LaneResult: ...
    @overload
    def __getitem__(self, key: _Rows) -> LaneTable: ...
    def __getitem__(self, key: int | _Rows) -> LaneResult | LaneTable:
        if isinstance(key, slice):
            return LaneTable(self.results[key])
        # NumPy checks the length of masks, and the range of numbers.
        chosen = np.arange(len(self))[np.asarray(key, dtype=np.intp if _is_empty(key) else None)]
        if chosen.ndim == 0:
            return self.results[int(chosen)]
        return LaneTable([self.results[at] for at in chosen])

    def _array(self, values: Iterator[Any], dtype: Any) -> npt.NDArray[Any]:
        return np.fromiter(values, dtype=dtype, count=len(self))

    @cached_property
    def lane(self) -> npt.NDArray[np.int64]:
        """The number of each lane."""
        return self._array((result.lane for result in self.results), np.int64)

    @cached_property
    def ending(self) -> npt.NDArray[np.str_]:
        """How each ended: "exited", "killed", "limit", "deadlock", "timeout" or "not started"."""
        return np.array([result.ending for result in self.results], dtype=np.str_)

    @cached_property
    def status(self) -> npt.NDArray[np.int16]:
        """Exit codes; -1 for lanes that did not exit."""
        codes = (-1 if result.exit_code is None else result.exit_code for result in self.results)
        return self._array(codes, np.int16)

    @cached_property
    def signal(self) -> npt.NDArray[np.int16]:
        """Numbers of the signals that killed lanes; 0 for the others."""
        return self._array((result.signal_number or 0 for result in self.results), np.int16)

    @cached_property
    def instructions(self) -> npt.NDArray[np.uint64]:
        """Instructions of each lane."""
        return self._array((result.instructions for result in self.results), np.uint64)

    @cached_property
    def system_calls(self) -> npt.NDArray[np.uint64]:
        """How many system calls each has made."""
        return self._array((sum(result.syscalls.values()) for result in self.results), np.uint64)

    @cached_property
    def engine(self) -> npt.NDArray[np.str_]:
        """The engine that each ran on."""
        return np.array([result.engine for result in self.results], dtype=np.str_)

    @property
    def stdout(self) -> list[bytes]:
        """What each wrote to standard output."""
        return [result.stdout for result in self.results]

    @property
    def stderr(self) -> list[bytes]:
        """What each wrote to standard error."""
        return [result.stderr for result in self.results]

    @property
    def files(self) -> list[dict[str, bytes]]:
        """The files that each has created or changed."""
        return [result.files for result in self.results]

    @property
    def limits_hit(self) -> list[list[str]]:
        """The limits that each has reached."""
        return [result.limits_hit for result in self.results]

    @property
    def crash(self) -> list[Any]:
        """What each died of: a Crash, or None."""
        return [result.crash for result in self.results]

    @property
    def error(self) -> list[str | None]:
        """Why it could not be started, or None."""
        return [result.error for result in self.results]

    def outcomes(self) -> dict[str, LaneTable]:
        """The lanes of every way to end, the most frequent first.

        >>> import kvrm
        >>> table = kvrm.run_many("guests/linux/collatz", argv=[(27, 1), (97, 1)])
        >>> {how: len(lanes) for how, lanes in table.outcomes().items()}
        {'exit code 0': 2}
        """
        kinds: dict[str, list[LaneResult]] = {}
        for result in self.results:
            kinds.setdefault(_how(result), []).append(result)
        sort = sorted(kinds.items(), key=lambda kind: (-len(kind[1]), kind[0]))
        return {how: LaneTable(results) for how, results in sort}

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame; what a lane does not have is missing."""
        pandas = _imported("pandas")
        columns = self._columns()
        for name in ("exit_code", "signal_number"):
            columns[name] = pandas.array(columns[name], dtype="Int16")
        for name in ("fault_address", "pc"):
            columns[name] = pandas.array(columns[name], dtype="UInt64")
        return pandas.DataFrame(columns)

    def to_arrow(self) -> Any:
        """The table as a pyarrow Table; what a lane does not have is null."""
        arrow = _imported("pyarrow")
        types = {
            "exit_code": arrow.int16(),
            "signal": arrow.string(),
            "signal_number": arrow.int16(),
            "fault_address": arrow.uint64(),
            "pc": arrow.uint64(),
            "function": arrow.string(),
            "stdout": arrow.binary(),
            "stderr": arrow.binary(),
            "files": arrow.map_(arrow.string(), arrow.binary()),
            "limits_hit": arrow.list_(arrow.string()),
            "error": arrow.string(),
        }
        columns = self._columns()
        columns["files"] = [list(files.items()) for files in columns["files"]]
        arrays = {name: arrow.array(values, types.get(name)) for name, values in columns.items()}
        return arrow.table(arrays)

    def _columns(self) -> dict[str, Any]:
        """All columns, with None for what a lane does not have."""
        crashes = self.crash
        return {
            "lane": self.lane,
            "ending": [result.ending for result in self.results],
            "exit_code": [result.exit_code for result in self.results],
            "signal": [result.signal for result in self.results],
            "signal_number": [result.signal_number for result in self.results],
            "fault_address": [crash and crash.address for crash in crashes],
            "pc": [crash and crash.pc for crash in crashes],
            "function": [crash and crash.function for crash in crashes],
            "instructions": self.instructions,
            "system_calls": self.system_calls,
            "stdout": self.stdout,
            "stderr": self.stderr,
            "files": self.files,
            "limits_hit": self.limits_hit,
            "engine": [result.engine for result in self.results],
            "error": self.error,
        }

    def _title(self) -> str:
        failed = int(np.count_nonzero(self.status))
        total = int(self.instructions.sum())
        lanes = "1 lane" if len(self) == 1 else f"{len(self):,} lanes"
        return f"kvrm.LaneTable: {lanes}, {failed:,} failed, {total:,} instructions"

    def _kinds(self) -> list[tuple[str, str, str]]:
        """The most frequent outcomes, with how many lanes there are and an example."""
        kinds = list(self.outcomes().items())
        rows = [(f"{len(lanes):,}", _short(how), f"lane {lanes[0].lane}") for how, lanes in kinds[:_MOST_KINDS]]
        others = sum(len(lanes) for _, lanes in kinds[_MOST_KINDS:])
        return [*rows, (f"{others:,}", "others", "")] if others else rows

    def __repr__(self) -> str:
        kinds = self._kinds()
        widths = [max((len(kind[at]) for kind in kinds), default=0) + 2 for at in range(2)]
        lines = [
            f"{lanes:>{widths[0]}}  {how:{widths[1]}}({example})".replace("()", "").rstrip()
            for lanes, how, example in kinds
        ]
        return "\n".join([f"<{self._title()}>", *lines])

    def _repr_html_(self) -> str:
        kinds = _html_table(("lanes", "outcome", "for example"), self._kinds())
        shown = [
            (str(result.lane), _how(result), f"{result.instructions:,}", _text(result.stdout))
            for result in self.results[:_MOST_LANES]
        ]
        first = _html_table(("lane", "outcome", "instructions", "stdout"), shown)
        title = "" if len(self) <= _MOST_LANES else f"<p>The first {_MOST_LANES} lanes:</p>"
        return f"<p><b>{html.escape(self._title())}</b></p>{kinds}{title}{first}"


def _is_empty(key: Any) -> bool:
    """True for an empty list, which NumPy would take for floats."""
    return isinstance(key, (list, tuple)) and not key


def _how(result: LaneResult) -> str:
    """How a lane ended, in words that are the same for all that ended so."""
    crash = result.crash
    if crash is not None:
        at = f"at {crash.pc:#x}" if crash.function is None else f"in {crash.function}+{crash.offset:#x}"
        return f"{crash.signal} {at}"
    if result.ending == "killed":
        return str(result.signal)
    return result._end()


def _text(output: bytes) -> str:
    """The beginning of an output."""
    return _short(output[: 4 * _MOST_TEXT].decode(errors="replace"))


def _short(text: str) -> str:
    return text if len(text) <= _MOST_TEXT else text[: _MOST_TEXT - 1] + "…"


def _html_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{name}</th>" for name in heads)
    cell = '<td style="text-align: left"><pre style="margin: 0">{}</pre></td>'
    lines = ["".join(cell.format(html.escape(text)) for text in row) for row in rows]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f"this needs {name}: pip install {name}") from error
