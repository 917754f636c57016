"""ARM64 machines on a GPU: a class for each way to run one.

| class | what it is for |
|---|---|
| :class:`MetalCPU` | one machine; a call runs it until it stops |
| :class:`ContinuousMetalCPU` | one machine in batches, or in a single launch |
| :class:`AsyncMetalCPU` | one machine in the background, while Python continues |
| :class:`ParallelMetalCPU` | many machines side by side in one memory |

These are thin wrappers of :class:`kvrm.Machine`, so that scripts written for these names run on every computer:
on a Mac they use Metal, elsewhere CUDA or Vulkan, and without a GPU the CPU. ``device="cpu"``, or the environment
variable ``KVRM_DEVICE``, selects another; the results are the same, bit for bit.

>>> import kvrm
>>> from kvrm_metal import MetalCPU
>>> cpu = MetalCPU(memory_size=1 << 20, device="cpu")
>>> cpu.load_program(kvrm.assemble("mov x0, #6; mov x1, #7; mul x0, x0, x1; hlt #0"), address=0)
>>> cpu.set_pc(0)
>>> result = cpu.execute(max_cycles=1000)
>>> result.cycles, result.stop_reason_name, cpu.get_register(0)
(3, 'HALT', 42)
"""

from kvrm import StopReason

from ._asynchronous import AsyncMetalCPU, AsyncStatus
from ._continuous import ContinuousMetalCPU
from ._device import default_device
from ._parallel import ParallelMetalCPU
from ._results import ExecutionResult, ParallelResult
from ._single import MetalCPU
from ._state import Flags

__all__ = [
    "AsyncMetalCPU",
    "AsyncStatus",
    "ContinuousMetalCPU",
    "ExecutionResult",
    "Flags",
    "MetalCPU",
    "ParallelMetalCPU",
    "ParallelResult",
    "StopReason",
    "default_device",
]
