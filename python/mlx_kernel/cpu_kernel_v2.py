"""V2: a machine whose memory changes when a run ends."""

from kvrm import StopReason
from kvrm_metal._single import SingleCPU

__all__ = ["MLXKernelCPUv2", "StopReason"]


class MLXKernelCPUv2(SingleCPU):
    """One ARM64 machine whose memory changes all at once when a run ends. After a run that ends with a fault or
    an undefined word, memory and registers are as they were before, and ``result.committed`` is false.

    >>> import kvrm
    >>> cpu = MLXKernelCPUv2(memory_size=4*1024*1024, device="cpu")
    >>> cpu.load_program(kvrm.assemble("mov x1, #0x1000; mov x0, #7; str x0, [x1]; hlt #0"), address=0)
    >>> cpu.set_pc(0)
    >>> result = cpu.execute(max_cycles=10_000_000)
    >>> result.cycles, result.stop_reason_name, cpu.read_memory_64(0x1000)
    (3, 'HALT', 7)
    >>> cpu.load_program(kvrm.assemble("mov x0, #8; str x0, [x1]; mov x1, #-8; ldr x0, [x1]"), address=0)
    >>> cpu.set_pc(0)
    >>> result = cpu.execute(max_cycles=10_000_000)
    >>> result.stop_reason_name, result.committed, cpu.read_memory_64(0x1000)
    ('FAULT', False, 7)
    """

    _MODEL = "double-buffered"
