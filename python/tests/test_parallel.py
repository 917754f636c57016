"""Lanes: apart in their registers, together in their memory."""

import kvrm
import pytest
from kvrm_metal import ParallelMetalCPU, StopReason

LANES = 32


@pytest.fixture
def lanes(engine):
    def build(program, num_lanes=LANES, **options):
        cpu = ParallelMetalCPU(num_lanes=num_lanes, memory_size=256 * 1024, device=engine, **options)
        cpu.load_program(kvrm.assemble(program), address=0)
        cpu.set_pc_all(0)
        return cpu

    return build


def test_lanes_start_alike(lanes):
    cpu = lanes("hlt #0")
    cpu.set_pc_all(0x1000)
    cpu.set_register(0, 10)
    cpu.set_register(1, 20)
    for lane in range(LANES):
        assert (cpu.get_pc(lane), cpu.get_lane_registers(lane)[:2]) == (0x1000, [10, 20])


def test_each_lane_has_its_own_registers_flags_and_pc(lanes):
    cpu = lanes("""
        loop: subs x0, x0, #1
        add x1, x1, #2
        b.gt loop
        hlt #0
    """)
    for lane in range(LANES):
        cpu.set_registers_lane(lane, [lane + 1])
    cpu.set_register(0, 0, lane=5)
    result = cpu.execute(10_000)
    turns = [1 if lane == 5 else lane + 1 for lane in range(LANES)]
    assert result.cycles_per_lane == [3 * turn for turn in turns]
    assert [cpu.get_lane_registers(lane)[1] for lane in range(LANES)] == [2 * turn for turn in turns]
    assert cpu.get_flags(4).z and not cpu.get_flags(4).n
    assert cpu.get_flags(5).n and not cpu.get_flags(5).z


def test_lanes_at_different_places_of_a_program(lanes):
    cpu = lanes("mov x0, #1; hlt #1; mov x0, #2; hlt #2")
    for lane in range(1, LANES, 2):
        cpu.set_pc_lane(lane, 8)
    result = cpu.execute(100)
    assert result.pcs_per_lane == [4, 12] * (LANES // 2)
    assert [cpu.get_register(0, lane) for lane in (0, 1, 30, 31)] == [1, 2, 1, 2]


def test_stops_are_told_lane_by_lane(lanes):
    cpu = lanes("cbz x0, halt; cmp x0, #1; b.eq call; again: b again; call: svc #0; halt: hlt #0")
    for lane in range(LANES):
        cpu.set_registers_lane(lane, [min(lane, 2)])
    result = cpu.execute(1000)
    assert result.stop_reasons[:3] == [StopReason.HALT, StopReason.SYSCALL, StopReason.MAX_CYCLES]
    assert result.stop_reason == StopReason.MAX_CYCLES
    # All of them together.
    assert result.total_cycles == sum(result.cycles_per_lane)


def test_a_lane_sees_what_another_stored(lanes):
    """Lane 0 stores at 0x1000, as in the prototype's document; the others wait for it there."""
    cpu = lanes("""
        mov x1, #0x1000
        cbz x0, sender
    wait:
        ldar x2, [x1]
        cbz x2, wait
        hlt #0
    sender:
        mov x2, #0x2a
        stlr x2, [x1]
        hlt #0
    """)
    for lane in range(LANES):
        cpu.set_registers_lane(lane, [lane])
    result = cpu.execute(1_000_000)
    assert set(result.stop_reasons) == {StopReason.HALT}
    assert [cpu.get_register(2, lane) for lane in range(LANES)] == [0x2A] * LANES


def test_a_message_goes_round(lanes):
    """Each lane waits for its left neighbour, adds one, and passes it on to the right."""
    cpu = lanes("""
        mov x1, #0x1000
        add x3, x1, x0, lsl #3
    wait:
        ldar x2, [x3]
        cbz x2, wait
        add x2, x2, #1
        add x3, x3, #8
        stlr x2, [x3]
        hlt #0
    """)
    for lane in range(LANES):
        cpu.set_registers_lane(lane, [lane])
    cpu.write_memory_64(0x1000, 1)
    result = cpu.execute(10_000_000)
    assert set(result.stop_reasons) == {StopReason.HALT}
    assert cpu.read_memory_64(0x1000 + 8 * LANES) == LANES + 1


def test_private_lanes_do_not_see_each_other(lanes):
    cpu = lanes("mov x1, #0x1000; ldr x2, [x1]; str x0, [x1]; hlt #0", model="private")
    for lane in range(LANES):
        cpu.set_registers_lane(lane, [lane + 1])
    cpu.execute(100)
    assert [cpu.get_register(2, lane) for lane in range(LANES)] == [0] * LANES
    assert cpu.machine.read_memory(0x1000, 1, lane=7) == b"\x08"


def test_registers_of_a_lane_can_be_copied(lanes):
    cpu = lanes("hlt #0", num_lanes=2)
    cpu.set_registers_lane(0, range(100, 131))
    cpu.set_registers_lane(1, cpu.get_lane_registers(0))
    assert cpu.get_lane_registers(1) == [*range(100, 131), 0]


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda cpu: cpu.set_pc_lane(2, 0), IndexError, "lane 2"),
        (lambda cpu: cpu.get_lane_registers(-1), IndexError, "lane -1"),
        (lambda cpu: cpu.set_registers_lane(0, [0] * 33), ValueError, "31 registers"),
        (lambda cpu: cpu.set_registers_lane(0, [0] * 31 + [1]), ValueError, "zero register"),
        (lambda cpu: ParallelMetalCPU(num_lanes=0, device="cpu"), ValueError, "at least one lane"),
        (lambda cpu: ParallelMetalCPU(model="common", device="cpu"), ValueError, "common"),
    ],
)
def test_bad_calls_say_what_is_wrong(lanes, call, error, words):
    cpu = lanes("hlt #0", num_lanes=2)
    with pytest.raises(error, match=words):
        call(cpu)


def test_registers_are_set_all_or_none() -> None:
    cpu = ParallelMetalCPU(num_lanes=2, device="cpu")
    with pytest.raises(TypeError):
        cpu.set_registers_lane(0, [1, 2, "x"])  # type: ignore[list-item]
    assert cpu.get_lane_registers(0) == [0] * 32
    with pytest.raises(IndexError, match="lane 9 does not exist"):
        cpu.set_registers_lane(9, [])


def test_results_of_many_lanes_are_told_in_a_line() -> None:
    cpu = ParallelMetalCPU(num_lanes=10_000, device="cpu")
    cpu.load_program(kvrm.assemble("hlt #0"))
    assert repr(cpu.execute()).startswith("ParallelResult(10000 lanes, cycles=0, mostly HALT")
