"""Examples in docstrings are run, and stubs say what is there."""

from __future__ import annotations

import contextlib
import doctest
import inspect
import io
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kvrm
import pytest


def documented() -> Iterator[tuple[str, str]]:
    """Everything public with a docstring, by name."""

    def walk(name: str, thing: Any) -> Iterator[tuple[str, str]]:
        if thing.__doc__:
            yield name, thing.__doc__
        if inspect.isclass(thing):
            for member, value in vars(thing).items():
                if not member.startswith("_"):
                    yield from walk(f"{name}.{member}", value)

    yield "kvrm", kvrm.__doc__ or ""
    for name in kvrm.__all__:
        if not name.startswith("_"):
            yield from walk(f"kvrm.{name}", getattr(kvrm, name))


EXAMPLES = [(name, text) for name, text in documented() if ">>>" in text]


@pytest.mark.parametrize(("name", "text"), EXAMPLES, ids=[name for name, _ in EXAMPLES])
def test_examples(name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Some run programs from guests/.
    monkeypatch.chdir(Path(__file__).parents[2])
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
    output: list[str] = []
    doctest.DocTestRunner().run(test, out=output.append)
    assert not output, "".join(output)


def test_everything_is_documented() -> None:
    names = {name for name, _ in documented()}
    for name in kvrm.__all__:
        thing = getattr(kvrm, name)
        if name.startswith("_"):
            continue
        assert f"kvrm.{name}" in names, name
        if inspect.isclass(thing) and thing.__module__ == "kvrm" and not issubclass(thing, int):
            for member in vars(thing):
                assert member.startswith("_") or f"kvrm.{name}.{member}" in names, (name, member)


def test_readme() -> None:
    text = (Path(__file__).parents[2] / "README.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert blocks
    for block in blocks:
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(block, {})
        assert "2000 instructions" in output.getvalue() and "[" in output.getvalue()


def test_stubs_are_complete() -> None:
    pytest.importorskip("mypy")
    for command in [["mypy.stubtest", "kvrm"], ["mypy", "--strict", "-p", "kvrm"]]:
        result = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True)
        assert result.returncode == 0, result.stdout + result.stderr
