r"""Runs unmodified AArch64 (ARM64) programs on CPUs and GPUs, thousands at a time.

A Machine has one or more lanes: independent ARM64 processors that run the same program.

>>> import kvrm
>>> m = kvrm.Machine(lanes=1000)
>>> m.load(kvrm.assemble("mul x0, x0, x0\n hlt #0"))
>>> m.registers = [[lane] + [0] * 30 for lane in range(1000)]
>>> result = m.run()
>>> result.stop.reason, result.cycles
('HALT', 1000)
>>> int(m.registers[999, 0])
998001

kvrm.run runs a Linux program in a sandbox, and kvrm.run_many runs it thousands of times.
"""

import sys
from enum import IntEnum

from kvrm._kvrm import (
    Device,
    Instruction,
    KvrmError,
    Machine,
    Progress,
    RunResult,
    Stop,
    Stops,
    __version__,
    assemble,
    devices,
    disassemble,
)

__all__ = [
    "Device",
    "Instruction",
    "KvrmError",
    "Machine",
    "Progress",
    "RunResult",
    "Stop",
    "StopReason",
    "Stops",
    "__version__",
    "assemble",
    "devices",
    "disassemble",
]

if sys.platform != "win32":
    from kvrm._kvrm import SystemCall
    from kvrm._lane_table import LaneTable
    from kvrm._linux import Crash, ProcessError, ProcessResult, Saved, run, save
    from kvrm._many import LaneResult, iter_many, run_many

    __all__ += [
        "Crash",
        "LaneResult",
        "LaneTable",
        "ProcessError",
        "ProcessResult",
        "Saved",
        "SystemCall",
        "iter_many",
        "run",
        "run_many",
        "save",
    ]


class StopReason(IntEnum):
    """Why a lane stopped, as in Machine.stop_codes.

    >>> import kvrm
    >>> m = kvrm.Machine()
    >>> m.load([0xd4400000])                            # hlt #0
    >>> _ = m.run()
    >>> kvrm.StopReason(m.stop_codes[0]).name
    'HALT'
    """

    MAX_CYCLES = 0
    HALT = 1
    SYSCALL = 2
    BREAKPOINT = 3
    UNDEFINED = 4
    FAULT = 5
    OUT_OF_MEMORY = 6
    NONE = 255
