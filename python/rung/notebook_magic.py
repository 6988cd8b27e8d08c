# SPDX-License-Identifier: Apache-2.0
"""The cell magic %%cuda of IPython and Jupyter: `%load_ext rung.notebook_magic`.

    %%cuda
    extern "C" __global__ void twice(float* x) { x[threadIdx.x] *= 2; }

compiles the cell and makes each kernel a function of the notebook, `twice((1,), (32,), (x,))` (rung.cuda.RawKernel).
Words after %%cuda are options of the compiler (-DN=16). A cell with a main() is a program: it is compiled and run by
`rung emulate`, with its options after %%cuda (--order all, --counters) and the program's arguments after `--`.
"""
import os
import re
import shlex
import subprocess
import sys
import tempfile
from typing import Any, Dict, List

from .cuda import _compile, _source, functions_of


def run_program(source: str, words: List[str]) -> int:
    """Runs a program by `rung emulate`; its output, including findings, goes to sys.stdout. Returns the exit code."""
    with tempfile.TemporaryDirectory(prefix="rung-cell-") as folder:
        with open(os.path.join(folder, "cell.cu"), "w", encoding="utf-8") as file:
            file.write(source)
        options, arguments = words, []
        if "--" in words:
            options, arguments = words[:words.index("--")], words[words.index("--"):]
        command = [_compile.rung_program(), "emulate", os.path.join(folder, "cell.cu"), "-I", os.getcwd(), *options,
                   *arguments]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT) as running:
            try:
                assert running.stdout is not None
                for line in running.stdout:
                    sys.stdout.write(line.decode("utf-8", "replace").replace(folder + "/", ""))
                    sys.stdout.flush()
            except BaseException:  # Ctrl-C
                running.terminate()
                raise
    return running.returncode


def cuda_cell(line: str, cell: str, namespace: Dict[str, Any]) -> None:
    """Compiles a cell and adds its kernels to the namespace; runs the cell instead if it has a main()."""
    words = shlex.split(line)
    if re.search(r"\bmain\s*\(", _source.blanked(cell)):
        code = run_program(cell, words)
        if code != 0:
            print("rung emulate found a bug" if code == 66 else f"the program ended with exit code {code}")
        return
    templates, kernels = functions_of(cell, words, "the cell")
    namespace.update(kernels)
    if kernels:
        print("kernels: " + ", ".join(kernels))
    if templates:
        print("templates need rung.cuda.RawModule(code, name_expressions=[...]): " + ", ".join(templates))
    if not kernels and not templates:
        print("the cell has no __global__ function")


def load_ipython_extension(shell: Any) -> None:
    """Registers %%cuda."""
    def magic(line: str, cell: str) -> None:
        cuda_cell(line, cell, shell.user_ns)
    shell.register_magic_function(magic, "cell", "cuda")
