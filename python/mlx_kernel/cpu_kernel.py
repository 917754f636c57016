"""V1: a machine that cannot write memory."""

from kvrm import StopReason
from kvrm_metal._single import SingleCPU

__all__ = ["MLXKernelCPU", "StopReason"]


class MLXKernelCPU(SingleCPU):
    """One ARM64 machine whose program can only read memory. A store stops it with ``FAULT`` and changes nothing;
    the host can write.

    >>> import kvrm
    >>> cpu = MLXKernelCPU(memory_size=64 * 1024, device="cpu")
    >>> cpu.load_program(kvrm.assemble("mov x1, #0x1000; ldr x0, [x1]; str x0, [x1, #8]; hlt #0"), 0)
    >>> cpu.write_memory_64(0x1000, 42)
    >>> result = cpu.execute(max_cycles=1000)
    >>> result.stop_reason == StopReason.FAULT, result.cycles, hex(result.final_pc)
    (True, 2, '0x8')
    >>> cpu.get_register(0), cpu.read_memory_64(0x1008)
    (42, 0)
    """

    _MODEL = "read-only"
