"""The examples in the docstrings of kvrm_metal and mlx_kernel are run, and everything public has a docstring."""

import doctest
import importlib
import inspect
import pkgutil
import subprocess
import sys

import kvrm_metal
import mlx_kernel
import pytest

PACKAGES = (kvrm_metal, mlx_kernel)
MODULES = [
    importlib.import_module(name)
    for package in PACKAGES
    for name in (
        package.__name__,
        *(f"{package.__name__}.{module.name}" for module in pkgutil.iter_modules(package.__path__)),
    )
]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_examples(module, monkeypatch):
    monkeypatch.setenv("KVRM_DEVICE", "cpu")
    assert doctest.testmod(module).failed == 0, "see above"


def test_there_are_examples():
    finder = doctest.DocTestFinder()
    examples = sum(len(test.examples) for module in MODULES for test in finder.find(module))
    assert examples > 50


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_everything_is_documented(package):
    for name in package.__all__:
        thing = getattr(package, name)
        assert thing.__doc__, name
        for member, value in inspect.getmembers(thing):
            if not member.startswith("_") and callable(value) and inspect.isclass(thing):
                assert value.__doc__, f"{name}.{member}"


def test_types(tmp_path):
    command = [sys.executable, "-m", "mypy", "--strict", "-p", "kvrm_metal", "-p", "mlx_kernel"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
