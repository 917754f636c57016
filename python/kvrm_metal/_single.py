"""One machine that runs while the caller waits."""

from __future__ import annotations

from ._results import ExecutionResult
from ._state import DEFAULT_MEMORY, State


class SingleCPU(State):
    """A machine of one lane; subclasses differ in their memory model."""

    #: The memory model, as :class:`kvrm.Machine` calls it.
    _MODEL = "private"

    def __init__(self, memory_size: int = DEFAULT_MEMORY, *, device: str | None = None) -> None:
        super().__init__(1, memory_size, self._MODEL, device)

    def execute(
        self,
        max_cycles: int | None = None,
        *,
        timeout: float | None = None,
        progress: bool = False,
    ) -> ExecutionResult:
        """Runs until the machine stops, has completed ``max_cycles`` instructions, or has run for ``timeout``
        seconds. The next call continues from there; after a system call, at the next instruction. ``progress`` shows
        the progress."""
        return ExecutionResult.of(self._machine.run(max_cycles, timeout=timeout, progress=progress))


class MetalCPU(SingleCPU):
    """One ARM64 machine. It runs without communication between host and GPU.

    If host and engine share memory, ``cpu.machine.memory()`` is a NumPy array of the machine's memory itself;
    otherwise, reading and writing copies just the bytes asked for.

    >>> import kvrm
    >>> cpu = MetalCPU(memory_size=4*1024*1024, device="cpu")
    >>> cpu.load_program(kvrm.assemble('''
    ...     mov x0, #0x1000
    ...     mov x1, #10
    ... loop:
    ...     add x2, x2, x1
    ...     subs x1, x1, #1
    ...     b.ne loop
    ...     str x2, [x0]
    ...     svc #0
    ...     hlt #0
    ... '''), address=0)
    >>> cpu.set_pc(0)
    >>> cpu.execute(max_cycles=100_000_000).stop_reason_name
    'SYSCALL'
    >>> cpu.read_memory_64(0x1000)
    55
    >>> cpu.execute().stop_reason_name  # continues after the system call
    'HALT'
    """
