"""Shows the progress of a run."""

from __future__ import annotations

import importlib
import sys
import time
from typing import Any


#: Seconds between two updates.
_SHOW = 0.1


def _tqdm(total: int | None, unit: str) -> Any:
    try:
        tqdm = importlib.import_module("tqdm.auto")
    except ImportError:
        return None
    return tqdm.tqdm(total=total, unit=unit, unit_scale=True, dynamic_ncols=True)


class Bar:
    """A tqdm bar if tqdm is installed, otherwise a line on stderr."""

    def __init__(self, total: int | None, unit: str = "instr", name: str = "instructions") -> None:
        self._total = total
        self._name = name
        self._start = time.monotonic()
        self._shown = 0
        self._updated = self._start
        self._tqdm = _tqdm(total, unit)

    def update(self, cycles: int, activity: str | None = None) -> None:
        """Shows how many instructions or lanes have been completed, or what the run does instead."""
        if self._tqdm is None:
            sys.stderr.write(f"\r{self._line(cycles, activity)}\x1b[K")
            sys.stderr.flush()
            return
        self._tqdm.set_description(activity, refresh=False)
        self._tqdm.update(cycles - self._shown)
        self._shown = cycles

    def update_soon(self, done: int) -> None:
        """The same, if it was a while ago."""
        now = time.monotonic()
        if now - self._updated >= _SHOW:
            self._updated = now
            self.update(done)

    def close(self, cycles: int) -> None:
        """Shows the end."""
        self.update(cycles)
        if self._tqdm is None:
            sys.stderr.write("\n")
        else:
            self._tqdm.close()

    def _line(self, cycles: int, activity: str | None) -> str:
        if activity is not None:
            return activity
        seconds = max(time.monotonic() - self._start, 1e-9)
        share = "" if not self._total else f" ({cycles / self._total:.0%})"
        return f"{cycles:,} {self._name}{share}, {cycles / seconds:,.0f}/s"
