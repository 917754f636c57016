"""Many machines side by side."""

from __future__ import annotations

from collections.abc import Iterable

from ._results import ParallelResult
from ._state import DEFAULT_MEMORY, Flags, State, flags_of, nzcv_of, to_unsigned

#: General registers, 0 to 30.
GENERAL = 31


class ParallelMetalCPU(State):
    """Many ARM64 machines, called *lanes*, side by side. Each has its own registers and PC; all share one memory.

    ``model="private"`` gives each lane its own memory instead.

    >>> import kvrm
    >>> cpu = ParallelMetalCPU(num_lanes=32, device="cpu")
    >>> cpu.load_program(kvrm.assemble('''
    ...     mov x1, #0x1000
    ...     str x0, [x1, x0, lsl #3]
    ...     hlt #0
    ... '''), address=0)
    >>> cpu.set_pc_all(0)
    >>> for lane in range(32):
    ...     cpu.set_registers_lane(lane, [lane])
    >>> result = cpu.execute(10_000_000)
    >>> result.total_cycles, result.stop_reason_name
    (64, 'HALT')
    >>> cpu.read_memory_64(0x1000 + 31 * 8)
    31
    """

    def __init__(
        self,
        num_lanes: int = 32,
        memory_size: int = DEFAULT_MEMORY,
        *,
        model: str = "shared",
        device: str | None = None,
    ) -> None:
        super().__init__(num_lanes, memory_size, model, device)

    @property
    def num_lanes(self) -> int:
        """Number of lanes."""
        return self._machine.lanes

    def set_pc_all(self, pc: int) -> None:
        """Sets where the next run of all lanes begins."""
        self.set_pc(pc)

    def set_pc_lane(self, lane: int, pc: int) -> None:
        """Sets where the next run of one lane begins."""
        self._machine.set_register("pc", pc, lane=lane)

    def get_pc(self, lane: int = 0) -> int:
        """Returns the PC of a lane.

        >>> cpu = ParallelMetalCPU(num_lanes=2, device="cpu")
        >>> cpu.set_pc_all(0x1000)
        >>> cpu.set_pc_lane(1, 0x2000)
        >>> hex(cpu.get_pc(0)), hex(cpu.get_pc(1))
        ('0x1000', '0x2000')
        """
        return self._machine.get_register("pc", lane=lane)

    def set_register(self, register: int | str, value: int, lane: int | None = None) -> None:
        """Sets a register of one lane, or of all; see :meth:`MetalCPU.set_register`."""
        self._machine.set_register(register, value, lane=lane)

    def get_register(self, register: int | str, lane: int = 0) -> int:
        """Reads a register of a lane."""
        return self._machine.get_register(register, lane=lane)

    def set_registers_lane(self, lane: int, registers: Iterable[int]) -> None:
        """Sets the registers of one lane, from x0 on. Those beyond the list stay as they are. A 32nd value is
        that of the zero register and must be 0.

        >>> cpu = ParallelMetalCPU(num_lanes=2, device="cpu")
        >>> cpu.set_registers_lane(1, [10, 20])
        >>> cpu.get_lane_registers(1)[:3], cpu.get_lane_registers(0)[:3]
        ([10, 20, 0], [0, 0, 0])
        """
        values = list(registers)
        if len(values) == GENERAL + 1 and values.pop() != 0:
            raise ValueError('the 32nd register is the zero register: it must be 0 (use "sp" for SP)')
        if len(values) > GENERAL:
            raise ValueError(f"a lane has 31 registers and the zero register; these are {len(values)}")
        # Before any is set, those that cannot be are refused.
        self._machine.get_register(0, lane=lane)
        values = [to_unsigned(value) for value in values]
        for number, value in enumerate(values):
            self._machine.set_register(number, value, lane=lane)

    def get_lane_registers(self, lane: int) -> list[int]:
        """Returns the registers x0 to x30 of one lane, followed by the zero register as the 32nd value."""
        return [self._machine.get_register(number, lane=lane) for number in range(GENERAL)] + [0]

    def get_flags(self, lane: int = 0) -> Flags:
        """Returns the condition flags of a lane."""
        return flags_of(self._machine.get_register("nzcv", lane=lane))

    def set_flags(self, n: bool, z: bool, c: bool, v: bool, lane: int | None = None) -> None:
        """Sets the condition flags of one lane, or of all."""
        self._machine.set_register("nzcv", nzcv_of(n, z, c, v), lane=lane)

    def execute(
        self,
        max_cycles: int | None = None,
        *,
        timeout: float | None = None,
        progress: bool = False,
    ) -> ParallelResult:
        """Runs until every lane has stopped or completed ``max_cycles`` instructions, or ``timeout`` seconds have
        passed. The next call continues from there. ``progress`` shows the progress."""
        return ParallelResult.of(self._machine.run(max_cycles, timeout=timeout, progress=progress))
