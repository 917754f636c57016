"""One machine that runs in the background."""

from __future__ import annotations

from dataclasses import dataclass

from ._results import ExecutionResult
from ._single import SingleCPU


@dataclass(frozen=True)
class AsyncStatus:
    """The progress of a run in the background."""

    cycles_executed: int
    """Instructions completed so far."""
    elapsed_seconds: float
    """Time since the start, or the time it took if it has ended."""
    running: bool
    """Whether it is still running."""

    @property
    def ips(self) -> float:
        """Instructions per second so far."""
        return self.cycles_executed / self.elapsed_seconds if self.elapsed_seconds else 0.0


class AsyncMetalCPU(SingleCPU):
    """One ARM64 machine that runs while Python does something else.

    >>> import kvrm
    >>> cpu = AsyncMetalCPU(device="cpu")
    >>> cpu.load_program(kvrm.assemble("again: b again"), 0)
    >>> cpu.start(max_cycles=1_000_000)
    >>> while cpu.is_running():
    ...     status = cpu.poll()
    >>> cpu.wait().cycles_executed
    1000000
    """

    def start(self, max_cycles: int | None = None, *, timeout: float | None = None) -> None:
        """Starts a run and returns at once. The run ends after ``timeout`` seconds, whether or not anybody waits for
        it."""
        self._machine.start(max_cycles, timeout=timeout)

    def poll(self) -> AsyncStatus:
        """Returns the progress of the run, or how it ended; does not wait."""
        progress = self._machine.poll()
        return AsyncStatus(progress.cycles, progress.elapsed_seconds, progress.running)

    def is_running(self) -> bool:
        """Returns whether a run is in progress."""
        return self._machine.running

    def wait(self, timeout: float | None = None) -> ExecutionResult:
        """Waits for the end of the run. After ``timeout`` seconds it raises :class:`TimeoutError`, and the run
        continues."""
        return ExecutionResult.of(self._machine.wait(timeout))

    def cancel(self) -> ExecutionResult:
        """Ends the run early. The machine keeps what it has computed, and :meth:`start` continues from there."""
        return ExecutionResult.of(self._machine.cancel())
