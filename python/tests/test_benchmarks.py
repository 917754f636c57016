"""The benchmark scripts run and print what they should; no time is looked at."""

import doctest
import json
import subprocess
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
QUICK = ("--seconds", "0.001", "--max-lanes", "2")


def run(script, *arguments):
    command = [sys.executable, str(FOLDER / script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def figures(tmp_path_factory):
    """Figures of the cpu engine, measured much too briefly."""
    file = tmp_path_factory.mktemp("figures") / "cpu.json"
    done = run("all_modes.py", "--device", "cpu", *QUICK, "--json", str(file))
    assert done.returncode == 0, done.stderr
    return file


def test_figures_are_complete(figures):
    (cpu,) = json.loads(figures.read_text("utf-8"))
    assert list(cpu["modes"]) == ["V1", "V2", "MetalCPU", "Continuous", "Mega", "Async"]
    assert cpu["modes"]["V1"]["store"] is None
    others = [ips for mode in cpu["modes"].values() for ips in mode.values() if ips is not None]
    assert len(others) == 11 and all(ips > 0 for ips in others)
    assert list(cpu["lanes"]) == ["1", "2"]
    assert all(seconds > 0 for times in cpu["seconds"].values() for seconds in times.values())


@pytest.mark.parametrize("options", [(), ("--markdown",)], ids=["plain", "markdown"])
def test_tables(figures, options):
    done = run("all_modes.py", "--from-json", str(figures), *options)
    assert done.returncode == 0, done.stderr
    for word in ("Apple M4 Pro", "PyTorch", "V1", "V2", "MetalCPU", "Continuous", "Mega", "Async", "cpu, store"):
        assert word in done.stdout, word
    rows = [line for line in done.stdout.splitlines() if line.startswith("|")]
    assert bool(rows) == bool(options)
    assert all(line.count("|") >= 5 and line.endswith("|") for line in rows)


def test_charts(figures, tmp_path):
    # Two computers in one chart.
    twice = ["--from-json", str(figures), "--from-json", str(figures)]
    done = run("all_modes.py", *twice, "--charts", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert sorted(file.name for file in tmp_path.iterdir()) == ["lanes.svg", "modes.svg"]
    name = "{http://www.w3.org/2000/svg}"
    bars = xml.parse(tmp_path / "modes.svg").getroot().findall(f"{name}rect/{name}title")
    assert len(bars) == 7 + 2 * 6
    lines = xml.parse(tmp_path / "lanes.svg").getroot().findall(f"{name}g/{name}polyline")
    assert len(lines) == 3


def test_tables_go_into_a_page(figures, tmp_path):
    page = tmp_path / "page.md"
    lines = ("<!-- Written by benchmarks/all_modes.py. -->", "old", "<!-- End of what it writes. -->", "after")
    page.write_text("\n".join(("before", *lines)), "utf-8")
    for _ in range(2):
        done = run("all_modes.py", "--from-json", str(figures), "--into", str(page))
        assert done.returncode == 0, done.stderr
    text = page.read_text("utf-8")
    assert text.startswith("before\n") and text.endswith("\nafter")
    assert "old" not in text and text.count("### One machine") == 1
    page.write_text("no place", "utf-8")
    assert "needs the lines" in run("all_modes.py", "--from-json", str(figures), "--into", str(page)).stderr


def test_json_alone_is_json():
    done = run("all_modes.py", "--device", "cpu", *QUICK, "--json", "-")
    assert json.loads(done.stdout)[0]["device"] == "cpu"


def test_numbers_are_written_for_people(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    import all_modes

    assert doctest.testmod(all_modes) == (0, 2)


def test_a_device_that_is_not_there_is_an_error():
    done = run("all_modes.py", "--device", "abacus", *QUICK)
    assert done.returncode == 1
    assert "abacus" in done.stderr and "Traceback" not in done.stderr


def test_without_pytorch_the_baselines_say_so():
    # -S leaves out installed packages, PyTorch among them if it is there.
    command = [sys.executable, "-S", str(FOLDER / "pytorch_baselines.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "pip install torch" in done.stdout, done.stderr
