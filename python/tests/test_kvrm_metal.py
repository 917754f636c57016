"""What the machines of kvrm_metal have in common, and each kind's own methods."""

import dataclasses
import pickle

import kvrm
import kvrm_metal
import numpy as np
import pytest
from kvrm_metal import (
    AsyncMetalCPU,
    ContinuousMetalCPU,
    MetalCPU,
    ParallelMetalCPU,
    StopReason,
    _device,
)
from mlx_kernel import MLXKernelCPU, MLXKernelCPUv2
from programs import endless_store_loop, store_loop

KINDS = [MetalCPU, ContinuousMetalCPU, AsyncMetalCPU, ParallelMetalCPU, MLXKernelCPU, MLXKernelCPUv2]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def cpu(request, engine):
    return request.param(memory_size=256 * 1024, device=engine)


class TestCommonMethods:
    def test_registers(self, cpu):
        cpu.set_register(0, 5)
        cpu.set_register("x30", -1)
        cpu.set_register("sp", 0x8000)
        cpu.set_register("tpidr_el0", 7)
        cpu.set_register("nzcv", 0x6000_0000)
        cpu.set_pc(0x400)
        names = ("x0", "w30", 30, "sp", "tpidr_el0", "nzcv", "pc")
        values = (5, 2**32 - 1, 2**64 - 1, 0x8000, 7, 0x6000_0000, 0x400)
        assert tuple(cpu.get_register(name) for name in names) == values
        assert cpu.get_flags() == (False, True, True, False)
        cpu.set_flags(1, 0, 0, 1)
        assert cpu.get_register("nzcv") == 0x9000_0000

    def test_memory(self, cpu):
        assert cpu.memory_size == 256 * 1024
        cpu.write_memory(0x2000, [1, 2, 3])
        cpu.write_memory(0x2003, b"\x04")
        assert cpu.read_memory(0x2000, 5) == b"\x01\x02\x03\x04\x00"
        cpu.write_memory_64(0x3000, -2)
        assert cpu.read_memory_64(0x3000) == 2**64 - 2

    def test_load_program_takes_bytes_and_lists(self, cpu):
        code = kvrm.assemble("mov x0, #3; hlt #0")
        for program in (code, bytearray(code), memoryview(code), list(code)):
            cpu.load_program(program, 0x1000)
            assert cpu.read_memory(0x1000, len(code)) == code

    def test_reset(self, cpu):
        cpu.load_program(kvrm.assemble("hlt #0"), 0x1000)
        cpu.set_pc(0x1000)
        cpu.set_register(5, 5)
        cpu.reset()
        assert (cpu.get_register(5), cpu.get_pc()) == (0, 0)
        assert cpu.read_memory(0x1000, 4) == kvrm.assemble("hlt #0")

    @pytest.mark.parametrize(
        "call, error, words",
        [
            (lambda cpu: cpu.get_register("x31"), ValueError, "x31"),
            (lambda cpu: cpu.get_register(31), (IndexError, ValueError), "31"),
            (lambda cpu: cpu.set_register(0, 1 << 64), OverflowError, "64 bits"),
            (lambda cpu: cpu.set_register(0, 1.5), TypeError, "whole number"),
            (lambda cpu: cpu.set_pc(2), ValueError, "multiple of 4"),
            (lambda cpu: cpu.load_program("text"), TypeError, "list of byte values"),
            (lambda cpu: cpu.load_program([1.5]), TypeError, "list of byte values"),
            (lambda cpu: cpu.load_program([0xD4400000]), ValueError, "0 to 255"),
            (lambda cpu: cpu.write_memory(0, 5), TypeError, "list of byte values"),
            (lambda cpu: cpu.read_memory(cpu.memory_size - 4, 8), (IndexError, ValueError), "memory ends"),
            (lambda cpu: cpu.write_memory_64(cpu.memory_size, 1), (IndexError, ValueError), "memory ends"),
        ],
    )
    def test_bad_calls_say_what_is_wrong(self, cpu, call, error, words):
        with pytest.raises(error, match=words):
            call(cpu)


class TestResults:
    def test_fields(self, engine):
        cpu = MetalCPU(device=engine)
        cpu.load_program(store_loop(10))
        result = cpu.execute(max_cycles=1000)
        assert result.cycles == result.cycles_executed == result.total_cycles == 43
        assert (result.stop_reason, result.stop_reason_name) == (StopReason.HALT, "HALT")
        assert result.final_pc == cpu.get_pc() == 7 * 4
        assert result.elapsed_seconds > 0 and result.ips == result.avg_ips() > 0

    def test_counts_have_64_bits(self):
        # As many as the 32-bit counter of the prototype could not hold.
        cpu = MetalCPU(device="cpu")
        cpu.load_program(kvrm.assemble("again: b again"))
        assert cpu.execute(max_cycles=2**32 + 5).cycles == 2**32 + 5


class TestContinuous:
    def test_batches_end_where_the_program_halts(self, engine):
        cpu = ContinuousMetalCPU(cycles_per_batch=50, device=engine)
        cpu.load_program(store_loop(30))
        result = cpu.execute_continuous(max_batches=10)
        assert (result.total_cycles, result.batch_count, result.signal_name) == (123, 3, "HALT")

    def test_a_checkpoint_can_be_continued(self, engine):
        cpu = ContinuousMetalCPU(cycles_per_batch=50, device=engine)
        cpu.load_program(store_loop(30))
        result = cpu.execute_continuous(max_batches=2)
        assert (result.total_cycles, result.batch_count, result.signal_name) == (100, 2, "CHECKPOINT")
        assert cpu.execute_mega(total_cycles=1000).total_cycles == 23

    @pytest.mark.parametrize("cycles, error", [(0, ValueError), (-1, ValueError), ("many", TypeError)])
    def test_a_batch_has_cycles(self, cycles, error):
        with pytest.raises(error):
            ContinuousMetalCPU(cycles_per_batch=cycles, device="cpu")


class TestAsynchronous:
    def test_python_goes_on_while_it_runs(self, engine):
        cpu = AsyncMetalCPU(device=engine)
        cpu.load_program(endless_store_loop())
        cpu.start()
        assert cpu.is_running()
        while cpu.poll().cycles_executed == 0:
            assert cpu.poll().running
        result = cpu.cancel()
        assert not cpu.is_running()
        assert result.cycles_executed > 0 and result.stop_reason == StopReason.NONE

    def test_one_run_at_a_time(self, engine):
        cpu = AsyncMetalCPU(device=engine)
        cpu.load_program(endless_store_loop())
        cpu.start()
        with pytest.raises(RuntimeError):
            cpu.start(max_cycles=10)
        cpu.cancel()

    def test_waiting_needs_a_run(self):
        with pytest.raises(RuntimeError):
            AsyncMetalCPU(device="cpu").wait()

    def test_wait_gives_up_after_its_time(self):
        cpu = AsyncMetalCPU(device="cpu")
        cpu.load_program(endless_store_loop())
        cpu.start()
        with pytest.raises(TimeoutError):
            cpu.wait(timeout=0.01)
        cpu.cancel()


class TestDevices:
    def test_the_variable_is_the_default(self, monkeypatch):
        monkeypatch.setenv("KVRM_DEVICE", "eval")
        assert kvrm_metal.default_device() == "eval"
        assert MetalCPU().machine.engine == "eval"
        assert MetalCPU(device="cpu").machine.engine == "cpu"

    def test_real_gpus_come_first(self, monkeypatch):
        monkeypatch.delenv("KVRM_DEVICE", raising=False)

        class Device:
            def __init__(self, engine, index, name, usable=True):
                self.engine, self.index, self.name, self.usable = engine, index, name, usable

        present = [
            Device("cpu", None, "x86_64"),
            Device("wgpu", 0, "llvmpipe (LLVM 15.0.6, 256 bits)"),
            Device("wgpu", 1, "Apple M4 Pro"),
            Device("cuda", 0, "NVIDIA H200", usable=False),
            Device("cuda", 1, "NVIDIA H200"),
        ]
        monkeypatch.setattr(kvrm, "devices", lambda: present)
        assert _device._candidates() == ["cuda:1", "wgpu:1", "cpu"]

    def test_a_device_that_cannot_is_passed_over(self, monkeypatch):
        monkeypatch.delenv("KVRM_DEVICE", raising=False)
        # No computer has that many.
        monkeypatch.setattr(_device, "_candidates", lambda: ["wgpu:999", "cuda:999", "cpu"])
        assert ParallelMetalCPU(num_lanes=2).machine.engine == "cpu"

    @pytest.mark.parametrize(
        "device, error", [("gpu", ValueError), ("cuda:", ValueError), ("cuda:x", ValueError), (1, TypeError)]
    )
    def test_bad_names(self, device, error):
        with pytest.raises(error):
            MetalCPU(device=device)


def test_vector_registers_have_names() -> None:
    cpu = ParallelMetalCPU(num_lanes=2, device="cpu")
    cpu.set_register("v31", -1)
    assert cpu.get_register("q31") == 2**128 - 1 and cpu.get_register("d31") == 2**64 - 1
    cpu.set_register("s31", 0x3FC00000)
    assert cpu.machine.get_float("s31", lane=1) == 1.5 and cpu.get_register("v31") == 0x3FC00000
    cpu.set_register("fpcr", 1 << 24)
    assert cpu.get_register("fpcr") == 1 << 24 and cpu.get_register("fpsr") == 0


def test_results_are_pickled() -> None:
    cpu = MetalCPU(device="cpu")
    cpu.load_program(kvrm.assemble("hlt #3"))
    result = cpu.execute()
    assert pickle.loads(pickle.dumps(result)) == result
    assert dataclasses.asdict(result)["stop"].immediate == 3


def test_arrays_are_byte_values() -> None:
    cpu = MetalCPU(device="cpu")
    cpu.write_memory(0, np.array([0x12, 0x34]))
    cpu.write_memory(2, np.array([0x56], np.uint8))
    assert cpu.read_memory(0, 4) == b"\x12\x34\x56\x00"
    with pytest.raises(ValueError, match="byte values, 0 to 255"):
        cpu.load_program(np.array([0xD4400000]))
    for wrong in [np.int64(5), np.array([1.5])]:
        with pytest.raises(TypeError, match="bytes or a list of byte values are needed"):
            cpu.write_memory(0, wrong)


class TestTimeouts:
    def test_every_call_that_runs(self, engine):
        def machine(kind, **options):
            cpu = kind(memory_size=256 * 1024, device=engine, **options)
            cpu.load_program(endless_store_loop() if kind is not MLXKernelCPU else kvrm.assemble("here: b here"), 0)
            return cpu

        for kind in [MetalCPU, ParallelMetalCPU, MLXKernelCPU, MLXKernelCPUv2]:
            cpu = machine(kind)
            cpu.execute(10)  # a kernel is not compiled in a tenth of a second
            result = cpu.execute(timeout=0.1)
            assert result.timed_out and result.cycles > 0 and result.stop_reason == StopReason.NONE
        continuous = machine(ContinuousMetalCPU, cycles_per_batch=1000)
        assert continuous.execute_continuous(timeout=0.1).timed_out
        assert continuous.execute_mega(timeout=0.1).timed_out
        assert not continuous.execute_continuous(3, timeout=1000).timed_out
        background = machine(AsyncMetalCPU)
        background.start(timeout=0.1)
        assert background.wait().timed_out
