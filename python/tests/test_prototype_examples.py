"""Every Python block of the prototype's documents runs as it stands there.

Not here, because they are no uses of the machines but sketches of how slower ones worked inside:

- mlx-kernel-architecture.md, "PyTorch approach (simplified)" and "PyTorch batch approach": their functions are
  never defined. ``benchmarks/pytorch_baselines.py`` is these two loops, made to run.
- mlx-kernel-architecture.md, ``mx.fast.metal_kernel(...)``: how the prototype gave its shader to MLX. Here
  kernels are made from the instruction table, and MLX is not used.
"""

import re
from pathlib import Path

import kvrm_metal
import pytest
from programs import endless_store_loop, store_loop

BLOCKS = dict(
    re.findall(
        r"^==== (.*)\n((?:(?!====).*\n)*)",
        Path(__file__).with_name("prototype_examples.txt").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
)

#: Engines on which a hundred million instructions are a matter of a second.
FAST = ("cpu", "cuda")
ITERATIONS = 500


@pytest.fixture(autouse=True)
def _chosen_device(monkeypatch, engine):
    """The blocks name no device, so the default is set."""
    monkeypatch.setenv("KVRM_DEVICE", engine)


def run(names, program, **given):
    """Runs blocks one after the other; what they defined."""
    space = {"program_bytes": program, **given}
    for name in names:
        exec(compile(BLOCKS[name], name, "exec"), space)
    return space


def program_for(engine):
    """An endless program, or where that takes too long one that halts."""
    return endless_store_loop() if engine in FAST else store_loop(ITERATIONS)


def expected(engine, limit):
    """Cycles and stop of a run with that limit."""
    return (limit, "MAX_CYCLES") if engine in FAST else (3 + 4 * ITERATIONS, "HALT")


def stored(cycles):
    """What the endless program has stored after so many instructions: one before the loop, then the second
    of every three."""
    return cycles // 3


def test_all_blocks_are_used():
    assert len(BLOCKS) == 9
    assert {name.partition(":")[0] for name in BLOCKS} == {
        "mlx-kernel-v2-results.md",
        "rust-metal-kernel-results.md",
        "zero-sync-gpu-roadmap.md",
        "parallel-metal-cpu-memory-architecture.md",
    }


def test_v2(engine, capsys):
    space = run(["mlx-kernel-v2-results.md: usage"], program_for(engine))
    cycles, stop = expected(engine, 10_000_000)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"Executed {cycles:,} instructions"
    assert re.fullmatch(r"IPS: [\d,]+", lines[1])
    assert lines[2] == f"Stop reason: {stop}"
    assert space["value"] == (stored(cycles) if engine in FAST else ITERATIONS)


def test_metal(engine, capsys):
    space = run(["rust-metal-kernel-results.md: usage"], program_for(engine))
    cycles, stop = expected(engine, 100_000_000)
    assert capsys.readouterr().out == f"Executed {cycles:,} cycles\nStop reason: {stop}\n"
    assert space["value"] == (stored(cycles) if engine in FAST else ITERATIONS)
    assert space["cpu"].read_memory(0x2000, 2) == b"\x12\x34"


def test_asynchronous(engine, capsys):
    worked = []
    name = "zero-sync-gpu-roadmap.md: asynchronous"
    run([name], program_for(engine), do_other_work=lambda: worked.append(True))
    cycles, _ = expected(engine, 100_000_000)
    *progress, total = capsys.readouterr().out.splitlines()
    counts = [int(line.removeprefix("Progress: ").replace(",", "")) for line in progress]
    assert counts == sorted(counts) and len(counts) == len(worked)
    assert all(count <= cycles for count in counts)
    assert re.fullmatch(rf"Total: {cycles:,} @ [\d,]+ IPS", total)


def test_continuous(engine):
    name = "zero-sync-gpu-roadmap.md: continuous"
    loop, _, mega = BLOCKS[name].partition("# Or single")
    space = {"program_bytes": program_for(engine)}
    exec(loop, space)
    cycles, stop = expected(engine, 100_000_000)
    first = space["result"]
    assert (first.total_cycles, first.stop_reason_name) == (cycles, stop)
    assert first.batch_count == (10 if engine in FAST else 1)
    exec("# Or single" + mega, space)
    second = space["result"]
    # HLT stays where it is: running again stops there again, with nothing executed.
    assert second.total_cycles == (100_000_000 if engine in FAST else 0)
    assert second.signal_name == ("CHECKPOINT" if engine in FAST else "HALT")


def test_parallel(engine, capsys):
    names = [name for name in BLOCKS if name.startswith("parallel-")]
    assert len(names) == 5
    space = run(names, program_for(engine), ParallelMetalCPU=kvrm_metal.ParallelMetalCPU)
    cpu, result = space["cpu"], space["result"]
    assert cpu.num_lanes == 32
    assert float(capsys.readouterr().out) == result.avg_ips()
    if engine in FAST:
        assert result.cycles_per_lane == [10_000_000] * 32
        assert result.total_cycles == 320_000_000 and result.avg_ips() > 0
        assert cpu.get_lane_registers(31)[0] == 6_666_667  # ADD is the first of every three
    else:
        assert set(result.stop_reasons) == {kvrm_metal.StopReason.HALT}
        assert cpu.get_lane_registers(31)[0] == ITERATIONS
