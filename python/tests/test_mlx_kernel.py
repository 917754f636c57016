"""The tests that the prototype's second kernel had, and what differs in the first."""

import pytest
from kvrm import assemble
from mlx_kernel import StopReason
from mlx_kernel.cpu_kernel import MLXKernelCPU
from mlx_kernel.cpu_kernel_v2 import MLXKernelCPUv2
from programs import endless_store_loop, store_loop

MEMORY = 256 * 1024


@pytest.fixture
def execute(engine):
    """Runs a program on a new machine of the second kind; the machine and the result."""

    def run(program, max_cycles=100_000):
        cpu = MLXKernelCPUv2(memory_size=MEMORY, device=engine)
        cpu.load_program(program if isinstance(program, bytes) else assemble(program), address=0)
        cpu.set_pc(0)
        return cpu, cpu.execute(max_cycles=max_cycles)

    return run


class TestMemoryWrites:
    def test_str_64_bit(self, execute):
        cpu, _ = execute(
            "movz x0, #0xbeef; movk x0, #0xdead, lsl #48; movz x1, #0x1000; str x0, [x1]; hlt #0"
        )
        assert cpu.read_memory_64(0x1000) == 0xDEAD_0000_0000_BEEF

    def test_str_then_ldr_64_bit(self, execute):
        cpu, _ = execute("movz x0, #1234; movz x1, #0x1000; str x0, [x1, #8]; ldr x2, [x1, #8]; hlt #0")
        assert cpu.get_register(2) == 1234

    def test_strb_byte_store(self, execute):
        cpu, _ = execute(
            "movz x1, #0x1000; movn x0, #0; str x0, [x1]; movz w2, #0x12ab; strb w2, [x1, #1]; hlt #0"
        )
        assert cpu.read_memory(0x1000, 4) == b"\xff\xab\xff\xff"

    def test_str_32_bit(self, execute):
        cpu, _ = execute("movn x0, #0; movz x1, #0x1000; str w0, [x1, #4]; hlt #0")
        assert cpu.read_memory_64(0x1000) == 0xFFFF_FFFF_0000_0000

    def test_multiple_str_to_different_addresses(self, execute):
        cpu, _ = execute("""
            movz x1, #0x1000
            movz x0, #100
            str x0, [x1]
            movz x0, #200
            str x0, [x1, #8]
            movz x0, #300
            str x0, [x1, #0x2000]
            hlt #0
        """)
        assert [cpu.read_memory_64(a) for a in (0x1000, 0x1008, 0x3000)] == [100, 200, 300]

    def test_str_in_loop(self, execute):
        cpu, result = execute(store_loop(100))
        assert cpu.read_memory_64(0x1000) == 100
        assert result.cycles == 3 + 4 * 100


class TestAlu:
    def test_movz_basic(self, execute):
        cpu, _ = execute("movz x0, #42; movz x1, #7, lsl #16; hlt #0")
        assert (cpu.get_register(0), cpu.get_register(1)) == (42, 7 << 16)

    def test_add_immediate(self, execute):
        cpu, _ = execute("movz x0, #10; add x1, x0, #5; hlt #0")
        assert cpu.get_register(1) == 15

    def test_sub_immediate(self, execute):
        cpu, _ = execute("movz x0, #10; sub x1, x0, #11; hlt #0")
        assert cpu.get_register(1) == 2**64 - 1


class TestBranches:
    def test_b_unconditional(self, execute):
        cpu, result = execute("b over; movz x0, #1; over: movz x1, #2; hlt #0")
        assert (cpu.get_register(0), cpu.get_register(1), result.cycles) == (0, 2, 2)

    def test_loop_with_cbnz(self, execute):
        cpu, result = execute("movz x0, #10; loop: add x1, x1, #3; sub x0, x0, #1; cbnz x0, loop; hlt #0")
        assert (cpu.get_register(1), result.cycles) == (30, 31)


class TestControlFlow:
    def test_hlt_stops_execution(self, execute):
        cpu, result = execute("movz x0, #1; hlt #0; movz x0, #2")
        assert result.stop_reason == StopReason.HALT and result.stop_reason_name == "HALT"
        assert (cpu.get_register(0), result.cycles, result.final_pc) == (1, 1, 4)

    def test_svc_triggers_syscall(self, execute):
        cpu, result = execute("movz x8, #93; svc #0; movz x0, #2; hlt #0")
        assert result.stop_reason == StopReason.SYSCALL
        assert cpu.get_register(8) == 93
        # The host has answered; the program goes on behind the call.
        assert cpu.execute(max_cycles=100).stop_reason == StopReason.HALT
        assert cpu.get_register(0) == 2

    def test_max_cycles_stops_execution(self, execute):
        cpu, result = execute("again: b again", max_cycles=1000)
        assert (result.stop_reason, result.cycles, cpu.get_pc()) == (StopReason.MAX_CYCLES, 1000, 0)


def test_performance_with_str(execute, engine):
    cycles = 1_000_000 if engine in ("cpu", "cuda") else 10_000
    _, result = execute(endless_store_loop(), max_cycles=cycles)
    assert result.cycles == cycles
    print(f"{engine}: {cycles:,} cycles with STR: {result.ips:,.0f} IPS")


def test_runs_of_the_second_kind_build_on_each_other(engine):
    cpu = MLXKernelCPUv2(memory_size=MEMORY, device=engine)
    cpu.load_program(endless_store_loop())
    cpu.execute(max_cycles=300)
    first = cpu.read_memory_64(0x1000)
    cpu.execute(max_cycles=300)
    assert (first, cpu.read_memory_64(0x1000)) == (100, 200)


class TestReadOnly:
    """The first kernel: loads work, stores stop it."""

    def test_loads(self, engine):
        cpu = MLXKernelCPU(memory_size=MEMORY, device=engine)
        cpu.load_program(assemble("movz x1, #0x1000; ldr x0, [x1]; ldrb w2, [x1, #1]; hlt #0"))
        cpu.write_memory_64(0x1000, 0x1122334455667788)
        result = cpu.execute(max_cycles=100)
        assert result.stop_reason == StopReason.HALT
        assert (cpu.get_register(0), cpu.get_register(2)) == (0x1122334455667788, 0x77)

    def test_a_store_is_a_fault_that_leaves_memory_alone(self, engine):
        cpu = MLXKernelCPU(memory_size=MEMORY, device=engine)
        cpu.load_program(store_loop(5))
        result = cpu.execute(max_cycles=100)
        assert (result.stop_reason, result.cycles, result.final_pc) == (StopReason.FAULT, 4, 0x10)
        assert cpu.read_memory_64(0x1000) == 0
        assert "0x1000" in str(result.stop)


def test_a_faulting_run_of_the_second_kind_leaves_no_trace(engine):
    cpu = MLXKernelCPUv2(memory_size=MEMORY, device=engine)
    cpu.load_program(assemble("movz x1, #0x1000; movz x0, #1; str x0, [x1]; movn x1, #7; ldr x0, [x1]"))
    result = cpu.execute(max_cycles=100)
    assert (result.stop_reason, result.committed, result.final_pc) == (StopReason.FAULT, False, 0x10)
    assert (cpu.read_memory_64(0x1000), cpu.get_register(0), cpu.get_pc()) == (0, 0, 0)
