"""V2: a machine with two memories that change places."""

from kvrm import StopReason
from kvrm_metal._single import SingleCPU

__all__ = ["MLXKernelCPUv2", "StopReason"]


class MLXKernelCPUv2(SingleCPU):
    """One ARM64 machine whose runs work on a copy of the memory. When a run ends, the copy becomes the memory;
    a run that fails leaves the memory as it was.

    >>> import kvrm
    >>> cpu = MLXKernelCPUv2(memory_size=4*1024*1024, device="cpu")
    >>> cpu.load_program(kvrm.assemble("mov x1, #0x1000; mov x0, #7; str x0, [x1]; hlt #0"), address=0)
    >>> cpu.set_pc(0)
    >>> result = cpu.execute(max_cycles=10_000_000)
    >>> result.cycles, result.stop_reason_name, cpu.read_memory_64(0x1000)
    (3, 'HALT', 7)
    """

    _MODEL = "double-buffered"
