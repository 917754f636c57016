"""The Python and console blocks of the guide do what they show.

The blocks of a page run one after the other, as a reader would type them, in the repository's folder. Times and
speeds in what commands print differ from run to run, so they count as equal.
"""

import doctest
import os
import re
import shlex
import subprocess
from pathlib import Path

import kvrm
import kvrm_metal
import mlx_kernel
import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OPTIONS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL


def blocks(page, language):
    """The blocks of a page in that language, with the line each begins at."""
    text = page.read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        if match[1] == language:
            yield text[: match.start()].count("\n") + 1, match[2]


def with_blocks(language):
    return [pytest.param(page, id=page.name) for page in PAGES if any(blocks(page, language))]


@pytest.fixture(autouse=True)
def _in_the_repository(monkeypatch):
    monkeypatch.chdir(ROOT)
    # What the guide shows without a device must not depend on the computer's.
    monkeypatch.setenv("KVRM_DEVICE", "cpu")


@pytest.mark.parametrize("page", with_blocks("python"))
def test_python(page):
    space = {"__name__": "__main__"}
    for line, block in blocks(page, "python"):
        if ">>>" not in block:
            exec(compile("\n" * line + block, str(page), "exec"), space)
            continue
        test = doctest.DocTestParser().get_doctest(block, space, page.name, str(page), line)
        failures, tried = doctest.DocTestRunner(optionflags=OPTIONS).run(test, clear_globs=False)
        assert tried and not failures, f"{page.name}:{line}: differs, see above"


def program():
    """The command kvrm, which must have been built."""
    built = Path(os.environ.get("KVRM_COMMAND", ROOT / "target/debug/kvrm"))
    assert built.exists(), f"{built} is missing: cargo build --package kvrm-cli"
    return str(built)


def without_times(text):
    """Output with times and speeds blotted out."""
    text = re.sub(r"\d[\d,.]*( [kKMGT])?/s\b", "#/s", text)
    return re.sub(r"\d[\d,.]* (ns|µs|ms|s)\b", "# s", text)


@pytest.mark.parametrize("page", with_blocks("console"))
def test_console(page):
    for line, block in blocks(page, "console"):
        commands = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
        assert commands, f"{page.name}:{line}: no command"
        for command in commands:
            typed, _, shown = command.partition("\n")
            name, *arguments = shlex.split(typed, comments=True)
            assert name == "kvrm", f"{page.name}:{line}: {name} is not run by this test"
            done = subprocess.run([program(), *arguments], capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            assert without_times(done.stdout) == without_times(shown), f"{page.name}:{line}"


def public(thing):
    return [name for name in dir(thing) if not name.startswith("_")]


def test_the_reference_names_everything():
    text = (ROOT / "docs/python.md").read_text(encoding="utf-8")
    words = set(re.findall(r"\w+", text))
    missing = {
        f"{module.__name__}.{name}"
        for module in (kvrm, kvrm_metal, mlx_kernel)
        for name in module.__all__
        if name not in words
    }
    kinds = [kvrm.Machine, kvrm.RunResult, kvrm.Stop, kvrm.Device, kvrm.Progress, kvrm.Instruction]
    kinds += [kvrm.ProcessResult, kvrm.Crash, kvrm.SystemCall, kvrm.LaneResult, kvrm.LaneTable]
    kinds += [getattr(kvrm_metal, name) for name in kvrm_metal.__all__ if name != "default_device"]
    kinds += [mlx_kernel.MLXKernelCPU, mlx_kernel.MLXKernelCPUv2]
    missing |= {
        f"{kind.__name__}.{name}"
        for kind in kinds
        for name in public(kind)
        if name not in words and not hasattr(int, name) and not hasattr(tuple, name)
    }
    assert not missing, f"docs/python.md does not name {sorted(missing)}"
