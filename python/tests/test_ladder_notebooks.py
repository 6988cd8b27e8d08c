# SPDX-License-Identifier: Apache-2.0
"""The notebooks of docs/ run, each in a kernel of its own."""
import importlib.util
import os
import pathlib
import shutil

import pytest

NOTEBOOKS = sorted((pathlib.Path(__file__).resolve().parents[2] / "docs" / "notebooks").glob("*.ipynb"))
NEEDS = {"use_a_kernel": ("softmax", "gemm"), "climb_a_ladder": ("reduce",), "debug_a_kernel_string": ()}


def operators_here():
    from rung import _program
    return {row["op"] for row in _program.run("list", progress=False)}


def why_not(name):
    """Return the reason why a notebook cannot run here; "" if it can."""
    if name != "climb_a_ladder" and importlib.util.find_spec("rung._rung") is None:
        return "the extension module is not built"
    if name == "debug_a_kernel_string" and (importlib.util.find_spec("rung.cuda") is None or not shutil.which("g++")):
        return "there is no rung.cuda, or no g++"
    missing = set(NEEDS[name]) - operators_here()
    return f"built without {', '.join(sorted(missing))}" if missing else ""


def test_every_notebook_is_known():
    assert {path.stem for path in NOTEBOOKS} == set(NEEDS)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_stored_without_outputs(path):
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert all(not cell.outputs and cell.execution_count is None for cell in notebook.cells if cell.cell_type == "code")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path, program, tmp_path, monkeypatch):
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    reason = why_not(path.stem)
    if reason:
        pytest.skip(reason)
    monkeypatch.setenv("XDG_CACHE_HOME", os.environ.get("XDG_CACHE_HOME", str(tmp_path)))
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3",
                            resources={"metadata": {"path": str(tmp_path)}}).execute()
