"""Results of runs."""

from __future__ import annotations

from dataclasses import dataclass

import kvrm
from kvrm import StopReason


class _Summary:
    """Properties that both kinds of result have."""

    cycles: int
    elapsed_seconds: float
    stop_reason: StopReason

    @property
    def total_cycles(self) -> int:
        """The same as ``cycles``."""
        return self.cycles

    @property
    def cycles_executed(self) -> int:
        """The same as ``cycles``."""
        return self.cycles

    @property
    def ips(self) -> float:
        """Instructions per second, over all lanes."""
        return self.cycles / self.elapsed_seconds if self.elapsed_seconds else 0.0

    def avg_ips(self) -> float:
        """The same as ``ips``."""
        return self.ips

    @property
    def stop_reason_name(self) -> str:
        """``"HALT"``, ``"SYSCALL"``, ``"MAX_CYCLES"``, ``"BREAKPOINT"``, ``"UNDEFINED"``, ``"FAULT"`` or
        ``"OUT_OF_MEMORY"``; ``"NONE"`` if the run was cancelled."""
        return self.stop_reason.name

    @property
    def signal_name(self) -> str:
        """The same, but ``"CHECKPOINT"`` if only the limit was reached, so that the run can continue."""
        return "CHECKPOINT" if self.stop_reason == StopReason.MAX_CYCLES else self.stop_reason.name


@dataclass(frozen=True)
class ExecutionResult(_Summary):
    """The result of a run of one machine.

    >>> import kvrm
    >>> from kvrm_metal import MetalCPU
    >>> cpu = MetalCPU(device="cpu")
    >>> cpu.load_program(kvrm.assemble("again: b again"), 0)
    >>> result = cpu.execute(max_cycles=1_000_000)
    >>> result.cycles, result.stop_reason_name, result.signal_name, result.final_pc
    (1000000, 'MAX_CYCLES', 'CHECKPOINT', 0)
    """

    cycles: int
    """Instructions completed."""
    elapsed_seconds: float
    """Time the run took."""
    stop_reason: StopReason
    """Why the machine stopped."""
    stop: kvrm.Stop
    """The same with details: ``str(result.stop)`` is a sentence."""
    final_pc: int
    """Address of the next instruction, or of the one that could not be executed."""
    batch_count: int
    """Number of batches."""
    committed: bool
    """False if memory is double-buffered and the run was rolled back."""
    timed_out: bool = False
    """Whether the run ended because its time was over."""

    @classmethod
    def of(cls, result: kvrm.RunResult) -> ExecutionResult:
        """From what :class:`kvrm.Machine` returns."""
        return cls(
            cycles=result.cycles,
            elapsed_seconds=result.elapsed_seconds,
            stop_reason=StopReason(result.stop.code),
            stop=result.stop,
            final_pc=int(result.pcs[0]),
            batch_count=result.batch_count,
            committed=result.committed,
            timed_out=result.timed_out,
        )


_REASONS = {reason.value: reason for reason in StopReason}


@dataclass(frozen=True, repr=False)
class ParallelResult(_Summary):
    """The result of a run of many lanes; lists have an entry for each lane.

    >>> import kvrm
    >>> from kvrm_metal import ParallelMetalCPU
    >>> cpu = ParallelMetalCPU(num_lanes=2, device="cpu")
    >>> cpu.load_program(kvrm.assemble("cbz x0, done; again: b again; done: hlt #0"), 0)
    >>> cpu.set_registers_lane(1, [1])
    >>> result = cpu.execute(100)
    >>> result.total_cycles, result.cycles_per_lane, result.pcs_per_lane
    (101, [1, 100], [8, 4])
    >>> [reason.name for reason in result.stop_reasons]
    ['HALT', 'MAX_CYCLES']
    """

    cycles: int
    """Instructions completed, over all lanes."""
    elapsed_seconds: float
    """Time the run took."""
    cycles_per_lane: list[int]
    """Instructions completed by each lane."""
    pcs_per_lane: list[int]
    """Where each lane stopped."""
    stop_reasons: list[StopReason]
    """Why each lane stopped."""
    stop_reason: StopReason
    """Why most lanes stopped."""
    timed_out: bool = False
    """Whether it ended because its time was over."""

    def __repr__(self) -> str:
        lanes, reason = len(self.cycles_per_lane), self.stop_reason.name
        return f"ParallelResult({lanes} lanes, cycles={self.cycles}, mostly {reason}, {self.elapsed_seconds:.6f} s)"

    @classmethod
    def of(cls, result: kvrm.RunResult) -> ParallelResult:
        """From what :class:`kvrm.Machine` returns."""
        return cls(
            cycles=result.cycles,
            elapsed_seconds=result.elapsed_seconds,
            cycles_per_lane=result.cycles_per_lane.tolist(),
            pcs_per_lane=result.pcs.tolist(),
            stop_reasons=[_REASONS[code] for code in result.stop_codes.tolist()],
            stop_reason=StopReason(result.stop.code),
            timed_out=result.timed_out,
        )
