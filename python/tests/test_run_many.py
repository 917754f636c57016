"""Linux programs in many lanes: kvrm.run_many and kvrm.iter_many."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import textwrap
import threading
from itertools import count
from pathlib import Path
from typing import Any, Iterator

import numpy as np
import pytest

if sys.platform == "win32":
    pytest.skip("kvrm.run_many needs Unix", allow_module_level=True)

import kvrm
from linux_programs import ARGUMENTS, BROKEN, COPY, FILES, FOREVER, HELLO

WHICH = ["cpu", "eval"]


@pytest.fixture
def program(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """The program that the test is parametrised with, as a file."""
    return place(tmp_path, getattr(request, "param", COPY))


def place(folder: Path, contents: bytes, name: str = "program") -> str:
    path = folder / name
    path.write_bytes(contents)
    path.chmod(0o755)
    return str(path)


def lines(table: kvrm.LaneTable) -> list[list[str]]:
    return [stdout.decode().splitlines()[1:] for stdout in table.stdout]


def test_each_lane_has_its_own(tmp_path: Path) -> None:
    program = place(tmp_path, ARGUMENTS)
    table = kvrm.run_many(
        [program, "all"],
        argv=[1, ("a b", b"\xc3\xbc"), Path("x"), [], (np.int64(3), 0.5)],
        env=lambda lane: {"LANE": str(lane)},
    )
    assert lines(table) == [
        ["all", "1", "LANE=0"],
        ["all", "a b", "ü", "LANE=1"],
        ["all", "x", "LANE=2"],
        ["all", "LANE=3"],
        ["all", "3", "0.5", "LANE=4"],
    ]
    assert table[1].args == (program, "all")
    shared = kvrm.run_many(program, env={"A": "1"}, lanes=2)
    assert lines(shared) == [["A=1"], ["A=1"]]


def test_input_and_files(tmp_path: Path) -> None:
    copy, files = place(tmp_path, COPY), place(tmp_path, FILES, "files")
    assert kvrm.run_many(copy, stdin=[b"one", bytearray(b"two"), b""]).stdout == [b"one", b"two", b""]
    assert kvrm.run_many(copy, stdin=b"same", lanes=3).stderr == [b"same"] * 3
    table = kvrm.run_many(files, files=[{"/in": b"first"}, {}, {b"/in": b"third"}])
    assert table.files == [{"/out/new": b"first"}, {}, {"/out/new": b"third"}]
    assert table.status.tolist() == [0, 2, 0]
    kept = tmp_path / "kept"
    kvrm.run_many(files, files={"/in": b"x"}, lanes=2, keep=kept)
    assert [(kept / lane / "out/new").read_bytes() for lane in "01"] == [b"x", b"x"]


@pytest.mark.parametrize("engine", WHICH)
def test_a_lane_does_what_run_does(engine: str, tmp_path: Path) -> None:
    program = place(tmp_path, COPY)
    inputs = [bytes([n]) * n for n in range(20)]
    table = kvrm.run_many(program, stdin=inputs, engine=engine, threads=3)
    for lane, result in enumerate(table):
        alone = kvrm.run(program, stdin=inputs[lane], engine=engine)
        same = {name: getattr(result, name) for name in vars(alone)}
        assert kvrm.ProcessResult(**same) == alone
        assert (result.lane, result.engine, result.error) == (lane, engine, None)


def test_columns(tmp_path: Path) -> None:
    programs = {"hello": HELLO, "broken": BROKEN, "forever": FOREVER, "copy": COPY}
    results = []
    for lane, (name, contents) in enumerate(programs.items()):
        path = place(tmp_path, contents, name)
        table = kvrm.run_many(path, argv=[["x" * 100_000] * 100] if name == "copy" else [()], max_instructions=1000)
        results.append(table[0])
    table = kvrm.LaneTable(results)
    assert table.ending.tolist() == ["exited", "killed", "limit", "not started"]
    assert table.status.tolist() == [7, -1, -1, -1] and table.status.dtype == np.dtype(np.int16)
    assert table.signal.tolist() == [0, 11, 0, 0]
    assert table.instructions.tolist() == [8, 1, 1000, 0]
    assert table.system_calls.tolist() == [2, 0, 0, 0]
    assert table.stdout == [b"hello\n", b"", b"", b""]
    assert table.limits_hit == [[], [], ["max_instructions"], []]
    assert table.crash == [None, kvrm.Crash("SIGSEGV", 0x40007C, 8, "broken", 4), None, None]
    error = table.error[3]
    assert table.error[:3] == [None] * 3
    assert error is not None and "cannot execute" in error
    assert list(table.outcomes()) == [
        "SIGSEGV in broken+0x4",
        error,
        "ended by max_instructions",
        "exit code 7",
    ]


def test_a_table_is_chosen_from(program: str) -> None:
    table = kvrm.run_many(program, stdin=[b"%d" % n for n in range(10)])
    assert len(table) == 10
    assert [result.lane for result in table] == list(range(10))
    assert table[-1].lane == 9
    number: Any = np.int64(3)
    assert table[number].stdout == b"3"
    assert table[2:8:3].lane.tolist() == [2, 5]
    assert table[[7, 1]].stdout == [b"7", b"1"]
    assert table[table.lane > 7].stdout == [b"8", b"9"]
    assert len(table[[]]) == 0 and len(table[table.status != 0]) == 0
    wrong: Any
    for wrong in (10, [3, 10], np.array([True]), "x", 1.5):
        with pytest.raises(IndexError):
            table[wrong]
    assert repr(table[[]]) == "<kvrm.LaneTable: 0 lanes, 0 failed, 0 instructions>"


def test_a_table_says_where_its_lanes_were(program: str) -> None:
    table = kvrm.run_many(program, stdin=[b"1", b"2"])
    assert table.placement is not None
    assert table.placement.startswith("2 lanes on cpu (a lane took ")
    assert table.placement.endswith(": the rest was done in less time than a GPU needs to start)")
    assert table[:1].placement is None
    assert kvrm.run_many(program, lanes=1, engine="eval").placement == "1 lane on eval"


def test_a_table_is_shown(tmp_path: Path) -> None:
    path = place(tmp_path, HELLO)
    table = kvrm.run_many(path, lanes=12)
    assert repr(table) == (
        "<kvrm.LaneTable: 12 lanes, 12 failed, 96 instructions>\n  12  exit code 7  (lane 0)"
    )
    shown = table._repr_html_()
    assert "<td" in shown and "exit code 7" in shown and "The first 10 lanes" in shown
    assert "<script>" not in kvrm.run_many(place(tmp_path, COPY), stdin=[b"<script>"])._repr_html_()


def test_pandas_and_arrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = place(tmp_path, BROKEN)
    table = kvrm.run_many(path, lanes=2)
    for name, convert in (("pandas", table.to_pandas), ("pyarrow", table.to_arrow)):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(ImportError, match=f"pip install {name}"):
            convert()
        monkeypatch.delitem(sys.modules, name)
    pandas = importlib.import_module("pandas")
    frame = table.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame.exit_code.isna().all() and frame.fault_address.tolist() == [8, 8]
    arrow = table.to_arrow()
    assert (arrow["exit_code"].null_count, arrow["function"].to_pylist()) == (2, ["broken"] * 2)


def test_results_come_as_lanes_end(program: str) -> None:
    read = []

    def endless() -> Iterator[bytes]:
        for n in count():
            read.append(n)
            yield b"%d" % n

    runs = kvrm.iter_many(program, stdin=endless(), threads=2)
    for _ in range(50):
        result = next(runs)
        assert result.stdout == b"%d" % result.lane
    runs.close()
    assert len(read) < 300, "more were read than there was room for"
    with pytest.raises(StopIteration):
        next(runs)


def test_a_lane_that_takes_too_long_ends_alone(tmp_path: Path) -> None:
    path = place(tmp_path, FOREVER)
    table = kvrm.run_many(path, lanes=3, timeout=0.3)
    assert table.ending.tolist() == ["timeout"] * 3


def test_other_threads_run_and_may_make_values(program: str) -> None:
    ticks: list[bool] = []
    stop = threading.Event()
    thread = threading.Thread(target=lambda: ticks.extend(iter(lambda: stop.wait(0.001), True)))
    thread.start()
    table = kvrm.run_many(program, stdin=lambda lane: b"%d" % lane, lanes=2000)
    stop.set()
    thread.join()
    assert len(ticks) > 5
    assert table.stdout == [b"%d" % lane for lane in range(2000)]


class Trouble(Exception):
    pass


def test_exceptions_of_values_are_raised(program: str) -> None:
    def value(lane: int) -> bytes:
        if lane == 5:
            raise Trouble("lane 5")
        return b""

    with pytest.raises(Trouble, match="lane 5"):
        kvrm.run_many(program, stdin=value, lanes=10)
    lanes: list[int] = []
    with pytest.raises(Trouble):
        lanes.extend(result.lane for result in kvrm.iter_many(program, stdin=value, lanes=10))
    with pytest.raises(TypeError, match="must be bytes"):
        kvrm.run_many(program, stdin=["text"])  # type: ignore[list-item]
    with pytest.raises(TypeError):
        kvrm.run_many(program, argv=[object()])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({}, ValueError, "say how many lanes there are"),
        ({"stdin": lambda lane: b""}, ValueError, "say how many"),
        ({"lanes": -1}, ValueError, "negative"),
        ({"argv": [1, 2], "stdin": [b""]}, ValueError, "argv has values for 2 lanes, and stdin for 1"),
        ({"argv": iter([1, 2]), "stdin": [b""]}, ValueError, "stdin has values for 1 lanes, and argv for more"),
        ({"argv": "abc"}, TypeError, "argv is text"),
        ({"lanes": 1, "strace": True}, TypeError, "no argument 'strace'"),
        ({"lanes": 1, "engine": "abacus"}, ValueError, "no engine"),
        ({"lanes": 1, "engine": "wgpu", "realtime": True}, ValueError, "real time"),
        ({"lanes": 1, "cwd": "/nowhere"}, OSError, "/nowhere"),
        ({"lanes": 1, "max_memory": "much"}, ValueError, "not a size"),
    ],
)
def test_mistakes(program: str, options: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        kvrm.run_many(program, **options)


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        kvrm.run_many("/nowhere/program", lanes=1)
    with pytest.raises(ValueError, match="args is empty"):
        kvrm.run_many([], lanes=1)


@pytest.mark.parametrize("has_tqdm", [True, False])
def test_progress(
    has_tqdm: bool, program: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if not has_tqdm:
        monkeypatch.setitem(sys.modules, "tqdm", None)
        monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    kvrm.run_many(program, stdin=[b""] * 20, progress=True)
    shown = capsys.readouterr().err
    assert ("20/20" if has_tqdm else "20 lanes (100%)") in shown.replace("20.0/20.0", "20/20"), shown


def test_ctrl_c(tmp_path: Path) -> None:
    path = place(tmp_path, FOREVER)
    script = f"""
        import kvrm
        print("ready", flush=True)
        try:
            kvrm.run_many({path!r}, lanes=100)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    threading.Event().wait(0.5)
    os.kill(process.pid, signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert (out, process.returncode) == ("interrupted\n", 0)
