"""One ARM64 machine, in two ways to treat its memory.

| class | memory |
|---|---|
| :class:`MLXKernelCPU` (V1) | the program may read it only; a store stops it |
| :class:`MLXKernelCPUv2` (V2) | changes when a run ends, all at once; after a fault it is as before |

They run on any engine of kvrm; MLX is not needed. See :mod:`kvrm_metal` for how a device is chosen.
"""

from .cpu_kernel import MLXKernelCPU, StopReason
from .cpu_kernel_v2 import MLXKernelCPUv2

__all__ = ["MLXKernelCPU", "MLXKernelCPUv2", "StopReason"]
