"""One machine in batches, or in a single launch."""

from __future__ import annotations

import operator

from ._results import ExecutionResult
from ._single import SingleCPU
from ._state import DEFAULT_MEMORY


class ContinuousMetalCPU(SingleCPU):
    """One ARM64 machine that runs batch after batch without returning to Python in between.

    >>> import kvrm
    >>> cpu = ContinuousMetalCPU(cycles_per_batch=1000, device="cpu")
    >>> cpu.load_program(kvrm.assemble("again: b again"), 0)
    >>> result = cpu.execute_continuous(max_batches=10)
    >>> result.total_cycles, result.batch_count, result.signal_name
    (10000, 10, 'CHECKPOINT')
    >>> result = cpu.execute_mega(total_cycles=5000)
    >>> result.total_cycles, result.batch_count
    (5000, 1)
    """

    def __init__(
        self,
        memory_size: int = DEFAULT_MEMORY,
        cycles_per_batch: int = 10_000_000,
        *,
        device: str | None = None,
    ) -> None:
        super().__init__(memory_size, device=device)
        self.cycles_per_batch = cycles_per_batch

    @property
    def cycles_per_batch(self) -> int:
        """Instructions in a batch; may be changed between runs."""
        return self._cycles_per_batch

    @cycles_per_batch.setter
    def cycles_per_batch(self, cycles: int) -> None:
        self._cycles_per_batch = operator.index(cycles)
        if self._cycles_per_batch < 1:
            raise ValueError(f"cycles_per_batch must be at least 1; it is {cycles}")

    def execute_continuous(
        self,
        max_batches: int | None = None,
        *,
        timeout: float | None = None,
        progress: bool = False,
    ) -> ExecutionResult:
        """Runs batches until the machine stops, ``max_batches`` are done, or ``timeout`` seconds have passed.
        ``progress`` shows the progress."""
        cycles = self._cycles_per_batch
        result = self._machine.run_batches(cycles, max_batches, timeout=timeout, progress=progress)
        return ExecutionResult.of(result)

    def execute_mega(
        self,
        total_cycles: int | None = None,
        *,
        timeout: float | None = None,
        progress: bool = False,
    ) -> ExecutionResult:
        """Runs in a single launch if the engine supports it, for at most ``timeout`` seconds. If the GPU also drives
        a display, the display freezes in the meantime. ``progress`` shows the progress."""
        result = self._machine.run_mega(total_cycles, timeout=timeout, progress=progress)
        return ExecutionResult.of(result)
