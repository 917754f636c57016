"""The notebooks run from top to bottom and print what is kept in them; with KVRM_BLESS=1, they are written anew."""

import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from test_guide import without_times

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def printed(cell):
    """What a cell prints; pictures may differ between versions of matplotlib."""
    return without_times("".join(output.get("text", "") for output in cell.get("outputs", [])))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(path):
    kept = nbformat.read(path, as_version=4)
    run = nbformat.read(path, as_version=4)
    NotebookClient(run, timeout=300, resources={"metadata": {"path": FOLDER}}).execute()
    if os.environ.get("KVRM_BLESS") == "1":
        for cell in run.cells:
            cell.metadata.pop("execution", None)  # times of the run, different each time
        nbformat.write(run, path)
        return
    for before, after in zip(kept.cells, run.cells):
        if before.cell_type == "code":
            assert before.execution_count, "kept without its output: run this test with KVRM_BLESS=1"
            assert printed(before) == printed(after), before.source


def test_there_are_notebooks():
    assert len(NOTEBOOKS) == 4
