"""One ARM64 machine, with read-only or double-buffered memory.

| class | memory |
|---|---|
| :class:`MLXKernelCPU` (V1) | read-only: a store stops the program |
| :class:`MLXKernelCPUv2` (V2) | double-buffered: changes all at once when a run ends; a fault undoes the run |

They run on every engine of kvrm and do not need MLX. See :mod:`kvrm_metal` for the choice of a device.
"""

from .cpu_kernel import MLXKernelCPU, StopReason
from .cpu_kernel_v2 import MLXKernelCPUv2

__all__ = ["MLXKernelCPU", "MLXKernelCPUv2", "StopReason"]
