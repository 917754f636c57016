"""Runs AArch64 test cases on Unicorn.

Requests arrive on stdin and results leave on stdout; the record layouts are
described in the Rust client that starts this script. The guest runs at EL0
with the system register settings that Linux gives its processes.
"""

import ctypes
import os
import struct
import sys

from unicorn import (
    UC_ARCH_ARM64,
    UC_ERR_EXCEPTION,
    UC_ERR_FETCH_PROT,
    UC_ERR_FETCH_UNMAPPED,
    UC_ERR_INSN_INVALID,
    UC_ERR_OK,
    UC_ERR_READ_PROT,
    UC_ERR_READ_UNMAPPED,
    UC_ERR_WRITE_PROT,
    UC_ERR_WRITE_UNMAPPED,
    UC_HOOK_INTR,
    UC_HOOK_MEM_INVALID,
    UC_MODE_ARM,
    UC_PROT_ALL,
    Uc,
)
from unicorn import arm64_const as arm64

# The public batch calls build their argument arrays anew on every call. The C
# functions behind them take arrays that can be built once.
from unicorn.unicorn_py3.unicorn import uclib

MEMORY_START, MEMORY_END = 0x10000, 0x40000
CODE_START, CODE_END = 0x10000, 0x20000
WINDOW_LEN = 512
WINDOW_OFFSET = MEMORY_END - WINDOW_LEN - MEMORY_START
# Far from the guest's memory, so that no branch displacement reaches it.
HARNESS_CODE = 0x7000_0000_0000

DONE, UNDEFINED, MEMORY_FAULT, ALIGNMENT_FAULT, SVC, BRK, LIMIT, OTHER = range(8)

# Unicorn passes QEMU's exception numbers to the interrupt hook. Unmapped
# addresses do not get there, so a data abort is an alignment fault.
INTERRUPT_OUTCOMES = {1: UNDEFINED, 2: SVC, 4: ALIGNMENT_FAULT, 7: BRK}

FETCH_ERRORS = (UC_ERR_FETCH_UNMAPPED, UC_ERR_FETCH_PROT)
ACCESS_ERRORS = (
    UC_ERR_READ_UNMAPPED,
    UC_ERR_READ_PROT,
    UC_ERR_WRITE_UNMAPPED,
    UC_ERR_WRITE_PROT,
)

REQUEST_HEAD = struct.Struct("<IIII")
NZCV = struct.Struct("<Q")
NZCV_MASK = 0xF000_0000
STATE_LEN = 8 * (31 + 3)
NZCV_OFFSET = 8 * 32
VECTORS = 1
VECTORS_LEN = 16 * 32 + 8 * 2
REQUEST_LEN = REQUEST_HEAD.size + STATE_LEN + WINDOW_LEN
RESULT_HEAD = struct.Struct("<IIQ")

GENERAL_REGISTERS = (
    [arm64.UC_ARM64_REG_X0 + i for i in range(29)]
    + [arm64.UC_ARM64_REG_X29, arm64.UC_ARM64_REG_X30]
)


class RegisterBatch:
    """Registers laid out back to back in one buffer, 8 bytes each unless told otherwise."""

    def __init__(self, registers, sizes=None):
        count = len(registers)
        sizes = sizes or [8] * count
        self.count = count
        self.buffer = (ctypes.c_uint64 * (sum(sizes) // 8))()
        self.view = memoryview(self.buffer).cast("B")
        self.registers = (ctypes.c_int * count)(*registers)
        base = ctypes.addressof(self.buffer)
        self.pointers = (ctypes.c_void_p * count)(*(base + sum(sizes[:i]) for i in range(count)))


def vector_batch():
    """Returns V0 to V31, FPCR and FPSR. Of the last two, Unicorn takes and gives 32 bits; the rest stays zero."""
    vectors = [arm64.UC_ARM64_REG_V0 + i for i in range(32)]
    controls = [arm64.UC_ARM64_REG_FPCR, arm64.UC_ARM64_REG_FPSR]
    return RegisterBatch(vectors + controls, [16] * 32 + [8] * 2)


CLREX = 0xD5033F5F


def may_change_vectors(word):
    """True if an instruction may change V0 to V31, FPCR or FPSR."""
    uses_vectors = word & 0x0C00_0000 == 0x0C00_0000
    sets_fpcr_or_fpsr = word & 0xFFFF_FFC0 == 0xD51B_4400
    return uses_vectors or sets_fpcr_or_fpsr


def may_change_monitor(word):
    """True for exclusive and ordered accesses."""
    return word & 0x3F00_0000 == 0x0800_0000


class Machine:
    """One Unicorn instance, reused by every case."""

    def __init__(self):
        self.uc = Uc(UC_ARCH_ARM64, UC_MODE_ARM)
        self.uc.ctl_set_cpu_model(arm64.UC_CPU_ARM64_MAX)
        # The guest's memory is ours, so that reading and writing it costs no call.
        self.memory = (ctypes.c_ubyte * (MEMORY_END - MEMORY_START))()
        self.bytes = memoryview(self.memory).cast("B")
        self.uc.mem_map_ptr(
            MEMORY_START, len(self.memory), UC_PROT_ALL, ctypes.addressof(self.memory)
        )
        self.uc.mem_map(HARNESS_CODE, 0x1000)
        self.interrupt = None
        self.fault_address = None
        self.uc.hook_add(UC_HOOK_INTR, self.on_interrupt)
        self.uc.hook_add(UC_HOOK_MEM_INVALID, self.on_invalid_access)
        state = [arm64.UC_ARM64_REG_SP, arm64.UC_ARM64_REG_PSTATE, arm64.UC_ARM64_REG_TPIDR_EL0]
        self.input = RegisterBatch(GENERAL_REGISTERS + state)
        state[1] = arm64.UC_ARM64_REG_NZCV
        self.output = RegisterBatch([arm64.UC_ARM64_REG_PC] + GENERAL_REGISTERS + state)
        self.vectors = vector_batch()
        self.no_vectors = vector_batch()
        self.vectors_are_zero = False
        self.code_high_water = CODE_START
        self.last_code = None
        self.allow_user_access()
        self.clrex_end = self.load_harness_code([CLREX])

    def on_interrupt(self, uc, number, _data):
        self.interrupt = number
        uc.emu_stop()

    def on_invalid_access(self, _uc, _access, address, _size, _value, _data):
        # An access across the end of memory reports each byte; keep the first.
        if self.fault_address is None:
            self.fault_address = address
        return False

    def load_harness_code(self, words):
        self.uc.mem_write(HARNESS_CODE, struct.pack(f"<{len(words)}I", *words))
        self.uc.ctl_remove_cache(HARNESS_CODE, HARNESS_CODE + 0x1000)
        return HARNESS_CODE + 4 * len(words)

    def allow_user_access(self):
        """Sets what Linux sets, at EL1: cache operations, DC ZVA, CTR_EL0 and
        the counters at EL0, and top byte ignore. Then returns to EL0: writing
        PSTATE from outside would leave Unicorn translating for EL1."""
        sctlr_uct_dze_uci = 1 << 15 | 1 << 14 | 1 << 26
        tcr_tbi0 = 1 << 37
        self.uc.reg_write(arm64.UC_ARM64_REG_X1, sctlr_uct_dze_uci)
        self.uc.reg_write(arm64.UC_ARM64_REG_X2, tcr_tbi0)
        self.uc.reg_write(arm64.UC_ARM64_REG_X3, 3)
        self.uc.reg_write(arm64.UC_ARM64_REG_X4, HARNESS_CODE + 4 * 8)
        end = self.load_harness_code(
            [
                0xD5381000,  # mrs x0, sctlr_el1
                0xAA010000,  # orr x0, x0, x1
                0xD5181000,  # msr sctlr_el1, x0
                0xD5182042,  # msr tcr_el1, x2
                0xD518E103,  # msr cntkctl_el1, x3
                0xD518401F,  # msr spsr_el1, xzr
                0xD5184024,  # msr elr_el1, x4
                0xD69F03E0,  # eret
            ]
        )
        self.uc.emu_start(HARNESS_CODE, end)

    def clear_monitor(self):
        # Unicorn swaps hooks when the kind of count changes; one stays with one.
        self.uc.emu_start(HARNESS_CODE, self.clrex_end, count=1)

    def start_over(self):
        """Forgets all translations and memory, before code addresses are reused."""
        self.uc.ctl_flush_tb()
        ctypes.memset(self.memory, 0, len(self.memory))

    def place_code(self, address, code):
        """Writes a case's code, which need not be translated again if it is the last case's."""
        end = address + len(code)
        is_last = self.last_code == (address, code)
        if address < self.code_high_water and not is_last:
            self.start_over()
        self.code_high_water = end
        self.last_code = (address, code)
        self.bytes[address - MEMORY_START : end - MEMORY_START] = code

    def load(self, data, offset, address, code_words, has_vectors):
        """Places one case; returns the offset of its code's end in `data`."""
        state = self.input.view
        state_end = offset + STATE_LEN
        state[:] = data[offset:state_end]
        # PSTATE is written whole; with its other bits clear the guest is at EL0.
        (nzcv,) = NZCV.unpack_from(state, NZCV_OFFSET)
        NZCV.pack_into(state, NZCV_OFFSET, nzcv & NZCV_MASK)
        window = state_end
        if has_vectors:
            window += VECTORS_LEN
            self.vectors.view[:] = data[state_end:window]
        code = window + WINDOW_LEN
        code_end = code + 4 * code_words
        # Before the window: it may clear all memory.
        self.place_code(address, data[code:code_end])
        self.bytes[WINDOW_OFFSET:] = data[window:code]
        return code_end

    def write(self, batch):
        uclib.uc_reg_write_batch(self.uc._uch, batch.registers, batch.pointers, batch.count)

    def read(self, batch):
        uclib.uc_reg_read_batch(self.uc._uch, batch.registers, batch.pointers, batch.count)

    def execute(self, address, end, limit, has_vectors):
        """Runs the loaded case; returns Unicorn's error code."""
        self.interrupt = None
        self.fault_address = None
        self.write(self.input)
        if has_vectors:
            self.write(self.vectors)
            self.vectors_are_zero = False
        elif not self.vectors_are_zero:
            self.write(self.no_vectors)
            self.vectors_are_zero = True
        error = uclib.uc_emu_start(self.uc._uch, address, end, 0, limit)
        self.read(self.output)
        if has_vectors:
            self.read(self.vectors)
        return error

    def outcome(self, error, pc, end, single):
        """Returns the outcome and its detail."""
        if self.interrupt is not None:
            kind = INTERRUPT_OUTCOMES.get(self.interrupt, OTHER)
            return kind, self.svc_immediate(pc) if kind == SVC else 0
        if error == UC_ERR_OK:
            return (DONE if single or pc == end else LIMIT), 0
        if error in FETCH_ERRORS:
            # Unicorn looks at the branch target before it stops after the branch.
            return (DONE, 0) if single else (MEMORY_FAULT, pc)
        if error in ACCESS_ERRORS:
            return MEMORY_FAULT, self.fault_address or 0
        if error in (UC_ERR_INSN_INVALID, UC_ERR_EXCEPTION):
            return UNDEFINED, 0
        return OTHER, error

    def svc_immediate(self, pc):
        (word,) = struct.unpack_from("<I", self.memory, pc - 4 - MEMORY_START)
        return word >> 5 & 0xFFFF

    def clean_up(self, address, end, pc, single):
        """Removes all traces of a case before the next one."""
        code = slice(address - MEMORY_START, end - MEMORY_START)
        word = int.from_bytes(self.bytes[code], "little") if single else None
        if not single or may_change_vectors(word):
            self.vectors_are_zero = False
        if not single or may_change_monitor(word):
            self.clear_monitor()
        self.bytes[code] = bytes(end - address)
        if pc != end and CODE_START <= pc < CODE_END:
            # The branch target may have been translated; code may come there later.
            target = pc & ~3
            self.uc.ctl_remove_cache(target, target + 4)

    def run(self, data, offset, results):
        """Runs the request at `offset` and appends its result; returns the next offset."""
        code_words, limit, address, flags = REQUEST_HEAD.unpack_from(data, offset)
        end = address + 4 * code_words
        single = limit == 1
        has_vectors = flags & VECTORS
        after = self.load(data, offset + REQUEST_HEAD.size, address, code_words, has_vectors)
        error = self.execute(address, end, limit, has_vectors)
        pc = self.output.buffer[0]
        kind, detail = self.outcome(error, pc, end, single)
        results += RESULT_HEAD.pack(kind, flags, detail)
        results += self.output.view
        if has_vectors:
            results += self.vectors.view
        results += self.bytes[WINDOW_OFFSET:]
        self.clean_up(address, end, pc, single)
        return after


def request_length(data, offset):
    """Returns the length of the request at `offset`, or None if it is incomplete."""
    available = len(data) - offset
    if available < REQUEST_LEN:
        return None
    code_words, _, _, flags = REQUEST_HEAD.unpack_from(data, offset)
    length = REQUEST_LEN + 4 * code_words + (VECTORS_LEN if flags & VECTORS else 0)
    return length if length <= available else None


def private_stdout():
    """Returns the file for results, and sends stdout to stderr: Unicorn prints warnings there."""
    results = os.dup(1)
    os.dup2(2, 1)
    return results


def write_all(stdout, results):
    view = memoryview(results)
    while view:
        view = view[os.write(stdout, view) :]


def main():
    stdout = private_stdout()
    machine = Machine()
    pending = b""
    while True:
        chunk = os.read(0, 1 << 18)
        if not chunk:
            return 1 if pending else 0
        data = pending + chunk
        offset = 0
        results = bytearray()
        while request_length(data, offset) is not None:
            offset = machine.run(data, offset, results)
        pending = data[offset:]
        write_all(stdout, results)


if __name__ == "__main__":
    sys.exit(main())
