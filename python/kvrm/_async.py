"""Runs machines in asyncio programs."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kvrm import Machine, RunResult

# Short runs are noticed soon, long ones cost little.
FIRST_LOOK = 0.0001
LAST_LOOK = 0.02


async def run_async(machine: Machine, max_cycles: int | None, timeout: float | None) -> RunResult:
    """Runs a machine while other tasks continue; cancelling the task cancels the run."""
    machine.start(max_cycles, timeout=timeout)
    pause = FIRST_LOOK
    try:
        while machine.running:
            await asyncio.sleep(pause)
            pause = min(2 * pause, LAST_LOOK)
    except BaseException:
        # The machine may have been closed.
        with contextlib.suppress(RuntimeError):
            machine.cancel()
        raise
    return machine.wait()
