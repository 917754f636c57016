"""What all machines have: a program, registers, flags and memory."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import NamedTuple, Union

import kvrm

from ._device import open_machine

#: Bytes-like, or byte values one by one.
Data = Union[bytes, bytearray, memoryview, Iterable[int]]

DEFAULT_MEMORY = 4 * 1024 * 1024


class Flags(NamedTuple):
    """The condition flags.

    >>> Flags(False, True, True, False).z
    True
    """

    n: bool
    z: bool
    c: bool
    v: bool


class State:
    """Sets and reads a machine's state. If there are several lanes, it sets all of them and reads lane 0."""

    _machine: kvrm.Machine

    def __init__(self, lanes: int, memory_size: int, model: str, device: str | None) -> None:
        self._machine = open_machine(device, lanes=lanes, memory_size=memory_size, model=model)

    def __repr__(self) -> str:
        name, engine = type(self).__name__, self._machine.engine
        return f"{name}(lanes={self._machine.lanes}, memory_size={self.memory_size}, engine={engine!r})"

    @property
    def machine(self) -> kvrm.Machine:
        """The underlying :class:`kvrm.Machine`, for everything that these classes lack: breakpoints, NumPy views of
        memory, all registers at once.

        >>> from kvrm_metal import MetalCPU
        >>> MetalCPU(device="cpu").machine.engine
        'cpu'
        """
        return self._machine

    @property
    def memory_size(self) -> int:
        """Size of memory in bytes.

        >>> from kvrm_metal import MetalCPU
        >>> MetalCPU(memory_size=64 * 1024, device="cpu").memory_size
        65536
        """
        return self._machine.memory_size

    def load_program(self, program: Data, address: int = 0) -> None:
        """Copies a program, as bytes or a list of byte values, to memory. Does not change the PC.

        >>> from kvrm_metal import MetalCPU
        >>> cpu = MetalCPU(device="cpu")
        >>> cpu.load_program([0x00, 0x00, 0x40, 0xD4], 0x1000)  # hlt #0
        >>> cpu.read_memory(0x1000, 4).hex()
        '000040d4'
        """
        self._machine.load(to_bytes(program), address)

    def set_pc(self, pc: int) -> None:
        """Sets where the next run begins."""
        self._machine.set_register("pc", pc)

    def get_pc(self) -> int:
        """Returns the address of the next instruction.

        >>> from kvrm_metal import MetalCPU
        >>> cpu = MetalCPU(device="cpu")
        >>> cpu.set_pc(0x8000)
        >>> hex(cpu.get_pc())
        '0x8000'
        """
        return self._machine.get_register("pc")

    def set_register(self, register: int | str, value: int) -> None:
        """Sets a register: a number from 0 to 30, or one of the names ``x0`` to ``x30``, ``w0`` to ``w30``,
        ``sp``, ``pc``, ``nzcv`` (flags in bits 31 to 28), ``tpidr_el0``, ``v0`` to ``v31`` (128 bits), ``d0``, ``s0``,
        ``h0`` and ``b0`` to 31 (the low bits of these; the others become zero), ``fpcr`` and ``fpsr``. Negative values
        are stored as two's complement. ``machine.set_float`` sets floating-point numbers.

        >>> from kvrm_metal import MetalCPU
        >>> cpu = MetalCPU(device="cpu")
        >>> cpu.set_register(3, -1)
        >>> cpu.set_register("sp", 0x10000)
        >>> hex(cpu.get_register("x3")), hex(cpu.get_register("w3")), cpu.get_register("sp")
        ('0xffffffffffffffff', '0xffffffff', 65536)
        >>> cpu.set_register("v1", 1 << 100)
        >>> hex(cpu.get_register("v1")), cpu.get_register("d1")
        ('0x10000000000000000000000000', 0)
        """
        self._machine.set_register(register, value)

    def get_register(self, register: int | str) -> int:
        """Reads a register, by number or by name as in :meth:`set_register`, as an unsigned number."""
        return self._machine.get_register(register)

    def get_flags(self) -> Flags:
        """Returns the condition flags.

        >>> import kvrm
        >>> from kvrm_metal import MetalCPU
        >>> cpu = MetalCPU(device="cpu")
        >>> cpu.load_program(kvrm.assemble("cmp x0, #0; hlt #0"))
        >>> result = cpu.execute(10)
        >>> cpu.get_flags()
        Flags(n=False, z=True, c=True, v=False)
        """
        return flags_of(self._machine.get_register("nzcv"))

    def set_flags(self, n: bool, z: bool, c: bool, v: bool) -> None:
        """Sets the condition flags.

        >>> from kvrm_metal import MetalCPU
        >>> cpu = MetalCPU(device="cpu")
        >>> cpu.set_flags(n=True, z=False, c=False, v=True)
        >>> hex(cpu.get_register("nzcv"))
        '0x90000000'
        """
        self._machine.set_register("nzcv", nzcv_of(n, z, c, v))

    def read_memory(self, address: int, length: int) -> bytes:
        """Copies bytes out of memory."""
        return self._machine.read_memory(address, length)

    def write_memory(self, address: int, data: Data) -> None:
        """Writes bytes, or a list of byte values, to memory.

        >>> from kvrm_metal import MetalCPU
        >>> cpu = MetalCPU(device="cpu")
        >>> cpu.write_memory(0x2000, [0x12, 0x34])
        >>> cpu.read_memory(0x2000, 2)
        b'\\x124'
        """
        self._machine.write_memory(address, to_bytes(data))

    def read_memory_64(self, address: int) -> int:
        """Reads an unsigned 64-bit number, little-endian."""
        return int.from_bytes(self._machine.read_memory(address, 8), "little")

    def write_memory_64(self, address: int, value: int) -> None:
        """Writes a 64-bit number, little-endian; negative numbers as two's complement.

        >>> from kvrm_metal import MetalCPU
        >>> cpu = MetalCPU(device="cpu")
        >>> cpu.write_memory_64(0x3000, 0x1122334455667788)
        >>> hex(cpu.read_memory_64(0x3000)), cpu.read_memory(0x3000, 1)
        ('0x1122334455667788', b'\\x88')
        """
        self._machine.write_memory(address, to_unsigned(value).to_bytes(8, "little"))

    def reset(self) -> None:
        """Resets registers, flags and PC to zero. Private memory, as :class:`MetalCPU`, :class:`ContinuousMetalCPU` and
        :class:`AsyncMetalCPU` have, goes back to what was loaded. Memory that lanes share, and that of
        ``mlx_kernel``'s machines, stays as it is.

        >>> import kvrm
        >>> from kvrm_metal import MetalCPU
        >>> cpu = MetalCPU(device="cpu")
        >>> cpu.load_program(kvrm.assemble("mov x1, #0x2000; str x1, [x1]; hlt #0"))
        >>> result = cpu.execute()
        >>> cpu.reset()
        >>> cpu.get_register(1), cpu.read_memory_64(0x2000), cpu.get_pc()
        (0, 0, 0)
        """
        self._machine.reset()


def flags_of(nzcv: int) -> Flags:
    """Returns the flags in bits 31 to 28."""
    return Flags(*(bool(nzcv >> bit & 1) for bit in (31, 30, 29, 28)))


def nzcv_of(n: bool, z: bool, c: bool, v: bool) -> int:
    """Returns the flags as in the register NZCV."""
    return bool(n) << 31 | bool(z) << 30 | bool(c) << 29 | bool(v) << 28


def to_unsigned(value: int) -> int:
    """Converts a number to its 64-bit pattern.

    >>> hex(to_unsigned(-2))
    '0xfffffffffffffffe'
    """
    number = operator.index(value)
    if not -(1 << 63) <= number < 1 << 64:
        raise OverflowError(f"{number} does not fit into 64 bits")
    return number & (1 << 64) - 1


def to_bytes(data: Data) -> bytes:
    """Converts bytes-like objects and lists of byte values to bytes.

    >>> to_bytes([1, 2]), to_bytes(bytearray(b"ab"))
    (b'\\x01\\x02', b'ab')
    """
    if isinstance(data, (str, int)) or getattr(data, "ndim", None) == 0:
        raise TypeError(f"bytes or a list of byte values are needed, not {type(data).__name__}")
    # Of an array of larger items, each is a byte value, as in a list.
    to_list = getattr(data, "tolist", None) if getattr(data, "itemsize", 1) != 1 else None
    try:
        return bytes(data if to_list is None else to_list())
    except ValueError:
        raise ValueError(
            "a list must hold byte values, 0 to 255; give 32-bit instruction words to machine.load, "
            "or turn each into bytes with word.to_bytes(4, 'little')"
        ) from None
    except TypeError:
        raise TypeError(f"bytes or a list of byte values are needed, not {data!r:.60}") from None
